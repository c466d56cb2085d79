"""`drtool preflight`: results, exit status, several hosts, and the plan that prepares a host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from drtool.cli.preflight import command
from drtool.commands.preflight import plan, preflight
from drtool.core.errors import CannotTell, Refused
from drtool.host.root import Root
from drtool.plans.catalogue import STEPS
from manifests.steps.host import CreateFile, SetKernelValue
from tests.builders.tree import Tree
from tests.fakes.host import rooted
from tests.manifests.test_preflight import HEALTHY


def host(root: Path, name: str = "w-1") -> Tree:
    tree = Tree(root)
    for path, text in HEALTHY.items():
        tree.write(path, text.replace("w-1", name))
    return tree


def test_a_fit_host_is_good(tmp_path: Path) -> None:
    host(tmp_path)
    (found,) = preflight([Root(tmp_path)])
    assert found.good
    done = CliRunner().invoke(command, ["--root", str(tmp_path), "-o", "json"], standalone_mode=False)
    assert done.return_value == 0
    assert json.loads(done.output)["hosts"][0]["name"] == "w-1"


def test_what_kubeadm_refuses_gives_status_4(tmp_path: Path) -> None:
    host(tmp_path).write("/proc/sys/net/ipv4/ip_forward", "0\n")
    done = CliRunner().invoke(command, ["--root", str(tmp_path)], standalone_mode=False)
    assert done.return_value == 4
    assert "ERROR" in done.output
    assert "FileContent--proc-sys-net-ipv4-ip_forward" in done.output


def test_cloned_hosts(tmp_path: Path) -> None:
    for name in ("a", "b"):
        host(tmp_path / name, f"w-{name}").write("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")
    found = preflight([Root(tmp_path / "a"), Root(tmp_path / "b")])
    assert not found[0].good
    assert "machine id" in found[0].shared[0].title


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(CannotTell):
        preflight([Root(tmp_path / "absent")])


def test_the_plan_prepares_and_is_taken_back(tmp_path: Path) -> None:
    tree = host(tmp_path)
    tree.write("/proc/sys/net/ipv4/ip_forward", "0\n")
    tree.remove("/etc/sysctl.d/99-kubernetes.conf")
    tree.write("/etc/fstab", "UUID=1 / ext4 defaults 0 1\nUUID=2 none swap sw 0 0  # old\n")
    before = tree.read("/etc/fstab")
    steps = plan(Root(tmp_path)).steps
    assert [type(step).__name__ for step in steps] == ["EditFile", "SetKernelValue", "CreateFile"]
    assert {type(step).__name__ for step in steps} <= set(STEPS)
    machine = rooted(tmp_path)
    for step in steps:
        step.apply(machine)
        step.apply(machine)  # a step that was interrupted is applied again
    assert tree.read("/etc/fstab").splitlines()[1] == "# UUID=2 none swap sw 0 0  # old"
    assert tree.read("/proc/sys/net/ipv4/ip_forward") == "1\n"
    assert preflight([Root(tmp_path)])[0].good
    for step in reversed(steps):
        step.revert(machine)
    assert tree.read("/etc/fstab") == before
    assert tree.read("/proc/sys/net/ipv4/ip_forward") == "0\n"
    assert not tree.place("/etc/sysctl.d/99-drtool.conf").exists()


def test_nothing_to_prepare(tmp_path: Path) -> None:
    host(tmp_path)
    assert plan(Root(tmp_path)).steps == ()


def test_a_file_of_someone_else_is_refused(tmp_path: Path) -> None:
    tree = host(tmp_path)
    tree.write("/etc/sysctl.d/99-drtool.conf", "vm.swappiness = 1\n")
    with pytest.raises(Refused):
        CreateFile("/etc/sysctl.d/99-drtool.conf", "net.ipv4.ip_forward = 1\n").apply(rooted(tmp_path))
    assert tree.read("/etc/sysctl.d/99-drtool.conf") == "vm.swappiness = 1\n"


def test_steps_describe_themselves() -> None:
    assert SetKernelValue("net.ipv4.ip_forward", "0", "1").describe() == "set net.ipv4.ip_forward from 0 to 1, now"
