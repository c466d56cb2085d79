"""The etcd client: status, members, alarms, hashes, changes, and the snapshot as raw bytes.

etcd3 brings the channel and the messages of etcd 3.4; what it does not know (learners, the applied index, promotion)
is read and written as protobuf fields here, from api/etcdserverpb/rpc.proto. The snapshot's messages never become
objects: each is cut into its fields where it lies.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

# Read when grpc is first imported: its older poller reads the socket in the thread that waits for a message. The newer
# one hands each message over from a thread of its own, five times the thread switches and a third more of a core.
POLLER_TRIED = (1, 85)
"""The newest grpcio that is known to have it; one that does not would say so on stderr."""
if tuple(map(int, version("grpcio").split(".")[:2])) <= POLLER_TRIED:
    os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client")

import etcd3
import grpc
from etcd3.etcdrpc import rpc_pb2

from drtool.core.errors import DrtoolError
from drtool.host.reading import small
from snapshots import wire

CALL_TIMEOUT = 10.0
SNAPSHOT = "/etcdserverpb.Maintenance/Snapshot"
OPTIONS = (
    ("SingleThreadedUnaryStream", 1),  # no thread and no queue between the socket and the reader of a stream
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
)


class EtcdUnreachable(DrtoolError):
    """No member answered: not running, not listening there, or TLS did not come about."""


class EtcdRefused(DrtoolError):
    """A member answered with an error."""


class SnapshotBroken(DrtoolError):
    """The snapshot's stream ended early, stalled, or its hash does not match."""


@dataclass(frozen=True, slots=True)
class EtcdAccess:
    """How to reach etcd: client URLs and PEM files; without `ca` the connection is plain."""

    endpoints: tuple[str, ...]
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = field(default=None, repr=False)

    def at(self, *endpoints: str) -> EtcdAccess:
        return EtcdAccess(endpoints, self.ca, self.cert, self.key)


@dataclass(frozen=True, slots=True)
class Status:
    """One member's answer to Maintenance/Status; ids are unsigned 64-bit numbers, sizes are bytes."""

    cluster_id: int
    member_id: int
    revision: int
    version: str
    db_size: int
    leader: int
    raft_index: int
    raft_term: int
    applied_index: int
    errors: tuple[str, ...]
    learner: bool

    @property
    def is_leader(self) -> bool:
        return self.leader == self.member_id


@dataclass(frozen=True, slots=True)
class Member:
    id: int
    name: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    learner: bool


@dataclass(frozen=True, slots=True)
class HashKV:
    hash: int
    compact_revision: int
    revision: int


@dataclass(frozen=True, slots=True)
class KeyValue:
    key: bytes
    value: bytes = field(repr=False)
    create_revision: int
    mod_revision: int
    version: int
    lease: int


