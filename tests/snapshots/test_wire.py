from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshots import wire


@given(st.integers(0, 2**64 - 1), st.binary(max_size=20))
def test_a_varint_is_read_as_it_was_written(number: int, before: bytes) -> None:
    data = before + wire.encode_varint(number)
    assert wire.varint(data, len(before)) == (number, len(data))


@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), st.one_of(st.integers(0, 2**64 - 1), st.binary(max_size=30)))))
def test_fields_are_read_as_they_were_written(message: list[tuple[int, int | bytes]]) -> None:
    data = b"".join(wire.field(number, value) for number, value in message)
    assert list(wire.fields(data)) == message


@given(st.binary(max_size=60))
def test_any_bytes_are_fields_or_malformed(data: bytes) -> None:
    with suppress(wire.Malformed):
        list(wire.fields(data))


def test_a_negative_lease_has_ten_bytes() -> None:
    assert wire.encode_varint(-1) == b"\xff" * 9 + b"\x01"
    assert wire.signed(wire.varint(wire.encode_varint(-7), 0)[0]) == -7


@pytest.mark.parametrize("data", [b"\x0a\x05abc", b"\x0b", b"\x00\x01", b"\x08", b"\x08" + b"\xff" * 11])
def test_what_is_no_message_is_malformed(data: bytes) -> None:
    with pytest.raises(wire.Malformed):
        list(wire.fields(data))
