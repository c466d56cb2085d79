from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from drtool.core.errors import DrtoolError, Refused
from snapshots import scratch
from snapshots.choosing import choose
from snapshots.etcd import Etcd, EtcdAccess, EtcdRefused, EtcdUnreachable, Fields, SnapshotBroken, Status, blob
from snapshots.stream.check import StreamCheck
from snapshots.take import whole
from tests.builders.live_node import live_node
from tests.eventually import eventually
from tests.fakes.tcp_proxy import tcp_proxy


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdAccess]:
    with scratch.running(tmp_path_factory.mktemp("etcd") / "data") as running:
        access = EtcdAccess((running.client_url,))
        with Etcd(access) as client:
            for batch in range(20):
                client.put_all([(f"/k/{batch}/{n}".encode(), os.urandom(5000)) for n in range(100)])
        yield access


def test_a_snapshot_ends_with_its_hash_and_is_a_sound_db(etcd: EtcdAccess) -> None:
    check = StreamCheck()
    with Etcd(etcd) as client:
        for piece in client.snapshot():
            assert len(piece) <= 32 << 10
            check.feed(piece)
        whole(check)
        status = check.finish()
        assert status.structure.sound
        assert status.figures is not None
        assert status.figures.total_key == client.count(b"\0", b"\0")


def test_keys_put_read_counted_deleted(etcd: EtcdAccess) -> None:
    with Etcd(etcd) as client:
        revision = client.put(b"/x/a", b"1")
        assert client.put(b"/x/b", b"2") == revision + 1
        assert [kv.value for kv in client.get(b"/x/", b"/x0")] == [b"1", b"2"]
        assert [kv.key for kv in client.pages(b"/x/", b"/x0", page=1)] == [b"/x/a", b"/x/b"]
        assert client.get(b"/x/b", revision=revision) == ()
        hashed = client.hashkv()
        assert hashed.revision == revision + 1
        assert client.delete(b"/x/", b"/x0") == 2
        client.compact(revision)
        client.defragment()
        assert client.alarms() == ()
        assert client.healthy()


def test_nobody_there(tmp_path: Path) -> None:
    (port,) = scratch.free_ports(1)
    with pytest.raises(EtcdUnreachable, match=str(port)), Etcd(EtcdAccess((f"http://127.0.0.1:{port}",)), 2) as client:
        client.status()
    with pytest.raises(DrtoolError, match=r"no-such\.pem"):
        Etcd(EtcdAccess(("https://127.0.0.1:1",), tmp_path / "no-such.pem"))


def test_tls_that_does_not_fit(tmp_path: Path) -> None:
    with live_node(tmp_path / "a") as node, Etcd(node.access, 3) as client:
        assert client.status().is_leader
        other = node.directory / "etc/kubernetes/pki/ca.crt"
        wrong = EtcdAccess(node.access.endpoints, other, node.access.cert, node.access.key)
        with pytest.raises(EtcdUnreachable), Etcd(wrong, 2) as stranger:
            stranger.status()
        without = EtcdAccess(node.access.endpoints, node.access.ca)
        with pytest.raises(EtcdUnreachable), Etcd(without, 2) as stranger:
            stranger.status()


def drained(access: EtcdAccess, stall: float = 20) -> None:
    check = StreamCheck()
    with Etcd(access) as client:
        for piece in client.snapshot(stall):
            check.feed(piece)
    whole(check)


def test_a_stall_ends_the_stream(etcd: EtcdAccess) -> None:
    with tcp_proxy(etcd.endpoints[0], 3 << 20, "hold") as proxy:
        with pytest.raises(SnapshotBroken, match="stalled"):
            drained(etcd.at(f"http://127.0.0.1:{proxy.address[1]}"), stall=1.0)
        assert proxy.passed > 1 << 20


def test_a_connection_that_is_cut(etcd: EtcdAccess) -> None:
    with (
        tcp_proxy(etcd.endpoints[0], 3 << 20, "cut") as proxy,
        pytest.raises((EtcdUnreachable, SnapshotBroken, EtcdRefused)),
    ):
        drained(etcd.at(f"http://127.0.0.1:{proxy.address[1]}"))


