"""What is asked of a live node, on a tree whose etcd really runs, over TLS, as its manifest says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from drtool.commands.asking import ask
from drtool.commands.capture import gather
from drtool.commands.endpoints import runtime_socket, targets
from drtool.commands.etcd_live import NoAnswer, ask_etcd
from drtool.core.check import EvidenceMissing
from drtool.host.probes import Target
from drtool.host.root import Root
from manifests.capture import capture
from manifests.live import EtcdState, read_etcd
from manifests.node import Node, seen
from snapshots import scratch
from tests.builders.live_node import live_node
from tests.builders.tree import laid
from tests.fakes.cri import field, runtime


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """A node as it was while its etcd ran."""
    with live_node(tmp_path_factory.mktemp("node")) as running:
        running.fill(20)
        node = seen(capture(running.root))
        return seen(node.capture.told(ask(node, running.root)))


def test_etcd_is_asked_over_tls_with_the_nodes_own_certificate(asked: Node) -> None:
    state = asked.etcd_state
    [member], [status] = state.members, state.status
    assert (member.name, member.learner, state.alarms, state.hashes) == ("cp-1", False, (), ())
    assert status.error == ""
    assert status.member == member.id == status.leader
    assert status.revision > 1
    assert status.db_size > 0


def test_probes_say_what_is_served_and_what_is_not_there(asked: Node) -> None:
    health = [probe for probe in asked.probes if probe.component == "etcd" and probe.url.endswith("/health")]
    assert health
    assert all(probe.ok for probe in health)
    served = {probe.served.fingerprint for probe in health if probe.served}
    assert served == {asked.certificate("/etc/kubernetes/pki/etcd/server.crt").fingerprint}
    apiserver = [probe for probe in asked.probes if probe.component == "kube-apiserver"]
    assert apiserver
    assert not any(probe.ok for probe in apiserver)
    assert all(probe.error for probe in apiserver)


def test_what_nobody_answered_is_named_in_the_record(asked: Node) -> None:
    record = json.loads(asked.data("/drtool/capture.json"))
    assert set(record) == {"schemaVersion", "capturedAt", "drtool", "missing"}
    assert asked.capture.at == asked.at
    with pytest.raises(EvidenceMissing, match="does not answer ListContainers"):
        _ = asked.containers
    assert asked.filesystems


def test_the_runtime_is_asked_on_the_kubelets_socket(tmp_path: Path) -> None:
    tree = laid(tmp_path / "tree")
    socket = tmp_path / "s"
    tree.write("/etc/default/kubelet", f"KUBELET_EXTRA_ARGS=--container-runtime-endpoint=unix://{socket}\n")
    assert runtime_socket(tree.node()) == str(socket)
    labels = field(8, field(1, "io.kubernetes.container.name") + field(2, "etcd"))
    version = field(2, "containerd") + field(3, "2.1.4")
    replies = {"ListContainers": field(1, field(1, "id") + field(6, 1) + labels), "Version": version, "ListImages": b""}
    with runtime(socket, replies):
        node = tree.node()
        told = seen(node.capture.told(ask(node, Root(tree.root))))
    assert [container.name for container in told.containers] == ["etcd"]
    [answer] = [probe for probe in told.probes if probe.component == "container-runtime"]
    assert answer.ok


def test_hashes_of_several_members_are_of_one_revision() -> None:
    state: EtcdState = read_etcd(
        {
            "members": [{"ID": "1", "name": "a"}, {"ID": "2"}],
            "alarms": [{"memberID": "1", "alarm": "NOSPACE"}, {"memberID": "2"}],
            "hashes": [
                {"endpoint": "https://a", "revision": 7, "hash": 5},
                {"endpoint": "https://b", "error": "timed out"},
            ],
        }
    )
    assert state.alarms == ((1, "NOSPACE"),)
    assert [(answer.revision, answer.hash, answer.error) for answer in state.hashes] == [
        (7, 5, ""),
        (0, None, "timed out"),
    ]


def test_every_member_is_asked_for_its_hash_at_one_revision(tmp_path: Path) -> None:
    with scratch.cluster(tmp_path, 3) as members:
        first = urlsplit(members[0].client_url)
        assert first.hostname
        assert first.port
        state = read_etcd(ask_etcd([Target("etcd", first.hostname, first.port, False, "/health")]))
    assert sorted(member.name for member in state.members) == ["m0", "m1", "m2"]
    assert len({answer.member for answer in state.status}) == 3
    assert len({(answer.revision, answer.hash) for answer in state.hashes}) == 1
    assert len(state.hashes) == 3


def test_no_etcd_is_one_complaint() -> None:
    with pytest.raises(NoAnswer, match="Connection refused"):
        ask_etcd([Target("etcd", "127.0.0.1", 1, False, "/health")])


def test_targets_follow_the_manifests_and_nonsense_is_no_target(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    found = {target.url for target in targets(tree.node(), Root(tree.root))}
    assert f"https://{tree.design.address}:6443/readyz?verbose" in found
    assert "http://127.0.0.1:10248/healthz?verbose" in found
    assert f"tls://{tree.design.address}:2380" in found
    tree.set_flag("etcd", "listen-client-urls", "https://[::1,unix://x,https://a:99999,http://0.0.0.0:2379")
    clients = [target for target in targets(tree.node(), Root(tree.root)) if target.path == "/health"]
    assert [target.url for target in clients] == ["http://127.0.0.1:2379/health"]


def test_a_tree_is_never_asked(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    taken = gather(Root(tree.root), probe=True)
    assert "/drtool/probes.json" not in taken.entries
    assert replace(Root(tree.root)).live is False
