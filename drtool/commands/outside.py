"""How a run is seen from outside: a metrics file and a ping. Neither can fail or delay a backup."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from drtool.config import Config, Ping
from drtool.host import writing
from snapshots.catalog import Record

METRICS = {
    "last_run_timestamp_seconds": "When the last run ended.",
    "last_run_success": "1 where the last run stored a verified, complete backup.",
    "last_run_duration_seconds": "How long the last run took.",
    "last_success_timestamp_seconds": "When the newest verified backup in the store was taken.",
    "last_success_revision": "etcd's revision in it.",
    "last_success_db_bytes": "Size of its snapshot.",
    "last_success_sealed_bytes": "Size of the backup as stored.",
    "last_success_keys": "Keys alive in it.",
    "spooled": "1 where the last backup waits on this node because the store is down.",
    "incomplete": "How many needed files the last node bundle misses.",
}
LASTING = tuple(name for name in METRICS if name.startswith("last_success"))


class Outside:
    """Around one run: tells of its start, and of its end, good or bad.

    Afterwards `troubles` has a line each for metrics that could not be written and a ping that did not arrive.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self.troubles: tuple[str, ...] = ()
        self._began = time.monotonic()
        self._values: dict[str, float] = {}
        self._good = False
        self._pings: list[_Pinging] = []

    def __enter__(self) -> Self:
        self._ping("/start")
        return self

    def finished(self, record: Record, stored: bool) -> None:
        """The run made a backup. `stored`: it lies in the store, not in the spool."""
        self._values |= {"spooled": float(not stored), "incomplete": float(len(record.incomplete))}
        self._good = stored and record.verified is not None and not record.incomplete
        if stored and record.verified is not None:
            self._values |= {
                "last_success_timestamp_seconds": record.taken_at.timestamp(),
                "last_success_revision": record.revision,
                "last_success_db_bytes": record.db.plain_size,
                "last_success_sealed_bytes": sum(part.sealed_size for part in record.parts),
                "last_success_keys": record.keys,
            }

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ping("" if self._good else "/fail")
        if self._config.metrics_file:
            try:
                self._write(Path(self._config.metrics_file))
            except (OSError, ValueError) as wrong:
                why = getattr(wrong, "strerror", None) or wrong
                self.troubles += (f"no metrics: {self._config.metrics_file}: {why}",)
        until = time.monotonic() + float(self._config.ping.timeout)
        for ping in self._pings:
            ping.join(max(until - time.monotonic(), 0.0))
        lost = [ping.problem for ping in self._pings if ping.problem]
        if lost:
            self.troubles += (f"no ping: {lost[-1]}",)

    def _write(self, path: Path) -> None:
        """0644 whatever the umask: node_exporter runs as somebody else. What a failed run does not know stays."""
        values = {name: value for name, value in _read(path).items() if name in LASTING}
        values |= self._values | {
            "last_run_timestamp_seconds": datetime.now(UTC).timestamp(),
            "last_run_success": float(self._good),
            "last_run_duration_seconds": time.monotonic() - self._began,
        }
        writing.sweep(path, age=3600)
        writing.write(path, rendered(values).encode(), 0o644)

    def _ping(self, what: str) -> None:
        url = self._config.ping.url
        if url:
            ping = _Pinging(url.rstrip("/") + what, float(self._config.ping.timeout))
            ping.start()
            self._pings.append(ping)


def rendered(values: dict[str, float]) -> str:
    """OpenMetrics 1.0 text, without timestamps, which the textfile collector refuses."""
    lines = []
    for name, help_text in METRICS.items():
        if name in values:
            lines += [f"# TYPE drtool_backup_{name} gauge"]
            lines += [
                f"# UNIT drtool_backup_{name} {unit}" for unit in ("seconds", "bytes") if name.endswith(f"_{unit}")
            ]
            lines += [f"# HELP drtool_backup_{name} {help_text}", f"drtool_backup_{name} {values[name]!r}"]
    return "\n".join([*lines, "# EOF", ""])


def _read(path: Path) -> dict[str, float]:
    with suppress(OSError, UnicodeDecodeError):
        found = re.findall(r"^drtool_backup_(\w+) (\S+)$", path.read_text(), re.MULTILINE)
        return {name: float(value) for name, value in found}
    return {}


class _Pinging(threading.Thread):
    """One POST. `problem` names the host only and never the URL, which is a secret; "" once it has arrived."""

    def __init__(self, url: str, timeout: float) -> None:
        super().__init__(daemon=True)
        self._url, self._timeout = url, timeout
        self.problem = f"{_host(url)}: no answer within {timeout:g} s"

    def run(self) -> None:
        try:
            request = urllib.request.Request(self._url, data=b"", method="POST")  # noqa: S310 - the configured URL
            with urllib.request.urlopen(request, timeout=self._timeout):  # noqa: S310
                self.problem = ""
        except Exception as failed:  # noqa: BLE001 - whatever it is, it ends no backup
            self.problem = f"{_host(self._url)}: {_why(failed, self._timeout)}"


def unreached(ping: Ping) -> str:
    """Why its host does not answer, "" where it does. Nothing is asked of it: any request could count as a ping.

    Where a proxy is in the way, it is the proxy that has to answer.
    """
    host = _host(ping.url)
    try:
        parts = urlsplit(ping.url)
        proxy = "" if urllib.request.proxy_bypass(host) else urllib.request.getproxies().get(parts.scheme, "")
        asked = urlsplit(proxy if "://" in proxy else f"http://{proxy}") if proxy else parts
        secure = asked.scheme == "https"
        if not asked.hostname:  # the empty name is this machine
            return "it names no host"
        place = (asked.hostname, asked.port or (443 if secure else 80))
        with socket.create_connection(place, float(ping.timeout)) as connection:
            if secure:
                with ssl.create_default_context().wrap_socket(connection, server_hostname=asked.hostname):
                    pass
    except (OSError, ValueError) as failed:
        return f"{host}: {_why(failed, float(ping.timeout))}"
    return ""


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "no host"
    except ValueError:
        return "no host"


def _why(failed: Exception, timeout: float) -> str:
    """Without the words of other errors: they may repeat the URL."""
    if isinstance(failed, urllib.error.HTTPError):
        return f"it answers {failed.code}"
    reason = failed.reason if isinstance(failed, urllib.error.URLError) else failed
    if isinstance(reason, TimeoutError):
        return f"no answer within {timeout:g} s"
    if isinstance(reason, ssl.SSLCertVerificationError):
        return reason.verify_message
    if isinstance(reason, OSError | str):
        return str(getattr(reason, "strerror", None) or reason)
    return "no URL that can be asked" if isinstance(reason, ValueError) else type(reason).__name__
