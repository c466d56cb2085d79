from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from snapshots.registry.comparing import ABSENT, Difference, differences, without_noise

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_elements_are_told_apart_by_name() -> None:
    before = {"containers": [{"name": "web", "image": "a:1"}, {"name": "log", "image": "l:1"}]}
    after = {"containers": [{"name": "log", "image": "l:1"}, {"name": "web", "image": "a:2"}]}
    assert list(differences(before, after)) == [Difference("containers[web].image", "a:1", "a:2")]


def test_what_is_on_one_side_only() -> None:
    assert list(differences({"a": 1}, {"b.c": 2})) == [Difference("a", 1, ABSENT), Difference('"b.c"', ABSENT, 2)]


def test_plain_lists_by_place() -> None:
    assert list(differences({"x": [1, 2]}, {"x": [1, 3, 4]})) == [
        Difference("x[1]", 2, 3),
        Difference("x[2]", ABSENT, 4),
    ]


@given(JSON, JSON)
def test_equal_things_do_not_differ_and_others_do(one: Any, other: Any) -> None:
    assert list(differences({"v": one}, {"v": one})) == []
    if {"v": one} != {"v": other} and not _same_but_order(one, other):
        assert list(differences({"v": one}, {"v": other}))


def _same_but_order(one: Any, other: Any) -> bool:
    """Lists whose named elements only changed places."""
    return isinstance(one, list | dict) and repr(sorted(map(repr, _flat(one)))) == repr(sorted(map(repr, _flat(other))))


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [item for name, each in value.items() for item in [name, *_flat(each)]]
    return [item for each in value for item in _flat(each)] if isinstance(value, list) else [value]


def test_noise_is_what_the_server_keeps() -> None:
    body = {
        "metadata": {
            "name": "a",
            "uid": "u",
            "resourceVersion": "1",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x", "kept": "y"},
        },
        "spec": {"a": 1},
        "status": {"b": 2},
    }
    assert without_noise(body) == {"metadata": {"name": "a", "annotations": {"kept": "y"}}, "spec": {"a": 1}}
