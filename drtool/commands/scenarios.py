"""What can be rehearsed: each scenario is a story, and the damage that it does to a scratch node."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from drtool.commands.scratch_kubelet import MANIFEST, Kubelet
from drtool.commands.scratch_node import ScratchNode
from drtool.core.errors import DrtoolError, NotFound
from manifests.kubeadm import kernel_addresses, lay
from manifests.pki.issuing import Issued
from snapshots import restore
from snapshots.etcd import Etcd
from snapshots.membership import NewMember, new_cluster
from snapshots.restore import Restoration

ADDRESS, NEW_ADDRESS = "192.0.2.111", "192.0.2.120"
THREE = MappingProxyType({"cp-1": ADDRESS, "cp-2": "192.0.2.112", "cp-3": "192.0.2.113"})
QUOTA = 16 << 20
COUNT = "- --snapshot-count=10000\n"


@dataclass(frozen=True, slots=True)
class Stage:
    """A scratch node that is well: its etcd is run by the stand-in for the kubelet, and was backed up."""

    node: ScratchNode
    kubelet: Kubelet
    authorities: Mapping[str, Issued] = field(repr=False)

    def serving(self, seconds: float = 60.0) -> None:
        """Returns once etcd answers a linearizable read. Raises DrtoolError with its last answer where it does not."""
        until = time.monotonic() + seconds
        while True:
            try:
                with Etcd(self.node.access, timeout=2.0) as etcd:
                    etcd.get(b"health")
                    return
            except DrtoolError:
                if time.monotonic() >= until:
                    raise
            time.sleep(0.2)

    @property
    def manifest(self) -> Path:
        return self.node.directory / MANIFEST.lstrip("/")


@dataclass(frozen=True, slots=True)
class Scenario:
    """`story` is what the person is told, `way` the commands that repair it; `damage` returns once it is done.

    `endpoint` is the cluster's controlPlaneEndpoint, "" for the node's own address.
    """

    name: str
    title: str
    story: str
    way: tuple[str, ...]
    damage: Callable[[Stage], None] = field(repr=False)
    endpoint: str = ""


def scenario(name: str) -> Scenario:
    """Raises NotFound."""
    for one in SCENARIOS:
        if one.name == name:
            return one
    raise NotFound(f"there is no scenario {name}", f"one of {', '.join(one.name for one in SCENARIOS)}")


def lose_address(stage: Stage) -> None:
    with stage.kubelet.halted():
        for path, text in kernel_addresses(NEW_ADDRESS).items():
            (stage.node.directory / path.lstrip("/")).write_text(text)


def expire_certificates(stage: Stage) -> None:
    """The same CAs, leaves that ended a month ago; etcd reads them when it starts."""
    with stage.kubelet.halted():
        lay(stage.node.directory, stage.node.design, datetime.now(UTC) - timedelta(days=395), stage.authorities)


def lose_quorum(stage: Stage) -> None:
    """The member becomes one of three by a restore of its own data; the two others never answer again."""
    node, data = stage.node, stage.node.data_dir
    urls = {name: f"https://{address}:{node.design.ports[1]}" for name, address in THREE.items()}
    members = tuple(NewMember(name, (url,)) for name, url in urls.items())
    alone, three = f"{node.design.name}={urls[node.design.name]}", ",".join("=".join(one) for one in urls.items())
    with stage.kubelet.halted():
        text = stage.manifest.read_text()
        stage.manifest.write_text(text.replace(f"--initial-cluster={alone}\n", f"--initial-cluster={three}\n"))
        moved = data.with_name("before")
        data.rename(moved)
        restore.restore(moved, data, Restoration(new_cluster(members, "drtool-rehearsal"), node.design.name, bump=0))
        shutil.rmtree(moved)


def delete_data(stage: Stage) -> None:
    with stage.kubelet.halted():
        shutil.rmtree(stage.node.data_dir / "member")


def fill_up(stage: Stage) -> None:
    """One key written again and again, as events are, until etcd refuses."""
    text = stage.manifest.read_text()
    with stage.kubelet.halted():
        stage.manifest.write_text(_with(text, f"--quota-backend-bytes={QUOTA}"))
    stage.serving()
    with Etcd(stage.node.access) as etcd:
        try:
            for _ in range(2 * QUOTA >> 19):
                etcd.put(b"/registry/events/default/storm", bytes(1 << 19))
        except DrtoolError as refused:
            if "space" not in refused.what:
                raise


def spoil_manifest(stage: Stage) -> None:
    """etcd 3.5 and newer refuse to start with it."""
    stage.manifest.write_text(_with(stage.manifest.read_text(), "--debug=true"))


def _with(manifest: str, flag: str) -> str:
    line = next(line for line in manifest.splitlines(keepends=True) if line.endswith(COUNT))
    return manifest.replace(line, line.replace(COUNT, f"- {flag}\n") + line)


SCENARIOS = (
    Scenario(
        "address-lost",
        "the node came back with another address",
        "DHCP gave this control plane another address over night, and nobody noticed until the reboot this morning. "
        "Since then the cluster does not answer.",
        ("drtool check", f"drtool readdress --to {NEW_ADDRESS} --apply"),
        lose_address,
    ),
    Scenario(
        "certificates-expired",
        "every certificate has expired",
        "The cluster ran for a year without an upgrade. It was restarted for a new disk, and now nothing that speaks "
        "TLS believes anyone.",
        ("drtool check", "drtool fix --apply"),
        expire_certificates,
    ),
    Scenario(
        "quorum-lost",
        "two of three control planes are gone for good",
        "A fire took the rack with cp-2 and cp-3, and their disks. This node, cp-1, is well, but its etcd takes no "
        "write and has no leader.",
        ("drtool check", 'drtool survivors "$DRTOOL_REHEARSAL_ROOT/var/lib/etcd" --rebuild --apply'),
        lose_quorum,
        "192.0.2.100:6443",
    ),
    Scenario(
        "data-directory-deleted",
        "etcd's data directory was deleted",
        "Someone cleaned up /var/lib/etcd to make space. etcd started again, and the cluster is empty. A backup "
        "was taken before.",
        ("drtool backups", "drtool restore latest --node --apply"),
        delete_data,
    ),
    Scenario(
        "nospace",
        "etcd takes no more writes",
        "A controller went wild and wrote events in a storm. Since then nothing can be created or changed: "
        '"mvcc: database space exceeded".',
        ("drtool check", "drtool fix etcd-nospace --apply"),
        fill_up,
    ),
    Scenario(
        "wrong-manifest",
        "etcd does not start since its manifest was edited",
        "A colleague wanted more of etcd's log and edited its manifest by an old runbook. etcd has not come back.",
        ("drtool check", "drtool fix --apply"),
        spoil_manifest,
    ),
)
