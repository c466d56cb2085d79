from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drtool.core.errors import CannotOpen, Unsound, UsageError
from snapshots import seal

IDENTITY, PUBLIC = seal.throwaway()


def sealed(data: bytes, recipients: list[Any], piece: int = 32 << 10) -> tuple[list[bytes], seal.Sizes]:
    out: list[bytes] = []
    with seal.Sealer(recipients, out.append) as sealer:
        for at in range(0, len(data), piece):
            sealer.write(data[at : at + piece])
        sizes = sealer.finish()
    return out, sizes


@pytest.mark.parametrize("encrypted", [True, False])
@given(data=st.binary(max_size=300_000), piece=st.integers(1, 70_000))
@settings(deadline=None, max_examples=40)
def test_what_is_sealed_opens_to_the_same(encrypted: bool, data: bytes, piece: int) -> None:
    recipients, keys = ([IDENTITY.to_public()], [IDENTITY]) if encrypted else ([], [])
    out, sizes = sealed(data, recipients, max(piece, len(data) // 50))
    assert b"".join(seal.opened(out, keys, "x")) == data
    assert sizes.plain_size == len(data)
    assert sizes.sealed_size == sum(map(len, out))


def test_a_large_stream_passes_in_bounded_pieces() -> None:
    data = os.urandom(9 << 20) + bytes(30 << 20)
    out, _ = sealed(data, [IDENTITY.to_public()])
    assert max(map(len, out)) <= 2 << 20
    size = 0
    for piece in seal.opened(out, [IDENTITY], "x"):
        assert len(piece) <= seal.OPENED
        size += len(piece)
    assert size == len(data)


def test_another_key_does_not_open_it() -> None:
    out, _ = sealed(b"secret", [IDENTITY.to_public()])
    with pytest.raises(CannotOpen, match="not sealed for any"):
        list(seal.opened(out, [seal.throwaway()[0]], "x"))


@pytest.mark.parametrize("encrypted", [True, False])
@given(cut=st.booleans(), where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(deadline=None, max_examples=60)
def test_damage_is_found_and_cutting_too(encrypted: bool, cut: bool, where: float, bit: int) -> None:
    plain = bytes(range(256)) * 2000
    out, _ = sealed(plain, [IDENTITY.to_public()] if encrypted else [])
    whole = bytearray(b"".join(out))
    place = int(where * len(whole))
    if cut:
        whole = whole[:place]
    else:
        whole[place] ^= 1 << bit
    try:
        found = b"".join(seal.opened([bytes(whole)], [IDENTITY] if encrypted else [], "x"))
    except (Unsound, CannotOpen):
        return
    assert not encrypted  # zstd has header bits that change nothing
    assert found == plain


def test_bytes_after_the_end_are_damage() -> None:
    out, _ = sealed(b"plain", [])
    with pytest.raises(Unsound, match="follow the end"):
        list(seal.opened([*out, b"more"], [], "x"))


@pytest.mark.parametrize("encrypted", [True, False])
def test_an_error_of_the_sink_comes_out_as_itself(encrypted: bool) -> None:
    class Full(Exception):
        pass

    def sink(_: bytes) -> None:
        raise Full

    recipients = [IDENTITY.to_public()] if encrypted else []

    def all_of_it() -> None:
        with seal.Sealer(recipients, sink) as sealer:
            for _ in range(100):
                sealer.write(os.urandom(1 << 18))
            sealer.finish()

    with pytest.raises(Full):
        all_of_it()


def test_an_error_of_the_source_comes_out_as_itself() -> None:
    out, _ = sealed(os.urandom(1 << 20), [IDENTITY.to_public()])

    class Gone(Exception):
        pass

    def source() -> Any:
        yield out[0]
        raise Gone

    with pytest.raises(Gone):
        list(seal.opened(source(), [IDENTITY], "x"))


def test_a_reader_may_stop_early() -> None:
    out, _ = sealed(os.urandom(20 << 20), [IDENTITY.to_public()])
    opened = seal.opened(out, [IDENTITY], "x")
    assert next(opened)
    opened.close()


@pytest.mark.skipif(not (shutil.which("age") and shutil.which("zstd")), reason="no age and zstd programs here")
def test_the_plain_tools_open_it(tmp_path: Path) -> None:
    data = os.urandom(1 << 20) + bytes(1 << 20)
    out, _ = sealed(data, [seal.recipient(PUBLIC)])
    (tmp_path / "key.txt").write_text(f"# created\n{IDENTITY}\n")
    (tmp_path / "x.zst.age").write_bytes(b"".join(out))
    decrypted = subprocess.run(
        ["age", "-d", "-i", "key.txt", "x.zst.age"], cwd=tmp_path, check=True, capture_output=True
    )
    opened = subprocess.run(["zstd", "-d"], input=decrypted.stdout, check=True, capture_output=True)
    assert opened.stdout == data


def test_identity_files_are_read_and_never_shown() -> None:
    assert len(seal.identities(f"# comment\n\n{IDENTITY}\n", "key.txt")) == 1
    for text in ("", "# only a comment\n", "AGE-SECRET-KEY-1QQQ\n"):
        with pytest.raises(UsageError) as refused:
            seal.identities(text, "key.txt")
        assert "SECRET-KEY-1QQQ" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "age1", "AGE-SECRET-KEY-1X", "hello", "ssh-dss AAAA"])
def test_what_is_no_recipient_says_so(text: str) -> None:
    with pytest.raises(UsageError):
        seal.recipient(text)


@pytest.mark.parametrize("spoilt", [str, str.lower, lambda key: key[3:], lambda key: f" {key}"])
def test_a_private_key_is_no_recipient_and_is_not_shown(spoilt: Callable[[str], str]) -> None:
    key = str(seal.throwaway()[0])
    with pytest.raises(UsageError, match="private key: give its public half") as refused:
        seal.recipient(spoilt(key))
    assert key[15:20].lower() not in str(refused.value).lower()
