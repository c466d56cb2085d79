"""Tries a configuration before a backup depends on it: keys, spool, store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from drtool import config as configuration
from drtool.commands.fetch import shelf
from drtool.config import Config
from drtool.core.errors import DrtoolError
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
    """It is made when it is needed; what exists of it must be a directory that can be written."""
    place = directory
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise DrtoolError(f"{place} cannot be written", "set spool.directory to a place on this node's disk")
