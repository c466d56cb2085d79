"""Control groups: which hierarchy the host has, and which driver the kubelet and the runtime use."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence
from manifests.host import crio
from manifests.host.containerd import MAIN, NAMES, Configuration, configurations, last_line, release, setting
from manifests.node import Node

CONTROLLERS = "/sys/fs/cgroup/cgroup.controllers"


def hierarchy(node: Node) -> tuple[int, Evidence]:
    """1 or 2. A hybrid host, with version 1 controllers and an empty version 2 tree beside them, counts as 1."""
    controllers = node.entry(CONTROLLERS)
    if controllers.data is not None:
        return 2, Evidence(CONTROLLERS, 1, controllers.data.decode("ascii", "replace").strip()[:200])
    for pattern, number in ((r"^\S+ /sys/fs/cgroup/\S+ cgroup ", 1), (r"^\S+ /sys/fs/cgroup cgroup2 ", 2)):
        mounted = node.find("/proc/mounts", pattern)
        if mounted:
            return number, mounted[0][1]
    if node.entry("/sys/fs/cgroup/memory").kind == "directory":
        return 1, Evidence("/sys/fs/cgroup/memory", None, "a version 1 controller")
    raise EvidenceMissing("neither /sys/fs/cgroup nor /proc/mounts tells which cgroup version the host has")


@dataclass(frozen=True, slots=True)
class Driver:
    """`name` is systemd or cgroupfs. `answers` says whether this runtime tells the kubelet its driver itself."""

    runtime: str
    name: str
    evidence: Evidence
    answers: bool = False


def runtime_driver(node: Node, endpoint: str) -> Driver:
    """The driver of the runtime behind the kubelet's endpoint, from that runtime's configuration."""
    if "crio" in endpoint:
        return _crio(node)
    if "docker" in endpoint:
        return _docker(node)
    return _containerd(node)


def _crio(node: Node) -> Driver:
    """cgroup_manager, systemd by default. CRI-O answers RuntimeConfig since 1.28."""
    version = str(node.versions.get("crio") or "")
    answers = bool(re.match(r"v?(1\.(2[89]|[3-9]\d)|[2-9])", version))
    manager = crio.setting(node, "runtime", "cgroup_manager")
    if manager:
        return Driver("CRI-O", str(manager[0]), manager[1], answers)
    if not crio.files(node):
        raise EvidenceMissing("CRI-O's configuration is not in this tree")
    return Driver("CRI-O", "systemd", Evidence(crio.files(node)[0], None, "no cgroup_manager: systemd"), answers)


def _docker(node: Node) -> Driver:
    path = "/etc/docker/daemon.json"
    try:
        options = json.loads(node.data(path)).get("exec-opts", [])
    except (ValueError, AttributeError) as problem:
        raise EvidenceMissing(f"{path}: {problem}") from problem
    for option in options if isinstance(options, list) else []:
        value = str(option).partition("native.cgroupdriver=")[2]
        if value:
            return Driver("Docker", value, next((e for _, e in node.find(path, "cgroupdriver")), Evidence(path)))
    default = "systemd" if hierarchy(node)[0] == 2 else "cgroupfs"
    return Driver("Docker", default, Evidence(path, None, f"no native.cgroupdriver: {default}"))


def _containerd(node: Node) -> Driver:
    """SystemdCgroup of the default runtime's options; absent is false. containerd answers RuntimeConfig since 2.0.

    Without `version = 2` or 3 in any file they are read as version 1, whose tables have other names: settings in the
    table of another version are ignored.
    """
    value = setting(node, _systemd_cgroup)
    answers = any(file.header == 3 for file in configurations(node)) or _second(node)
    if value is not None:
        said = last_line(node, r"SystemdCgroup\s*=|systemd_cgroup\s*=")
        return Driver("containerd", "systemd" if value else "cgroupfs", said or Evidence(MAIN), answers)
    ignored = last_line(node, r"SystemdCgroup\s*=\s*true")
    table = last_line(node, r"^\s*\[plugins\..*cri")
    replaced = ignored and table and table.path != ignored.path
    what = (table if replaced else ignored) or Evidence(MAIN, None, "no SystemdCgroup: cgroupfs")
    return Driver("containerd", "cgroupfs", what, answers)


def _second(node: Node) -> bool:
    """Whether this is known to be containerd 2."""
    try:
        return release(node)[0] >= (2, 0, 0)
    except EvidenceMissing:
        return False


def _systemd_cgroup(config: Configuration) -> bool | None:
    for name in NAMES.get(config.header, ()):
        runtime = config.table("plugins", name, "containerd").get("default_runtime_name", "runc")
        value = config.table("plugins", name, "containerd", "runtimes", str(runtime), "options").get("SystemdCgroup")
        if isinstance(value, bool):
            return value
    return None
