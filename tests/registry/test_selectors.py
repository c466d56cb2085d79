from __future__ import annotations

import pytest

from drtool.core.errors import UsageError
from snapshots.registry.selectors import from_object, parse

LABELS = {"app": "front", "tier": "web", "example.org/team": "a"}


@pytest.mark.parametrize(
    "text",
    [
        *("", "app=front", "app==front", "app!=back", "app in (front, back)", "tier notin (db)", "app", "!legacy"),
        *(
            "app=front,tier=web",
            "app=front, tier!=db, !legacy",
            "example.org/team=a",
            "missing!=x",
            "missing notin (x)",
        ),
    ],
)
def test_what_holds(text: str) -> None:
    assert parse(text).matches(LABELS)


@pytest.mark.parametrize(
    "text", ["app=back", "app!=front", "app notin (front)", "!app", "missing", "missing=x", "app="]
)
def test_what_does_not_hold(text: str) -> None:
    assert not parse(text).matches(LABELS)


@pytest.mark.parametrize("text", ["=", "app=front;x", "app in front", "a b", "app in (x", "(x)"])
def test_what_is_no_selector_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="no label selector"):
        parse(text)


def test_the_selectors_of_objects() -> None:
    selector = from_object(
        {
            "matchLabels": {"app": "front"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["web", "db"]}],
        }
    )
    assert selector.matches(LABELS)
    assert str(selector) == "app=front,tier in (db,web)"
    assert from_object(None).matches({})
