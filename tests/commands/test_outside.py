from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from drtool.commands.outside import Outside
from drtool.config import Config, Ping, Seconds
from drtool.core.errors import DrtoolError
from tests.snapshots.test_catalog import NOW, backup


@pytest.fixture
def pinged() -> Iterator[tuple[str, list[str]]]:
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/uuid", paths
    server.shutdown()
    thread.join()
    server.server_close()


def metrics(path: Path) -> dict[str, float]:
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    assert all(len(line) == 2 for line in lines), "a timestamp"
    return {name.removeprefix("drtool_backup_"): float(value) for name, value in lines}


def test_metrics_are_for_everybody_to_read_and_outlive_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "drtool.prom"
    config = Config(metrics_file=str(path))
    before = os.umask(0o077)
    try:
        with Outside(config) as outside:
            outside.finished(backup(NOW).record, stored=True)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644
    good = metrics(path)
    assert good["last_run_success"] == 1
    assert good["last_success_timestamp_seconds"] == NOW.timestamp()
    assert path.read_text().endswith("# EOF\n")

    def failing() -> None:
        with Outside(config):
            raise DrtoolError("no")

    with pytest.raises(DrtoolError):
        failing()
    bad = metrics(path)
    assert bad["last_run_success"] == 0
    assert bad["last_success_timestamp_seconds"] == NOW.timestamp()

    with Outside(config) as outside:
        outside.finished(backup(NOW).record, stored=False)
    assert (metrics(path)["spooled"], metrics(path)["last_run_success"]) == (1, 0)


def test_pings_tell_start_and_end(pinged: tuple[str, list[str]]) -> None:
    url, paths = pinged
    config = Config(ping=Ping(url))
    with Outside(config) as outside:
        outside.finished(backup(NOW).record, stored=True)
    assert sorted(paths) == ["/uuid", "/uuid/start"]
    paths.clear()
    with pytest.raises(DrtoolError), Outside(config):
        raise DrtoolError("no")
    assert sorted(paths) == ["/uuid/fail", "/uuid/start"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", "nonsense", "http://[::bad/", "http://192.0.2.1/x"])
def test_what_listens_outside_can_fail_nothing(tmp_path: Path, url: str) -> None:
    config = Config(ping=Ping(url, Seconds(0.2)), metrics_file=str(tmp_path / "no/such/directory/x.prom"))
    with Outside(config) as outside:
        outside.finished(backup(NOW).record, stored=True)
    assert outside.unwritten == f"{tmp_path}/no/such/directory/x.prom: No such file or directory"
