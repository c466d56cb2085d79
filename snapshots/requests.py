"""What an entry of etcd's raft log asks for: etcdserverpb.InternalRaftRequest as values.

The messages are those of raft_internal.proto and rpc.proto.

3.4 and 3.5 also log bare v2 requests; those have a string in field 2, and nothing in a v3 store changes by them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TypeAlias

from snapshots import wire
from snapshots.wire import Malformed, Value

MAX_DEPTH = 64
VERSION, CREATE, MOD, VALUE, LEASE = range(5)
EQUAL, GREATER, LESS, NOT_EQUAL = range(4)
ACTIVATE, DEACTIVATE = 1, 2


@dataclass(frozen=True, slots=True)
class Range:
    revision: int


@dataclass(frozen=True, slots=True)
class Put:
    key: bytes
    value: bytes
    lease: int
    ignore_value: bool
    ignore_lease: bool


@dataclass(frozen=True, slots=True)
class DeleteRange:
    """`end` empty: the one key; a zero byte: all keys from `key` on."""

    key: bytes
    end: bytes


@dataclass(frozen=True, slots=True)
class Compare:
    result: int
    target: int
    key: bytes
    end: bytes
    operand: int | bytes


@dataclass(frozen=True, slots=True)
class Txn:
    compares: tuple[Compare, ...]
    success: tuple[Op, ...]
    failure: tuple[Op, ...]


Op: TypeAlias = "Range | Put | DeleteRange | Txn"


@dataclass(frozen=True, slots=True)
class Compaction:
    revision: int


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    id: int
    ttl: int


@dataclass(frozen=True, slots=True)
class LeaseRevoke:
    id: int


@dataclass(frozen=True, slots=True)
class AlarmRequest:
    action: int
    member: int
    alarm: int


@dataclass(frozen=True, slots=True)
class ClusterVersion:
    version: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """What changes no key: `kind` says what it was, `matters` whether a rebuilt cluster would differ without it."""

    kind: str
    matters: bool


Request: TypeAlias = (
    Range | Put | DeleteRange | Txn | Compaction | LeaseGrant | LeaseRevoke | AlarmRequest | ClusterVersion | Ignored
)


def decode(data: bytes) -> Request:
    """Raises Malformed for what is no request of etcd 3.4 to 3.7."""
    if not data:
        return Ignored("a leader's empty entry", matters=False)
    fields = list(wire.fields(data))
    if any(number == 2 for number, _ in fields):
        return Ignored("a request to the v2 store", matters=False)
    for number, value in fields:
        if number in (1, 100):
            continue
        return _request(number, wire.blob(value))
    return Ignored("an empty request", matters=False)


def _request(number: int, data: bytes) -> Request:
    if number in (3, 4, 5, 6):
        return _op(number - 2, data, 0)
    found = _last(data)
    if number == 7:
        return Compaction(_int(found, 1))
    if number == 8:
        return LeaseGrant(id=_int(found, 2), ttl=_int(found, 1))
    if number == 9:
        return LeaseRevoke(_int(found, 1))
    if number == 10:
        return AlarmRequest(_int(found, 1), wire.unsigned(found.get(2, 0)), _int(found, 3))
    if number == 11:
        return Ignored("a lease checkpoint", matters=False)
    if number == 1300:
        return ClusterVersion(_bytes(found, 1).decode(errors="replace"))
    if number in (1301, 1302):
        return Ignored("a member's attributes" if number == 1301 else "a downgrade", matters=False)
    if 1000 <= number < 1300:
        return Ignored("a change of users or roles", matters=number != 1012)
    raise Malformed(f"request of kind {number}")


def _op(kind: int, data: bytes, depth: int) -> Op:
    """RequestOp {1 range, 2 put, 3 delete_range, 4 txn}."""
    if kind == 4:
        return _txn(data, depth + 1)
    found = _last(data)
    if kind == 1:
        return Range(_int(found, 4))
    if kind == 2:
        return Put(_bytes(found, 1), _bytes(found, 2), _int(found, 3), bool(_int(found, 5)), bool(_int(found, 6)))
    if kind == 3:
        return DeleteRange(_bytes(found, 1), _bytes(found, 2))
    raise Malformed(f"operation of kind {kind}")


def _txn(data: bytes, depth: int) -> Txn:
    if depth > MAX_DEPTH:
        raise Malformed("transactions nested deeper than any real one")
    parts: dict[int, list[bytes]] = defaultdict(list)
    for number, value in wire.fields(data):
        parts[number].append(wire.blob(value))
    return Txn(
        tuple(_compare(part) for part in parts[1]),
        tuple(_wrapped_op(part, depth) for part in parts[2]),
        tuple(_wrapped_op(part, depth) for part in parts[3]),
    )


def _wrapped_op(data: bytes, depth: int) -> Op:
    for number, value in wire.fields(data):
        return _op(number, wire.blob(value), depth)
    raise Malformed("an operation without content")


def _compare(data: bytes) -> Compare:
    found = _last(data)
    target = _int(found, 2)
    if not 0 <= target <= LEASE:
        raise Malformed(f"comparison with target {target}")
    operand = _bytes(found, 7) if target == VALUE else _int(found, {VERSION: 4, CREATE: 5, MOD: 6, LEASE: 8}[target])
    return Compare(_int(found, 1), target, _bytes(found, 3), _bytes(found, 64), operand)


def _last(data: bytes) -> dict[int, Value]:
    """Of a field that comes more than once the last counts, as protobuf has it."""
    return dict(wire.fields(data))


def _int(found: dict[int, Value], number: int) -> int:
    return wire.signed(found.get(number, 0))


def _bytes(found: dict[int, Value], number: int) -> bytes:
    return wire.blob(found.get(number, b""))
