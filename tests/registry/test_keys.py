from __future__ import annotations

import pytest

from snapshots.registry.keys import Place, place, prefix_of


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("/registry/pods/shop/front-0", Place("", "pods", "shop", "front-0")),
        ("/registry/minions/cp-1", Place("", "nodes", "", "cp-1")),
        ("/registry/services/specs/default/kubernetes", Place("", "services", "default", "kubernetes")),
        ("/registry/services/endpoints/default/kubernetes", Place("", "endpoints", "default", "kubernetes")),
        ("/registry/ingress/shop/web", Place("", "ingresses", "shop", "web")),
        ("/registry/example.org/widgets/shop/w", Place("example.org", "widgets", "shop", "w")),
        ("/registry/example.org/clusterwidgets/w", Place("example.org", "clusterwidgets", "", "w")),
        (
            "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.org",
            Place("apiextensions.k8s.io", "customresourcedefinitions", "", "widgets.example.org"),
        ),
        ("/registry/clusterroles/system:node", Place("", "clusterroles", "", "system:node")),
        ("/registry/masterleases/192.0.2.1", None),
        ("/registry/ranges/serviceips", None),
        ("/registry/health", None),
        ("compact_rev_key", None),
        ("/registry/a/b/c/d/e", None),
    ],
)
def test_keys_name_their_objects(key: str, expected: Place | None) -> None:
    assert place(key.encode()) == expected


def test_another_prefix() -> None:
    assert place(b"/kubernetes.io/pods/a/b", "/kubernetes.io") == Place("", "pods", "a", "b")
    assert place(b"/registry/pods/a/b", "/kubernetes.io") is None


def test_prefixes_are_those_of_the_keys() -> None:
    assert prefix_of("", "services", "shop") == b"/registry/services/specs/shop/"
    assert prefix_of("example.org", "widgets") == b"/registry/example.org/widgets/"
    assert prefix_of("", "nodes") == b"/registry/minions/"
