from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files

import pytest

from snapshots.registry import rebuild


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not at hand")
def test_the_table_is_what_the_published_modules_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    try:
        made = rebuild.made()
    except subprocess.CalledProcessError:
        pytest.skip("the modules are not all in Go's module cache")
    assert made == files("snapshots.registry").joinpath("fields.txt").read_text()
