"""The node bundle: what a snapshot alone does not bring back. PKI, manifests, kubelet, kubeadm and encryption files.

It is one JSON object, so that a person opens it with age, zstd and jq alone:
`jq -r '.files[] | select(.path == "/etc/kubernetes/pki/sa.key").data' | base64 -d`.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import PurePosixPath
from typing import Any

import msgspec

from drtool.core.errors import Refused, Unsound
from drtool.host.root import Root

FORMAT = 1
MAX_FILE = 4 << 20
MAX_BUNDLE = 64 << 20

PATTERNS = (
    "/etc/kubernetes/*",
    "/etc/kubernetes/manifests/*",
    "/etc/kubernetes/pki/*",
    "/etc/kubernetes/pki/*/*",
    "/var/lib/kubelet/config.yaml",
    "/var/lib/kubelet/instance-config.yaml",
    "/var/lib/kubelet/kubeadm-flags.env",
    "/var/lib/kubelet/pki/*",
    "/etc/default/kubelet",
    "/etc/sysconfig/kubelet",
    "/etc/systemd/system/kubelet.service",
    "/etc/systemd/system/kubelet.service.d/*",
    "/usr/lib/systemd/system/kubelet.service",
    "/usr/lib/systemd/system/kubelet.service.d/*",
    "/lib/systemd/system/kubelet.service.d/*",
    "/etc/containerd/config.toml",
    "/etc/containerd/conf.d/*",
    "/etc/crio/crio.conf",
    "/etc/crio/crio.conf.d/*",
    "/etc/crictl.yaml",
    "/etc/cni/net.d/*",
    "/etc/hosts",
    "/etc/hostname",
    "/root/kubeadm-config.yaml",
    "/kubeadm-config.yaml",
    "/drtool/kubeadm-config.yaml",
)
NEEDED = (
    "/etc/kubernetes/pki/ca.crt",
    "/etc/kubernetes/pki/ca.key",
    "/etc/kubernetes/pki/sa.key",
    "/etc/kubernetes/pki/sa.pub",
    "/etc/kubernetes/pki/front-proxy-ca.crt",
    "/etc/kubernetes/pki/front-proxy-ca.key",
    "/etc/kubernetes/manifests/kube-apiserver.yaml",
)
NEEDED_STACKED = (
    "/etc/kubernetes/pki/etcd/ca.crt",
    "/etc/kubernetes/pki/etcd/ca.key",
    "/etc/kubernetes/manifests/etcd.yaml",
)
"""Where etcd runs on the node itself; what kubeadm makes there (kubeadm init phase certs etcd-*)."""


class File(msgspec.Struct, frozen=True, rename="camel"):
    """One file: `mode` as octal text, `data` in base64, `link` where the name is a symbolic link on the node."""

    path: str
    mode: str
    uid: int
    gid: int
    size: int
    sha256: str
    data: bytes
    link: str = ""


class Bundle(msgspec.Struct, frozen=True, rename="camel"):
    node: str
    files: tuple[File, ...]
    missing: tuple[str, ...] = ()
    format: int = FORMAT

    def file(self, path: str) -> File | None:
        return next((one for one in self.files if one.path == path), None)


def collect(
    root: Root,
    node: str,
    *,
    control_plane: bool,
    stacked: bool,
    named: Iterable[str] = (),
    needed: Iterable[str] = (),
    accept_missing: Iterable[str] = (),
) -> Bundle:
    """Reads the files below `root`: of a node with an API server (`control_plane`), with etcd (`stacked`), or both.

    `named` are further files or directories to keep, `needed` ones that must be there
    too (the encryption configuration). What is needed and cannot be read stands in `missing`, with the reason.
    """
    expected = [*(NEEDED if control_plane else ()), *(NEEDED_STACKED if stacked else ()), *needed]
    demanded = dict.fromkeys(expected)
    files: dict[str, File] = {}
    missing: list[str] = []
    room = MAX_BUNDLE
    for path in dict.fromkeys([*demanded, *_found(root, [*PATTERNS, *named])]):
        entry = root.read(path, MAX_FILE)
        if entry.kind not in ("file", "link") or entry.data is None or entry.cut or entry.size > room:
            why = entry.error or ("too large" if entry.cut or entry.size > room else f"a {entry.kind}")
            if path in demanded or entry.kind == "unreadable" or entry.cut:
                missing.append(f"{path}: {why}")
            continue
        room -= len(entry.data)
        sha = hashlib.sha256(entry.data).hexdigest()
        files[path] = File(
            path, f"{entry.mode:04o}", entry.uid, entry.gid, len(entry.data), sha, entry.data, entry.target
        )
    accepted = set(accept_missing)
    kept = tuple(one for one in missing if one.partition(":")[0] not in accepted)
    return Bundle(node, tuple(files[path] for path in sorted(files)), kept)


def _found(root: Root, patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        for path in root.glob(pattern):
            kind = root.read(path, 0).kind
            if kind == "directory" and pattern not in PATTERNS:
                yield from _found(root, [f"{path}/*"])
            elif kind != "directory":
                yield path


def encode(bundle: Bundle) -> bytes:
    return msgspec.json.encode(bundle) + b"\n"


def decode(data: bytes, name: str) -> Bundle:
    """Unsound where it is no bundle, or a file in it is not what its own line says."""
    try:
        bundle = msgspec.json.decode(data, type=Bundle)
    except (msgspec.MsgspecError, RecursionError) as wrong:
        raise Unsound(f"{name} is no node bundle: {wrong}") from wrong
    if bundle.format > FORMAT:
        raise Unsound(f"{name} was written in format {bundle.format}; this drtool reads {FORMAT}", "use a newer drtool")
    for one in bundle.files:
        _components(one.path)
        if hashlib.sha256(one.data).hexdigest() != one.sha256:
            raise Unsound(f"{name}: {one.path} is not what was read on the node: its sha256 differs")
    return bundle


def unpack(bundle: Bundle, target: Root, paths: Iterable[str], *, owners: bool = False) -> tuple[str, ...]:
    """Writes the files named in `paths`, and no others, as new files below `target`; the paths written.

    Goes down through directory descriptors that follow no link, makes missing directories 0700, and never replaces
    anything: Refused where a name is taken. A link on the node becomes a file with what it led to.
    `owners`: give the files their recorded owner (root only).
    """
    written = []
    for path in paths:
        one = bundle.file(path)
        if one is None:
            raise Refused(f"the bundle does not hold {path}")
        _write(target, one, owners)
        written.append(path)
    return tuple(written)


def _write(target: Root, one: File, owners: bool) -> None:
    *directories, name = _components(one.path)
    with ExitStack() as held:
        here = held.enter_context(_Directory(os.open(target.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)))
        for directory in directories:
            here = held.enter_context(here.below(directory, one.path))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, 0o600, dir_fd=here.descriptor)
        except FileExistsError as taken:
            raise Refused(f"{one.path} is there already", "it is never replaced: move it aside first") from taken
        with os.fdopen(descriptor, "wb") as file:
            file.write(one.data)
            file.flush()
            if owners:
                os.fchown(descriptor, one.uid, one.gid)
            os.fchmod(descriptor, stat.S_IMODE(int(one.mode, 8)) & 0o777)
            os.fsync(descriptor)
        os.fsync(here.descriptor)


class _Directory:
    """An open directory; what lies below it is reached by name, one component at a time, links refused."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __enter__(self) -> _Directory:
        return self

    def __exit__(self, *_: Any) -> None:
        os.close(self.descriptor)

    def below(self, name: str, path: str) -> _Directory:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            os.mkdir(name, 0o700, dir_fd=self.descriptor)
            os.fsync(self.descriptor)
        except FileExistsError:
            pass
        try:
            return _Directory(os.open(name, flags, dir_fd=self.descriptor))
        except OSError as wrong:
            raise Refused(f"{path}: {name} on the way there is a link or no directory") from wrong


def _components(path: str) -> tuple[str, ...]:
    """Of an absolute, plain path; Unsound for anything that could lead elsewhere."""
    parts = path.split("/")
    plain = PurePosixPath(path).is_absolute() and len(parts) > 1 and parts[0] == ""
    if not plain or any(part in ("", ".", "..") or "\0" in part for part in parts[1:]):
        raise Unsound(f"the bundle names {path!r}, which is no plain path")
    return tuple(parts[1:])
