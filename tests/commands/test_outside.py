from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from drtool.commands.outside import Outside, unreached
from drtool.config import Config, Ping, Seconds
from drtool.core.errors import DrtoolError
from tests.snapshots.test_catalog import NOW, backup


@pytest.fixture
def pinged() -> Iterator[tuple[str, list[str]]]:
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.send_response(404 if "404" in self.path else 200)
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


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:1/secret", "127.0.0.1: Connection refused"),
        ("nonsense/secret", "no host: no URL that can be asked"),
        ("http://[::bad/secret", "no host: no URL that can be asked"),
        ("http://127.0.0.1:secret/", "127.0.0.1: InvalidURL"),
        ("http://192.0.2.1/secret", "192.0.2.1: "),
    ],
)
def test_what_listens_outside_can_fail_nothing(tmp_path: Path, url: str, why: str) -> None:
    config = Config(ping=Ping(url, Seconds(0.2)), metrics_file=str(tmp_path / "no/such/directory/x.prom"))
    began = time.monotonic()
    with Outside(config) as outside:
        outside.finished(backup(NOW).record, stored=True)
    assert time.monotonic() - began < 2
    unwritten, unpinged = outside.troubles
    assert unwritten == f"no metrics: {tmp_path}/no/such/directory/x.prom: No such file or directory"
    assert unpinged.startswith(f"no ping: {why}")
    assert "secret" not in unpinged


def test_a_ping_that_is_refused_is_told(pinged: tuple[str, list[str]]) -> None:
    url, paths = pinged
    with Outside(Config(ping=Ping(f"{url}/404"))) as outside:
        outside.finished(backup(NOW).record, stored=True)
    assert outside.troubles == ("no ping: 127.0.0.1: it answers 404",)
    with Outside(Config(ping=Ping(url))) as good:
        good.finished(backup(NOW).record, stored=True)
    assert good.troubles == ()
    assert len(paths) == 4


def test_a_host_is_tried_without_a_ping(pinged: tuple[str, list[str]]) -> None:
    url, paths = pinged
    assert unreached(Ping(url)) == ""
    assert paths == []
    assert unreached(Ping("http://127.0.0.1:1/secret")) == "127.0.0.1: Connection refused"
    assert unreached(Ping("https://127.0.0.1:secret/")) == "127.0.0.1: no URL that can be asked"
    assert unreached(Ping("https:///secret")) == "it names no host"
    assert unreached(Ping(url.replace("http:", "https:"))).startswith("127.0.0.1: ")  # speaks no TLS
    assert paths == []


def test_a_proxy_is_tried_in_its_place(monkeypatch: pytest.MonkeyPatch, pinged: tuple[str, list[str]]) -> None:
    monkeypatch.setenv("https_proxy", pinged[0].removesuffix("/uuid"))
    assert unreached(Ping("https://hc.example/uuid")) == ""
    monkeypatch.setenv("https_proxy", "127.0.0.1:1")
    assert unreached(Ping("https://hc.example/uuid")) == "hc.example: Connection refused"
