from __future__ import annotations

from snapshots.registry.masking import masked
from tests.registry import stored

CLUSTER = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {a: "1"}
---
apiVersion: v1
kind: Secret
metadata:
  name: token
  namespace: shop
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"t":"cGFzcw=="}}', other: kept}
data: {t: cGFzcw==}
"""


def test_what_cannot_be_read_is_named_and_the_rest_goes_on() -> None:
    raw = {"/registry/configmaps/shop/broken": b"k8s\x00\x01", "/registry/configmaps/shop/sealed": b"k8s:enc:kms:v2:p:"}
    found = {each.name: each for each in stored.registry(CLUSTER, raw).everything()}
    assert found["settings"].trouble == ""
    assert found["settings"].body["data"] == {"a": "1"}
    assert found["broken"].trouble.startswith("damaged: bad protobuf")
    assert found["sealed"].trouble.startswith("locked: encrypted by kms v2 plugin p")
    assert found["broken"].kind == "ConfigMap"
    assert found["broken"].body["metadata"] == {"name": "broken", "namespace": "shop", "resourceVersion": "80"}


def test_a_name_that_is_a_prefix_of_another_is_not_mixed_up() -> None:
    registry = stored.registry(CLUSTER + CLUSTER.replace("settings", "settings-2").replace("token", "token-2"))
    (resource,) = registry.resources.find("cm")
    assert [each.name for each in registry.objects(resource, "shop", "settings")] == ["settings"]
    assert [each.name for each in registry.objects(resource, "sho")] == []


def test_counts_need_no_decoding() -> None:
    registry = stored.registry(
        raw={"/registry/pods/a/x": b"junk", "/registry/pods/b/y": b"", "/registry/ranges/x": b""}
    )
    assert registry.counts() == {("", "pods", "a"): 1, ("", "pods", "b"): 1}


def test_secrets_are_shown_by_size() -> None:
    registry = stored.registry(CLUSTER)
    (resource,) = registry.resources.find("secret")
    (secret,) = registry.objects(resource)
    hidden = masked(secret.body)
    assert hidden["data"] == {"t": "<hidden: 4 bytes>"}
    assert "cGFzcw" not in str(hidden)
    assert hidden["metadata"]["annotations"]["other"] == "kept"
    assert secret.body["data"] == {"t": "cGFzcw=="}
