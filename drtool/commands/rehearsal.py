"""A rehearsal for people: a scratch node with a real etcd, broken on purpose; what they made of it is judged by facts.

Everything lies in one temporary directory that this module makes and no one can name another for; it is removed, and
what runs in it ended, however the rehearsal ends.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from drtool.commands import carrying
from drtool.commands.backup import backup
from drtool.commands.check import check
from drtool.commands.fetch import shelf
from drtool.commands.scenarios import ADDRESS, Scenario, Stage
from drtool.commands.scratch_kubelet import kubelet
from drtool.commands.scratch_marker import MARKER, PLACE, TOKEN, Marker
from drtool.commands.scratch_node import ScratchNode
from drtool.config import Config, load
from drtool.core.errors import DrtoolError
from drtool.core.plan import Phase
from drtool.host.writing import write
from manifests.kubeadm import Design, lay
from snapshots import scratch, seal
from snapshots.etcd import Etcd

OBJECTS = 300
DIRECTORY, CONFIG, KUBELET = "drtool-rehearsal-", "config.yaml", "kubelet"
PATIENCE = 30.0


class Fact(msgspec.Struct, frozen=True):
    """Something that must hold for the node to be repaired; `why` says what does not."""

    what: str
    good: bool
    why: str = ""


class Rehearsal(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`seconds` from handing over until the person was done."""

    schema_version: int = 1
    scenario: str
    at: datetime
    repaired: bool
    seconds: float
    facts: tuple[Fact, ...]
    way: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Handover:
    """What the person gets: the story, and the environment in which drtool acts on the scratch node alone."""

    scenario: Scenario
    root: Path
    environment: dict[str, str] = field(repr=False)


def rehearse(chosen: Scenario, hand_over: Callable[[Handover], None]) -> Rehearsal:
    """`hand_over` returns when the person is done. Raises DrtoolError where no etcd can be run here."""
    program = scratch.binary()
    began = datetime.now(UTC)
    with TemporaryDirectory(prefix=DIRECTORY) as name:
        directory = Path(name).resolve()
        with _staged(directory, chosen, program) as stage:
            config = _configured(directory)
            if not backup(config, shelf(config), stage.node.root).good:
                raise DrtoolError("the scratch node's backup is not good")
            kept = stage.node.keys()
            environment = _environment(directory, stage.node, program)
            chosen.damage(stage)
            handed = time.monotonic()
            hand_over(Handover(chosen, stage.node.directory, environment))
            seconds = time.monotonic() - handed
            facts = tuple(judge(stage, kept))
    repaired = all(fact.good for fact in facts)
    return Rehearsal(
        scenario=chosen.name, at=began, repaired=repaired, seconds=round(seconds, 1), facts=facts, way=chosen.way
    )


@contextmanager
def _staged(directory: Path, chosen: Scenario, program: Path) -> Iterator[Stage]:
    """A node that is well: certificates of today by CAs of last year, and etcd serving, with objects in it."""
    ports = scratch.free_ports(3)
    etcd = f"{scratch.version(program)}-0"
    design = Design(address=ADDRESS, endpoint=chosen.endpoint, etcd=etcd, ports=(ports[0], ports[1], ports[2]))
    node = ScratchNode(directory / design.name, design)
    authorities = lay(node.directory, design, datetime.now(UTC) - timedelta(days=395))
    lay(node.directory, design, datetime.now(UTC) - timedelta(minutes=10), authorities)
    with kubelet(node.root, directory / KUBELET, program) as running:
        stage = Stage(node, running, authorities)
        stage.serving()
        node.fill(OBJECTS)
        yield stage


def _configured(directory: Path) -> Config:
    """A store of its own with a key of its own, and the configuration file that names them."""
    identity, recipient = seal.throwaway()
    opens, place = directory / "identity.txt", directory / "store"
    place.mkdir(mode=0o700)
    write(opens, f"{identity}\n".encode())
    written = {
        "store": {"url": place.as_uri()},
        "recipients": [recipient],
        "identities": [str(opens)],
        "spool": {"directory": ""},
    }
    write(directory / CONFIG, msgspec.json.encode(written))
    return load(directory / CONFIG, {})


def _environment(directory: Path, node: ScratchNode, program: Path) -> dict[str, str]:
    """This process's own without anything that could lead elsewhere, and what makes drtool act on the scratch node."""
    token = secrets.token_hex(32)
    marker = Marker(token, str(node.directory), str(directory / KUBELET), node.design.ports)
    place = node.directory / MARKER.lstrip("/")
    place.parent.mkdir(mode=0o700)
    write(place, msgspec.json.encode(marker))
    access = node.access
    away = ("DRTOOL_", "ETCD", "AWS_", "KUBECONFIG")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(away)}
    return kept | {
        TOKEN: token,
        PLACE: str(node.directory),
        "DRTOOL_REHEARSAL_STORE": (directory / "store").as_uri(),
        "DRTOOL_CONFIG": str(directory / CONFIG),
        "ETCDCTL_API": "3",
        "ETCDCTL_ENDPOINTS": access.endpoints[0],
        "ETCDCTL_CACERT": str(access.ca),
        "ETCDCTL_CERT": str(access.cert),
        "ETCDCTL_KEY": str(access.key),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), str(program.parent), kept.get("PATH", os.defpath))),
    }


def judge(stage: Stage, kept: Mapping[bytes, bytes]) -> Iterator[Fact]:
    """What must hold after a reboot, which is what tells a repair from a process that was started by hand."""
    stopped = stage.kubelet.stopped
    yield Fact("the kubelet was left running", not stopped, "it was stopped" if stopped else "")
    with stage.kubelet.halted():
        pass
    try:
        stage.serving(PATIENCE)
    except DrtoolError as silent:
        yield Fact("after a reboot, etcd boots from its manifest and serves", False, silent.what)
    else:
        yield Fact("after a reboot, etcd boots from its manifest and serves", True)
        yield from _of_etcd(stage, kept)
    causes = check(stage.node.root).verdict.root_causes
    yield Fact("`drtool check` names no cause", not causes, ", ".join(causes))
    open_plans = [one.plan.id for one in carrying.history(stage.node.root) if one.state.phase is Phase.UNFINISHED]
    yield Fact("no plan is unfinished", not open_plans, ", ".join(open_plans))


def _of_etcd(stage: Stage, kept: Mapping[bytes, bytes]) -> Iterator[Fact]:
    """Keys that came on top are no loss."""
    with Etcd(stage.node.access) as etcd:
        alarms = ", ".join(kind for _, kind in etcd.alarms())
        yield Fact("no alarm is raised", not alarms, alarms)
        try:
            etcd.put(b"/registry/configmaps/default/after-rehearsal", b"{}")
        except DrtoolError as refused:
            yield Fact("etcd takes writes", False, refused.what)
        else:
            yield Fact("etcd takes writes", True)
    now = stage.node.keys()
    lost = [key for key, value in kept.items() if now.get(key) != value]
    why = f"{len(lost)} are gone or changed, {lost[0].decode('utf-8', 'replace')} among them" if lost else ""
    yield Fact(f"all {len(kept)} keys are there, with their values", not lost, why)
