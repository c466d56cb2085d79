"""Kubernetes' protobuf by the field table: bytes in, the JSON that the API server would show out.

Unknown fields are kept under `$unknown`, each with its number, wire type and bytes. What comes back shares parts with
other decoded objects: it is read, never changed.
"""

from __future__ import annotations

import base64
import struct
from typing import Any

from snapshots import wire
from snapshots.registry.fields import Kind, Message, Row
from snapshots.wire import BYTES, VARINT, Malformed

DEEPEST = 200
"""Messages in messages; the deepest that API servers store, schemas of CRDs, stay far below."""
MOST_ELEMENTS = 200_000
"""In one list or map: more than fit in a value that etcd takes by default (1.5 MiB)."""
UNKNOWN = "$unknown"
REMEMBERED, REMEMBERED_SIZE = 512, 1024
"""How many messages of a type are kept to be shared, and of how many bytes at most."""

STRING, MESSAGE, SPECIAL, TEXTS = Kind.STRING, Kind.MESSAGE, Kind.SPECIAL, Kind.TEXTS
LIST, MAP, INLINE, FINISHED, BLOB = Kind.LIST, Kind.MAP, Kind.INLINE, Kind.FINISHED, Kind.BLOB
SKIPPED, BOOLEAN, DOUBLE = Kind.SKIPPED, Kind.BOOLEAN, Kind.DOUBLE
NUMBERS = frozenset({Kind.NUMBER, BOOLEAN})
KEY, VALUE, VALUE_NUMBER = 1 << 3 | BYTES, 2 << 3 | BYTES, 2 << 3 | VARINT
FIXED = {wire.FIXED64: 8, wire.FIXED32: 4}


def decode(data: bytes, message: Message, start: int = 0, end: int | None = None) -> dict[str, Any]:
    """The message at `start:end`. Raises wire.Malformed for what is none, truncated, nested too deep or too large."""
    out = message.empty.copy()
    try:
        _read(data, start, len(data) if end is None else end, message.fields, out, 0)
    except (IndexError, struct.error) as wrong:
        raise Malformed("it ends in the middle of a field") from wrong
    except RecursionError as wrong:
        raise Malformed("nested too deep") from wrong
    return out


def _read(data: bytes, at: int, end: int, fields: dict[int, Row], out: dict[str, Any], depth: int) -> None:
    """The inner loop of everything that reads objects: one pass, the commonest kinds first, short numbers in place.

    Longer than others, because a call for each field would double its time.
    """
    if depth > DEEPEST:
        raise Malformed(f"messages nested deeper than {DEEPEST}")
    while at < end:
        start, tag = at, data[at]
        at += 1
        if tag > 0x7F:
            if data[at] > 0x7F:
                tag, at = wire.varint(data, start)
            else:
                tag += (data[at] << 7) - 0x80
                at += 1
        field = fields.get(tag)
        if field is None:
            at = _unknown(data, start, end, out)
            continue
        name, kind, inner, keep = field
        size = data[at]
        at += 1
        if size > 0x7F:
            if data[at] > 0x7F:
                size, at = wire.varint(data, at - 1)
            else:
                size += (data[at] << 7) - 0x80
                at += 1
        if tag & 7 != BYTES:
            at = _number(size, field, out, at) if kind is not DOUBLE else _double(data, start, tag, field, out)
            continue
        stop = at + size
        if stop > end:
            raise Malformed(f"field {name or tag >> 3} is longer than what holds it")
        if kind is STRING:
            if size or keep:
                out[name] = data[at:stop].decode("utf-8", "replace")
        elif kind is MESSAGE:
            out[name] = value = inner.empty.copy()
            if size:
                _read(data, at, stop, inner.fields, value, depth + 1)
        elif kind is SPECIAL:
            shown = inner(data[at:stop])
            if shown is not None or keep:
                out[name] = shown
        elif kind is LIST:
            held = out.get(name)
            if held is None:
                out[name] = [_element(data, at, stop, inner, depth)]
            else:
                held.append(_element(data, at, stop, inner, depth))
                if len(held) > MOST_ELEMENTS:
                    raise Malformed(f"{name} has more than {MOST_ELEMENTS} elements")
        elif kind is MAP:
            _entry(data, at, stop, inner, _held(out, name, dict), depth)
        elif kind is INLINE:
            _read(data, at, stop, inner.fields, out, depth + 1)
        elif kind is TEXTS:
            _held(out, name, list).append(data[at:stop].decode("utf-8", "replace"))
        elif kind is not SKIPPED:
            value = _element(data, at, stop, field, depth)
            if value or keep:
                out[name] = value
        at = stop
    if at != end:
        raise Malformed("a field is longer than its message")


