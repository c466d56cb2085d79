"""Which member a snapshot is taken from."""

from __future__ import annotations

from collections.abc import Iterator

from drtool.core.errors import DrtoolError, Refused
from snapshots.etcd import CALL_TIMEOUT, Etcd, EtcdAccess, EtcdRefused, EtcdUnreachable, Status


def choose(access: EtcdAccess, pinned: bool = False, timeout: float = CALL_TIMEOUT) -> tuple[EtcdAccess, Status]:
    """The member to take a snapshot from, and its status: never a learner, not the leader where another is as new.

    `pinned`: the first endpoint was named by a person, and no other is tried. Raises Refused, EtcdUnreachable.
    """
    first, status = _first_answer(access, timeout)
    if status.learner:
        if pinned:
            raise Refused(f"etcd at {first} is a learner: its data may be old", "name a voting member with --endpoint")
    elif pinned or not status.is_leader:
        return access.at(first), status
    others = [found for found in _others(access.at(first), status, timeout) if not found[1].learner]
    followers = [found for found in others if not found[1].is_leader and found[1].applied_index >= status.applied_index]
    if followers and not status.learner:
        return followers[0]
    if not status.learner:
        return access.at(first), status
    if not others:
        raise Refused(f"etcd at {first} is a learner, and no voting member answers", "name one with --endpoint")
    return max(others, key=lambda found: (not found[1].is_leader, found[1].applied_index))


def _first_answer(access: EtcdAccess, timeout: float) -> tuple[str, Status]:
    refusal: DrtoolError | None = None
    for endpoint in access.endpoints:
        try:
            with Etcd(access.at(endpoint), timeout) as etcd:
                return endpoint, etcd.status()
        except (EtcdUnreachable, EtcdRefused) as failed:
            refusal = refusal or failed
    raise refusal or DrtoolError("no etcd endpoint is known", "name one with --endpoint, or run this on an etcd node")


def _others(access: EtcdAccess, status: Status, timeout: float) -> Iterator[tuple[EtcdAccess, Status]]:
    """Asked after `status`, so that an applied index at least as high means data at least as new."""
    try:
        with Etcd(access, timeout) as etcd:
            members = etcd.members()
    except DrtoolError:
        return
    for member in members:
        if member.id == status.member_id or member.learner or not member.client_urls:
            continue
        there = access.at(member.client_urls[0])
        try:
            with Etcd(there, min(timeout, 3.0)) as etcd:
                found = etcd.status()
        except DrtoolError:
            continue
        if found.cluster_id == status.cluster_id:
            yield there, found
