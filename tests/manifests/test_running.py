from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from drtool.core.errors import DrtoolError, Refused
from drtool.host.machine import Container, TimedOut
from manifests.steps.running import (
    ParkStaticPod,
    Program,
    RestartContainers,
    StartControlPlane,
    StopControlPlane,
    UnparkStaticPod,
    still_running,
)
from tests.fakes.host import FakeContainers, FakeProcesses, FakeServices, rooted

PATH, TO = "/etc/kubernetes/manifests/etcd.yaml", "/etc/kubernetes/drtool-x/etcd.yaml"
ETCD = Program("etcd", (2379, 2380), "/var/lib/etcd")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "etc/kubernetes/manifests").mkdir(parents=True)
    (tmp_path / "var/lib/etcd").mkdir(parents=True)
    (tmp_path / PATH[1:]).write_text("kind: Pod\n")
    return tmp_path


def test_a_parked_pod_is_proved_down_and_comes_back(root: Path) -> None:
    host, step = rooted(root), ParkStaticPod(ETCD, PATH, TO)
    step.apply(host)
    assert not (root / PATH[1:]).exists()
    assert (root / TO[1:]).read_text() == "kind: Pod\n"
    step.revert(host)
    assert (root / PATH[1:]).exists()
    assert not (root / TO[1:]).parent.exists()


def test_unparking_is_the_same_way_in_the_other_direction(root: Path) -> None:
    host = rooted(root)
    ParkStaticPod(ETCD, PATH, TO).apply(host)
    step = UnparkStaticPod(ETCD, PATH, TO)
    step.apply(host)
    assert (root / PATH[1:]).exists()
    step.revert(host)
    assert (root / TO[1:]).exists()


@pytest.mark.parametrize(
    ("containers", "processes", "words"),
    [
        (FakeContainers(stuck={"etcd"}), FakeProcesses(), r"container id-etcd \(etcd, Pod etcd\) still runs"),
        (FakeContainers(), FakeProcesses(ports={2380}), "listens on port 2380"),
        (FakeContainers(), FakeProcesses(open_in={Path("x"): ("7 (etcd)",)}), r"7 \(etcd\) has files open"),
    ],
)
def test_what_does_not_stop_is_named_and_the_manifest_comes_back_by_undo(
    root: Path, containers: FakeContainers, processes: FakeProcesses, words: str
) -> None:
    held = {root / "var/lib/etcd": processes.open_in[Path("x")]} if processes.open_in else {}
    host = replace(rooted(root), containers=containers, processes=replace(processes, open_in=held))
    with pytest.raises(TimedOut, match=words) as caught:
        ParkStaticPod(ETCD, PATH, TO).apply(host)
    assert "etcd does not stop" in caught.value.what
    assert "crictl" in caught.value.hint
    ParkStaticPod(ETCD, PATH, TO).revert(host)
    assert (root / PATH[1:]).exists()


def test_a_runtime_that_does_not_answer_proves_nothing(root: Path) -> None:
    host = replace(rooted(root), containers=FakeContainers(silent=True))
    with pytest.raises(DrtoolError, match="does not answer"):
        still_running(host, ETCD)


def test_a_manifest_put_back_by_someone_is_not_overwritten(root: Path) -> None:
    host = rooted(root)
    ParkStaticPod(ETCD, PATH, TO).apply(host)
    (root / PATH[1:]).write_text("new")
    with pytest.raises(Refused, match="already there"):
        UnparkStaticPod(ETCD, PATH, TO).apply(host)
    assert (root / PATH[1:]).read_text() == "new"


def test_without_the_kubelet_the_runtime_is_asked_to_stop(root: Path) -> None:
    host, step = rooted(root), StopControlPlane((ETCD,))
    step.apply(host)
    assert isinstance(host.containers, FakeContainers)
    assert host.containers.stopped == ["etcd"]
    assert not host.services.active("kubelet")
    step.revert(host)
    assert host.services.active("kubelet")


def test_a_kubelet_that_does_not_come_back_is_named(root: Path) -> None:
    host = replace(rooted(root), services=FakeServices(dead={"kubelet"}))
    with pytest.raises(DrtoolError, match="kubelet does not start") as caught:
        StartControlPlane((ETCD,)).apply(host)
    assert "journalctl" in caught.value.hint


def test_restarted_containers_are_only_the_named_ones(root: Path) -> None:
    (root / "etc/kubernetes/manifests/kube-scheduler.yaml").write_text("kind: Pod\n")
    host = rooted(root)
    RestartContainers(("kube-scheduler",), "why").apply(host)
    assert isinstance(host.containers, FakeContainers)
    assert host.containers.stopped == ["kube-scheduler"]


def test_a_kubelet_that_waits_for_ever_is_restarted(root: Path) -> None:
    class Idle(FakeContainers):
        def all(self) -> tuple[Container, ...]:
            return (Container("old", "etcd", "etcd", False, 1.0),)

    host = replace(rooted(root), containers=Idle())
    ParkStaticPod(ETCD, PATH, TO).apply(host)
    UnparkStaticPod(ETCD, PATH, TO).apply(host)
    assert isinstance(host.services, FakeServices)
    assert host.services.calls == [("stop", "kubelet"), ("start", "kubelet")]
    assert rooted(root).services.active("kubelet")
