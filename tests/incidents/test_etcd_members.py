"""Outages of etcd's membership and data, each as the smallest change to a real node's tree (incidents E, I, M)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from crc32c import crc32c

from snapshots import wire
from snapshots.cluster import Member
from tests.builders.member import (
    DATA,
    DB,
    WAL,
    causes,
    faults,
    index,
    member_tree,
    members,
    overwrite,
    records,
    rewrite,
    segment,
    warned,
    without,
)
from tests.builders.tree import Tree

ETCD = "/etc/kubernetes/manifests/etcd.yaml"
CP1, CP2 = 0xCB4D668974AE2152, 0xB8EA9F0CE19402A7
Change = Callable[[Tree], object]
LOG = '{"level":"%s","ts":"2026-12-14T22:59:59.000000Z","caller":"x.go:1","msg":"%s"%s}'


def logged(*messages: str) -> Change:
    return lambda tree: tree.log("etcd", *messages)


def both(*changes: Change) -> Change:
    return lambda tree: [change(tree) for change in changes]


def new_name(tree: Tree) -> None:
    tree.set_flag("etcd", "name", "node-2.example.org")


def wiped(tree: Tree) -> None:
    tree.remove(f"{DATA}/member")


def older_image(tag: str) -> Change:
    return lambda tree: tree.sub(ETCD, r"etcd:[\w.-]+", f"etcd:{tag}")


def flipped(tree: Tree) -> None:
    places = list(records(segment(tree)))
    overwrite(segment(tree), places[len(places) // 2][0] + 20, b"\xff\xff\xff\xff")


def truncated(tree: Tree) -> None:
    place = segment(tree)
    start, end = list(records(place))[100]
    with place.open("r+b") as file:
        file.truncate(start + (end - start) // 2)


def zeroed(tree: Tree) -> None:
    place = segment(tree)
    found = list(records(place))
    overwrite(place, found[len(found) // 2][0], bytes(found[-1][1] - found[len(found) // 2][0]))


def alarm(member: int) -> Change:
    """alarmpb: 1 memberID, 2 alarm NOSPACE."""
    return lambda tree: rewrite(tree, alarm=lambda _: {wire.field(1, member) + wire.field(2, 1): b""})


def added(*listed: Member) -> Change:
    return lambda tree: rewrite(tree, members=members(*listed))


AVC = (
    'type=AVC msg=audit(1797289199.000:91): avc:  denied  { write } for  pid=812 comm="etcd" name="etcd" dev="sda1" '
    "ino=5 scontext=system_u:system_r:container_t:s0:c1,c2 tcontext=unconfined_u:object_r:var_lib_t:s0 tclass=dir "
    "permissive=0\n"
)
STORE = b'{"Root":{"Path":"/","Children":{"1":{"Path":"/1","Children":{"lock":{"Path":"/1/lock","Children":null}}}}}}'


def v2_keys(tree: Tree) -> None:
    """A .snap as 3.5 writes it, with a key of the v2 API in its store."""
    inner = wire.field(1, STORE) + wire.field(2, wire.field(2, 10) + wire.field(3, 2))
    snap = wire.field(1, crc32c(inner)) + wire.field(2, inner)
    tree.write(f"{DATA}/member/snap/{2:016x}-{10:016x}.snap", snap)


DEAD = Member(0xB8EA9F0CE19402A7, "cp-9", ("https://192.0.2.119:2380",), ("https://192.0.2.119:2379",))
NEVER = Member(0x1111, "", ("https://198.51.100.15:2380",))
LEARNERS = tuple(Member(0x2000 + i, f"l{i}", (f"https://192.0.2.{120 + i}:2380",), learner=True) for i in (1, 2))
LOCAL = Member(CP1, "default", ("http://localhost:2380",))
ELECTIONS = [LOG % ("info", f"{CP1:x} is starting a new election at term {term}", "") for term in (8, 9, 10)]
UNHEALTHY = LOG % (
    "warn",
    "prober detected unhealthy status",
    f',"remote-peer-id":"{CP2:x}","rtt":"0s","error":"dial tcp 192.0.2.112:2380: i/o timeout"',
)

CASES: dict[str, tuple[str, Change, tuple[str, ...]]] = {
    "etcd-nospace-plus-liveness-crashloop": (
        "single-1.36",
        both(
            alarm(CP1),
            lambda tree: tree.replace(ETCD, "path: /livez", "path: /health"),
            lambda tree: tree.journal(
                "kubelet", 'Liveness probe failed: HTTP probe failed with statuscode: 503 pod="etcd"'
            ),
        ),
        ("etcd-nospace",),
    ),
    "etcd-nospace-by-the-log": (
        "single-1.37",
        both(
            lambda tree: tree.set_flag("etcd", "quota-backend-bytes", "16777216"),
            lambda tree: tree.log("kube-apiserver", "etcdserver: mvcc: database space exceeded"),
        ),
        ("etcd-nospace",),
    ),
    "etcd-nospace-by-etcds-log-alone": (
        "lab-live-1.37",
        both(
            lambda tree: tree.replace(ETCD, "path: /livez", "path: /health"),
            lambda tree: tree.journal(
                "kubelet", 'Liveness probe failed: HTTP probe failed with statuscode: 503 pod="etcd"'
            ),
            logged(LOG % ("warn", "serving /health false due to an alarm", ',"alarm":"memberID:1  alarm:NOSPACE"')),
        ),
        ("etcd-nospace",),
    ),
    "etcd-snap-db-missing-after-power-loss": (
        "ha-vip-cp2-1.37",
        lambda tree: rewrite(tree, meta=index(200)),
        ("etcd-snap-ahead-of-db",),
    ),
    "etcd-snap-db-missing-by-its-file": (
        "single-1.37",
        lambda tree: tree.write(f"{DATA}/member/snap/{2:016x}-{0x1FFF:016x}.snap", b"\0"),
        ("etcd-snap-ahead-of-db",),
    ),
    "etcd-cluster-id-mismatch-started-as-new": (
        "ha-vip-cp2-1.37",
        both(
            lambda tree: tree.set_flag("etcd", "initial-cluster-state", "new"),
            logged(LOG % ("warn", "request cluster ID mismatch", ',"local-member-cluster-id":"a946f0b08276e98c"')),
        ),
        ("etcd-initial-state-wrong",),
    ),
    "etcd-cluster-id-mismatch-before-its-start": (
        "ha-vip-cp2-1.37",
        both(wiped, lambda tree: tree.set_flag("etcd", "initial-cluster-state", "new")),
        ("etcd-initial-state-wrong",),
    ),
    "etcd-cluster-id-mismatch-restored-alone": (
        "ha-vip-cp2-1.37",
        logged(LOG % ("error", "request sent was ignored due to cluster ID mismatch", "")),
        ("etcd-cluster-id-mismatch",),
    ),
    "etcd-member-count-unequal-zombie": (
        "ha-vip-cp1-1.37",
        lambda tree: rewrite(tree, members_removed=lambda _: {f"{CP2:x}".encode(): b"removed"}),
        ("etcd-membership-stale",),
    ),
    "etcd-member-count-unequal-by-the-log": (
        "ha-vip-cp2-1.37",
        both(
            wiped,
            logged(
                LOG % ("fatal", "discovery failed", ',"error":"error validating peerURLs: member count is unequal"')
            ),
        ),
        ("etcd-membership-stale",),
    ),
    "etcd-member-dead": ("single-1.37", added(DEAD), ("etcd-membership-stale",)),
    "etcd-member-removed": (
        "ha-vip-cp2-1.37",
        lambda tree: rewrite(tree, members=without(CP2), members_removed=lambda _: {f"{CP2:x}".encode(): b"removed"}),
        ("etcd-membership-stale",),
    ),
    "etcd-3.6-too-many-learners": ("single-1.36", added(*LEARNERS), ("etcd-too-many-learners",)),
    "etcd-image-rolled-back-lower-than-cluster-version": (
        "single-1.36",
        older_image("3.5.24-0"),
        ("etcd-version-downgrade",),
    ),
    "etcd-image-rolled-back-from-3.7": ("lab-live-1.37", older_image("3.6.5-0"), ("etcd-version-downgrade",)),
    "etcd-3.5-data-inconsistency": (
        "ha-vip-cp1-1.37",
        logged(LOG % ("fatal", "discovery failed", ',"error":"cp-1 found data inconsistency with peers"')),
        ("etcd-inconsistent-members",),
    ),
    "etcd-name-not-in-initial-cluster": ("single-1.37", both(wiped, new_name), ("etcd-name-vs-initial-cluster",)),
    "join-advertise-address-wrong-nic-kills-quorum": ("single-1.37", added(NEVER), ("etcd-membership-stale",)),
    "join-advertise-address-wrong-nic-started": (
        "ha-vip-cp1-1.37",
        added(Member(CP2, "cp-2", ("https://10.0.2.15:2380",), ("https://10.0.2.15:2379",))),
        ("etcd-quorum-impossible",),
    ),
    "join-advertise-address-wrong-nic-by-the-log": (
        "ha-vip-cp1-1.37",
        logged(*ELECTIONS, UNHEALTHY),
        ("etcd-quorum-impossible",),
    ),
    "restored-cluster-join-hangs": ("ha-dns-cp1-1.36", added(LOCAL), ("etcd-restored-default-identity",)),
    "etcd-wal-crc-mismatch": ("single-1.37", flipped, ("etcd-wal-corrupt",)),
    "etcd-wal-crc-mismatch-zeroed-tail": (
        "lab-live-1.37",
        both(zeroed, logged(LOG % ("fatal", "discovery failed", ',"error":"walpb: crc mismatch"'))),
        ("etcd-wal-corrupt",),
    ),
    "etcd-wal-entry-size-limit": ("single-1.36", truncated, ("etcd-wal-corrupt",)),
    "etcd-wal-gone": ("single-1.37", lambda tree: tree.remove(WAL), ("etcd-wal-missing",)),
    "etcd-db-torn": ("single-1.37", lambda tree: overwrite(tree.place(DB), 0, bytes(8192)), ("etcd-db-corrupt",)),
    "etcd-db-cut": (
        "lab-live-1.37",
        lambda tree: tree.write(DB, tree.place(DB).read_bytes()[:100_000], 0o600),
        ("etcd-db-corrupt",),
    ),
    "etcd-data-gone": ("lab-live-1.37", wiped, ("etcd-data-dir-missing",)),
    "etcd-data-elsewhere": (
        "single-1.37",
        both(
            lambda tree: tree.place("/var/lib/etcd-new").mkdir(),
            lambda tree: tree.sub(ETCD, r"path: /var/lib/etcd\n", "path: /var/lib/etcd-new\n"),
        ),
        ("etcd-data-dir-missing",),
    ),
    "etcd-data-of-another-user": (
        "single-1.37",
        lambda tree: tree.sub(ETCD, r"securityContext:\n", "securityContext:\n    runAsUser: 1000\n"),
        ("run-as-user-vs-perms",),  # etcd-data-dir-permissions follows from it
    ),
    "encryption-config-differs-between-nodes": (
        "lab-live-1.37",
        lambda tree: tree.set_flag("kube-apiserver", "encryption-provider-config", None),
        ("encryption-keys-vs-data",),
    ),
    "encryption-key-dropped": (
        "lab-live-1.37",
        lambda tree: tree.replace("/etc/kubernetes/pki/encryption.yaml", "name: key1", "name: key2"),
        ("encryption-keys-vs-data",),
    ),
    "encryption-config-no-identity-provider": (
        "lab-live-1.37",
        lambda tree: tree.sub("/etc/kubernetes/pki/encryption.yaml", r"\n *- identity: \{\}", ""),
        ("encryption-keys-vs-data",),
    ),
    "etcd-3.6-v2store-content": ("single-1.36", v2_keys, ("etcd-v2-content",)),
    "etcd-selinux-denied": (
        "single-1.37",
        both(
            lambda tree: tree.write("/etc/selinux/config", "SELINUX=enforcing\nSELINUXTYPE=targeted\n"),
            lambda tree: tree.write("/var/log/audit/audit.log", AVC),
            logged(LOG % ("fatal", "discovery failed", ',"error":"open /var/lib/etcd/x: permission denied"')),
        ),
        ("selinux-avc",),
    ),
    "etcd-localhost-resolves-to-non-loopback": (
        "single-1.37",
        both(
            lambda tree: tree.write("/etc/hosts", "192.0.2.111 cp-1\n"),
            lambda tree: tree.write("/etc/resolv.conf", "search example.org\nnameserver 192.0.2.1\n"),
            logged("listen tcp 192.0.2.198:2381: bind: cannot assign requested address"),
            lambda tree: tree.log("kube-apiserver", "dial tcp: lookup localhost: no such host"),
        ),
        ("localhost-unresolvable",),
    ),
    "etcd-extraargs-pinned-address-join": (
        "ha-vip-cp2-1.37",
        lambda tree: tree.sub(
            ETCD, r"(--(?:initial-advertise-peer|advertise-client)-urls=https://)192.0.2.112", r"\g<1>192.0.2.111"
        ),
        ("etcd-urls-not-local",),
    ),
    "one-door": (
        "ha-vip-cp1-1.37",
        both(
            lambda tree: tree.replace("/kubeadm-config.yaml", "192.0.2.100:6443", "192.0.2.111:6443"),
            lambda tree: tree.replace("/etc/kubernetes/admin.conf", "192.0.2.100:6443", "192.0.2.111:6443"),
        ),
        ("endpoint-is-one-node",),
    ),
    "one-door-by-a-name": (
        "ha-vip-cp2-1.37",
        both(
            lambda tree: tree.replace("/kubeadm-config.yaml", "192.0.2.100:6443", "k8s.example.org:6443"),
            lambda tree: tree.replace("/etc/kubernetes/admin.conf", "192.0.2.100", "k8s.example.org"),
            lambda tree: tree.write("/etc/hosts", tree.read("/etc/hosts") + "192.0.2.111 k8s.example.org\n"),
        ),
        ("endpoint-is-one-node",),
    ),
    "one-door-as-it-is": ("lab-one-door-cp2-1.37", lambda _: None, ("endpoint-is-one-node",)),
    "address-changed-as-it-is": ("lab-address-changed-1.37", lambda _: None, ("node-address-changed",)),
}


@pytest.mark.parametrize("incident", CASES)
def test_the_cause_is_named(incident: str, tmp_path: Path) -> None:
    name, change, expected = CASES[incident]
    tree = member_tree(name, tmp_path)
    change(tree)
    assert causes(tree) == expected


HEALTHY: dict[str, tuple[str, Change]] = {
    "name differs, and the member has data": (
        "single-1.37",
        lambda tree: tree.set_flag("etcd", "initial-cluster", "x=https://192.0.2.9:2380"),
    ),
    "state is new for ever": ("single-1.37", lambda tree: tree.set_flag("etcd", "initial-cluster-state", "new")),
    "a large quota": ("single-1.37", lambda tree: tree.set_flag("etcd", "quota-backend-bytes", "8589934592")),
    "a patch level below": ("single-1.37", older_image("3.7.0-9")),
    "one learner": ("single-1.36", added(LEARNERS[0])),
    "the last record is cut": (
        "ha-vip-cp2-1.37",
        lambda tree: _cut_last(tree),
    ),
    "a copy without etcd's data": ("single-1.37", lambda tree: tree.remove(DATA)),
    "a copy of a live node without its data": ("lab-live-1.37", lambda tree: tree.remove(DATA)),
    "a torn last record": ("lab-live-1.37", lambda tree: _tear_last(tree)),
    "the unused tail is cut off": ("single-1.37", lambda tree: _trim(tree)),
    "a received db beside the snap": (
        "single-1.37",
        both(
            lambda tree: tree.write(f"{DATA}/member/snap/{2:016x}-{0x1FFF:016x}.snap", b"\0"),
            lambda tree: tree.write(f"{DATA}/member/snap/{0x1FFF:016x}.snap.db", b"\0"),
        ),
    ),
    "etcd listens on every address": (
        "single-1.37",
        lambda tree: tree.set_flag("etcd", "listen-metrics-urls", "http://0.0.0.0:2381"),
    ),
    "a single member restored with defaults": ("single-1.37", added(LOCAL)),
    "no CNI on a new control plane": ("single-1.37", lambda tree: tree.remove("/etc/cni/net.d/10-lab.conflist")),
    "a name for the endpoint leads to this node": (
        "ha-dns-cp1-1.36",
        lambda tree: tree.write("/etc/hosts", tree.read("/etc/hosts") + "192.0.2.111 k8s.example.org\n"),
    ),
}


def _cut_last(tree: Tree) -> None:
    place = segment(tree)
    start, end = list(records(place))[-1]
    with place.open("r+b") as file:
        file.truncate(start + (end - start) // 2)


def _tear_last(tree: Tree) -> None:
    """Half a record, as a copy of a running member ends."""
    place = segment(tree)
    _, end = list(records(place))[-1]
    overwrite(place, end, (0x400).to_bytes(8, "little") + b"\x08\x02\x10")


def _trim(tree: Tree) -> None:
    place = segment(tree)
    with place.open("r+b") as file:
        file.truncate(list(records(place))[-1][1])


@pytest.mark.parametrize("case", HEALTHY)
def test_a_look_alike_is_healthy(case: str, tmp_path: Path) -> None:
    name, change = HEALTHY[case]
    tree = member_tree(name, tmp_path)
    change(tree)
    assert faults(tree) - {"podcidr-duplicate"} == set()


def test_risks_are_no_causes(tmp_path: Path) -> None:
    tree = member_tree("single-1.37", tmp_path)
    tree.set_flag("etcd", "quota-backend-bytes", "16777216")
    shutil.rmtree(tree.place("/etc/cni/net.d"))
    tree.place("/etc/cni/net.d").mkdir()
    assert {"etcd-nospace", "cni-config-missing"} <= warned(tree)
    assert causes(tree) == ()
