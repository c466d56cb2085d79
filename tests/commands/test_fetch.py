"""An age identity that `age -p` protected is opened with the passphrase, asked for once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyrage
import pytest

from drtool.commands.fetch import shelf
from drtool.config import Config, StoreConfig
from drtool.core.errors import CannotOpen, UsageError
from drtool.host.passphrase import ASK
from snapshots import seal


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
