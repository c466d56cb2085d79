"""Files under a root: links stay inside, nothing blocks, nothing raises."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from drtool.host.root import Root
from tests.builders.nobody import as_nobody, close, reachable


def test_a_file_is_read_with_its_mode_and_size(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (tmp_path / "etc/hosts").chmod(0o640)
    entry = Root(tmp_path).read("/etc/hosts", 100)
    assert (entry.kind, entry.mode, entry.size, entry.cut) == ("file", 0o640, 20, False)
    assert entry.data == b"127.0.0.1 localhost\n"


def test_only_the_head_or_the_tail_of_a_large_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"a" * 50 + b"b" * 50)
    head, tail = Root(tmp_path).read("/log", 10), Root(tmp_path).read("/log", 10, tail=True)
    assert (head.data, head.cut, head.size) == (b"a" * 10, True, 100)
    assert (tail.data, tail.cut) == (b"b" * 10, True)


def test_an_absolute_link_leads_inside_the_root(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/mine").write_text("inside")
    (tmp_path / "link").symlink_to("/etc/mine")
    entry = Root(tmp_path).read("/link", 100)
    assert (entry.kind, entry.target, entry.data) == ("link", "/etc/mine", b"inside")


def test_dots_do_not_climb_out_of_the_root(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "secret").write_text("secret")
    (inside / "up").symlink_to("../../../../outside/secret")
    (inside / "etc").symlink_to("../outside")
    root = Root(inside)
    assert root.read("/up", 100).kind == "dangling"
    assert root.read("/etc/secret", 100).kind == "absent"
    assert list(root.glob("/etc/*")) == []
    assert list(root.glob("/etc/secret")) == []


def test_a_directory_that_links_to_this_machine_tells_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "etc").symlink_to("/etc")
    entry = Root(tmp_path).read("/etc/hostname", 100)
    assert entry.data is None
    assert entry.error


def test_a_ring_of_links_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    entry = Root(tmp_path).read("/a", 100)
    assert (entry.kind, entry.error) == ("unreadable", os.strerror(40))


def test_what_is_no_file_is_named_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    (tmp_path / "directory").mkdir()
    (tmp_path / "device").symlink_to("/dev/zero")
    root = Root(tmp_path)
    assert [root.read(f"/{name}", 100).kind for name in ("fifo", "socket", "directory", "device")] == [
        "special",
        "socket",
        "directory",
        "dangling",
    ]


def test_dangling_link_and_absent_file_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/gone")
    assert Root(tmp_path).read("/link", 1).target == "/gone"
    assert Root(tmp_path).read("/link", 1).kind == "dangling"
    assert Root(tmp_path).read("/no/such", 1).kind == "absent"


def test_a_name_that_is_not_utf8_is_listed_and_read(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.yaml")
    (tmp_path / name).write_text("x")
    root = Root(tmp_path)
    assert root.names("/") == (name,)
    assert [root.read(path, 10).data for path in root.glob("/*.yaml")] == [b"x"]


@given(path=st.text(), data=st.binary(max_size=200), limit=st.integers(0, 300), tail=st.booleans())
def test_any_path_and_limit_give_an_entry(path: str, data: bytes, limit: int, tail: bool) -> None:
    with TemporaryDirectory() as directory:
        (Path(directory) / "file").write_bytes(data)
        Root(Path(directory)).read("/" + path, limit, tail)
        entry = Root(Path(directory)).read("/file", limit, tail)
    assert len(entry.data or b"") <= limit
    assert limit == 0 or entry.cut == (len(data) > limit)


def test_the_kernels_own_files_are_read_whatever_the_limit() -> None:
    """The kernel refuses a large read(2) of /proc/sys with ENOMEM."""
    entry = Root(Path("/")).read("/proc/sys/kernel/osrelease", 4 << 20)
    assert entry.data, entry.error


def test_a_directory_that_may_not_be_listed_says_so() -> None:
    with reachable() as directory:
        for name in ("closed", "open"):
            (directory / name).mkdir(0o755)
        close(directory / "closed")
        with as_nobody():
            assert Root(directory).read("/closed", 0).error == "Permission denied"
            assert Root(directory).read("/open", 0).error == ""
        (directory / "closed").chmod(0o755)
