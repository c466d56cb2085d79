"""Copies what a node's files say into memory, once, with every size capped.

Works on a live `/`, a mounted disk, a copied tree and an unpacked bundle alike: only files under a root are read, and
the kernel speaks through its own files. After the fixed list, one more step reads the files that the manifests, unit
files and configuration name by absolute path, so that a custom audit policy or data directory is seen too.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from types import MappingProxyType

from drtool.core.errors import CannotTell
from drtool.host.root import Entry, Root

KIB, MIB = 1 << 10, 1 << 20
MAX_FILES = 4000
MAX_NAMED = 400
CONTAINERD = "/etc/containerd/config.toml"

CONFIGURATION = (
    "/etc/kubernetes/*",
    "/etc/kubernetes/manifests/*",
    "/etc/kubernetes/pki/*",
    "/etc/kubernetes/pki/*/*",
    "/etc/kubernetes/ssl",
    "/etc/kubernetes/*/*.y*ml*",
    "/etc/kubernetes/tmp/*",
    "/etc/kubernetes/tmp/*/*.yaml",
    "/etc/kubernetes/tmp/kubeadm-kubelet-config*/config.yaml",
    "/var/lib/kubelet/config.yaml",
    "/var/lib/kubelet/instance-config.yaml",
    "/var/lib/kubelet/kubeadm-flags.env",
    "/var/lib/kubelet/cpu_manager_state",
    "/var/lib/kubelet/memory_manager_state",
    "/var/lib/kubelet/pki",
    "/var/lib/kubelet/pki/*",
    "/etc/default/kubelet",
    "/etc/sysconfig/kubelet",
    "/etc/environment",
    *(
        f"{base}/{unit}.service{drop_in}"
        for base in ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
        for unit in ("kubelet", "containerd", "crio", "docker", "cri-docker")
        for drop_in in ("", ".d/*.conf")
    ),
    "/etc/systemd/system/*.swap",
    "/etc/systemd/system/*.mount",
    "/etc/systemd/system/*.wants/*",
    CONTAINERD,
    "/etc/containerd/conf.d/*.toml",
    "/etc/crio/crio.conf",
    "/etc/crio/crio.conf.d/*",
    "/etc/docker/daemon.json",
    "/etc/cni/net.d",
    "/etc/cni/net.d/*",
    "/opt/cni/bin",
    "/usr/lib/cni",
    "/usr/libexec/cni",
    "/etc/hosts",
    "/etc/hostname",
    "/etc/resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/fstab",
    "/etc/machine-id",
    "/etc/os-release",
    "/etc/apt/sources.list.d/kubernetes*",
    "/etc/yum.repos.d/kubernetes*",
    "/etc/selinux/config",
    "/etc/modules-load.d/*",
    "/etc/sysctl.conf",
    "/etc/sysctl.d/*",
    "/run/sysctl.d/*",
    "/usr/lib/sysctl.d/*",
    "/etc/adjtime",
    "/etc/chrony/chrony.conf",
    "/etc/chrony.conf",
    "/etc/systemd/timesyncd.conf",
    "/etc/firewalld/firewalld.conf",
    "/etc/firewalld/zones/*.xml",
    "/etc/ufw/ufw.conf",
    "/etc/ufw/user.rules",
    "/etc/nftables.conf",
    "/etc/haproxy/haproxy.cfg",
    "/etc/haproxy/conf.d/*.cfg",
    "/etc/keepalived/keepalived.conf",
    "/etc/keepalived/*",
    "/etc/nginx/nginx.conf",
    "/etc/kube-vip/*",
    "/root/.kube/config",
    "/root/kubeadm-config.yaml",
    "/kubeadm-config.yaml",
    "/etc/drtool/config.yaml",
    "/var/lib/drtool/last-backup.json",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/cri-dockerd.sock",
    "/run/dockershim.sock",
    "/var/run/dockershim.sock",
    "/run/flannel/subnet.env",
    "/drtool/*.json",
    "/drtool/kubeadm-config.yaml",
)
KERNEL = (
    "/proc/net/fib_trie",
    "/proc/net/if_inet6",
    "/proc/net/tcp",
    "/proc/net/tcp6",
    "/proc/net/route",
    "/proc/net/dev",
    "/proc/swaps",
    "/proc/mounts",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/cmdline",
    "/proc/cgroups",
    "/proc/modules",
    "/proc/uptime",
    "/proc/1/comm",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/panic_on_oops",
    "/proc/sys/kernel/keys/root_maxkeys",
    "/proc/sys/kernel/keys/root_maxbytes",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/panic_on_oom",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/net/ipv6/conf/all/forwarding",
    "/proc/sys/net/bridge/bridge-nf-call-iptables",
    "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
    "/proc/sys/fs/inotify/max_user_instances",
    "/proc/sys/fs/inotify/max_user_watches",
    "/sys/fs/cgroup/cgroup.controllers",
    "/sys/fs/cgroup/memory",
    "/sys/fs/selinux/enforce",
    "/sys/class/dmi/id/product_uuid",
    "/sys/class/net/*/address",
    "/sys/block/*/queue/rotational",
)
PACKAGES = ("/var/lib/dpkg/status",)
LOGS = (
    "/drtool/journal/*.log",
    "/var/log/pods/kube-system_*/*/*.log",
    "/var/log/audit/audit.log",
    "/var/log/apt/history.log",
    "/var/log/dpkg.log",
    "/var/log/dnf.log",
    "/var/log/kern.log",
)
DISTRIBUTIONS = (
    "/var/lib/rancher/rke2",
    "/var/lib/rancher/k3s",
    "/etc/rancher/rke2",
    "/etc/rancher/k3s",
    "/var/lib/k0s",
    "/etc/k0s",
    "/var/snap/microk8s",
    "/var/lib/minikube",
    "/system/state",
    "/usr/local/etc/talos",
    "/etc/kubernetes/static-pod-resources",
    "/etc/etcd.env",
    "/etc/ssl/etcd/ssl",
)
PROGRAMS = ("/usr/bin/kubelet", "/usr/local/bin/kubelet")
PREFLIGHT = tuple(
    f"{directory}/{program}"
    for directory in ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
    for program in ("losetup", "mount", "cp")
)
DATA = (
    "/var/lib/etcd",
    "/var/lib/etcd/member",
    "/var/lib/etcd?*",
    "/var/lib/etcd?*/member",
    "/var/lib/etcd/member/snap/*",
    "/var/lib/etcd/member/wal/*",
)

NAMED_IN = re.compile(
    r"/etc/kubernetes/(manifests/[^/]+|[^/]+\.conf)$|/var/lib/kubelet/(config\.yaml|kubeadm-flags\.env)$"
    r"|/etc/(default|sysconfig)/kubelet$|kubelet\.service(\.d/[^/]+)?$|/etc/(containerd|crio)/.*|/etc/keepalived/.*"
)
ABSOLUTE_PATH = re.compile(rb"(?<![\w.:/-])/(?:[\w.@+-]+/)*[\w.@+-]+")
NEVER_NAMED = ("/proc", "/sys", "/dev", "/usr/bin", "/usr/sbin", "/bin", "/sbin", "/livez", "/readyz", "/health")


@dataclass(frozen=True)
class Capture:
    """Every entry that was looked at, by the node's own path, and the listing of each directory among them.

    `at` is when a bundle was taken (UTC), None for a tree that does not say so.
    """

    entries: Mapping[str, Entry]
    listings: Mapping[str, tuple[str, ...]]
    live: bool
    at: datetime | None

    def entry(self, path: str) -> Entry:
        return self.entries.get(path) or Entry(path, "absent", error="No such file or directory")

    def below(self, directory: str) -> Iterator[Entry]:
        """Captured entries directly in a directory, in byte order of their names."""
        for name in self.listings.get(directory.rstrip("/") or "/", ()):
            path = f"{directory.rstrip('/')}/{name}"
            if path in self.entries:
                yield self.entries[path]

    def matching(self, pattern: str) -> Iterator[Entry]:
        """Captured entries whose path matches a regular expression, in path order."""
        expression = re.compile(pattern)
        return (self.entries[path] for path in sorted(self.entries) if expression.fullmatch(path))

    def told(self, files: Mapping[str, bytes]) -> Capture:
        """The same with what programs said, as files below /drtool."""
        return _capture(self.entries, self.listings, self.live, files)


def capture(root: Root, told: Mapping[str, bytes] = MappingProxyType({})) -> Capture:
    """Reads the node once. What cannot be read is kept as an entry that says why.

    `told` is what programs said, as files below /drtool (manifests.live); it takes the place of such files on the disk.
    Raises CannotTell where there is no directory.
    """
    if not root.directory.is_dir():
        raise CannotTell(
            f"{root.directory} is not a directory", "name the root of a node's tree, or an unpacked bundle"
        )
    entries: dict[str, Entry] = {}
    listings: dict[str, tuple[str, ...]] = {}

    def take(paths: Iterable[str], limit: int, tail: bool = False) -> None:
        for path in paths:
            if path in entries or len(entries) >= MAX_FILES:
                continue
            entry = entries[path] = root.read(path, limit, tail)
            if entry.kind in {"directory", "link"}:
                listings[path] = root.names(path)[:MAX_FILES]

    directories = ("/etc/kubernetes", "/etc/kubernetes/manifests", "/etc/kubernetes/pki", "/etc/kubernetes/pki/etcd")
    take((path for path in directories if root.read(path, 0).kind != "absent"), 0)
    take(_expanded(root, CONFIGURATION), MIB)
    take(_expanded(root, KERNEL), 4 * MIB)
    take(_expanded(root, DISTRIBUTIONS), 0)
    take(_expanded(root, (*PROGRAMS, *PREFLIGHT, *DATA)), 0)
    take(_named(entries.values()), MIB)
    imports = [CONTAINERD]
    for path in imports:  # which grows: an imported file may import others
        for pattern in imported(path, (entries[path].data if path in entries else None) or b""):
            found = list(islice(root.glob(pattern), MAX_NAMED))
            take(found, MIB)
            imports += [one for one in found if one in entries and one not in imports]
    for directory in _kubelet_directories(entries):
        take((f"{directory}/{name}" for name in root.names(directory)), MIB)
    if not root.live:  # there the programs say themselves which they are
        take(PACKAGES, 8 * MIB)
    take(_expanded(root, LOGS), 512 * KIB, tail=True)
    return _capture(entries, listings, root.live, told)


def _capture(
    entries: Mapping[str, Entry], listings: Mapping[str, tuple[str, ...]], live: bool, told: Mapping[str, bytes]
) -> Capture:
    entries = {
        **entries,
        **{path: Entry(path, "file", 0o600, size=len(data), data=data) for path, data in told.items()},
    }
    return Capture(MappingProxyType(entries), MappingProxyType(dict(listings)), live, captured_at(entries))


def _expanded(root: Root, patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        yield from root.glob(pattern)


def _named(entries: Iterable[Entry]) -> list[str]:
    """Absolute paths that the node's own configuration names."""
    found: dict[str, None] = {}
    for entry in list(entries):
        if entry.data is None or not NAMED_IN.search(entry.path):
            continue
        for match in ABSOLUTE_PATH.findall(entry.data[: 256 * KIB]):
            path = match.decode("ascii", "replace")
            if not path.startswith(NEVER_NAMED):
                found.setdefault(path)
    return list(found)[:MAX_NAMED]


