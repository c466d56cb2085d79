from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from drtool.core.errors import Refused
from drtool.host.machine import Container, TimedOut
from tests.fakes.host import PLAN, FakeContainers, rooted


def test_replace_keeps_mode_and_leaves_nothing_beside(tmp_path: Path) -> None:
    file = tmp_path / "etc/kubernetes/admin.conf"
    file.parent.mkdir(parents=True)
    file.write_text("old")
    file.chmod(0o640)
    rooted(tmp_path).replace("/etc/kubernetes/admin.conf", b"new")
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in file.parent.iterdir()] == ["admin.conf"]


def test_an_absolute_link_is_followed_inside_the_root_only(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "etc/current").symlink_to("/data/real")
    (tmp_path / "data/real").write_text("old")
    host = rooted(tmp_path)
    host.replace("/etc/current", b"new")
    assert (tmp_path / "etc/current").is_symlink()
    assert (tmp_path / "data/real").read_text() == "new"
    assert host.read("/etc/current") == b"new"


def test_a_link_out_of_the_root_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/up").symlink_to("../../outside")
    with pytest.raises(OSError, match="No such file"):
        rooted(root).replace("/etc/up", b"stolen")
    assert outside.read_text() == "mine"


def test_a_planted_temporary_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f"etc/.hosts.{PLAN}.part").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        rooted(tmp_path).replace("/etc/hosts", b"x")
    assert victim.read_text() == "mine"


def test_moving_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    with pytest.raises(Refused, match="already there"):
        rooted(tmp_path).move("/a", "/b")
    assert (tmp_path / "b").read_text() == "b"


def test_keep_copies_once_and_put_back_returns_contents_and_mode(tmp_path: Path) -> None:
    file = tmp_path / "pki/x.key"
    file.parent.mkdir()
    file.write_text("first")
    file.chmod(0o600)
    host = rooted(tmp_path)
    host.keep("/pki/x.key")
    host.replace("/pki/x.key", b"second", 0o644)
    host.keep("/pki/x.key")
    host.put_back("/pki/x.key")
    assert file.read_text() == "first"
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_is_too_large_or_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"12345")
    (tmp_path / "directory").mkdir()
    host = rooted(tmp_path)
    with pytest.raises(Refused, match="larger than 4"):
        host.read("/big", 4)
    with pytest.raises(Refused, match="no regular file"):
        host.read("/directory")


def test_waiting_names_what_is_stuck(tmp_path: Path) -> None:
    host = rooted(tmp_path)
    with pytest.raises(TimedOut, match="etcd: after 10 s container abc still runs"):
        host.wait(lambda: "container abc still runs", 10, "etcd")
    answers = iter(["not yet", ""])
    host.wait(lambda: next(answers), 10, "etcd")


def test_the_newest_container_of_a_name_is_told(tmp_path: Path) -> None:
    class Two(FakeContainers):
        def all(self) -> tuple[Container, ...]:
            return (Container("old", "etcd", "p", True, 1.0), Container("new", "etcd", "p", False, 2.0))

    host = rooted(tmp_path)
    assert host.newest("etcd") == "no container etcd was started"
    assert replace(host, containers=Two()).newest("etcd") == "container new (etcd) has ended"
    assert "does not answer" in replace(host, containers=FakeContainers(silent=True)).newest("etcd")
