"""The cluster that a restore makes: its members, and the ids that follow from their URLs and the token.

server/etcdserver/api/membership/{member,cluster}.go: a member's id is sha1 of its sorted peer URLs and the token, the
cluster's that of its members' ids; the name is in neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha1
from urllib.parse import urlsplit

from drtool.core.errors import UsageError
from snapshots import wire
from snapshots.cluster import Member, member_json

MAX_MEMBERS = 7
DEFAULT_NAME, DEFAULT_TOKEN, DEFAULT_PEER_URL = "default", "etcd-cluster", "http://localhost:2380"
SCHEMES = ("http", "https", "unix", "unixs")


@dataclass(frozen=True, slots=True)
class NewMember:
    name: str
    peer_urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewCluster:
    """One to seven members and the token that sets this cluster apart from any other with the same URLs."""

    members: tuple[NewMember, ...]
    token: str = DEFAULT_TOKEN

    def member_id(self, member: NewMember) -> int:
        return _first_8(("".join(sorted(member.peer_urls)) + self.token).encode())

    def member(self, name: str) -> NewMember:
        """Raises UsageError where no member has that name."""
        for one in self.members:
            if one.name == name:
                return one
        raise UsageError(f"no member {name!r} among {', '.join(one.name for one in self.members)}")

    @property
    def identified(self) -> tuple[Member, ...]:
        """The members with their ids, ascending."""
        named = [Member(self.member_id(one), one.name, tuple(sorted(one.peer_urls))) for one in self.members]
        return tuple(sorted(named, key=lambda one: one.id))

    @property
    def cluster_id(self) -> int:
        return _first_8(b"".join(one.id.to_bytes(8) for one in self.identified))


def new_cluster(members: Sequence[NewMember], token: str = DEFAULT_TOKEN) -> NewCluster:
    """Raises UsageError for what etcd's restore refuses: no or twice used names and URLs, URLs that are no peer's."""
    if not 1 <= len(members) <= MAX_MEMBERS:
        raise UsageError(f"a cluster of {len(members)} members; one to {MAX_MEMBERS} can be restored")
    names = [one.name for one in members]
    urls = [url for one in members for url in one.peer_urls]
    for what, all_of_them in (("member", names), ("peer URL", urls)):
        twice = {one for one in all_of_them if all_of_them.count(one) > 1}
        if twice:
            raise UsageError(f"{what} {min(twice)} is given twice")
    for one in members:
        if not one.name or not one.peer_urls:
            raise UsageError(f"member {one.name!r} needs a name and a peer URL", "give NAME=https://HOST:2380")
        for url in one.peer_urls:
            _check_url(url)
    return NewCluster(tuple(members), token)


def parse_initial_cluster(text: str) -> tuple[NewMember, ...]:
    """`--initial-cluster`: NAME=URL,NAME=URL; a name with several URLs is given several times."""
    urls: dict[str, list[str]] = {}
    for part in text.split(","):
        name, equals, url = part.strip().partition("=")
        if not equals or not name:
            raise UsageError(f"{part!r} is no NAME=URL", "as in --initial-cluster cp-1=https://192.0.2.1:2380")
        urls.setdefault(name, []).append(url)
    return tuple(NewMember(name, tuple(found)) for name, found in urls.items())


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as wrong:
        raise UsageError(f"peer URL {url}: {wrong}") from wrong
    if parts.scheme not in SCHEMES:
        raise UsageError(f"peer URL {url}: the scheme must be http, https, unix or unixs")
    if parts.scheme.startswith("unix"):
        return
    if not parts.hostname or port is None:
        raise UsageError(f"peer URL {url}: needs a host and a port", "as in https://192.0.2.1:2380")
    if parts.path or parts.query or parts.fragment or parts.username is not None:
        raise UsageError(f"peer URL {url}: nothing may follow the port")


def _first_8(data: bytes) -> int:
    return int.from_bytes(sha1(data, usedforsecurity=False).digest()[:8])


def conf_state(members: Sequence[Member]) -> bytes:
    """raftpb.ConfState {1 voters, 5 auto_leave}."""
    return b"".join(wire.field(1, one.id) for one in members) + wire.field(5, 0)


def conf_change(member: Member) -> bytes:
    """raftpb.ConfChange {1 id, 2 type AddNode, 3 node, 4 context}."""
    return wire.field(1, 0) + wire.field(2, 0) + wire.field(3, member.id) + wire.field(4, member_json(member))
