"""`config check` tries what a backup will need, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from drtool.commands.trying import tried
from drtool.config import Config, Ping, Spool
from tests.builders.nobody import as_nobody, reachable
from tests.commands.backing import config_for


def problems(config: Config) -> dict[str, str]:
    return {one.name: one.problem for one in tried(config) if one.problem}


def test_the_spool_is_made_and_written_and_taken_away(tmp_path: Path) -> None:
    config = replace(config_for(tmp_path), spool=Spool(str(tmp_path / "var/lib/spool")))
    assert problems(config) == {}
    assert not (tmp_path / "var").exists()
    (tmp_path / "var").mkdir()
    assert problems(config) == {}
    assert list((tmp_path / "var").iterdir()) == []


@pytest.mark.parametrize(
    ("directory", "why"), [("/proc/nope", "No such file or directory"), ("/dev/null/x", "Not a directory")]
)
def test_a_spool_that_cannot_be_written(tmp_path: Path, directory: str, why: str) -> None:
    config = replace(config_for(tmp_path), spool=Spool(directory))
    assert problems(config) == {"spool": f"{directory} cannot be written: {why}"}


def test_a_spool_of_somebody_else() -> None:
    with reachable() as directory:
        config = replace(config_for(directory), spool=Spool(str(directory / "spool")), identities=())
        directory.chmod(0o755)
        with as_nobody():
            found = problems(config)
    assert found["spool"] == f"{directory}/spool cannot be written: Permission denied"


def test_ping_and_metrics_are_tried(tmp_path: Path) -> None:
    config = replace(config_for(tmp_path), ping=Ping("http://127.0.0.1:1/secret"), metrics_file=f"{tmp_path}/no/m.prom")
    assert problems(config) == {
        "ping: its host answers": "127.0.0.1: Connection refused",
        "metrics file": f"{tmp_path}/no cannot be written: No such file or directory",
    }
    before = sorted(tmp_path.iterdir())
    config = replace(config, ping=Ping(), metrics_file=f"{tmp_path}/m.prom")
    assert problems(config) == {}
    assert sorted(tmp_path.iterdir()) == before
    assert problems(replace(config, metrics_file=str(tmp_path))) == {"metrics file": f"{tmp_path} is no regular file"}
