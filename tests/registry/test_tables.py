"""The cells that need reckoning; the columns of 40 kinds were compared with those of a running API server 1.37."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshots.registry.keys import Place
from snapshots.registry.objects import Object
from snapshots.registry.resources import Resource, built_in
from snapshots.registry.tables import cells, pods, table
from snapshots.registry.tables.custom import values
from tests.registry import stored
from tests.registry.test_resources import WIDGETS

WORDS = ("name", "spec", "containers", "conditions", "type", "status", "ports", "template", "labels", "selector")
NOW = datetime(2026, 11, 30, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (599, "9m59s"), (600, "10m")),
        *((10_799, "179m"), (10_800, "3h"), (11_100, "3h5m"), (28_800, "8h"), (172_799, "47h"), (172_800, "2d")),
        *((176_400, "2d1h"), (691_200, "8d"), (63_071_999, "729d"), (63_072_000, "2y"), (63_158_400, "2y1d")),
        (252_288_000, "8y"),
    ],
)
def test_ages_are_as_kubectl_prints_them(seconds: int, text: str) -> None:
    assert cells.elapsed(seconds) == text


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "status": status}


def state(name: str, **what: Any) -> dict[str, Any]:
    return {"name": name, "restartCount": 0, "state": what} | ({"ready": True} if "running" in what else {})


@pytest.mark.parametrize(
    ("status", "ready", "reason"),
    [
        ({"phase": "Pending"}, "0/2", "Pending"),
        ({"phase": "Running", "containerStatuses": [state("a", running={}), state("b", running={})]}, "2/2", "Running"),
        (
            {
                "phase": "Running",
                "containerStatuses": [state("a", running={}), state("b", waiting={"reason": "Crash"})],
            },
            "1/2",
            "Crash",
        ),
        ({"phase": "Failed", "containerStatuses": [state("a", terminated={"exitCode": 3})]}, "0/2", "ExitCode:3"),
        ({"phase": "Failed", "reason": "Evicted"}, "0/2", "Evicted"),
        (
            {"phase": "Pending", "initContainerStatuses": [state("i", waiting={"reason": "ImagePullBackOff"})]},
            "0/2",
            "Init:ImagePullBackOff",
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [state("a", running={}), state("b", terminated={"reason": "Completed"})],
            },
            "1/2",
            "NotReady",
        ),
    ],
)
def test_a_pod_s_status(status: dict[str, Any], ready: str, reason: str) -> None:
    assert pods.ready(pod(**status), NOW) == ready
    assert pods.status(pod(**status), NOW) == reason


def test_restarts_tell_when_the_last_one_was() -> None:
    ended = (NOW - timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    container = state("a", running={}) | {"restartCount": 4, "lastState": {"terminated": {"finishedAt": ended}}}
    assert pods.restarts(pod(containerStatuses=[container]), NOW) == "4 (5m ago)"


def test_custom_resources_have_the_columns_of_their_definition() -> None:
    widget = """
---
apiVersion: example.org/v1
kind: Widget
metadata: {name: w1, namespace: shop}
spec: {size: 3}
"""
    registry = stored.registry(WIDGETS + widget)
    (resource,) = registry.resources.find("wd")
    made = table(resource, list(registry.objects(resource)), NOW, all_=True)
    assert made == (("NAMESPACE", "NAME", "SIZE"), (("shop", "w1", "3"),))


def test_what_cannot_be_read_has_its_row() -> None:
    registry = stored.registry(raw={"/registry/pods/shop/p": b"k8s\x00\x01"})
    (resource,) = registry.resources.find("po")
    (row,) = table(resource, list(registry.objects(resource)), NOW).rows
    assert row[:2] == ("p", "<damaged: bad protobuf: a varint does not end at revision 80>")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@given(
    body=st.dictionaries(st.sampled_from(["metadata", "spec", "status", "webhooks"]), JSON),
    resource=st.sampled_from(built_in()),
)
def test_no_value_of_any_type_spoils_a_table(body: dict[str, Any], resource: Resource) -> None:
    found = Object(Place("", resource.plural, "", "x"), b"/registry/x", 1, 1, body)
    made = table(resource, [found], NOW, wide=True)
    assert len(made.rows[0]) == len(made.heads)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.size", [3]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[*].type", ["Ready", "Other"]),
        (".status.conditions[0].type", ["Ready"]),
        (".metadata.labels['a.b/c']", ["x"]),
        (r".metadata.labels.a\.b/c", ["x"]),
        (".missing.deep", []),
        (".spec.size.deeper", []),
        ("..bad", []),
    ],
)
def test_json_paths_of_definitions(path: str, expected: list[Any]) -> None:
    body = {
        "metadata": {"labels": {"a.b/c": "x"}},
        "spec": {"size": 3},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
    }
    assert values(body, path) == expected
