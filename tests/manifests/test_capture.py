"""What is read of a node, and how much of it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from drtool.host.root import Root
from manifests.capture import MIB, capture
from tests.builders.tree import laid


def test_a_nodes_own_files_and_those_they_name(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.write("/srv/policy.yaml", "kind: Policy\n")
    tree.set_flag("kube-apiserver", "audit-policy-file", "/srv/policy.yaml")
    taken = capture(Root(tree.root))
    assert taken.entry("/srv/policy.yaml").data == b"kind: Policy\n"
    assert taken.entry("/etc/kubernetes/pki/ca.crt").data
    assert taken.entry("/no/such").kind == "absent"
    assert "etcd.yaml" in taken.listings["/etc/kubernetes/manifests"]
    assert not taken.live
    assert taken.at is None


def test_static_pods_elsewhere_are_found(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.sub("/var/lib/kubelet/config.yaml", r"staticPodPath: .*", "staticPodPath: /srv/pods")
    tree.write("/srv/pods/etcd.yaml", "kind: Pod\n")
    assert capture(Root(tree.root)).entry("/srv/pods/etcd.yaml").data == b"kind: Pod\n"


def test_sizes_are_capped_and_logs_keep_their_end(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.write("/etc/kubernetes/big.yaml", "a" * (2 * MIB))
    tree.log("etcd", *("x" * 1000 for _ in range(1000)), "the last line")
    taken = capture(Root(tree.root))
    big = taken.entry("/etc/kubernetes/big.yaml")
    assert (len(big.data or b""), big.cut, big.size) == (MIB, True, 2 * MIB)
    [log] = taken.matching(r"/var/log/pods/.*/etcd/0\.log")
    assert log.cut
    assert (log.data or b"").endswith(b"the last line\n")


def test_etcds_data_is_looked_at_not_read(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.write("/var/lib/etcd/member/snap/db", "x" * 5000)
    entry = capture(Root(tree.root)).entry("/var/lib/etcd/member/snap/db")
    assert (entry.kind, entry.data) == ("file", None)
    assert entry.size == 5000


def test_what_programs_say_takes_the_place_of_files(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.write("/drtool/versions.json", '{"kubelet": "v1.30.0"}')
    told = {
        "/drtool/versions.json": b'{"kubelet": "v1.37.2"}',
        "/drtool/capture.json": b'{"capturedAt": "2026-11-30T04:00:00Z"}',
    }
    for taken in (capture(Root(tree.root), told), capture(Root(tree.root)).told(told)):
        assert taken.entry("/drtool/versions.json").data == told["/drtool/versions.json"]
        assert taken.at == datetime(2026, 11, 30, 4, tzinfo=UTC)


def test_fifos_rings_and_odd_names_do_not_stop_it(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    os.mkfifo(tree.place("/etc/kubernetes/manifests/fifo.yaml"))
    tree.place("/etc/kubernetes/ring.conf").symlink_to("ring.conf")
    tree.place("/etc/kubernetes/out.conf").symlink_to("../../../../../../../etc/passwd")
    tree.place("/etc/kubernetes/manifests/" + os.fsdecode(b"\xff.yaml")).write_text("kind: Pod\n")
    taken = capture(Root(tree.root))
    assert taken.entry("/etc/kubernetes/manifests/fifo.yaml").kind == "special"
    assert taken.entry("/etc/kubernetes/ring.conf").kind == "unreadable"
    assert taken.entry("/etc/kubernetes/out.conf").kind == "dangling"
    assert tree.node().layout == "kubeadm-stacked"


def test_a_capture_time_that_is_none_is_none(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"capturedAt": 5}', '{"capturedAt": "soon"}', "[" * 100_000):
        taken = capture(Root(tmp_path), {"/drtool/capture.json": text.encode()})
        assert taken.at is None