def _held(out: dict[str, Any], name: str, kind: type) -> Any:
    """The list or map that a repeated field adds to."""
    held = out.get(name)
    if held is None:
        held = out[name] = kind()
    elif len(held) >= MOST_ELEMENTS:
        raise Malformed(f"{name} has more than {MOST_ELEMENTS} elements")
    return held


def _element(data: bytes, at: int, stop: int, field: Row, depth: int) -> Any:
    """One length-delimited value of any kind but INLINE. Small messages recur (tolerations, mounts) and are shared."""
    _, kind, inner, _ = field
    if kind is MESSAGE or kind is FINISHED:
        raw = data[at:stop] if stop - at <= REMEMBERED_SIZE else b""
        value = inner.seen.get(raw)
        if value is None:
            value = inner.empty.copy()
            _read(data, at, stop, inner.fields, value, depth + 1)
            if kind is FINISHED:
                value = inner.finish(value)
            if raw and value is not None:
                if len(inner.seen) >= REMEMBERED:
                    inner.seen.clear()
                inner.seen[raw] = value
        return value
    if kind is STRING:
        return data[at:stop].decode("utf-8", "replace")
    if kind is BLOB:
        return base64.b64encode(data[at:stop]).decode()
    return inner(data[at:stop])


def _entry(data: bytes, at: int, end: int, field: Row, held: dict[str, Any], depth: int) -> None:
    """One pair of a map: a message of 1, the key, and 2, the value; either may be left out when empty."""
    key, raw = "", (end, end)
    number = 0
    while at < end:
        tag = data[at]
        size = data[at + 1]
        at += 2
        if size > 0x7F:
            size, at = wire.varint(data, at - 1)
        if tag == VALUE_NUMBER:
            number = size
            continue
        if size > end - at:
            raise Malformed("a map's pair is longer than what holds it")
        if tag == KEY:
            key = data[at : at + size].decode("utf-8", "replace")
        elif tag == VALUE:
            raw = (at, at + size)
        else:
            raise Malformed(f"tag {tag} in a map's pair")
        at += size
    kind = field[1]
    held[key] = _scalar(kind, number) if kind in NUMBERS else _element(data, *raw, field, depth)


def _number(raw: int, field: Row, out: dict[str, Any], at: int) -> int:
    name, kind, inner, keep = field
    if kind is LIST:
        _held(out, name, list).append(_scalar(inner[1], raw))
    elif raw or keep:
        out[name] = _scalar(kind, raw)
    return at


def _double(data: bytes, start: int, tag: int, field: Row, out: dict[str, Any]) -> int:
    name, _, _, keep = field
    at = start + (1 if tag <= 0x7F else 2)
    value = struct.unpack_from("<d", data, at)[0]
    if value or keep:
        out[name] = int(value) if value.is_integer() else value
    return at + 8


def _scalar(kind: Kind, raw: int) -> int | bool:
    if kind is BOOLEAN:
        return bool(raw)
    return raw - (1 << 64) if raw >> 63 else raw


def _unknown(data: bytes, start: int, end: int, out: dict[str, Any]) -> int:
    """Keeps a field that the table does not name; where it ends."""
    tag, at = wire.varint(data, start)
    wire_type = tag & 7
    if wire_type == VARINT:
        _, stop = wire.varint(data, at)
    elif wire_type in FIXED:
        stop = at + FIXED[wire_type]
    elif wire_type == BYTES:
        size, at = wire.varint(data, at)
        stop = at + size
    else:
        raise Malformed(f"wire type {wire_type}")
    if stop > end or tag < 8:
        raise Malformed(f"unknown field {tag >> 3} is longer than what holds it")
    kept = {"field": tag >> 3, "wireType": wire_type, "base64": base64.b64encode(data[at:stop]).decode()}
    _held(out, UNKNOWN, list).append(kept)
    return stop