def imported(path: str, data: bytes) -> tuple[str, ...]:
    """The files that a containerd configuration imports, as absolute paths and patterns; none where it is no TOML."""
    try:
        listed = tomllib.loads(data.decode("utf-8", "replace")).get("imports")
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    if not isinstance(listed, list):
        return ()
    return tuple(posixpath.normpath(posixpath.join(posixpath.dirname(path), str(each))) for each in listed)


def _kubelet_directories(entries: Mapping[str, Entry]) -> set[str]:
    """Where the kubelet looks for static Pods, when that is not the usual place, and for drop-ins of its settings."""
    found = set()
    for entry in entries.values():
        if entry.data is not None and entry.path.startswith(("/var/lib/kubelet/", "/etc/", "/usr/lib/", "/lib/")):
            for match in re.finditer(
                rb"(?:staticPodPath: *|--(?:pod-manifest-path|config-dir)[= ])[\"']?(/[^\s\"']+)", entry.data
            ):
                found.add(match[1].decode("utf-8", "replace").rstrip("/"))
    return found - {"/etc/kubernetes/manifests"}


def captured_at(entries: Mapping[str, Entry]) -> datetime | None:
    entry = entries.get("/drtool/capture.json")
    if entry is None or entry.data is None:
        return None
    try:
        return datetime.fromisoformat(json.loads(entry.data)["capturedAt"]).astimezone(UTC)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
