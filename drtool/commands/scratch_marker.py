"""The node of a rehearsal, known beyond doubt.

A root is a rehearsal's only where its marker, readable by this user alone, names that very directory and the random
token that also stands in the environment of the rehearsal's shell. Nothing else than that root is changed from there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hmac import compare_digest
from pathlib import Path

import msgspec

from drtool.core.errors import UsageError
from drtool.host.root import Root

MARKER = "/drtool/scratch.json"
TOKEN, PLACE = "DRTOOL_REHEARSAL", "DRTOOL_REHEARSAL_ROOT"


class Marker(msgspec.Struct, frozen=True):
    """`kubelet` is the directory of the stand-in for the kubelet, `ports` those of the scratch etcd."""

    token: str
    root: str
    kubelet: str
    ports: tuple[int, ...]


def rehearsed(root: Root, environ: Mapping[str, str] = os.environ) -> Marker | None:
    """The marker of a rehearsal's root, in the rehearsal's own environment; None for any other directory."""
    token = environ.get(TOKEN, "")
    if root.live or not token:
        return None
    entry = root.read(MARKER, 4096)
    if entry.data is None or entry.uid != os.geteuid() or entry.mode & 0o077:
        return None
    try:
        found = msgspec.json.decode(entry.data, type=Marker)
    except msgspec.MsgspecError:
        return None
    ours = compare_digest(found.token, token) and Path(found.root) == root.directory.resolve()
    return found if ours else None


def acts_on(root: Root) -> bool:
    """Whether plans are carried out on this root: this machine, or the scratch node of a rehearsal."""
    return root.live or rehearsed(root) is not None


def refuse_elsewhere(root: Root, environ: Mapping[str, str] = os.environ) -> None:
    """Plans are carried out on this machine, or in a rehearsal on its scratch root; nowhere else."""
    if environ.get(TOKEN):
        if rehearsed(root, environ) is None:
            raise UsageError(
                f"this shell is a rehearsal, and {root.directory} is not its scratch node",
                f"leave --root away, or leave the rehearsal; its node is {environ.get(PLACE, 'gone')}",
            )
    elif not root.live:
        raise UsageError(f"--apply acts on this machine, not on {root.directory}", "run it on the node itself")
