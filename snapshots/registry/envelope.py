"""A value in etcd as a Kubernetes object: told apart by its first bytes, decoded to what the API server would show."""

from __future__ import annotations

import base64
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec

from snapshots import wire
from snapshots.registry import cbor, fields, protobuf

PROTOBUF_MAGIC = b"k8s\x00"
ENCRYPTED_MAGIC = b"k8s:enc:"
TYPE_META, RAW = 1 << 3 | wire.BYTES, 2 << 3 | wire.BYTES
MISTYPED = (TypeError, AttributeError, ValueError, KeyError)
"""What reading a field raises that has a type which no API server stores: a db was edited by hand."""
LARGEST = 32 << 20
"""Bytes: etcd takes 1.5 MiB by default and advises against more than 10; beyond this a value is not read."""


class Encoding(StrEnum):
    PROTOBUF = "protobuf"
    JSON = "json"
    CBOR = "cbor"
    ENCRYPTED = "encrypted"
    OTHER = "other"


class Damaged(ValueError):
    """The value is no object that an API server wrote; says why."""


def encoding(value: bytes) -> Encoding:
    if value.startswith(PROTOBUF_MAGIC):
        return Encoding.PROTOBUF
    if value.startswith(ENCRYPTED_MAGIC):
        return Encoding.ENCRYPTED
    if value.startswith(cbor.SELF_DESCRIBED):
        return Encoding.CBOR
    return Encoding.JSON if value[:64].lstrip()[:1] == b"{" else Encoding.OTHER


def decode(value: bytes, managed: bool = True) -> dict[str, Any]:
    """The object, without its managedFields where not `managed`; raises Damaged.

    Kinds that the field table lacks come back with their raw bytes as `$unknown`.
    """
    if len(value) > LARGEST:
        raise Damaged(f"{len(value)} bytes, more than the {LARGEST} that are read")
    found = encoding(value)
    try:
        if found is Encoding.PROTOBUF:
            return _protobuf(value, managed)
        if found is Encoding.JSON:
            body: dict[str, Any] = msgspec.json.decode(value)
        elif found is Encoding.CBOR:
            body = cbor.decode(value)
        else:
            raise Damaged(f"{found} value: neither protobuf, JSON nor CBOR" if value else "the value is empty")
    except (wire.Malformed, cbor.Malformed, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise Damaged(f"bad {found}: {wrong or 'nested too deep'}") from wrong
    wrong_part = _wrong_part(body)
    if wrong_part:
        raise Damaged(f"{wrong_part} in the {found} is not what every object has there")
    if not managed and "metadata" in body:
        body["metadata"].pop("managedFields", None)
    return body


def _wrong_part(body: Any) -> str:
    """The first part that has another type than in all objects; "" where there is none."""
    if not isinstance(body, dict):
        return "the whole"
    metadata = body.get("metadata", {})
    if not isinstance(metadata, dict):
        return "metadata"
    for name in ("labels", "annotations"):
        if not isinstance(metadata.get(name) or {}, dict):
            return f"metadata.{name}"
    owners = metadata.get("ownerReferences") or []
    listed = isinstance(owners, list) and all(isinstance(owner, dict) for owner in owners)
    return "" if listed else "metadata.ownerReferences"


def _protobuf(value: bytes, managed: bool) -> dict[str, Any]:
    """runtime.Unknown {1 TypeMeta, 2 raw, 3 contentEncoding, 4 contentType} after the magic."""
    meta, start, end = b"", 0, 0
    at = len(PROTOBUF_MAGIC)
    while at < len(value):
        tag = value[at]
        size, at = wire.varint(value, at + 1)
        if tag & 7 != wire.BYTES or size > len(value) - at:
            raise wire.Malformed("the envelope ends early")
        if tag == TYPE_META:
            meta = value[at : at + size]
        elif tag == RAW:
            start, end = at, at + size
        at += size
    version, kind, message = _kind(meta, managed)
    if not kind or not start:
        raise wire.Malformed("an envelope without kind or content")
    body: dict[str, Any] = {"apiVersion": version, "kind": kind}
    if message is None:
        return body | {protobuf.UNKNOWN: base64.b64encode(value[start:end]).decode()}
    return body | protobuf.decode(value, message, start, end)


@lru_cache(maxsize=1024)
def _kind(meta: bytes, managed: bool) -> tuple[str, str, fields.Message | None]:
    """TypeMeta {1 apiVersion, 2 kind}, and the message of that name where the table has it."""
    found = dict(wire.fields(meta))
    version, kind = (wire.blob(found.get(number, b"")).decode("utf-8", "backslashreplace") for number in (1, 2))
    table = fields.table()
    names = (f"{version}.{kind}", f"meta/v1.{kind}")  # the options types belong to every group
    name = next((name for name in names if name in table), None)
    return version, kind, fields.message(name, managed) if name else None
