from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from drtool.core.errors import Unsound
from drtool.host.beside import beside, possible


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
