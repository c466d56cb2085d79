"""Checks of a db alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from drtool.commands.check_db import as_data, check_db
from drtool.core.check import EvidenceMissing
from drtool.core.errors import NotFound, Unsound
from drtool.core.report import Finding
from snapshots.checks.etcd import etcd_db_corrupt, etcd_deep_history
from snapshots.facts import Database
from tests.builders.data import DATABASE, data
from tests.builders.etcd_db import key_bucket, snapshot


def corrupt(database: Database) -> list[Finding]:
    return list(etcd_db_corrupt.find(database))


def test_a_sound_db() -> None:
    assert corrupt(DATABASE) == []
    assert corrupt(replace(DATABASE, trailer=True)) == []


def test_damage() -> None:
    assert "page 7" in corrupt(replace(DATABASE, damage="page 7: referred to twice"))[0].title
    assert "checksum" in corrupt(replace(DATABASE, trailer=False))[0].title


def test_what_cannot_be_judged_is_unknown() -> None:
    with pytest.raises(EvidenceMissing, match="writing to"):
        corrupt(replace(DATABASE, damage="page 7: referred to twice", busy=True))
    with pytest.raises(EvidenceMissing, match="too many"):
        corrupt(replace(DATABASE, checked=False))


def history(**changes: object) -> list[Finding]:
    return list(etcd_deep_history.find(data(**changes).database))


def test_history() -> None:
    assert history(revisions=300, keys=10) == []
    assert history(revisions=60_000, keys=4000) == []
    assert "30 revisions of each key" in history(revisions=60_000, keys=2000)[0].title
    assert "defragmentation" in history(size=2 << 30, used=2 << 30, free=3 << 29)[0].title
    with pytest.raises(EvidenceMissing):
        history(free=None)


def test_a_file_alone(tmp_path: Path) -> None:
    place = tmp_path / "snapshot.db"
    place.write_bytes(snapshot({b"key": key_bucket([(2, b"/registry/pods/a/b", b"k8s\0")]), b"meta": {}}))
    report = check_db(place)
    assert report.verdict.root_causes == ()
    assert as_data(report)["db"]["revision"] == 2
    place.write_bytes(place.read_bytes()[:-1] + b"\0")
    assert check_db(place).verdict.root_causes == ("etcd-db-corrupt",)
    place.write_bytes(bytes(9000))
    assert check_db(place).verdict.root_causes == ("etcd-db-corrupt",)
    with pytest.raises(NotFound):
        check_db(tmp_path / "absent")
    with pytest.raises(Unsound, match="no regular file"):
        check_db(tmp_path)
