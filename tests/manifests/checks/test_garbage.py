"""Any bytes in a node's files, any value at any place of its documents: a check may not know, but it never breaks."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import manifests.checks
from drtool.core.check import load, run
from drtool.core.report import Status
from tests.builders.tree import Tree, laid

MANIFESTS = tuple(
    f"/etc/kubernetes/manifests/{name}.yaml"
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
)
DOCUMENTS = (*MANIFESTS, "/var/lib/kubelet/config.yaml", "/etc/kubernetes/kubeadm-config.yaml")
GIVEN: dict[str, Any] = {
    "/drtool/versions.json": {"kubelet": "v1.37.2", "containerd": "1.7.1", "crio": None},
    "/drtool/units.json": [{"name": "kubelet.service", "active": "failed", "sub": "failed"}],
    "/drtool/filesystems.json": [{"mount": "/", "size": 100, "free": 1, "inodes": 10, "inodesFree": 0}],
    "/drtool/probes.json": [{"component": "kube-apiserver", "kind": "http", "ok": False, "failing": ["etcd"]}],
    "/drtool/listeners.json": [{"address": "::", "port": 6443, "pid": 1, "command": "haproxy"}],
    "/var/lib/kubelet/cpu_manager_state": {
        "policyName": "static",
        "defaultCpuSet": "0-9",
        "entries": {"a": {"b": "1"}},
    },
    "/etc/docker/daemon.json": {"exec-opts": ["native.cgroupdriver=systemd"]},
    "/etc/kubernetes/pki/encryption.yaml": {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [
            {"resources": ["secrets"], "providers": [{"aescbc": {"keys": [{"name": "a", "secret": "Zm9v"}]}}]}
        ],
    },
    "/etc/kubernetes/pki/audit.yaml": {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]},
    "/etc/kubernetes/pki/authn.yaml": {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": True, "conditions": [{"path": "/livez"}]},
    },
}
FLAGS = {"encryption-provider-config": "encryption", "audit-policy-file": "audit", "authentication-config": "authn"}
TEXTS = {
    "/etc/containerd/config.toml": "version = 2\nSystemdCgroup = true\n",
    "/etc/crio/crio.conf": 'cgroup_manager = "systemd"\n',
    "/proc/cpuinfo": "processor\t: 0\n",
    "/proc/meminfo": "MemTotal: 8141204 kB\n",
    "/proc/mounts": "/dev/vda / ext4 rw 0 0\n",
    "/proc/swaps": "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n",
    "/proc/cgroups": "memory\t0\t1\t0\n",
    "/etc/fstab": "UUID=1 none swap sw 0 0\nUUID=2 /var/lib/etcd ext4 defaults 0 2\n",
    "/etc/firewalld/zones/public.xml": '<zone><port port="6443" protocol="tcp"/></zone>',
    "/var/log/apt/history.log": "Start-Date: x\nCommandline: unattended-upgrade\nUpgrade: containerd (1)\n",
    "/var/log/audit/audit.log": 'avc:  denied  { read } comm="etcd"\n',
    "/var/lib/kubelet/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS="--x"\n',
    "/etc/systemd/system/kubelet.service": "[Service]\nExecStart=/usr/bin/kubelet --x=$Y\n",
    "/etc/resolv.conf": "nameserver 127.0.0.53\n",
    "/drtool/journal/kubelet.log": "no space left on device\n",
}
ODD = st.sampled_from(
    [
        None,
        1,
        -5,
        True,
        3.5,
        "",
        "x",
        "a,b",
        "--",
        "10.0.0.0/99",
        [],
        [1],
        [None],
        {},
        {"a": 1},
        [{}],
        10**30,
        "%",
        "1.2.3.4:99999",
    ]
)


def _tree(root: Path) -> Tree:
    tree = laid(root)
    for path, data in GIVEN.items():
        tree.write(path, json.dumps(data))
    for flag, name in FLAGS.items():
        tree.set_flag("kube-apiserver", flag, f"/etc/kubernetes/pki/{name}.yaml")
    for path, text in TEXTS.items():
        tree.write(path, text)
    return tree


def _broken(tree: Tree) -> list[tuple[str, str]]:
    outcomes = run(load(manifests.checks), tree.node())
    return [(outcome.id, outcome.reason) for outcome in outcomes if outcome.status is Status.BROKEN]


def _places(data: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield here
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from _places(value, (*here, key))


def _changed(data: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    data = copy.copy(data)
    data[place[0]] = _changed(data[place[0]], place[1:], value)
    return data


each = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@each
@given(st.data())
def test_any_value_at_any_place(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        tree = _tree(Path(place))
        for path in data.draw(st.lists(st.sampled_from((*DOCUMENTS, *GIVEN)), min_size=1, max_size=3, unique=True)):
            document = yaml.safe_load(tree.read(path))
            where = data.draw(st.sampled_from(list(_places(document))))
            document = _changed(document, where, data.draw(ODD))
            tree.write(path, json.dumps(document))
        assert _broken(tree) == []


@each
@given(st.sampled_from((*DOCUMENTS, *GIVEN, *TEXTS)), st.binary(max_size=200), st.integers(0, 400))
def test_any_bytes_in_a_file(path: str, garbage: bytes, at: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        tree = _tree(Path(place))
        text = tree.place(path).read_bytes()
        tree.write(path, text[:at] + garbage + text[at + len(garbage) :])
        assert _broken(tree) == []
