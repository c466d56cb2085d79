"""Messages that the API server shows as one JSON value: times, durations, quantities, IntOrString, raw JSON.

Each reader takes the message's bytes and gives the value, as the type's MarshalJSON in k8s.io/apimachinery and
apiextensions-apiserver 0.37 does; most repeat from object to object, hence the caches. What they return is shared:
decoded objects are read, never changed.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from snapshots import wire
from snapshots.registry import cbor

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = ((3_600_000_000_000, "h"), (60_000_000_000, "m"))
SECOND, MILLISECOND, MICROSECOND = 1_000_000_000, 1_000_000, 1_000


def _numbers(raw: bytes) -> dict[int, wire.Value]:
    return dict(wire.fields(raw))


@lru_cache(maxsize=65536)
def time(raw: bytes) -> str | None:
    """RFC 3339, whole seconds; null for the empty message, which is Go's zero time."""
    return _instant(raw, "") if raw else None


@lru_cache(maxsize=4096)
def micro_time(raw: bytes) -> str | None:
    return _instant(raw, "microseconds") if raw else None


def _instant(raw: bytes, precision: str) -> str:
    numbers = _numbers(raw)
    try:
        moment = EPOCH + timedelta(seconds=wire.signed(numbers.get(1, 0)))
        moment += timedelta(microseconds=wire.signed(numbers.get(2, 0)) // 1000)
    except OverflowError as wrong:
        raise wire.Malformed("a time beyond the year 9999") from wrong
    return moment.strftime(f"{moment.year:04}-%m-%dT%H:%M:%S" + (".%f" if precision else "")) + "Z"


@lru_cache(maxsize=1024)
def duration(raw: bytes) -> str:
    """As Go's time.Duration prints: `1m30s`, `1.5s`, `20ms`, `0s`."""
    left = wire.signed(_numbers(raw).get(1, 0))
    if left == 0:
        return "0s"
    sign, left = ("-", -left) if left < 0 else ("", left)
    if left < SECOND:
        size, unit = next(each for each in ((MILLISECOND, "ms"), (MICROSECOND, "µs"), (1, "ns")) if left >= each[0])
        return f"{sign}{_decimal(left, size)}{unit}"
    text = sign
    for size, unit in UNITS:
        if left >= size or text != sign:
            text += f"{left // size}{unit}"
            left %= size
    return f"{text}{_decimal(left, SECOND)}s"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    digits = f"{rest:0{len(str(unit)) - 1}}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


@lru_cache(maxsize=65536)
def quantity(raw: bytes) -> str:
    """The server writes quantities in their canonical form."""
    return wire.blob(_numbers(raw).get(1, b"")).decode() or "0"


@lru_cache(maxsize=16384)
def int_or_string(raw: bytes) -> int | str:
    numbers = _numbers(raw)
    if numbers.get(1, 0):
        return wire.blob(numbers.get(3, b"")).decode()
    return wire.signed(numbers.get(2, 0))


@lru_cache(maxsize=8192)
def raw_json(raw: bytes) -> Any:
    """FieldsV1, RawExtension and apiextensions' JSON: JSON (or CBOR) inside field 1."""
    return embedded(wire.blob(_numbers(raw).get(1, b"")))


def embedded(content: bytes) -> Any:
    """JSON or CBOR by its first bytes; what is neither (an object's protobuf) is shown as base64, not guessed at."""
    if not content:
        return None
    try:
        if content.startswith(cbor.SELF_DESCRIBED) or content[0] >> 5 == cbor.MAP:
            return cbor.decode(content)
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, cbor.Malformed, UnicodeDecodeError):
        return {"$unknown": base64.b64encode(content).decode()}


READERS: dict[str, tuple[Callable[[bytes], Any], Any]] = {
    "meta/v1.Time": (time, None),
    "meta/v1.MicroTime": (micro_time, None),
    "meta/v1.Duration": (duration, "0s"),
    "meta/v1.FieldsV1": (raw_json, None),
    "resource.Quantity": (quantity, "0"),
    "intstr.IntOrString": (int_or_string, 0),
    "runtime.RawExtension": (raw_json, None),
    "apiextensions.k8s.io/v1.JSON": (raw_json, None),
    "apiextensions.k8s.io/v1beta1.JSON": (raw_json, None),
}
"""By message: its reader, and what JSON shows where a struct that is no pointer is not on the wire."""


def _props_or_array(shown: dict[str, Any]) -> Any:
    return shown["jSONSchemas"] or shown["schema"]


def _props_or_bool(shown: dict[str, Any]) -> Any:
    return shown["allows"] if shown["schema"] is None else shown["schema"]


def _props_or_strings(shown: dict[str, Any]) -> Any:
    return shown["property"] or shown["schema"]


def _items(shown: dict[str, Any]) -> Any:
    return shown.get("[]") or []


FINISHERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    f"apiextensions.k8s.io/{version}.JSONSchemaPropsOr{what}": finish
    for version in ("v1", "v1beta1")
    for what, finish in (("Array", _props_or_array), ("Bool", _props_or_bool), ("StringArray", _props_or_strings))
}


def finisher(name: str, line: str) -> Callable[[dict[str, Any]], Any] | None:
    """What turns a decoded message into what JSON shows of it; None where that is the message itself."""
    return _items if line.startswith("[] ") else FINISHERS.get(name)
