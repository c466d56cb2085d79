"""Tries a configuration before a backup depends on it: keys, spool, ping, metrics, store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from drtool import config as configuration
from drtool.commands import outside
from drtool.commands.fetch import shelf
from drtool.config import Config
from drtool.core.errors import DrtoolError
from drtool.host.writing import LEFTOVER
from snapshots import seal, signing
from snapshots.probe import Trial, probe
from snapshots.stores import opening


def tried(config: Config) -> tuple[Trial, ...]:
    sealed = "recipients" if config.recipients else "recipients: none, so backups are NOT encrypted"
    trials = [_tried(sealed, lambda: _recipients(config))]
    if config.signing.key:
        trials.append(_tried("signing key", lambda: _signing_key(config)))
    trials.append(_tried("identities and trusted keys", lambda: _keys(config)))
    if config.spool.directory:
        trials.append(_tried("spool", lambda: _spool(Path(config.spool.directory))))
    if config.ping.url:
        trials.append(_tried("ping: its host answers", lambda: _ping(config)))
    if config.metrics_file:
        trials.append(_tried("metrics file", lambda: _metrics(Path(config.metrics_file))))
    trials.append(Trial("retention" if config.retains else "retention: no rules, so `drtool backup` deletes nothing"))
    try:
        store = opening.bare(config, configuration.credentials())
    except DrtoolError as failed:
        return (*trials, Trial("store", failed.what, failed.hint))
    return (*trials, *(Trial(f"store: {one.name}", one.problem, one.hint) for one in probe(store)))


def _tried(name: str, trial: Callable[[], None]) -> Trial:
    try:
        trial()
    except DrtoolError as failed:
        return Trial(name, failed.what, failed.hint)
    return Trial(name)


def _recipients(config: Config) -> None:
    for text in config.recipients:
        seal.recipient(text)


def _signing_key(config: Config) -> None:
    signing.private_key(Path(config.signing.key))


def _keys(config: Config) -> None:
    shelf(config)


def _spool(directory: Path) -> None:
    """Made as a run would make it, and written to; what this made is taken away again."""
    try:
        with ExitStack() as made:
            for place in reversed([directory, *directory.parents]):
                if not place.exists():
                    place.mkdir(mode=0o700)
                    made.callback(place.rmdir)
            _writable(directory)
    except OSError as wrong:
        raise DrtoolError(
            f"{directory} cannot be written: {wrong.strerror}", "set spool.directory to a place on this node's disk"
        ) from wrong


def _ping(config: Config) -> None:
    if problem := outside.unreached(config.ping):
        raise DrtoolError(problem, "without its pings nobody is told when backups stop: look at ping.url")


def _metrics(path: Path) -> None:
    try:
        if path.exists() and not path.is_file():
            raise DrtoolError(f"{path} is no regular file", "set metricsFile to a file that drtool may replace")
        _writable(path.parent)
    except OSError as wrong:
        raise DrtoolError(
            f"{path.parent} cannot be written: {wrong.strerror}",
            "set metricsFile to a place in a directory that is there",
        ) from wrong


def _writable(directory: Path) -> None:
    """A file is written there and removed. Raises OSError."""
    with tempfile.NamedTemporaryFile(dir=directory, prefix=".tried.", suffix=LEFTOVER) as file:
        file.write(bytes(4096))
        file.flush()
        os.fsync(file.fileno())
