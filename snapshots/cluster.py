"""What a db says of its cluster: members, alarms, leases, versions, raft index, auth.

Buckets `members`, `alarm`, `lease`, `cluster`, `meta` and `auth` (server/storage/schema/*.go).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from drtool.core.errors import Unsound
from snapshots import wire

ALARMS = {1: "NOSPACE", 2: "CORRUPT"}


class Records(Protocol):
    """Buckets of few pairs: a Keyspace's, or those that a stream held."""

    def small(self, name: bytes) -> dict[bytes, bytes]: ...

    def place(self, name: bytes) -> str:
        """The file and page of a bucket, for messages."""
        ...


@dataclass(frozen=True, slots=True)
class Member:
    id: int
    name: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...] = ()
    learner: bool = False


@dataclass(frozen=True, slots=True)
class Alarm:
    """`kind` is NOSPACE, CORRUPT or the number that etcd gave it."""

    member: int
    kind: str


@dataclass(frozen=True, slots=True)
class Lease:
    """`ttl` in seconds as granted; it begins anew when a server boots on this db."""

    id: int
    ttl: int
    remaining: int = 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """`consistent_index` is the raft entry that this db has seen last, in `term` (0 where 3.4 wrote it).

    `version` is the cluster version, empty where none is recorded; `storage_version` is empty before 3.6.
    `voters` are those of the recorded ConfState, None where there is none (3.4).
    """

    members: tuple[Member, ...]
    removed: tuple[int, ...]
    alarms: tuple[Alarm, ...]
    leases: int
    version: str
    storage_version: str
    consistent_index: int
    term: int
    voters: tuple[int, ...] | None
    auth: bool
    users: int
    downgrade: str


def read(records: Records) -> Cluster:
    """Raises Unsound where a record is not what etcd writes."""
    meta, cluster = records.small(b"meta"), records.small(b"cluster")
    with _blamed(records, "meta"):
        conf = json.loads(meta[b"confState"]) if b"confState" in meta else None
        voters = None if conf is None else tuple(int(voter) for voter in conf.get("voters") or ())
    with _blamed(records, "cluster"):
        downgrade = json.loads(cluster.get(b"downgrade", b"{}"))
        target = str(downgrade.get("target-version", "")) if downgrade.get("enabled") else ""
    return Cluster(
        members=members(records),
        removed=tuple(_removed(records)),
        alarms=alarms(records),
        leases=len(records.small(b"lease")),
        version=_text(cluster.get(b"clusterVersion", b"")),
        storage_version=_text(meta.get(b"storageVersion", b"")),
        consistent_index=int.from_bytes(meta.get(b"consistent_index", b"")),
        term=int.from_bytes(meta.get(b"term", b"")),
        voters=voters,
        auth=records.small(b"auth").get(b"authEnabled") == b"\x01",
        users=len(records.small(b"authUsers")),
        downgrade=target,
    )


def members(records: Records) -> tuple[Member, ...]:
    """By id. 3.5.1 and older lines lose the client URLs here."""
    with _blamed(records, "members"):
        found = [member(json.loads(data)) for data in records.small(b"members").values()]
    return tuple(sorted(found, key=lambda one: one.id))


def member(record: dict[str, Any]) -> Member:
    """membership.Member as JSON: in the db, in a WAL's ConfChange and in a .snap alike."""
    return Member(
        id=int(record["id"]),
        name=str(record.get("name", "")),
        peer_urls=_strings(record.get("peerURLs")),
        client_urls=_strings(record.get("clientURLs")),
        learner=record.get("isLearner") is True,
    )


def member_json(one: Member) -> bytes:
    """As etcd's restore writes it: Go's field order, empty fields left out."""
    record: dict[str, Any] = {"id": one.id, "peerURLs": list(one.peer_urls)}
    if one.learner:
        record["isLearner"] = True
    if one.name:
        record["name"] = one.name
    if one.client_urls:
        record["clientURLs"] = list(one.client_urls)
    return go_json(record)


def go_json(value: object) -> bytes:
    """JSON as Go's encoder writes it: no blanks, and <, > and & as escapes."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode()


def alarms(records: Records) -> tuple[Alarm, ...]:
    with _blamed(records, "alarm"):
        return tuple(_alarm(key) for key in records.small(b"alarm"))


def leases(records: Records) -> tuple[Lease, ...]:
    with _blamed(records, "lease"):
        return tuple(_lease(data) for data in records.small(b"lease").values())


def _alarm(key: bytes) -> Alarm:
    found = {number: wire.unsigned(value) for number, value in wire.fields(key) if number in (1, 2)}
    kind = found.get(2, 0)
    return Alarm(found.get(1, 0), ALARMS.get(kind, str(kind)))


def _lease(data: bytes) -> Lease:
    found = {number: wire.signed(value) for number, value in wire.fields(data) if number in (1, 2, 3)}
    return Lease(found.get(1, 0), found.get(2, 0), found.get(3, 0))


def _removed(records: Records) -> Iterator[int]:
    with _blamed(records, "members_removed"):
        for key in records.small(b"members_removed"):
            yield int(key, 16)


def _strings(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


@contextmanager
def _blamed(records: Records, bucket: str) -> Iterator[None]:
    """What a foreign record can raise while it is parsed becomes one line naming bucket and page."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
        where = records.place(bucket.encode())
        raise Unsound(
            f"{where}: bucket {bucket}: {wrong or type(wrong).__name__}",
            "the file is damaged: use another copy or an older backup",
        ) from wrong
