from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from drtool.core.errors import Refused
from drtool.core.plan import Ahead
from drtool.host.machine import Host, TimedOut
from manifests.api import Api, ApiSilent, identity, serves
from manifests.kubeadm import Design, lay
from manifests.pki.expected import SERVER
from manifests.pki.issuing import issue, new_key
from manifests.steps.cluster import (
    ProveNames,
    RestartDaemonSet,
    RewriteConfigMap,
    WaitForApiserver,
    WaitForName,
    replaced,
)
from tests.builders.tree import Tree
from tests.fakes.apiserver import FakeApiserver, apiserver
from tests.fakes.host import rooted

KUBEADM = """# kept
apiVersion: kubeadm.k8s.io/v1beta4
controlPlaneEndpoint: 192.0.2.111:6443
note: "192.0.2.1110"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    now, design = datetime.now(UTC), Design()
    tree = Tree(tmp_path, design, lay(tmp_path, design, now))
    made = issue(
        tree.authorities["ca"], "kube-apiserver", [SERVER], now, new_key("ECDSA-P256"), names=["127.0.0.1", "vip"]
    )
    tree.write("/server.crt", made.certificate_pem)
    tree.write("/server.key", made.key_pem)
    return tree


@pytest.fixture
def running(tree: Tree) -> Iterator[FakeApiserver]:
    ca = tree.place("/etc/kubernetes/pki/ca.crt")
    with apiserver(tree.place("/server.crt"), tree.place("/server.key"), ca) as fake:
        yield fake


@pytest.fixture
def host(tree: Tree) -> Host:
    return rooted(tree.root)


def rewrite(running: FakeApiserver) -> RewriteConfigMap:
    return RewriteConfigMap(running.server, "kube-system", "kubeadm-config", "192.0.2.111", "192.0.2.120")


def test_an_address_is_only_found_as_a_whole() -> None:
    for text in ("192.0.2.1110", "1192.0.2.111", "192.0.2.111.5", "x-192.0.2.111"):
        assert replaced(text, "192.0.2.111", "N") == text
    for text in ("192.0.2.111", "https://192.0.2.111:6443", "a,192.0.2.111,b", "cp-1=https://192.0.2.111:2380"):
        assert "N" in replaced(text, "192.0.2.111", "N")
    assert replaced("cp-1.example.org", "cp-1", "N") == "cp-1.example.org"
    assert replaced("https://[2001:db8::1]:2380", "2001:db8::1", "N") == "https://[N]:2380"
    assert replaced("2001:db8::1:5", "2001:db8::1", "N") == "2001:db8::1:5"
    assert replaced("https://192.0.2.1:6443", "192.0.2.1:6443", "N") == "https://N"


def test_a_config_map_is_rewritten_with_its_comments_and_put_back(running: FakeApiserver, host: Host) -> None:
    running.configmap("kube-system", "kubeadm-config", ClusterConfiguration=KUBEADM)
    path = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
    step = rewrite(running)
    step.apply(host)
    text = running.objects[path]["data"]["ClusterConfiguration"]
    assert text == KUBEADM.replace("192.0.2.111:", "192.0.2.120:")
    step.apply(host)
    step.revert(host)
    assert running.objects[path]["data"]["ClusterConfiguration"] == KUBEADM


def test_a_conflict_is_tried_again(running: FakeApiserver, host: Host) -> None:
    running.configmap("kube-system", "kubeadm-config", ClusterConfiguration=KUBEADM)
    running.conflicts = 2
    rewrite(running).apply(host)
    (found,) = running.objects.values()
    assert "192.0.2.120:6443" in found["data"]["ClusterConfiguration"]


def test_a_config_map_that_cannot_be_put_back_is_told_beforehand(running: FakeApiserver, host: Host) -> None:
    running.configmap("kube-system", "kubeadm-config", ClusterConfiguration=KUBEADM)
    there, absent = rewrite(running), replace(rewrite(running), name="nothing")
    for step in (there, absent):
        step.apply(host)
        step.apply(host)
        step.foresee(host, Ahead(), complete=True)
    shutil.rmtree(host.root.directory / host.aside.lstrip("/"))
    for step in (there, absent):
        step.foresee(host, Ahead(), complete=False)
        with pytest.raises(Refused, match=r"/remembered/kube-system-.* is gone"):
            step.foresee(host, Ahead(), complete=True)


def test_an_absent_config_map_stays_absent(running: FakeApiserver, host: Host) -> None:
    step = rewrite(running)
    step.apply(host)
    step.revert(host)
    assert running.objects == {}


def test_what_someone_else_changed_meanwhile_is_not_put_back(running: FakeApiserver, host: Host) -> None:
    running.configmap("kube-system", "kubeadm-config", ClusterConfiguration=KUBEADM, jws="old")
    step = rewrite(running)
    step.apply(host)
    (found,) = running.objects.values()
    found["data"]["jws"] = "signed anew"
    step.revert(host)
    assert next(iter(running.objects.values()))["data"]["jws"] == "signed anew"
    step.apply(host)
    next(iter(running.objects.values()))["data"]["ClusterConfiguration"] += "more: 1\n"
    with pytest.raises(Refused, match="ClusterConfiguration was changed by someone else"):
        step.revert(host)


def test_taking_back_what_never_reached_the_api_asks_nobody(host: Host) -> None:
    RewriteConfigMap("127.0.0.1:1", "kube-system", "kubeadm-config", "a", "b").revert(host)


def test_waiting_tells_the_sub_check_that_fails(running: FakeApiserver, host: Host) -> None:
    running.ready = False
    with pytest.raises(TimedOut, match=r"/readyz answers 500: \[-\]etcd failed") as caught:
        WaitForApiserver(running.server, 5).apply(host)
    assert "kube-apiserver" in caught.value.hint
    running.ready = True
    WaitForApiserver(running.server, 5).apply(host)
    ProveNames((running.server,)).apply(host)


def test_readiness_is_asked_without_a_certificate_that_ran_out(running: FakeApiserver, host: Host) -> None:
    running.distrusts = True
    WaitForApiserver(running.server, 5).apply(host)


def test_a_certificate_must_be_valid_for_the_name(running: FakeApiserver, host: Host) -> None:
    ca = identity(host).ca
    assert serves(running.server, "127.0.0.1", ca) == ""
    assert serves(running.server, "vip", ca) == ""
    assert serves(running.server, "", ca) == ""
    assert "valid for 'other'" in serves(running.server, "other", ca)
    WaitForName(running.server, "vip", 5).apply(host)
    with pytest.raises(TimedOut, match="does not serve a certificate for other"):
        WaitForName(running.server, "other", 5).apply(host)


def test_a_foreign_ca_is_not_believed(running: FakeApiserver, host: Host, tree: Tree) -> None:
    foreign = tree.place("/etc/kubernetes/pki/etcd/ca.crt").read_bytes()
    assert "verify failed" in serves(running.server, "", foreign)


def test_nobody_there_is_one_line(host: Host) -> None:
    with pytest.raises(ApiSilent, match=r"the API server at 127\.0\.0\.1:1 does not answer"):
        Api("127.0.0.1:1", identity(host)).get("/api/v1/nodes")


def test_a_daemon_set_is_restarted_as_kubectl_does(running: FakeApiserver, host: Host) -> None:
    RestartDaemonSet(running.server, "kube-system", "kube-proxy", "why").apply(host)
    ((path, patch),) = running.patched
    assert path == "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
    assert "kubectl.kubernetes.io/restartedAt" in str(patch)
