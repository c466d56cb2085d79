"""Applies the entries of a raft log that a db has not seen, as the server would have (etcdserver/apply, mvcc).

A db is committed every 100 ms or 10,000 changes, so after a crash it lags behind the log. Nothing is written here: the
outcome is an Amendment, to be made part of a copy.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from drtool.core.errors import Unsound
from snapshots import cluster as clusters
from snapshots import requests, wire
from snapshots.amend import Amendment
from snapshots.mvcc import Index, Keyspace, KeyValue, Revision, encode_key_value, encode_revision
from snapshots.requests import (
    ACTIVATE,
    DEACTIVATE,
    AlarmRequest,
    ClusterVersion,
    Compaction,
    Compare,
    DeleteRange,
    Ignored,
    LeaseGrant,
    LeaseRevoke,
    Op,
    Put,
    Range,
    Request,
    Txn,
)
from snapshots.wal import CONF_CHANGE, CONF_CHANGE_V2, Entry

NOSPACE, CORRUPT = 1, 2
MIN_TTL, MAX_TTL = 2, 9_000_000_000
"""Seconds: 3/2 of the default election timeout, rounded up, and lessor.go's upper bound."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """`revision` is the newest after `applied` entries, the last of which was `index` in `term`.

    `ignored` counts, by kind, entries that matter and that a replay cannot make part of the db.
    """

    amendment: Amendment
    revision: int
    applied: int
    index: int
    term: int
    ignored: dict[str, int]


def replay(keyspace: Keyspace, entries: Iterable[Entry]) -> Replayed:
    """`entries` follow the db's consistent index without a gap. Raises Unsound for one that is no request of etcd's."""
    store = _Store(keyspace)
    applied = 0
    index, term = store.index, 0
    for entry in entries:
        if entry.index != index + 1:
            raise Unsound(f"{keyspace.bolt.name}: the log goes on at entry {entry.index}, the db ends at {index}")
        if entry.kind in (CONF_CHANGE, CONF_CHANGE_V2):
            store.ignored["a change of members"] += 1
        else:
            try:
                store.apply(requests.decode(entry.data))
            except wire.Malformed as wrong:
                raise Unsound(f"entry {entry.index} of the log: {wrong}", "use another member's directory") from wrong
        index, term, applied = entry.index, entry.term, applied + 1
    return Replayed(store.amendment(index, term), store.revision, applied, index, term, dict(store.ignored))


class _Store:
    """The keys as a server would hold them, and what has changed since the db."""

    def __init__(self, keyspace: Keyspace) -> None:
        self.keyspace = keyspace
        self.index = int.from_bytes(keyspace.meta().get(b"consistent_index", b""))
        self.known: Index = keyspace.index()
        self.keys = list(self.known.ordered)
        self.changed: dict[bytes, KeyValue | None] = {}
        self.revision = max(keyspace.last().main, keyspace.compacted(), 1)
        self.compacted = keyspace.compacted()
        self.leases = dict(keyspace.small(b"lease"))
        self.alarms = dict(keyspace.small(b"alarm"))
        self.cluster_version = b""
        self.appended: list[tuple[bytes, bytes]] = []
        self.ignored: Counter[str] = Counter()
        self.mode = self._mode_at_boot()
        self._sub = 0
        self._held: dict[int, set[bytes]] | None = None

    def _mode_at_boot(self) -> int:
        kinds = {alarm.kind for alarm in clusters.alarms(self.keyspace)}
        return CORRUPT if "CORRUPT" in kinds else NOSPACE if "NOSPACE" in kinds else 0

    def amendment(self, index: int, term: int) -> Amendment:
        meta = dict(self.keyspace.meta())
        meta[b"consistent_index"] = index.to_bytes(8)
        if term:
            meta[b"term"] = term.to_bytes(8)
        if self.compacted > self.keyspace.compacted():
            meta[b"scheduledCompactRev"] = encode_revision(Revision(self.compacted))
        replaced = {b"meta": meta, b"lease": self.leases, b"alarm": self.alarms}
        if self.cluster_version:
            cluster = {**self.keyspace.small(b"cluster"), b"clusterVersion": self.cluster_version}
            replaced[b"cluster"] = cluster
        return Amendment(replaced, {b"key": self.appended})

    def apply(self, request: Request) -> None:
        """One entry. What the server would have refused changes nothing."""
        if isinstance(request, Ignored):
            if request.matters:
                self.ignored[request.kind] += 1
        elif isinstance(request, AlarmRequest):
            self._alarm(request)
        elif isinstance(request, ClusterVersion):
            self.cluster_version = request.version.encode()
        elif not self._refused(request):
            self._write(request)
            self._end()

    def _refused(self, request: Request) -> bool:
        """By an alarm: without space nothing may grow, and nothing at all where the data is known to be corrupt."""
        if self.mode == CORRUPT:
            return True
        return self.mode == NOSPACE and (
            isinstance(request, Put | LeaseGrant) or (isinstance(request, Txn) and _puts(request))
        )

    def _write(self, request: Request) -> None:
        if isinstance(request, Put):
            if self._may_put(request):
                self._put(request)
        elif isinstance(request, DeleteRange):
            self._delete(self._range(request.key, request.end))
        elif isinstance(request, Txn):
            path = self._path(request)
            if all(self._may(op) for op in path):
                for op in path:
                    self._write(op)
        elif isinstance(request, Compaction):
            if self.compacted < request.revision <= self.revision:
                self.compacted = request.revision
        elif isinstance(request, LeaseGrant):
            self._grant(request)
        elif isinstance(request, LeaseRevoke):
            self._revoke(request.id)

    def _end(self) -> None:
        if self._sub:
            self.revision += 1
            self._sub = 0

    def _path(self, txn: Txn) -> list[Op]:
        """The operations that this transaction takes, nested ones too: all compared before any is carried out."""
        chosen = txn.success if all(self._holds(compare) for compare in txn.compares) else txn.failure
        path: list[Op] = []
        for op in chosen:
            path += self._path(op) if isinstance(op, Txn) else [op]
        return path

    def _holds(self, compare: Compare) -> bool:
        found = [self.get(key) for key in self._range(compare.key, compare.end)]
        if not found:
            if compare.target == requests.VALUE:
                return False
            return _compare(compare, KeyValue(b"", 0, 0, 0, b"", 0))
        return all(kv is not None and _compare(compare, kv) for kv in found)

    def _may(self, op: Op) -> bool:
        if isinstance(op, Range):
            return not op.revision or (op.revision <= self.revision and op.revision >= self.compacted)
        return not isinstance(op, Put) or self._may_put(op)

    def _may_put(self, put: Put) -> bool:
        if (put.ignore_value or put.ignore_lease) and self.get(put.key) is None:
            return False
        return not put.lease or _lease_key(put.lease) in self.leases

    def get(self, key: bytes) -> KeyValue | None:
        return self.changed[key] if key in self.changed else self.known.get(key)

    def _range(self, key: bytes, end: bytes) -> list[bytes]:
        if not end:
            return [key] if self.get(key) is not None else []
        first = bisect_left(self.keys, key)
        return self.keys[first:] if end == b"\0" else self.keys[first : bisect_left(self.keys, end, first)]

    def _put(self, put: Put) -> None:
        before = self.get(put.key)
        main = self.revision + 1
        if before is None:
            insort(self.keys, put.key)
        kv = KeyValue(
            key=put.key,
            create_revision=before.create_revision if before else main,
            mod_revision=main,
            version=before.version + 1 if before else 1,
            value=before.value if before and put.ignore_value else put.value,
            lease=before.lease if before and put.ignore_lease else put.lease,
        )
        self._attach(before, kv)
        self._append(encode_revision(Revision(main, self._sub)), put.key, kv)

    def _delete(self, keys: list[bytes]) -> None:
        for key in keys:
            before = self.get(key)
            del self.keys[bisect_left(self.keys, key)]
            self._attach(before, None)
            revision = encode_revision(Revision(self.revision + 1, self._sub), tombstone=True)
            self._append(revision, key, None)

    def _append(self, revision: bytes, key: bytes, kv: KeyValue | None) -> None:
        self.changed[key] = kv
        self.appended.append((revision, encode_key_value(kv or KeyValue(key, 0, 0, 0, b"", 0))))
        self._sub += 1

    def _attach(self, before: KeyValue | None, after: KeyValue | None) -> None:
        if self._held is None:
            return
        if before and before.lease:
            self._held.get(before.lease, set()).discard(before.key)
        if after and after.lease:
            self._held.setdefault(after.lease, set()).add(after.key)

    def _grant(self, grant: LeaseGrant) -> None:
        key = _lease_key(grant.id)
        if grant.id and key not in self.leases and grant.ttl <= MAX_TTL:
            self.leases[key] = wire.field(1, grant.id) + wire.field(2, max(grant.ttl, MIN_TTL))

    def _revoke(self, lease: int) -> None:
        if self.leases.pop(_lease_key(lease), None) is None:
            return
        if self._held is None:
            self._held = {}
            for key in self.keys:
                self._attach(None, self.get(key))
        self._delete(sorted(self._held.pop(lease, set())))

    def _alarm(self, request: AlarmRequest) -> None:
        """The server's applier follows the alarm that changed last; see newApplierV3 in etcdserver/apply."""
        key = (wire.field(1, request.member) if request.member else b"") + wire.field(2, request.alarm)
        if request.action == ACTIVATE and key not in self.alarms:
            self.alarms[key] = b""
            self.mode = request.alarm if request.alarm in (NOSPACE, CORRUPT) else self.mode
        elif request.action == DEACTIVATE and self.alarms.pop(key, None) is not None:
            self.mode = 0


def _lease_key(lease: int) -> bytes:
    return (lease & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8)


def _puts(txn: Txn) -> bool:
    return any(isinstance(op, Put) or (isinstance(op, Txn) and _puts(op)) for op in (*txn.success, *txn.failure))


def _compare(compare: Compare, kv: KeyValue) -> bool:
    held = {
        requests.VERSION: kv.version,
        requests.CREATE: kv.create_revision,
        requests.MOD: kv.mod_revision,
        requests.VALUE: kv.value,
        requests.LEASE: kv.lease,
    }[compare.target]
    operand = compare.operand
    if compare.result == requests.EQUAL:
        return held == operand
    if compare.result == requests.NOT_EQUAL:
        return held != operand
    return held > operand if compare.result == requests.GREATER else held < operand  # type: ignore[operator]
