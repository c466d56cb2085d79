"""What a node has lost of the files that a backup's node bundle keeps, laid ready to be put back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from types import MappingProxyType

from drtool.core.errors import Refused
from drtool.host.root import Entry, Root
from drtool.host.writing import write
from drtool.plans.site import file_data
from manifests.capture import Capture
from manifests.node import PKI, Node
from manifests.steps.putting import PutFile, staged
from snapshots.bundle import Bundle, File

PLACES = ("/etc/kubernetes/", "/var/lib/kubelet/", "/etc/cni/net.d/", "/etc/default/kubelet", "/etc/sysconfig/kubelet")
SHARED = (
    *(f"{PKI}/{name}" for name in ("ca.crt", "ca.key", "sa.key", "sa.pub", "front-proxy-ca.crt", "front-proxy-ca.key")),
    *(f"{PKI}/etcd/{name}" for name in ("ca.crt", "ca.key")),
)


@dataclass(frozen=True, slots=True)
class Lost:
    """`files` go back; `differing` are there with other contents, and stay."""

    files: tuple[File, ...] = ()
    differing: tuple[str, ...] = ()

    def steps(self) -> tuple[PutFile, ...]:
        return tuple(PutFile(one.path, int(one.mode, 8), one.uid, one.gid, *_content(one)) for one in self.files)


def _content(one: File) -> tuple[str, str]:
    return ("", one.link) if one.link else (one.sha256, "")


def lost(root: Root, node: Node, bundle: Bundle) -> Lost:
    """Of another node's bundle only what all control planes share is of use here."""
    own = not node.hostname or bundle.node.lower() in {node.hostname.lower(), node.name}
    usable = [one for one in bundle.files if one.path in SHARED or (own and one.path.startswith(PLACES))]
    files, differing = [], []
    for one in usable:
        entry = root.read(one.path, 4 << 20)
        if entry.kind == "absent":
            files.append(one)
        elif entry.data is not None and entry.data != one.data and not one.link:
            differing.append(one.path)
    return Lost(tuple(files), tuple(differing))


def check_service_accounts(node: Node, bundle: Bundle) -> None:
    """Tokens in the backup are signed by the sa.key of its time; another one here would make every one of them void."""
    theirs, ours = bundle.file(f"{PKI}/sa.pub"), file_data(node, f"{PKI}/sa.pub")
    if theirs is not None and ours and theirs.data.strip() != ours.strip():
        raise Refused(
            f"{PKI}/sa.pub is not the one of the backup: every ServiceAccount token in it would be refused",
            "put sa.key and sa.pub of the backup's node bundle in place first; --force goes on regardless",
        )


def overlaid(node: Node, files: Iterable[File]) -> Node:
    """The node as it will be once these files are back."""
    entries, listings = dict(node.capture.entries), dict(node.capture.listings)
    for one in files:
        kind = "link" if one.link else "file"
        entries[one.path] = Entry(one.path, kind, int(one.mode, 8), one.uid, one.gid, one.size, 0.0, one.link, one.data)
        parent, name = str(PurePosixPath(one.path).parent), PurePosixPath(one.path).name
        listings[parent] = tuple(sorted({*listings.get(parent, ()), name}))
    taken = Capture(MappingProxyType(entries), MappingProxyType(listings), node.capture.live, node.capture.at)
    return replace(node, capture=taken)


def lay_ready(root: Root, plan: str, files: Iterable[File]) -> None:
    """Copies for the plan's steps, readable by root alone."""
    for one in files:
        if not one.link:
            place = root.directory / staged(plan, one.path).lstrip("/")
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write(place, one.data)
