from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from snapshots.etcd import Etcd
from tests.builders.live_node import LiveNode, live_node
from tests.real_s3 import s3_server

__all__ = ["s3_server"]


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveNode]:
    """A node whose snapshot seals to several parts: 24 MB that do not compress, and some thousand keys that do."""
    with live_node(tmp_path_factory.mktemp("node") / "root") as live:
        live.fill(2000)
        with Etcd(live.access) as etcd:
            for batch in range(24):
                etcd.put_all(
                    [(f"/registry/secrets/ns/s-{batch}-{number}".encode(), os.urandom(10_000)) for number in range(100)]
                )
        yield live
