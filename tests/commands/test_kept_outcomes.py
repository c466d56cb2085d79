"""Outcomes that a bundle keeps stand only where it could not tell by itself."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from drtool.commands.check import check
from drtool.commands.kept_outcomes import OUTCOMES, encode, kept
from drtool.core.report import Evidence, Finding, Fix, Layer, Outcome, Severity, Status
from drtool.host.root import Root
from manifests.capture import capture
from manifests.node import seen
from tests.builders.tree import NOW, laid

FINDING = Finding(
    "a webhook blocks", (Evidence("/d", 3, "x"), Evidence("/e")), Severity.ERROR, Layer.OBJECTS, Fix("a", "b")
)
FOUND = Outcome("webhook-deadlock", Status.FAILED, (FINDING,), "")


def test_outcomes_come_back(tmp_path: Path) -> None:
    outcomes = (FOUND, Outcome("b", Status.UNKNOWN, (), "no db"), Outcome("c", Status.PASSED, (Finding("plain"),)))
    node = seen(capture(Root(tmp_path), {OUTCOMES: encode(outcomes)}))
    assert kept(node) == {outcome.id: outcome for outcome in outcomes}


def test_one_replaces_unknown_and_nothing_else(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    passed = Outcome("advertise-address-not-local", Status.FAILED, (Finding("made up"),))
    tree.write(OUTCOMES, encode((FOUND, passed)))
    report = check(Root(tree.root), NOW, probe=False)
    by_id = {outcome.id: outcome for outcome in report.outcomes}
    assert by_id["webhook-deadlock"] == FOUND
    assert by_id["advertise-address-not-local"].status is Status.PASSED


SCALARS = st.none() | st.integers() | st.text(max_size=6) | st.sampled_from(["failed", "passed"])
KEYS = st.sampled_from(["id", "status", "reason", "findings", "title", "evidence", "severity", "layer", "fix"])
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner))


@given(JSON)
def test_any_json_is_outcomes_or_nothing(value: object) -> None:
    for data in (value, {"outcomes": value}, {"outcomes": [value]}):
        node = seen(capture(Root(Path(__file__).parent), {OUTCOMES: json.dumps(data).encode()}))
        assert isinstance(kept(node), dict)
