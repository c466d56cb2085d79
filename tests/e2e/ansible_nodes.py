"""The playbooks in deploy/ansible on three scratch control planes whose etcd members really run, as local hosts.

    ANSIBLE_PLAYBOOK=/path/to/ansible-playbook python -m tests.e2e.ansible_nodes

Each node is a directory with a stand-in for the kubelet; its address is one of loopback. The units are installed below
those roots, a backup is taken, all three data directories are deleted, and restore.yml brings the cluster back.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import yaml

from drtool.commands.scenarios import Stage
from drtool.commands.scratch_kubelet import MANIFEST, kubelet
from drtool.commands.scratch_marker import MARKER, PLACE, TOKEN, Marker
from drtool.commands.scratch_node import ScratchNode
from drtool.host.writing import write
from manifests.kubeadm import Design, kernel_addresses, lay
from snapshots import scratch, seal
from snapshots.etcd import Etcd

DEPLOY = Path(__file__).parent.parent.parent / "deploy/ansible"
DRTOOL = Path(sys.executable).with_name("drtool")
MEMBERS = {"cp-1": "127.0.0.111", "cp-2": "127.0.0.112", "cp-3": "127.0.0.113"}
UNITS = ("drtool-backup.service", "drtool-backup.timer")


def cluster(directory: Path, running: ExitStack, token: str) -> list[Stage]:
    """Three members that share their CAs and the peer port, each with client and metrics ports of its own."""
    program, found = scratch.binary(), []
    peer, *ports = scratch.free_ports(7)
    authorities = None
    for number, (name, address) in enumerate(MEMBERS.items()):
        own = (ports[2 * number], peer, ports[2 * number + 1])
        line = f"{scratch.version(program)}-0"
        design = Design(name=name, address=address, endpoint="192.0.2.100:6443", etcd=line, members=MEMBERS, ports=own)
        node = ScratchNode(directory / name, design)
        authorities = lay(node.directory, design, datetime.now(UTC) - timedelta(minutes=10), authorities)
        manifest = node.directory / MANIFEST.lstrip("/")  # kubeadm's nodes join a cluster; these begin one
        manifest.write_text(
            manifest.read_text().replace("--initial-cluster-state=existing", "--initial-cluster-state=new")
        )
        for path, text in kernel_addresses(address, "192.0.2.1").items():  # a host has more than loopback
            (node.directory / path.lstrip("/")).write_text(text)
        place = directory / f"{name}-kubelet"
        marker = node.directory / MARKER.lstrip("/")
        marker.parent.mkdir()
        held = (own[0], own[2])  # others on this host listen on the peer port, too, at addresses of their own
        write(marker, msgspec.json.encode(Marker(token, str(node.directory), str(place), held)))
        found.append(Stage(node, running.enter_context(kubelet(node.root, place, program)), authorities))
    for one in found:
        one.serving()
    return found


def environment(stage: Stage, token: str) -> dict[str, str]:
    root = stage.node.directory
    return {TOKEN: token, PLACE: str(root), "DRTOOL_CONFIG": str(root / "etc/drtool/config.yaml")}


def inventory(directory: Path, stages: list[Stage], token: str) -> Path:
    identity, recipient = seal.throwaway()
    opens = directory / "identity.txt"
    write(opens, f"{identity}\n".encode())
    (directory / "store").mkdir()
    shared = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "drtool_program": str(DRTOOL),
        "drtool_etcd_url": f"https://{MEMBERS['cp-1']}:{stages[0].node.design.ports[0]}",
        "drtool_config": {
            "store": {"url": (directory / "store").as_uri()},
            "recipients": [recipient],
            "identities": [str(opens)],
            "spool": {"directory": ""},
        },
    }
    hosts: dict[str, Any] = {
        one.node.design.name: {
            "drtool_root": str(one.node.directory),
            "drtool_environment": environment(one, token),
        }
        for one in stages
    }
    drills = {"hosts": {"backup-host": {"drtool_root": str(directory / "backup-host")}}}
    place = directory / "inventory.yml"
    children = {"control_planes": {"hosts": hosts}, "drills": drills, "workers": {"hosts": {}}}
    place.write_text(yaml.safe_dump({"all": {"children": children, "vars": shared}}, sort_keys=False))
    return place


def play(book: str, hosts: Path, *words: str) -> None:
    program = os.environ.get("ANSIBLE_PLAYBOOK") or shutil.which("ansible-playbook")
    if not program:
        raise SystemExit("no ansible-playbook: name one with ANSIBLE_PLAYBOOK")
    print(f"--- {book} {' '.join(words)}", flush=True)
    quiet = {**os.environ, "ANSIBLE_NOCOWS": "1", "ANSIBLE_LOCALHOST_WARNING": "false"}
    subprocess.run([program, "-i", hosts, DEPLOY / book, *words], env=quiet, check=True)


def main() -> None:
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="drtool-ansible-") as name, ExitStack() as running:
        directory = Path(name).resolve()
        stages = cluster(directory, running, token)
        first = stages[0].node
        first.fill(300)
        kept = first.keys()
        hosts = inventory(directory, stages, token)
        play("backup.yml", hosts)
        for one in stages:
            for unit in UNITS:
                assert (one.node.directory / "etc/systemd/system" / unit).is_file()
        assert (directory / "backup-host/etc/systemd/system/drtool-drill.timer").is_file()
        subprocess.run([DRTOOL, "backup"], env={**os.environ, **environment(stages[0], token)}, check=True)
        for one in stages:
            with one.kubelet.halted():
                shutil.rmtree(one.node.data_dir / "member")
        play("restore.yml", hosts, "-e", "backup=latest")
        assert not any((one.node.directory / "var/lib/drtool/plans").exists() for one in stages), (
            "a plan was carried out"
        )
        play("restore.yml", hosts, "-e", "backup=latest", "-e", "apply=true")
        for one in stages:
            one.serving()
            assert one.node.keys() == kept, f"{one.node.design.name} does not have every key"
        with Etcd(first.access) as etcd:
            members = [(member.name, member.learner) for member in etcd.members()]
        assert sorted(members) == [(one, False) for one in sorted(MEMBERS)], members
        print(f"{len(kept)} keys on {len(members)} members, all voters")


if __name__ == "__main__":
    main()
