from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from drtool.core.errors import Unsound
from drtool.host.beside import beside, pieces, possible
from drtool.host.later import later
from tests.eventually import eventually


def test_a_result_comes_from_another_process() -> None:
    with beside(lambda: (os.getpid(), {b"k": 1 << 80}, {b"s"})) as result:
        process, numbers, names = result()
    assert numbers == {b"k": 1 << 80}
    assert names == {b"s"}
    assert (process != os.getpid()) == possible()


def fail() -> int:
    raise Unsound("page 7")


def test_what_fails_there_fails_here() -> None:
    with beside(fail) as result, pytest.raises(Unsound, match="page 7"):
        result()


def test_pieces_are_taken_once_by_either_process() -> None:
    with pieces(4096) as left, beside(lambda: (left.share(), left.share(), left.share(5000))) as result:
        assert left.one()
        theirs = result()
        ours = 1
        while left.one():
            ours += 1
        assert left.share() == 0
    assert ours + sum(theirs) == 4096
    with pieces(7) as left:
        assert [left.share(), left.share(1), left.share(9)] == [3, 2, 2]


def children() -> set[str]:
    """Zombies too. The parent is the second field after the name in brackets, proc_pid_stat(5)."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[1] == str(os.getpid()):
                found.add(stat.parent.name)
    return found


def test_a_child_is_gone_when_the_block_ends_without_asking() -> None:
    before = children()  # servers of other tests
    with pytest.raises(KeyError), beside(lambda: bytes(1 << 24)):
        raise KeyError
    assert children() <= before


def test_with_other_threads_nothing_is_forked() -> None:
    release = threading.Event()
    other = threading.Thread(target=release.wait)
    other.start()
    try:
        with beside(os.getpid) as result:
            assert result() == os.getpid()
    finally:
        release.set()
        other.join()


def counted(text: str) -> tuple[int, int]:
    if not text:
        raise Unsound("nothing")
    return os.getpid(), len(text)


def test_work_that_comes_later_is_done_in_a_child_once() -> None:
    before = children()
    alone = possible()
    with later(counted) as begin:
        first, second = begin("abc"), begin("ab")
        assert first()[1] == 3
        assert second() == (os.getpid(), 2)
    with later(counted) as begin:
        release = threading.Event()
        other = threading.Thread(target=release.wait)
        other.start()
        assert (begin("abc")()[0] != os.getpid()) == alone
        release.set()
        other.join()
    with later(counted) as begin, pytest.raises(Unsound):
        begin("")()
    with pytest.raises(KeyError), later(counted):
        raise KeyError
    assert children() <= before


def test_what_waits_for_work_ends_with_its_parent(tmp_path: Path) -> None:
    script = f"""
import os, pathlib, signal
from drtool.host.later import later
with later(len):
    pathlib.Path({str(tmp_path / "children")!r}).write_text(
        pathlib.Path(f"/proc/{{os.getpid()}}/task/{{os.getpid()}}/children").read_text())
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == -signal.SIGKILL
    for child in (tmp_path / "children").read_text().split():
        eventually(lambda child=child: not Path(f"/proc/{child}").exists() or is_zombie(child), "the child has ended")


def is_zombie(child: str) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True
