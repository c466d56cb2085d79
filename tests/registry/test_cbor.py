from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshots.registry import cbor, envelope


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("a0", {}),
        ("a1416101", {"a": 1}),
        ("bf6161f5ff", {"a": True}),
        ("8318ff3903e7f6", [255, -1000, None]),
        ("d64301020f", "AQIP"),  # tag 22: bytes that JSON shows as base64
        ("5f42616241 63ff".replace(" ", ""), "abc"),
        ("fb3ff8000000000000", 1.5),
        ("d9d9f7a14161820102", {"a": [1, 2]}),
    ],
)
def test_rfc_8949_as_an_api_server_writes_it(raw: str, value: object) -> None:
    assert cbor.decode(bytes.fromhex(raw)) == value


@pytest.mark.parametrize(
    "raw", ["", "a1", "a14161", "a2416101416102", "1c", "ff", "5bffffffffffffffff", "0000", "81" * 3000]
)
def test_what_is_none_is_refused(raw: str) -> None:
    with pytest.raises(cbor.Malformed):
        cbor.decode(bytes.fromhex(raw))


@given(raw=st.binary(max_size=200))
def test_any_bytes_decode_or_are_damaged(raw: bytes) -> None:
    with contextlib.suppress(envelope.Damaged):
        envelope.decode(cbor.SELF_DESCRIBED + raw)
