"""Checks that weigh a node's files against etcd's data: each on healthy facts and on broken ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from drtool.checks import Case
from drtool.checks.etcd import (
    etcd_cluster_id_mismatch,
    etcd_inconsistent_members,
    etcd_membership_stale,
    etcd_nospace,
    etcd_probe_kills,
    etcd_quorum_impossible,
    etcd_restored_default_identity,
    etcd_revision_went_back,
    etcd_snap_ahead_of_db,
    etcd_too_many_learners,
    etcd_v2_content,
    etcd_version_downgrade,
    etcd_wal_corrupt,
    etcd_wal_missing,
)
from drtool.checks.vip import endpoint_is_one_node
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding, Severity
from manifests.kubeadm import Design
from snapshots.cluster import Alarm, Member
from snapshots.facts import DataDirectory
from tests.builders.data import CP1, CP2, CP3, DATA, case, data
from tests.builders.tree import Tree, laid

ETCD = "/etc/kubernetes/manifests/etcd.yaml"
NEW = Member(0xD1, "", ("https://192.0.2.119:2380",))
LEARNER = Member(0xD2, "cp-4", ("https://192.0.2.114:2380",), learner=True)
DEFAULT = Member(0xC1, "default", ("http://localhost:2380",))
ELECTIONS = ['"msg":"c1 is starting a new election at term 8"', '"msg":"c1 became pre-candidate at term 8"'] * 2
UNREACHABLE = (
    '"msg":"prober detected unhealthy status","remote-peer-id":"c2","error":"dial tcp 192.0.2.112:2380: i/o timeout"'
)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = laid(tmp_path)
    made.write("/var/lib/etcd/member/snap/db", b"\0")
    return made


def found(check: ModuleType, tree: Tree, stored: DataDirectory | None = None, **changes: Any) -> list[Finding]:
    return list(check.find(case(tree.node(), stored or data(**changes))))


ALL = (
    etcd_membership_stale,
    etcd_nospace,
    etcd_probe_kills,
    etcd_quorum_impossible,
    etcd_restored_default_identity,
    etcd_revision_went_back,
    etcd_snap_ahead_of_db,
    etcd_too_many_learners,
    etcd_version_downgrade,
    etcd_wal_corrupt,
    etcd_wal_missing,
    endpoint_is_one_node,
)


@pytest.mark.parametrize("check", ALL)
def test_a_healthy_member_has_no_findings(tree: Tree, check: ModuleType) -> None:
    assert found(check, tree) == []


@pytest.mark.parametrize("check", ALL)
def test_without_data_nothing_passes(tree: Tree, check: ModuleType) -> None:
    if check is etcd_probe_kills:
        return
    if check is endpoint_is_one_node:  # the flags tell the members, too
        return
    with pytest.raises((EvidenceMissing, NotApplicable)):
        list(check.find(Case(tree.node())))


def test_a_member_without_a_node_is_dead(tree: Tree) -> None:
    stored = data(CP1, CP2, nodes=("cp-1", "worker-1"))
    assert "cp-2 has no Node" in found(etcd_membership_stale, tree, stored)[0].title
    assert found(etcd_membership_stale, tree, data(CP1, CP2, nodes=("cp-1", "cp-2"))) == []
    assert found(etcd_membership_stale, tree, data(CP1, CP2, nodes=("node-1",))) == []


def test_an_unstarted_member_is_stale_and_a_learner_on_its_way(tree: Tree) -> None:
    assert [f.severity for f in found(etcd_membership_stale, tree, data(CP1, NEW))] == [None]
    learner = replace(NEW, learner=True)
    assert [f.severity for f in found(etcd_membership_stale, tree, data(CP1, learner))] == [Severity.WARNING]


def test_removed_members(tree: Tree) -> None:
    assert "was removed from its cluster" in found(etcd_membership_stale, tree, data(CP2, removed=(CP1.id,)))[0].title
    assert "is listed again" in found(etcd_membership_stale, tree, data(CP1, CP2, removed=(CP2.id,)))[0].title
    assert "not in its own db" in found(etcd_membership_stale, tree, data(CP2, CP3))[0].title


def test_a_member_that_moved(tree: Tree) -> None:
    moved = replace(CP1, peer_urls=("https://192.0.2.99:2380",))
    assert [f.severity for f in found(etcd_membership_stale, tree, data(moved))] == [Severity.WARNING]
    assert [f.severity for f in found(etcd_membership_stale, tree, data(moved, CP2))] == [None]


def test_what_etcd_says_of_the_membership(tree: Tree) -> None:
    tree.log("etcd", '"msg":"discovery failed","error":"error validating peerURLs: member count is unequal"')
    assert found(etcd_membership_stale, tree)[0].severity is Severity.CRITICAL


def test_quorum(tree: Tree) -> None:
    assert found(etcd_quorum_impossible, tree, data(CP1, CP2)) == []
    assert found(etcd_quorum_impossible, tree, data(CP1, NEW)) != []
    assert found(etcd_quorum_impossible, tree, data(CP1, CP2, CP3, NEW)) == []
    assert found(etcd_quorum_impossible, tree, data(CP1, LEARNER)) == []


@pytest.mark.parametrize("address", ["10.0.2.15", "127.0.0.1", "192.0.2.111"])
def test_a_member_that_joined_with_an_address_that_leads_nowhere(tree: Tree, address: str) -> None:
    assert found(etcd_quorum_impossible, tree, data(CP1, replace(CP2, peer_urls=(f"https://{address}:2380",)))) != []


def test_quorum_by_the_log(tree: Tree) -> None:
    tree.log("etcd", *ELECTIONS, UNREACHABLE)
    assert "cp-2 cannot be reached" in found(etcd_quorum_impossible, tree, data(CP1, CP2))[0].title
    tree.log("etcd", *ELECTIONS, UNREACHABLE, '"msg":"raft.node: c1 elected leader c1 at term 9"')
    assert found(etcd_quorum_impossible, tree, data(CP1, CP2)) == []


def test_learners(tree: Tree) -> None:
    two = data(CP1, LEARNER, replace(LEARNER, id=0xD3, name="cp-5"))
    assert found(etcd_too_many_learners, tree, data(CP1, LEARNER)) == []
    assert found(etcd_too_many_learners, tree, two)[0].severity is None
    tree.sub(ETCD, r"etcd:[\w.-]+", "etcd:3.5.15-0")
    assert found(etcd_too_many_learners, tree, two)[0].severity is Severity.WARNING


@pytest.mark.parametrize(
    ("image", "version", "storage", "downgrade", "fires"),
    [
        ("3.5.24-0", "3.6.0", "3.6.0", "", True),
        ("3.6.5-0", "3.6.0", "3.7.0", "", True),
        ("3.5.24-0", "3.5.0", "3.6.0", "", False),
        ("3.6.4-0", "3.6.0", "3.6.0", "", False),
        ("3.5.24-0", "3.6.0", "3.6.0", "3.5.0", False),
        ("3.7.0-0", "3.6.0", "3.6.0", "", False),
    ],
)
def test_downgrades(tree: Tree, image: str, version: str, storage: str, downgrade: str, fires: bool) -> None:
    tree.sub(ETCD, r"etcd:[\w.-]+", f"etcd:{image}")
    stored = data(version=version, storage_version=storage, downgrade=downgrade)
    assert bool(found(etcd_version_downgrade, tree, stored)) is fires


def test_space(tree: Tree) -> None:
    assert "alarm of cp-1" in found(etcd_nospace, tree, data(alarms=(Alarm(CP1.id, "NOSPACE"),)))[0].title
    assert "alarm of 99" in found(etcd_nospace, tree, data(alarms=(Alarm(0x99, "NOSPACE"),)))[0].title
    tree.set_flag("etcd", "quota-backend-bytes", "16777216")
    assert found(etcd_nospace, tree)[0].severity is Severity.WARNING
    tree.log("kube-apiserver", "etcdserver: mvcc: database space exceeded")
    assert found(etcd_nospace, tree)[0].severity is None
    tree.set_flag("etcd", "quota-backend-bytes", "8589934592")
    tree.log("kube-apiserver", "etcdserver: mvcc: database space exceeded", *["served"] * 30)
    assert found(etcd_nospace, tree, data(size=2_500_000_000)) == []
    tree.log("etcd", '"msg":"alarm raised","alarm":"NOSPACE"')
    assert found(etcd_nospace, tree)[0].severity is None
    tree.log("kube-scheduler", "at work", time="2026-12-14T23:30:00.000000000Z")
    assert found(etcd_nospace, tree) == []
    tree.remove("/var/log/pods")
    tree.log("etcd", '"msg":"alarm raised","alarm":"NOSPACE"', '"msg":"alarm disarmed","alarm":"NOSPACE"')
    assert found(etcd_nospace, tree) == []


def test_probes(tree: Tree) -> None:
    tree.sub(ETCD, r"(livenessProbe:\n(?:.*\n)*?.*path: )/livez", r"\1/health")
    assert found(etcd_probe_kills, tree)[0].severity is Severity.WARNING
    assert found(etcd_probe_kills, tree, data(alarms=(Alarm(CP1.id, "NOSPACE"),)))[0].severity is None
    tree.sub(ETCD, "path: /health", "path: /health?exclude=NOSPACE&serializable=true")
    assert found(etcd_probe_kills, tree) == []


def test_a_probe_without_patience(tree: Tree) -> None:
    tree.sub(ETCD, "failureThreshold: 8", "failureThreshold: 1\n      periodSeconds: 2")
    assert [f.severity for f in found(etcd_probe_kills, tree)] == [Severity.WARNING]
    tree.journal("kubelet", "Container etcd failed liveness probe, will be restarted")
    assert [f.severity for f in found(etcd_probe_kills, tree)] == [None]


def test_snapshots_ahead(tree: Tree) -> None:
    assert found(etcd_snap_ahead_of_db, tree, data(snaps=((2, 300),))) == []
    assert found(etcd_snap_ahead_of_db, tree, data(snaps=((2, 100), (2, 301)))) != []
    assert found(etcd_snap_ahead_of_db, tree, data(snaps=((2, 301),), snap_dbs=(301,))) == []
    assert found(etcd_snap_ahead_of_db, tree, data(mark=305)) != []


def test_logs(tree: Tree) -> None:
    assert found(etcd_wal_corrupt, tree, data(fault="checksum", torn=True)) == []
    assert found(etcd_wal_corrupt, tree, data(fault="checksum")) != []
    assert found(etcd_wal_corrupt, tree, data(last=280)) == []
    assert found(etcd_wal_corrupt, tree, data(last=120)) != []
    assert found(etcd_wal_corrupt, tree, data(last=120, busy=True)) == []
    assert found(etcd_wal_corrupt, tree, data(fault="cut", cut=True, torn=True, last=299)) != []
    assert found(etcd_wal_corrupt, tree, data(fault="cut", cut=True, torn=True)) == []
    tree.log("etcd", '"level":"fatal","msg":"discovery failed","error":"walpb: crc mismatch"')
    assert found(etcd_wal_corrupt, tree, data(fault="checksum", torn=True)) != []


def test_missing_segments(tree: Tree) -> None:
    assert found(etcd_wal_missing, tree, data(segments=())) != []
    assert found(etcd_wal_missing, tree, data(gap="0000000000000003")) != []
    assert found(etcd_wal_missing, tree, data(first=200)) == []
    assert found(etcd_wal_missing, tree, data(first=400)) != []


def test_v2_keys(tree: Tree) -> None:
    with pytest.raises(NotApplicable):
        found(etcd_v2_content, tree)
    assert found(etcd_v2_content, tree, data(snaps=((2, 300),), v2=())) == []
    stored = data(snaps=((2, 300),), v2=("/coreos.com/lock",))
    assert found(etcd_v2_content, tree, stored)[0].severity is None
    tree.sub(ETCD, r"etcd:[\w.-]+", "etcd:3.5.24-0")
    assert found(etcd_v2_content, tree, stored)[0].severity is Severity.WARNING


def test_a_default_identity(tree: Tree) -> None:
    assert found(etcd_restored_default_identity, tree, data(DEFAULT))[0].severity is Severity.WARNING
    assert found(etcd_restored_default_identity, tree, data(DEFAULT, CP2))[0].severity is None


def test_revisions_that_went_back(tree: Tree) -> None:
    tree.log("kube-apiserver", "Timeout: Too large resource version: 900, current: 267")
    assert found(etcd_revision_went_back, tree) == []
    assert found(etcd_revision_went_back, tree, data(consistent_index=3)) != []
    tree.write("/var/lib/drtool/last-backup.json", '{"revision": 5000}')
    assert found(etcd_revision_went_back, tree) != []


def test_cluster_ids(tmp_path: Path) -> None:
    one = laid(tmp_path / "1")
    two = laid(tmp_path / "2", Design(name="cp-2", address="192.0.2.112"), one.authorities)
    here, there = data(), data(CP1, CP2, member_id=CP2.id)

    def judged(mine: DataDirectory, other: DataDirectory) -> list[Finding]:
        return list(etcd_cluster_id_mismatch.find(Case(one.node(), (two.node(),), mine, (other,))))

    assert judged(here, there) == []
    assert len(judged(here, data(cluster_id=0xDEF))) == 1


def test_members_are_compared_at_one_revision(tree: Tree) -> None:
    node = tree.node()

    def judged(mine: DataDirectory, other: DataDirectory) -> list[Finding]:
        return list(etcd_inconsistent_members.find(Case(node, (node,), mine, (other,))))

    assert judged(data(digest=(9, "a")), data(digest=(9, "a"))) == []
    assert judged(data(digest=(9, "a")), data(digest=(9, "b"))) != []
    assert judged(data(digest=(9, "a")), data(digest=(8, "b"))) == []
    with pytest.raises(NotApplicable):
        found(etcd_inconsistent_members, tree)
    alarm = data(alarms=(Alarm(CP1.id, "CORRUPT"),), digest=(9, "a"))
    assert judged(alarm, data(digest=(9, "a"))) != []


def test_one_door(tree: Tree) -> None:
    assert found(endpoint_is_one_node, tree, data(CP1, CP2)) != []
    assert found(endpoint_is_one_node, tree, data(CP1, LEARNER)) == []
    assert found(endpoint_is_one_node, tree, data(CP1, CP2, nodes=("cp-1",))) == []


def test_a_virtual_address_is_nobodys_own(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(endpoint="192.0.2.100:6443"))
    assert found(endpoint_is_one_node, tree, data(CP1, CP2)) == []


@pytest.mark.parametrize(("address", "fires"), [("192.0.2.112", True), ("192.0.2.111", False), ("127.0.0.1", False)])
def test_a_name_that_leads_to_one_member(tmp_path: Path, address: str, fires: bool) -> None:
    tree = laid(tmp_path, Design(endpoint="k8s.example.org:6443"))
    tree.write("/etc/hosts", f"127.0.0.1 localhost\n{address} k8s.example.org\n")
    assert bool(found(endpoint_is_one_node, tree, data(CP1, CP2))) is fires


def test_without_a_db_the_flags_tell_the_members(tree: Tree) -> None:
    tree.set_flag("etcd", "initial-cluster", "cp-1=https://192.0.2.111:2380,cp-2=https://192.0.2.112:2380")
    assert list(endpoint_is_one_node.find(Case(tree.node()))) != []


def test_a_node_that_runs_no_etcd_is_left_out(tree: Tree) -> None:
    assert DATA.member
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        tree.remove(f"/etc/kubernetes/manifests/{name}.yaml")
    for path in ("/etc/kubernetes/pki/apiserver.crt", "/etc/kubernetes/pki/etcd", "/etc/kubernetes/admin.conf"):
        tree.remove(path)
    for name in ("controller-manager", "scheduler", "super-admin"):
        tree.remove(f"/etc/kubernetes/{name}.conf")
    with pytest.raises(NotApplicable):
        _ = Case(tree.node()).data


ANSWERED = """{"endpoint": "https://127.0.0.1:2379", "members": [{"ID": "193", "name": "cp-1"}], "alarms": [%s],
 "status": [{"endpoint": "a", "leader": "193"}],
 "hashes": [{"endpoint": "a", "revision": 9, "hash": 1}, {"endpoint": "b", "revision": 9, "hash": %d}]}"""


def test_what_the_running_etcd_answers_counts_first(tree: Tree) -> None:
    tree.write("/drtool/etcd-live.json", ANSWERED % ('{"memberID": "193", "alarm": "NOSPACE"}', 2))
    assert "alarm of cp-1" in found(etcd_nospace, tree)[0].title
    assert "different data" in found(etcd_inconsistent_members, tree)[0].title
    assert found(etcd_quorum_impossible, tree, data(CP1, NEW)) == []
    tree.write("/drtool/etcd-live.json", ANSWERED % ("", 1))
    tree.log("etcd", '"msg":"alarm raised","alarm":"NOSPACE"')
    tree.set_flag("etcd", "quota-backend-bytes", "16777216")
    assert found(etcd_nospace, tree)[0].severity is Severity.WARNING  # it answers that no alarm is raised
    assert found(etcd_inconsistent_members, tree) == []


LAST_WORDS = [
    (etcd_snap_ahead_of_db, "failed to find database snapshot file (snap: snapshot file doesn't exist)"),
    (etcd_too_many_learners, "membership: too many learner members in cluster"),
    (etcd_version_downgrade, "invalid downgrade; server version is lower than determined cluster version"),
    (etcd_version_downgrade, 'version \\"3.7.0\\" is not supported'),
    (etcd_wal_corrupt, "walpb: crc mismatch: expected: a312147c computed: 7cb2c684"),
    (etcd_v2_content, "detected disallowed custom content in v2store for stage --v2-deprecation=write-only"),
]


@pytest.mark.parametrize(("check", "words"), LAST_WORDS)
def test_etcds_own_last_words(tree: Tree, check: ModuleType, words: str) -> None:
    fatal = f'"level":"fatal","msg":"discovery failed","error":"{words}"'
    tree.log("etcd", fatal)
    assert len(found(check, tree)) == 1
    tree.log("etcd", fatal, '"msg":"Running: "', '"msg":"ready to serve client requests"')
    assert found(check, tree, data(snaps=((2, 300),), v2=())) == []
