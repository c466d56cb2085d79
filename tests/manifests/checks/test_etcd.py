"""Checks of etcd over a node's own files: each on a healthy node and on a broken one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from drtool.core.report import Severity, Status
from tests.builders.tree import Tree, laid, outcomes

ETCD = "/etc/kubernetes/manifests/etcd.yaml"
MEMBER = "/var/lib/etcd/member/snap/db"
Change = Callable[[Tree], object]


def member(tree: Tree) -> None:
    tree.write(MEMBER, b"\0")


def flag(name: str, value: str | None) -> Change:
    return lambda tree: tree.set_flag("etcd", name, value)


def image(tag: str) -> Change:
    return lambda tree: tree.sub(ETCD, r"etcd:[\w.-]+", f"etcd:{tag}")


def log(*lines: str) -> Change:
    return lambda tree: tree.log("etcd", *lines)


def all_of(*changes: Change) -> Change:
    return lambda tree: [change(tree) for change in changes]


TWO = "cp-1=https://192.0.2.111:2380,cp-2=https://192.0.2.112:2380"
GONE = 'MountVolume.SetUp failed for volume "etcd-data" : hostPath type check failed: /var/lib/etcd is not a directory'
CONFIGURED = "schedule: hourly\n"

BROKEN: list[tuple[str, Change]] = [
    ("etcd-name-vs-initial-cluster", flag("name", "cp-1.example.org")),
    ("etcd-name-vs-initial-cluster", flag("initial-advertise-peer-urls", "https://192.0.2.9:2380")),
    ("etcd-initial-state-wrong", flag("initial-cluster", TWO)),
    ("etcd-initial-state-wrong", flag("initial-cluster-state", "existing")),
    ("etcd-initial-state-wrong", all_of(flag("initial-cluster", TWO), member, log("request cluster ID mismatch"))),
    ("etcd-flag-vs-version", flag("enable-v2", "true")),
    ("etcd-flag-vs-version", all_of(image("3.5.24-0"), flag("feature-gates", "InitialCorruptCheck=true"))),
    ("etcd-data-dir-missing", flag("data-dir", "/data/etcd")),
    ("etcd-data-dir-missing", log('{"msg":"ready to serve client requests"}')),
    ("etcd-data-dir-missing", all_of(lambda t: t.remove("/var/lib/etcd"), lambda t: t.journal("kubelet", GONE))),
    (
        "etcd-data-dir-missing",
        all_of(lambda t: t.remove("/var/lib/etcd"), lambda t: t.write("/var/lib/etcd.bak/member/snap/db", b"\0")),
    ),
    (
        "etcd-data-dir-permissions",
        lambda tree: tree.sub(ETCD, "securityContext:\n", "securityContext:\n    runAsUser: 9\n"),
    ),
    (
        "etcd-data-dir-permissions",
        lambda tree: tree.sub(ETCD, r"(( *)- mountPath: /var/lib/etcd\n)", r"\1\2  readOnly: true\n"),
    ),
]
RISKY: list[tuple[str, Change]] = [
    ("etcd-version-known-bad", image("3.5.1-0")),
    ("etcd-version-known-bad", image("3.5.15-0")),
    ("etcd-data-dir-permissions", lambda tree: tree.place("/var/lib/etcd").chmod(0o755)),
    ("etcd-slow-disk", log(*['"msg":"slow fdatasync","took":"2.1s"'] * 30)),
    ("etcd-slow-disk", all_of(log("-"), lambda t: t.write("/proc/mounts", "nas:/e /var/lib/etcd nfs4 rw 0 0\n"))),
    ("etcd-backup-missing", lambda tree: tree.write("/etc/drtool/config.yaml", CONFIGURED)),
    (
        "etcd-backup-missing",
        all_of(
            lambda tree: tree.write("/etc/drtool/config.yaml", CONFIGURED),
            lambda tree: tree.write("/var/lib/drtool/last-backup.json", '{"takenAt": "2026-12-10T00:00:00Z"}'),
        ),
    ),
]
WELL: list[tuple[str, Change]] = [
    ("etcd-name-vs-initial-cluster", all_of(member, flag("name", "cp-1.example.org"))),
    ("etcd-initial-state-wrong", all_of(member, flag("initial-cluster", TWO))),
    ("etcd-initial-state-wrong", all_of(flag("initial-cluster", TWO), flag("initial-cluster-state", "existing"))),
    ("etcd-flag-vs-version", flag("auto-compaction-retention", "8")),
    ("etcd-data-dir-missing", member),
    ("etcd-data-dir-permissions", member),
    ("etcd-version-known-bad", image("3.5.24-0")),
    ("etcd-version-known-bad", image("3.6.5-0")),
    ("etcd-slow-disk", log(*['"msg":"slow fdatasync","took":"2.1s"'] * 3)),
    ("etcd-backup-missing", member),
    (
        "etcd-backup-missing",
        all_of(
            lambda tree: tree.write("/etc/drtool/config.yaml", CONFIGURED),
            lambda tree: tree.write("/var/lib/drtool/last-backup.json", '{"takenAt": "2026-12-14T23:00:00Z"}'),
        ),
    ),
]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


@pytest.mark.parametrize(("id_", "change"), BROKEN)
def test_broken(tree: Tree, id_: str, change: Change) -> None:
    change(tree)
    outcome = outcomes(tree.node())[id_]
    assert outcome.status is Status.FAILED
    assert all(found.severity is None and found.evidence for found in outcome.findings)


@pytest.mark.parametrize(("id_", "change"), RISKY)
def test_a_risk(tree: Tree, id_: str, change: Change) -> None:
    change(tree)
    outcome = outcomes(tree.node())[id_]
    assert outcome.status is Status.FAILED
    assert all(found.severity in {Severity.WARNING, None} for found in outcome.findings)


@pytest.mark.parametrize(("id_", "change"), WELL)
def test_healthy(tree: Tree, id_: str, change: Change) -> None:
    change(tree)
    assert outcomes(tree.node())[id_].status in {Status.PASSED, Status.SKIPPED}


def test_a_slow_disk_that_loses_the_leader_is_critical(tree: Tree) -> None:
    late = (
        '"msg":"leader failed to send out heartbeat on time; took too long, leader is overloaded likely from slow disk"'
    )
    tree.log("etcd", *[late, '"msg":"raft.node: 1 lost leader 2 at term 3"'] * 6)
    assert outcomes(tree.node())["etcd-slow-disk"].findings[0].severity is Severity.CRITICAL


def test_what_is_missing_is_unknown(tree: Tree) -> None:
    tree.remove("/var/lib/etcd")  # a copy of part of a node
    assert outcomes(tree.node())["etcd-data-dir-missing"].status is Status.UNKNOWN
    image("latest")(tree)
    assert outcomes(tree.node())["etcd-version-known-bad"].status is Status.UNKNOWN
    assert outcomes(tree.node())["etcd-slow-disk"].status is Status.UNKNOWN


def test_without_a_data_directory_etcd_founds_a_new_cluster(tree: Tree) -> None:
    tree.set_flag("etcd", "data-dir", None)
    assert outcomes(tree.node())["etcd-data-dir-missing"].status is Status.FAILED
    tree.replace(ETCD, "    image: ", "    env:\n    - {name: ETCD_DATA_DIR, value: /var/lib/etcd}\n    image: ")
    assert outcomes(tree.node())["etcd-data-dir-missing"].status is not Status.FAILED
