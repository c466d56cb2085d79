"""A value in etcd as a Kubernetes object: told apart by its first bytes, decoded to what the API server would show."""

from __future__ import annotations

import base64
from enum import StrEnum
from typing import Any

import msgspec

from snapshots import wire
from snapshots.registry import cbor, fields, protobuf

PROTOBUF_MAGIC = b"k8s\x00"
ENCRYPTED_MAGIC = b"k8s:enc:"
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


def decode(value: bytes) -> dict[str, Any]:
    """The object; raises Damaged. Kinds that the field table lacks come back with their raw bytes as `$unknown`."""
    if len(value) > LARGEST:
        raise Damaged(f"{len(value)} bytes, more than the {LARGEST} that are read")
    found = encoding(value)
    try:
        if found is Encoding.PROTOBUF:
            return _protobuf(value)
        if found is Encoding.JSON:
            body = msgspec.json.decode(value)
        elif found is Encoding.CBOR:
            body = cbor.decode(value)
        else:
            raise Damaged(f"{found} value: neither protobuf, JSON nor CBOR" if value else "the value is empty")
    except (wire.Malformed, cbor.Malformed, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise Damaged(f"bad {found}: {wrong or 'nested too deep'}") from wrong
    if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict):
        raise Damaged(f"the {found} is no object")
    return body


def _protobuf(value: bytes) -> dict[str, Any]:
    """runtime.Unknown {1 TypeMeta {1 apiVersion, 2 kind}, 2 raw, 3 contentEncoding, 4 contentType} after the magic."""
    envelope = dict(wire.fields(value[len(PROTOBUF_MAGIC) :]))
    meta = dict(wire.fields(wire.blob(envelope.get(1, b""))))
    version, kind = (wire.blob(meta.get(number, b"")).decode() for number in (1, 2))
    if not kind or 2 not in envelope:
        raise wire.Malformed("an envelope without kind or content")
    raw = wire.blob(envelope[2])
    body: dict[str, Any] = {"apiVersion": version, "kind": kind}
    table = fields.table()
    for name in (f"{version}.{kind}", f"meta/v1.{kind}"):  # the options types belong to every group
        if name in table:
            return body | protobuf.decode(raw, fields.message(name))
    return body | {protobuf.UNKNOWN: base64.b64encode(raw).decode()}
