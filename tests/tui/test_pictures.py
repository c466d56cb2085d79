"""The README's pictures are never stale: drawing them again gives the same files."""

from __future__ import annotations

import runpy
from pathlib import Path

DRAW = Path(__file__).parents[2] / "docs/pictures/draw.py"


def test_the_pictures_are_those_of_this_version(tmp_path: Path) -> None:
    runpy.run_path(str(DRAW))["main"](tmp_path)
    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert drawn == {path.name: path.read_text() for path in DRAW.parent.glob("*.svg")}
