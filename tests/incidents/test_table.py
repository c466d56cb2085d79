"""Each kind of change once, on one tree; `make incidents` tries them on every tree they fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.incidents.table import ALL, FIRST, INCIDENTS, headings, mismatch, tried
from tests.incidents.trials.trial import Trial


def test_every_incident_is_tried() -> None:
    if not INCIDENTS.is_file():
        pytest.skip("the incidents (../shared/incidents.md) are not here")
    assert len(headings()) == 91
    assert set(headings()) <= {trial.incident for trial in ALL}


@pytest.mark.parametrize("trial", FIRST, ids=lambda trial: trial.title.replace(" ", "-"))
def test_causes_are_those_of_the_incident(trial: Trial, tmp_path: Path) -> None:
    assert mismatch(trial, tried(trial, tmp_path)) == ""
