"""After quorum loss: which member to rebuild from, and the steps that do it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import join

from drtool.core.events import Listener, silent
from snapshots import survivors as survival
from snapshots.survivors import Survivor, Verdict


def survivors(directories: Sequence[Path], listener: Listener = silent) -> Verdict:
    """Reads only. Raises Unsound for directories of different clusters."""
    return survival.compare(directories, listener)


def plan(verdict: Verdict) -> tuple[str, ...]:
    """What to do, in order: a cluster of one, with revisions bumped, that the others join as new members.

    Empty where nothing can be rebuilt from.
    """
    best = verdict.best
    if best is None:
        return ()
    name = best.name or "NAME"
    urls = ",".join(best.peer_urls) or "https://ADDRESS:2380"
    return (
        "stop etcd and the API server on every control-plane node: move their manifests out of the manifests directory",
        f"move every member's data directory aside, delete none: {_places(verdict)}",
        join(
            ["drtool", "restore", str(best.directory), "--to", "/var/lib/etcd", "--name", name,
             "--initial-advertise-peer-urls", urls]
        )
        + f" (on the node of {name}, from where its old directory now lies)",
        f"start etcd on {name} with --initial-cluster={name}={urls}, then its API server",
        "restart controller-manager, scheduler and every kubelet, so that no watcher keeps an old revision",
        "add the other members one at a time, each with an empty data directory (etcdctl member add, kubeadm join)",
        "take a backup at once: drtool backup",
    )  # fmt: skip


def _places(verdict: Verdict) -> str:
    return ", ".join(_label(one) for one in verdict.survivors)


def _label(one: Survivor) -> str:
    return f"{one.name or one.directory}"