def test_a_bit_that_flips_on_the_way(etcd: EtcdAccess) -> None:
    with (
        tcp_proxy(etcd.endpoints[0], 3 << 20, "flip") as proxy,
        pytest.raises((SnapshotBroken, EtcdRefused, EtcdUnreachable)),
    ):
        drained(etcd.at(f"http://127.0.0.1:{proxy.address[1]}"))


def test_the_leader_is_avoided_where_another_is_as_new(tmp_path: Path) -> None:
    with scratch.cluster(tmp_path / "three", 3) as members:
        accesses = [EtcdAccess((member.client_url,)) for member in members]
        leader = eventually(lambda: next(filter(_leads, accesses), None), "a leader")
        with Etcd(leader) as client:
            client.put(b"k", b"v")
        _, status = eventually(lambda: _chosen_but(leader), "another member as new as the leader")
        assert not status.is_leader
        assert choose(leader, pinned=True)[0].endpoints == leader.endpoints

        follower = next(access for access in accesses if access != leader)
        target = _status(follower)
        pieces = 0
        with Etcd(leader) as client:
            for _ in client.snapshot():
                if pieces == 0:
                    client.move_leader(target.member_id)
                pieces += 1
        assert pieces > 0
        eventually(lambda: _leads(follower), "the new leader knows that it leads")


def test_a_learner_is_refused(tmp_path: Path) -> None:
    (client, peer) = scratch.free_ports(2)
    with scratch.running(tmp_path / "first", name="first") as first:
        access = EtcdAccess((first.client_url,))
        with Etcd(access) as voter:
            voter.add_member((f"http://127.0.0.1:{peer}",), learner=True)
            known = ",".join(f"{m.name or 'second'}={m.peer_urls[0]}" for m in voter.members())
        extra = ("--initial-cluster", known, "--initial-cluster-state", "existing")
        with scratch.started(tmp_path / "second", client, peer, name="second", extra=extra) as second:
            there = access.at(second.client_url)
            assert eventually(lambda: _answered(there), "the learner answers").learner
            with pytest.raises(Refused, match="learner"):
                choose(there, pinned=True)
            with Etcd(access) as voter:
                (learner,) = [member for member in voter.members() if member.learner]
                eventually(lambda: _promoted(voter, learner.id), "the learner is promoted")
            eventually(lambda: not _status(there).learner, "the promoted member knows of it")


def _status(access: EtcdAccess) -> Status:
    with Etcd(access) as client:
        return client.status()


def _answered(access: EtcdAccess) -> Status | None:
    with suppress(DrtoolError):
        return _status(access)
    return None


def _leads(access: EtcdAccess) -> bool:
    return _status(access).is_leader


def _chosen_but(leader: EtcdAccess) -> tuple[EtcdAccess, Status] | None:
    chosen = choose(leader)
    return chosen if chosen[0].endpoints != leader.endpoints else None


def _promoted(voter: Etcd, member: int) -> bool:
    """False while etcd refuses: the learner is not yet near enough to its leader."""
    with suppress(EtcdRefused):
        voter.promote_member(member)
        return True
    return False


def test_messages_are_cut_where_they_lie() -> None:
    assert bytes(blob(b"\x10\xac\x02\x1a\x03abc")) == b"abc"
    assert bytes(blob(b"\x1a\x03abc")) == b"abc"
    assert bytes(blob(b"\x0a\x02\x08\x01\x10\x05\x1a\x02xy\x22\x053.6.0")) == b"xy"
    assert bytes(blob(b"")) == b""
    fields = Fields(b"\x08\x96\x01\x12\x02hi\x12\x03you")
    assert fields.number(1) == 150
    assert fields.texts(2) == ("hi", "you")
    for broken in (b"\x08", b"\x12\x05hi", b"\x0b\x00"):
        with pytest.raises(EtcdRefused):
            Fields(broken)


def test_what_is_asked_of_grpc_is_known_to_it() -> None:
    """Of a setting that it does not know grpc tells on stderr, in cron's mail too."""
    words = "from snapshots.etcd import Etcd, EtcdAccess, EtcdUnreachable\nimport os\n"
    words += "try: Etcd(EtcdAccess(('http://127.0.0.1:1',)), timeout=1).status()\nexcept EtcdUnreachable: pass\n"
    words += "print(os.environ['GRPC_EXPERIMENTS'])"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "-event_engine_client\n"
