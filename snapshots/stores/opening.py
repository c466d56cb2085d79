"""From a URL to the store behind it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from drtool.config import Config, Credentials
from drtool.core.errors import UsageError
from snapshots.stores.retrying import Patience, RetryingStore
from snapshots.stores.store import Store


def opened(config: Config, credentials: Credentials | None = None) -> Store:
    """The configured store, with retries. Nothing is asked of it yet. Raises UsageError where none is configured."""
    return RetryingStore(bare(config, credentials), Patience(float(config.timeouts.retries)))


def bare(config: Config, credentials: Credentials | None = None) -> Store:
    """Without retries: for the probe, which wants to see every refusal."""
    url = urlsplit(config.store.url)
    if url.scheme == "file":
        if url.netloc not in ("", "localhost") or not url.path.startswith("/"):
            raise UsageError(f"{config.store.url} names no local directory", "write file:///absolute/path")
        from snapshots.stores.directory import DirectoryStore

        return DirectoryStore(Path(unquote(url.path)))
    if url.scheme == "s3":
        if not url.netloc:
            raise UsageError(f"{config.store.url} names no bucket", "write s3://bucket/prefix")
        from snapshots.stores.s3 import connect

        return connect(url.netloc, url.path.strip("/"), config.store, float(config.timeouts.request), credentials)
    raise UsageError(
        "no store is configured",
        "give --store file:///path or s3://bucket/prefix, or set store.url in the configuration",
    )
