"""The protobuf wire format, as far as etcd's messages need it (protobuf.dev/programming-guides/encoding).

Numbers are int64 as etcd declares them: what is above 2**63 on the wire reads as negative where `signed` is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import SupportsIndex, TypeAlias

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Value: TypeAlias = int | bytes


class Malformed(ValueError):
    """The bytes are no protobuf message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where the next thing begins. Raises Malformed beyond 10 bytes or the end."""
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1  # most tags, sizes and numbers
    number = shift = 0
    for place in range(at, min(at + 10, len(data))):
        byte = data[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
    raise Malformed("a varint does not end")


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Each (field number, value) in order; groups, which etcd never writes, are malformed."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise Malformed(f"field number {number}")
        if kind == VARINT:
            value, at = varint(data, at)
            yield number, value
            continue
        if kind == BYTES:
            size, at = varint(data, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise Malformed(f"wire type {kind}")
        if size > end - at:
            raise Malformed(f"field {number} is longer than the message")
        yield number, data[at : at + size]
        at += size


def signed(number: Value) -> int:
    """An int64; Malformed where the field holds bytes."""
    value = unsigned(number)
    return value - (1 << 64) if value >> 63 else value


def unsigned(number: Value) -> int:
    if isinstance(number, bytes):
        raise Malformed("bytes where a number belongs")
    return number


def blob(value: Value) -> bytes:
    if isinstance(value, int):
        raise Malformed("a number where bytes belong")
    return value


def encode_varint(number: SupportsIndex) -> bytes:
    value = number.__index__() & 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | bytes) -> bytes:
    """One field, zero and empty ones too; leaving them out is the caller's choice."""
    if isinstance(value, int):
        return encode_varint(number << 3 | VARINT) + encode_varint(value)
    return encode_varint(number << 3 | BYTES) + encode_varint(len(value)) + value
