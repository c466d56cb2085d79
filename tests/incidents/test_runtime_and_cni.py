"""Outages below the kubelet, and causes among decoys, on real trees (incidents L, N; the list of decoys)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders.member import causes, faults, member_tree, records, segment
from tests.builders.tree import Tree

CONTAINERD = "/etc/containerd/config.toml"
NETWORK = "/etc/cni/net.d/10-lab.conflist"
CRI = '[plugins."io.containerd.grpc.v1.cri"'
MIRRORS = f"""
    {CRI}.registry]
      config_path = "/etc/containerd/certs.d"
      {CRI}.registry.mirrors."docker.io"]
        endpoint = ["https://mirror.example.org"]
"""
PAUSE = (
    'level=error msg="RunPodSandbox for &PodSandboxMetadata{Name:etcd-cp-1} failed, error" '
    'error="failed to get sandbox image \\"registry.k8s.io/pause:3.6\\": failed to pull image"'
)
UNKNOWN = 'err="rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService"'
NO_SPACE = "write /var/lib/kubelet/pki/kubelet-client.pem: no space left on device"
CALICO = '{"cniVersion": "1.0.0", "name": "c", "plugins": [{"type": "calico", "ipam": {"type": "calico-ipam"}}]}'
Change = Callable[[Tree], object]


def both(*changes: Change) -> Change:
    return lambda tree: [change(tree) for change in changes]


def unknown_service(tree: Tree) -> None:
    """The symptom that four roots share."""
    tree.journal("kubelet", UNKNOWN)


def more(path: str, text: str) -> Change:
    return lambda tree: tree.write(path, tree.read(path) + text)


def cut_log(tree: Tree) -> None:
    place = segment(tree)
    with place.open("r+b") as file:
        file.truncate(list(records(place))[120][0] + 9)


CASES: dict[str, tuple[str, Change, tuple[str, ...]]] = {
    "unknown service: the plugin is disabled": (
        "single-1.37",
        both(
            unknown_service,
            lambda tree: tree.replace(
                CONTAINERD, "version = 2", 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]'
            ),
        ),
        ("containerd-cri-disabled",),
    ),
    "unknown service: the file of Docker's package": (
        "single-1.36",
        both(unknown_service, lambda tree: tree.write(CONTAINERD, 'disabled_plugins = ["cri"]\n')),
        ("containerd-cri-disabled",),
    ),
    "unknown service: mirrors and config_path": (
        "single-1.37",
        both(unknown_service, more(CONTAINERD, MIRRORS)),
        ("containerd-config-conflict",),
    ),
    "unknown service: containerd is too old": (
        "single-1.37",
        both(
            unknown_service,
            lambda tree: tree.write(
                "/drtool/versions.json", '{"kubelet": "v1.37.2", "containerd": "1.5.9", "crio": null}'
            ),
        ),
        ("containerd-too-old",),
    ),
    "a table twice": (
        "single-1.37",
        lambda tree: tree.write(CONTAINERD, tree.read(CONTAINERD) * 2),
        ("containerd-config-conflict",),
    ),
    "no header, so that SystemdCgroup is ignored": (
        "single-1.37",
        lambda tree: tree.replace(CONTAINERD, "version = 2\n", ""),
        ("cgroup-driver-mismatch",),
    ),
    "meta.db torn": (
        "single-1.37",
        lambda tree: tree.journal("containerd", "panic: invalid freelist page: 0, page type is unknown<00>"),
        ("containerd-state-corrupt",),
    ),
    "no pause image": ("single-1.37", lambda tree: tree.journal("containerd", PAUSE), ("sandbox-image-unavailable",)),
    "plugins elsewhere": (
        "single-1.37",
        lambda tree: tree.replace(CONTAINERD, "/opt/cni/bin", "/usr/lib/cni"),
        ("cni-bin-dir-mismatch",),
    ),
    "a plugin is gone": ("single-1.37", lambda tree: tree.remove("/opt/cni/bin/host-local"), ("cni-binary-missing",)),
    "a leftover network comes first": (
        "single-1.37",
        lambda tree: tree.write("/etc/cni/net.d/05-calico.conflist", CALICO),
        ("cni-config-order",),
    ),
    "a network file put aside": (
        "single-1.37",
        lambda tree: tree.place(NETWORK).rename(tree.place(f"{NETWORK}.bak")),
        ("cni-config-missing",),
    ),
    "address moved, CNI missing": (
        "single-1.37",
        both(lambda tree: tree.addresses("192.0.2.120"), lambda tree: tree.remove(NETWORK)),
        ("node-address-changed",),
    ),
    "address moved, network file put aside": (
        "single-1.37",
        both(
            lambda tree: tree.addresses("192.0.2.120"),
            lambda tree: tree.place(NETWORK).rename(tree.place(f"{NETWORK}.bak")),
        ),
        ("node-address-changed",),
    ),
    "disk was full, and the log is cut": (
        "single-1.37",
        both(lambda tree: tree.journal("kubelet", NO_SPACE), cut_log),
        ("disk-full",),
    ),
}


@pytest.mark.parametrize("incident", CASES)
def test_the_cause_is_named(incident: str, tmp_path: Path) -> None:
    name, change, expected = CASES[incident]
    tree = member_tree(name, tmp_path)
    change(tree)
    assert causes(tree) == expected


HEALTHY: dict[str, Change] = {
    "another plugin disabled": lambda tree: tree.replace(
        CONTAINERD, "version = 2", 'version = 2\ndisabled_plugins = ["io.containerd.internal.v1.opt"]'
    ),
    "another pause version": lambda tree: tree.sub(CONTAINERD, r"pause:[\d.]+", "pause:3.6"),
    "config_path alone": more(CONTAINERD, f'    {CRI}.registry]\n      config_path = "/etc/containerd/certs.d"\n'),
    "no network yet": lambda tree: tree.remove(NETWORK),
    "a parked network": lambda tree: tree.write("/etc/cni/net.d/05-calico.conflist.disabled", CALICO),
}


@pytest.mark.parametrize("case", HEALTHY)
def test_a_look_alike_is_healthy(case: str, tmp_path: Path) -> None:
    tree = member_tree("single-1.37", tmp_path)
    HEALTHY[case](tree)
    assert faults(tree) == set()


TREES = (
    "dualstack-1.37",
    "external-etcd-1.36",
    "ha-dns-cp1-1.36",
    "ha-vip-cp1-1.37",
    "ha-vip-cp2-1.37",
    "single-1.34",
    "single-1.36",
    "single-1.37",
)


@pytest.mark.parametrize("name", TREES)
def test_a_healthy_tree_has_no_fault(name: str, tmp_path: Path) -> None:
    assert faults(member_tree(name, tmp_path)) == set()


def test_a_live_node_has_nothing_but_what_its_objects_say(tmp_path: Path) -> None:
    assert faults(member_tree("lab-live-1.37", tmp_path)) == {"podcidr-duplicate"}
