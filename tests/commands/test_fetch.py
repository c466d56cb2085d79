"""An age identity that `age -p` protected is opened with the passphrase, asked for once; what `latest` passes over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pyrage
import pytest

from drtool.commands.fetch import Shelf, shelf
from drtool.config import Config, StoreConfig
from drtool.core.errors import CannotOpen, UsageError
from drtool.core.events import TELL
from drtool.host.passphrase import ASK
from snapshots import seal
from snapshots.stores.directory import DirectoryStore
from tests.commands.test_prune import NOW, stored


@pytest.fixture(params=[False, True], ids=["binary", "armored"])
def config(tmp_path: Path, request: pytest.FixtureRequest) -> Config:
    identity, _ = seal.throwaway()
    key = tmp_path / "identity.age"
    key.write_bytes(pyrage.passphrase.encrypt(f"{identity}\n".encode(), "right", armored=request.param))
    (tmp_path / "store").mkdir()
    return Config(store=StoreConfig(url=(tmp_path / "store").as_uri()), identities=(str(key),))


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """What was asked for; the answer is always "right"."""
    paths: list[str] = []

    def answer(path: str) -> str:
        paths.append(path)
        return "right"

    token = ASK.set(answer)
    yield paths
    ASK.reset(token)


def test_it_is_asked_for_once(config: Config, asked: list[str]) -> None:
    assert len(shelf(config).identities) == 1
    assert len(shelf(config).identities) == 1
    assert asked == [config.identities[0]]


def test_a_wrong_passphrase(config: Config) -> None:
    token = ASK.set(lambda _: "wrong")
    try:
        with pytest.raises(CannotOpen, match=r"identity\.age does not open"):
            shelf(config)
    finally:
        ASK.reset(token)


def test_nobody_is_there(config: Config) -> None:
    with pytest.raises(CannotOpen, match="nobody is here to give it"):
        shelf(config)


def test_no_identity_at_all(config: Config, tmp_path: Path, asked: list[str]) -> None:
    Path(config.identities[0]).write_bytes(pyrage.passphrase.encrypt(b"hello", "right"))
    with pytest.raises(UsageError, match="holds no age identity"):
        shelf(config)
    Path(config.identities[0]).write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is no age identity file"):
        shelf(config)


@pytest.fixture
def told() -> Iterator[list[str]]:
    lines: list[str] = []
    token = TELL.set(lines.append)
    yield lines
    TELL.reset(token)


def _torn(store: DirectoryStore, path: str) -> None:
    store.put(f"{path}/record.json", b"{")


def _lost(store: DirectoryStore, path: str) -> None:
    store.delete(f"{path}/db.zst")


def _found_bad(store: DirectoryStore, path: str) -> None:
    store.put(f"{path}/verify-20261130T120000Z-bad.json", b"{}")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [(_torn, "is no record"), (_lost, "db.zst is gone"), (_found_bad, "verify found it bad at 2026-11-30 12:00")],
)
def test_latest_names_the_newer_one_that_it_passes_over(
    tmp_path: Path, told: list[str], spoil: Callable[[DirectoryStore, str], None], why: str
) -> None:
    store = DirectoryStore(tmp_path)
    old, new, newest = (stored(store, NOW - timedelta(days=days)) for days in (3, 2, 1))
    held = Shelf(store)
    assert (held.choose().id, told) == (newest, [])
    (place,) = tmp_path.glob(f"*/{newest}")
    spoil(store, f"{place.parent.name}/{newest}")
    assert held.choose().id == new
    (line,) = told
    assert line.startswith(f"latest is {new}, not the newer {newest}: ")
    assert why in line
    held.choose(old)
    assert len(told) == 1, "one that was named is not the latest"
    spoil(store, f"{place.parent.name}/{new}")
    assert held.choose().id == old
    assert told[1].startswith(f"latest is {old}, not the newer {newest}: ")
    assert told[1].endswith(", and 1 more")


def test_latest_says_nothing_of_other_clusters_and_older_ones(tmp_path: Path, told: list[str]) -> None:
    store = DirectoryStore(tmp_path)
    stored(store, NOW, verified=False, cluster="f" * 16)
    newest = stored(store, NOW - timedelta(days=1))
    stored(store, NOW - timedelta(days=2), verified=False)
    assert (Shelf(store).choose().id, told) == (newest, [])
    unverified = stored(store, NOW - timedelta(hours=1), verified=False)
    Shelf(store).choose()
    assert told == [f"latest is {newest}, not the newer {unverified}: it is not verified"]
