"""Configurations and runs for the tests of backups."""

from __future__ import annotations

import secrets
from pathlib import Path

from drtool.commands.backup import Result, backup
from drtool.commands.fetch import Shelf, shelf
from drtool.config import Config, Seconds, Spool, StoreConfig, Timeouts
from drtool.core.events import Listener, silent
from snapshots.scratch_s3 import Server
from snapshots.seal import throwaway
from tests.builders.live_node import LiveNode

IDENTITY, RECIPIENT = throwaway()
FAST = Timeouts(stall=Seconds(20), request=Seconds(2), retries=Seconds(20), total=Seconds(300))


def config_for(directory: Path, store: StoreConfig | None = None, timeouts: Timeouts = FAST) -> Config:
    """Sealed, with a spool; into `directory`/store unless another store is given."""
    if store is None:
        (directory / "store").mkdir(exist_ok=True)
        store = StoreConfig(url=(directory / "store").as_uri())
    identity = directory / "identity.txt"
    identity.write_text(f"{IDENTITY}\n")
    return Config(
        store=store,
        recipients=(RECIPIENT,),
        identities=(str(identity),),
        spool=Spool(str(directory / "spool")),
        timeouts=timeouts,
    )


def s3_config(server: Server, endpoint: str = "", prefix: str = "") -> StoreConfig:
    return server.config(prefix or f"commands/{secrets.token_hex(6)}", endpoint)


def opened(config: Config, server: Server | None = None) -> Shelf:
    return shelf(config, server.credentials if server else None)


def run(config: Config, node: LiveNode, server: Server | None = None, listener: Listener = silent) -> Result:
    return backup(config, opened(config, server), node.root, listener=listener)
