"""The field table (fields.txt, written by rebuild.py) as what the decoder needs, each message when it is first met."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from snapshots.registry import wellknown

VARINT, FIXED64, BYTES = 0, 1, 2


class Kind(IntEnum):
    """How a field is read. Below NUMBER: length-delimited; the commonest come first."""

    STRING = 0
    MESSAGE = 1
    SPECIAL = 2
    TEXTS = 3
    LIST = 4
    MAP = 5
    INLINE = 6
    FINISHED = 7
    BLOB = 8
    SKIPPED = 9
    NUMBER = 10
    BOOLEAN = 11
    DOUBLE = 12


class Field(NamedTuple):
    """A field of a message.

    `inner` is the Message of MESSAGE, INLINE and FINISHED, the reader of SPECIAL, the element's Row for LIST, MAP
    and what holds numbers. `keep` tells that an empty or zero value on the wire is shown.
    """

    name: str
    kind: Kind
    inner: Any
    keep: bool


Row: TypeAlias = tuple[str, Kind, Any, bool]
"""A Field as the decoder meets it: a plain tuple, which is taken apart several times faster than a named one."""


@dataclass(slots=True)
class Message:
    """`fields` by tag (number << 3 | wire type); `empty` is what an empty message shows: copied, never changed.

    `seen` is the decoder's memory of small ones.
    """

    name: str
    fields: dict[int, Row] = field(default_factory=dict)
    empty: dict[str, Any] = field(default_factory=dict)
    finish: Callable[[dict[str, Any]], Any] | None = None
    seen: dict[bytes, Any] = field(default_factory=dict, repr=False)


SCALARS = {"s": Kind.STRING, "i": Kind.NUMBER, "b": Kind.BOOLEAN, "y": Kind.BLOB, "d": Kind.DOUBLE}
WIRE_TYPES = {Kind.NUMBER: VARINT, Kind.BOOLEAN: VARINT, Kind.DOUBLE: FIXED64}
MANAGED_FIELDS = 17 << 3 | BYTES
ZEROES = {Kind.STRING: "", Kind.NUMBER: 0, Kind.BOOLEAN: False, Kind.DOUBLE: 0}


@cache
def table() -> dict[str, str]:
    """Each message's line of the table, by name: `apps/v1.Deployment`."""
    text = Path(__file__).with_name("fields.txt").read_text()
    return dict(line.split("\t", 1) for line in text.splitlines())


@cache
def message(name: str, managed: bool = True) -> Message:
    """The message `name` and all it can hold; raises KeyError for a name that the table lacks.

    Without `managed`, metadata.managedFields are passed over: a third of the time that a Pod takes.
    """
    known: dict[str, Message] = {}
    found = _linked(name, known)
    metadata = known.get("meta/v1.ObjectMeta")
    if metadata is not None and not managed:
        metadata.fields[MANAGED_FIELDS] = ("managedFields", Kind.SKIPPED, None, False)
    return found


def _linked(name: str, known: dict[str, Message]) -> Message:
    if name in known:
        return known[name]
    line = table()[name]
    made = known[name] = Message(name, finish=wellknown.finisher(name, line))
    for entry in line.split(";") if line else ():
        field_name, number, code, *target = entry.split(" ")
        _add(made, sys.intern(field_name), int(number), code, target[0] if target else "", known)
    return made


def _add(made: Message, name: str, number: int, code: str, target: str, known: dict[str, Message]) -> None:
    shown, pointer = "!" in code, "?" in code
    one = _element(name, code[0], target, pointer or (shown and code[0] in "my"), known)
    wire_type = WIRE_TYPES.get(one.kind, BYTES)
    if "*" in code:
        many = Field(name, Kind.TEXTS if one.kind is Kind.STRING else Kind.LIST, _row(one), keep=False)
    elif "%" in code:
        many, wire_type = Field(name, Kind.MAP, _row(one), keep=False), BYTES
    else:
        many = one
    made.fields[number << 3 | wire_type] = _row(many)
    if one.kind is Kind.INLINE:
        made.empty.update(one.inner.empty)
    elif shown and not (one.kind is Kind.MESSAGE and many is one):
        # a struct is always on the wire, unless the server that wrote the object did not know it yet
        made.empty[name] = None if pointer or many is not one else _zero(one, target)


def _row(one: Field) -> Row:
    return one.name, one.kind, one.inner, one.keep


def _element(name: str, code: str, target: str, keep: bool, known: dict[str, Message]) -> Field:
    if code in SCALARS:
        return Field(name, SCALARS[code], None, keep)
    if target in wellknown.READERS:
        return Field(name, Kind.SPECIAL, wellknown.READERS[target][0], keep)
    inner = _linked(target, known)
    kind = Kind.INLINE if code == "n" else Kind.FINISHED if inner.finish else Kind.MESSAGE
    return Field(name, kind, inner, keep)


def _zero(one: Field, target: str) -> Any:
    """What Go shows for a field that is no pointer and not on the wire."""
    if one.kind is Kind.SPECIAL:
        return wellknown.READERS[target][1]
    return ZEROES.get(one.kind)