class Etcd:
    """One member, reached at one endpoint. A context manager; every call raises EtcdUnreachable or EtcdRefused."""

    def __init__(self, access: EtcdAccess, timeout: float = CALL_TIMEOUT) -> None:
        if not access.endpoints:
            raise DrtoolError("no etcd endpoint is known", "name one with --endpoint, or run this on an etcd node")
        self.endpoint = access.endpoints[0]
        self.timeout = timeout
        url = urlsplit(self.endpoint if "://" in self.endpoint else f"http://{self.endpoint}")
        host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname or ""
        secure = url.scheme == "https"
        credentials = _credentials(access) if secure else None
        endpoint = etcd3.Endpoint(host, url.port or 2379, secure, credentials, time_retry=0.0, opts=OPTIONS)
        self._client = etcd3.MultiEndpointEtcd3Client([endpoint], timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    # -- what a member says

    def status(self) -> Status:
        reply = Fields(self._call("Maintenance/Status", b""))
        header = Fields(reply.data(1))
        return Status(
            cluster_id=header.number(1),
            member_id=header.number(2),
            revision=header.number(3),
            version=reply.text(2),
            db_size=reply.number(3),
            leader=reply.number(4),
            raft_index=reply.number(5),
            raft_term=reply.number(6),
            applied_index=reply.number(7) or reply.number(5),
            errors=reply.texts(8),
            learner=bool(reply.number(10)),
        )

    def members(self, linearizable: bool = True) -> tuple[Member, ...]:
        """The member list; not linearizable where quorum is lost (field 1 of the request, etcd 3.5 and newer)."""
        reply = Fields(self._call("Cluster/MemberList", b"\x08\x01" if linearizable else b""))
        return tuple(_member(raw) for raw in reply.all(2))

    def alarms(self) -> tuple[tuple[int, str], ...]:
        """(member id, "NOSPACE" | "CORRUPT") of every raised alarm."""
        request = rpc_pb2.AlarmRequest(action=rpc_pb2.AlarmRequest.GET)
        reply = rpc_pb2.AlarmResponse.FromString(self._call("Maintenance/Alarm", request.SerializeToString()))
        return tuple((alarm.memberID, rpc_pb2.AlarmType.Name(alarm.alarm)) for alarm in reply.alarms)

    def hashkv(self, revision: int = 0) -> HashKV:
        """The hash over the key bucket up to `revision` (0: the newest); comparable between members."""
        request = rpc_pb2.HashKVRequest(revision=revision).SerializeToString()
        reply = Fields(self._call("Maintenance/HashKV", request, timeout=max(self.timeout, 120.0)))
        at = reply.number(4) or revision or Fields(reply.data(1)).number(3)
        return HashKV(reply.number(2), signed(reply.number(3)), at)

    def healthy(self) -> bool:
        """What /health means: a leader, no alarm, and a linearizable read that comes back."""
        try:
            self.get(b"health")
            return bool(self.status().leader) and not self.alarms()
        except DrtoolError:
            return False

    # -- keys

    def get(self, key: bytes, end: bytes = b"", *, limit: int = 0, revision: int = 0) -> tuple[KeyValue, ...]:
        request = rpc_pb2.RangeRequest(key=key, range_end=end, limit=limit, revision=revision)
        reply = rpc_pb2.RangeResponse.FromString(self._call("KV/Range", request.SerializeToString()))
        return tuple(
            KeyValue(kv.key, kv.value, kv.create_revision, kv.mod_revision, kv.version, kv.lease) for kv in reply.kvs
        )

    def count(self, key: bytes, end: bytes = b"") -> int:
        request = rpc_pb2.RangeRequest(key=key, range_end=end, count_only=True)
        return int(rpc_pb2.RangeResponse.FromString(self._call("KV/Range", request.SerializeToString())).count)

    def pages(
        self, key: bytes = b"\0", end: bytes = b"\0", page: int = 500, keys_only: bool = False
    ) -> Iterator[KeyValue]:
        """Every key in a range at one revision, `page` at a time; the whole key space when none is named."""
        revision = 0
        while True:
            request = rpc_pb2.RangeRequest(key=key, range_end=end, limit=page, revision=revision, keys_only=keys_only)
            reply = rpc_pb2.RangeResponse.FromString(self._call("KV/Range", request.SerializeToString()))
            revision = revision or reply.header.revision
            for kv in reply.kvs:
                yield KeyValue(kv.key, kv.value, kv.create_revision, kv.mod_revision, kv.version, kv.lease)
            if not reply.more or not reply.kvs:
                return
            key = reply.kvs[-1].key + b"\0"

    def put(self, key: bytes, value: bytes, lease: int = 0) -> int:
        """The new revision."""
        request = rpc_pb2.PutRequest(key=key, value=value, lease=lease)
        reply = rpc_pb2.PutResponse.FromString(self._call("KV/Put", request.SerializeToString()))
        return int(reply.header.revision)

    def put_all(self, pairs: list[tuple[bytes, bytes]]) -> int:
        """All pairs in one transaction (at most --max-txn-ops, 128 by default); the new revision."""
        request = rpc_pb2.TxnRequest()
        for key, value in pairs:
            request.success.add().request_put.CopyFrom(rpc_pb2.PutRequest(key=key, value=value))
        reply = rpc_pb2.TxnResponse.FromString(self._call("KV/Txn", request.SerializeToString()))
        return int(reply.header.revision)

    def delete(self, key: bytes, end: bytes = b"") -> int:
        """How many keys went."""
        request = rpc_pb2.DeleteRangeRequest(key=key, range_end=end)
        return int(
            rpc_pb2.DeleteRangeResponse.FromString(self._call("KV/DeleteRange", request.SerializeToString())).deleted
        )

    # -- the cluster

    def compact(self, revision: int, physical: bool = False) -> None:
        request = rpc_pb2.CompactionRequest(revision=revision, physical=physical)
        self._call("KV/Compact", request.SerializeToString(), timeout=max(self.timeout, 300.0))

    def defragment(self) -> None:
        """Blocks this member's reads and writes while it runs (minutes for a db of some GiB)."""
        self._call("Maintenance/Defragment", b"", timeout=max(self.timeout, 600.0))

    def disarm(self, member_id: int, alarm: str) -> None:
        request = rpc_pb2.AlarmRequest(
            action=rpc_pb2.AlarmRequest.DEACTIVATE, memberID=member_id, alarm=rpc_pb2.AlarmType.Value(alarm)
        )
        self._call("Maintenance/Alarm", request.SerializeToString())

    def add_member(self, peer_urls: tuple[str, ...], learner: bool = False) -> Member:
        request = rpc_pb2.MemberAddRequest(peerURLs=peer_urls).SerializeToString()
        reply = Fields(self._call("Cluster/MemberAdd", request + (b"\x10\x01" if learner else b"")))
        return _member(reply.data(2))

    def remove_member(self, member_id: int) -> None:
        self._call("Cluster/MemberRemove", rpc_pb2.MemberRemoveRequest(ID=member_id).SerializeToString())

    def update_member(self, member_id: int, peer_urls: tuple[str, ...]) -> None:
        request = rpc_pb2.MemberUpdateRequest(ID=member_id, peerURLs=peer_urls)
        self._call("Cluster/MemberUpdate", request.SerializeToString())

    def promote_member(self, member_id: int) -> None:
        """A learner becomes a voter; refused by etcd until it has caught up."""
        self._call("Cluster/MemberPromote", rpc_pb2.MemberRemoveRequest(ID=member_id).SerializeToString())

    def move_leader(self, member_id: int) -> None:
        """Asked of the leader."""
        self._call("Maintenance/MoveLeader", rpc_pb2.MoveLeaderRequest(targetID=member_id).SerializeToString())

    # -- the snapshot

    def snapshot(self, stall: float = 60.0, total: float | None = None) -> Iterator[memoryview]:
        """The bytes that `etcdctl snapshot save` would write, the 32-byte sha256 last, in pieces of up to 32 KiB.

        The stream is read to its end: the hash comes in a message of its own, after remaining_bytes has reached 0.
        Whether it matches is for trailer.Trailer to say. `stall` is how many seconds may pass without a message,
        `total` how many for all; time that the caller spends between pieces is not counted as a stall.
        Raises SnapshotBroken, EtcdUnreachable, EtcdRefused.
        """
        open_stream = self._client.channel.unary_stream(SNAPSHOT)
        call = open_stream(b"", timeout=total)
        try:
            with _watchdog(stall, call.cancel) as watch:
                yield from self._pieces(call, watch)
        finally:
            call.cancel()

    def _pieces(self, call: Any, watch: _Watch) -> Iterator[memoryview]:
        while True:
            watch.waiting_since = time.monotonic()
            try:
                message = next(call)
            except StopIteration:
                return
            except grpc.RpcError as error:
                if watch.fired:
                    raise SnapshotBroken(
                        f"{self.endpoint}: the snapshot stalled: nothing for {watch.stall:g} s",
                        "etcd's disk or the network is stuck; look at etcd's log, then run the backup again",
                    ) from error
                self._failed("the snapshot", error)
            finally:
                watch.waiting_since = None
            yield blob(message)

    def _call(self, method: str, request: bytes, timeout: float | None = None) -> bytes:
        call = self._client.channel.unary_unary(f"/etcdserverpb.{method}")
        try:
            reply: bytes = call(request, timeout=timeout or self.timeout)
        except grpc.RpcError as error:
            self._failed(method.partition("/")[2], error)
        return reply

    def _failed(self, what: str, error: grpc.RpcError) -> NoReturn:
        code, details = error.code(), (error.details() or "").strip()
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            raise EtcdUnreachable(
                f"etcd at {self.endpoint} cannot be reached: {details or code.name}", _hint(details)
            ) from error
        raise EtcdRefused(f"etcd at {self.endpoint} refused {what}: {details or code.name}") from error


def _credentials(access: EtcdAccess) -> grpc.ChannelCredentials:
    def pem(path: Path | None) -> bytes | None:
        if path is None:
            return None
        try:
            return small(path)
        except OSError as gone:
            raise DrtoolError(
                f"{path}: {gone.strerror}", "etcd's client certificate, key and CA are needed to reach it"
            ) from gone

    return grpc.ssl_channel_credentials(pem(access.ca), pem(access.key), pem(access.cert))


def _hint(details: str) -> str:
    if any(word in details for word in ("SSL", "TLS", "ertificate", "andshake")):
        return "TLS failed: check the CA, the client certificate and that the server's certificate names this address"
    return "check that etcd runs and listens there"


def _member(raw: bytes) -> Member:
    found = Fields(raw)
    return Member(found.number(1), found.text(2), found.texts(3), found.texts(4), bool(found.number(5)))


@dataclass(slots=True)
class _Watch:
    stall: float
    waiting_since: float | None = None
    fired: bool = False


@contextmanager
def _watchdog(stall: float, cancel: Callable[[], object]) -> Iterator[_Watch]:
    """Cancels a stream that has been waited for longer than `stall` seconds."""
    watch, over = _Watch(stall), threading.Event()

    def look() -> None:
        while not over.wait(min(stall / 4, 1.0)):
            since = watch.waiting_since
            if since is not None and time.monotonic() - since > stall:
                watch.fired = True
                cancel()
                return

    thread = threading.Thread(target=look, name="snapshot-watchdog", daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()


def blob(message: bytes) -> memoryview:
    """Field 3 of a SnapshotResponse: servers write remaining_bytes (2) before it, and nothing else as long as that."""
    at = 0
    if message[:1] == b"\x10":
        at = 1
        while at < len(message) and message[at] & 0x80:
            at += 1
        at += 1
    if message[at : at + 1] == b"\x1a":
        with suppress(wire.Malformed):
            size, start = wire.varint(message[: at + 11], at + 1)
            if start + size <= len(message):
                return memoryview(message)[start : start + size]
    return memoryview(Fields(message).data(3))


class Fields:
    """A message cut into its fields."""

    __slots__ = ("_found",)

    def __init__(self, data: bytes) -> None:
        try:
            self._found = list(wire.fields(data))
        except wire.Malformed as wrong:
            raise EtcdRefused(f"etcd sent a message that is no protobuf: {wrong}") from wrong

    def number(self, number: int) -> int:
        """Unsigned; 0 where the field is absent."""
        return next((value for n, value in reversed(self._found) if n == number and isinstance(value, int)), 0)

    def all(self, number: int) -> tuple[bytes, ...]:
        return tuple(value for n, value in self._found if n == number and isinstance(value, bytes))

    def data(self, number: int) -> bytes:
        found = self.all(number)
        return found[-1] if found else b""

    def text(self, number: int) -> str:
        return self.data(number).decode("utf-8", "replace")

    def texts(self, number: int) -> tuple[str, ...]:
        return tuple(value.decode("utf-8", "replace") for value in self.all(number))


def signed(value: int) -> int:
    """int64 as protobuf carries it: two's complement in an unsigned varint."""
    return value - (1 << 64) if value >= 1 << 63 else value
