"""CBOR as the API server writes it: RFC 8949, definite and indefinite lengths, string-keyed maps, no references.

apimachinery's serializer writes Go's strings as byte strings, and []byte as byte strings under the tag "expected later
encoding" (21 to 23), which unstructured objects hold as that text (serializer/cbor/internal/modes). Bounded: depth, and
lengths against the bytes that are there.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from typing import Any

SELF_DESCRIBED = b"\xd9\xd9\xf7"
UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)
INDEFINITE, BREAK = 31, 0xFF
DEEPEST = 200
FLOATS = {25: ">e", 26: ">f", 27: ">d"}
SIMPLES = {20: False, 21: True, 22: None, 23: None}
LATER: dict[int | None, Callable[[bytes], str]] = {
    21: lambda raw: base64.urlsafe_b64encode(raw).rstrip(b"=").decode(),
    22: lambda raw: base64.b64encode(raw).decode(),
    23: lambda raw: raw.hex(),
}


class Malformed(ValueError):
    """The bytes are no CBOR that an API server writes."""


def decode(data: bytes) -> Any:
    """The one value that `data` is. Raises Malformed."""
    try:
        value, at = _value(data, 0, 0)
    except (IndexError, struct.error) as wrong:
        raise Malformed("it ends in the middle of a value") from wrong
    except UnicodeDecodeError as wrong:
        raise Malformed("a text is no UTF-8") from wrong
    if at != len(data):
        raise Malformed(f"{len(data) - at} bytes after the value")
    return value


def _value(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > DEEPEST:
        raise Malformed(f"nested deeper than {DEEPEST}")
    major, extra = data[at] >> 5, data[at] & 31
    if major == SIMPLE:
        return _simple(data, at, extra)
    size, at = _size(data, at, extra)
    if major == UNSIGNED:
        return _definite(size), at
    if major == NEGATIVE:
        return -1 - _definite(size), at
    if major == TAG:
        if size in LATER and data[at] >> 5 == BYTES:
            length, at = _size(data, at, data[at] & 31)
            raw, at = _string(data, at, length, BYTES)
            return LATER[size](raw), at
        return _value(data, at, depth + 1)
    if major in (BYTES, TEXT):
        raw, at = _string(data, at, size, major)
        return raw.decode(), at
    return _array(data, at, size, depth) if major == ARRAY else _map(data, at, size, depth)


def _size(data: bytes, at: int, extra: int) -> tuple[int | None, int]:
    """The argument after the initial byte at `at`; None for an indefinite length."""
    if extra < 24:
        return extra, at + 1
    if extra == INDEFINITE:
        return None, at + 1
    if extra > 27:
        raise Malformed(f"reserved length {extra}")
    width = 1 << (extra - 24)
    raw = data[at + 1 : at + 1 + width]
    if len(raw) < width:
        raise IndexError
    return int.from_bytes(raw), at + 1 + width


def _definite(size: int | None) -> int:
    if size is None:
        raise Malformed("a number of no length")
    return size


def _simple(data: bytes, at: int, extra: int) -> tuple[Any, int]:
    if extra in SIMPLES:
        return SIMPLES[extra], at + 1
    if extra in FLOATS:
        return struct.unpack_from(FLOATS[extra], data, at + 1)[0], at + 1 + (1 << (extra - 24))
    raise Malformed(f"simple value {extra}")


def _string(data: bytes, at: int, size: int | None, major: int) -> tuple[bytes, int]:
    if size is not None:
        if size > len(data) - at:
            raise IndexError
        return data[at : at + size], at + size
    parts = []
    while data[at] != BREAK:
        if data[at] >> 5 != major:
            raise Malformed("a string of mixed parts")
        length, at = _size(data, at, data[at] & 31)
        part, at = _string(data, at, _definite(length), major)
        parts.append(part)
    return b"".join(parts), at + 1


def _array(data: bytes, at: int, size: int | None, depth: int) -> tuple[list[Any], int]:
    out: list[Any] = []
    while len(out) != size:
        if size is None and data[at] == BREAK:
            return out, at + 1
        value, at = _value(data, at, depth + 1)
        out.append(value)
    return out, at


def _map(data: bytes, at: int, size: int | None, depth: int) -> tuple[dict[str, Any], int]:
    out: dict[str, Any] = {}
    while len(out) != size:
        if size is None and data[at] == BREAK:
            return out, at + 1
        key, at = _key(data, at)
        if key in out:
            raise Malformed(f"key {key!r} twice")
        out[key], at = _value(data, at, depth + 1)
    return out, at


def _key(data: bytes, at: int) -> tuple[str, int]:
    major = data[at] >> 5
    if major not in (BYTES, TEXT):
        raise Malformed("a key that is no string")
    size, at = _size(data, at, data[at] & 31)
    raw, at = _string(data, at, size, major)
    return raw.decode(), at
