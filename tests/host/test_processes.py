from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from drtool.core.errors import DrtoolError
from drtool.host.processes import Proc, holds_lock


def test_a_listener_is_seen_and_its_end_too() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
        assert not Proc().listening(port)
        one.listen()
        assert Proc().listening(port)
    assert not Proc().listening(port)


def test_a_listener_on_ipv6_is_seen() -> None:
    with socket.socket(socket.AF_INET6) as one:
        try:
            one.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6 loopback")
        one.listen()
        assert Proc().listening(one.getsockname()[1])


def test_who_holds_a_file_open_is_named(tmp_path: Path) -> None:
    (tmp_path / "member/snap").mkdir(parents=True)
    (tmp_path / "member/snap/db").write_text("x")
    assert Proc().holders(tmp_path) == ()
    program = "import sys; f = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "member/snap/db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        (found,) = Proc().holders(tmp_path)
        assert found.startswith(f"{holder.pid} (")
        holder.communicate()
    assert Proc().holders(tmp_path) == ()


def test_a_lock_on_the_db_counts_even_where_its_holder_is_not_seen(tmp_path: Path) -> None:
    db = tmp_path / "db"
    db.write_text("x")
    descriptor = os.open(db, os.O_RDWR)  # our own process is left out of the list, as one in another namespace would be
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert holds_lock(db)
        assert "lock" in Proc().holders(tmp_path)[0]
    finally:
        os.close(descriptor)
    assert not holds_lock(db)
    assert not holds_lock(tmp_path / "absent")


def test_without_the_kernels_files_nothing_is_concluded(tmp_path: Path) -> None:
    with pytest.raises(DrtoolError, match="open ports cannot be seen"):
        Proc(tmp_path).listening(2379)
