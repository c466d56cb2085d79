"""The runtime's answers in crictl's shapes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drtool.host import runtime as cri
from drtool.host.cri import RuntimeSilent, fields
from manifests.live import read_containers, read_images
from tests.fakes.cri import field, runtime

LABELS = {"io.kubernetes.container.name": "etcd", "io.kubernetes.pod.name": "etcd-cp-1"}


def container(identity: str, state: int, attempt: int) -> bytes:
    labels = b"".join(field(8, field(1, key) + field(2, value)) for key, value in LABELS.items())
    metadata = field(1, "etcd") + field(2, attempt)
    created = 1_796_000_000_000_000_000 + attempt
    return (
        field(1, identity)
        + field(2, "sandbox")
        + field(3, metadata)
        + field(4, field(1, "etcd:3.7"))
        + field(6, state)
        + field(7, created)
        + labels
    )


def test_containers_carry_their_state_and_what_ended_them(tmp_path: Path) -> None:
    listed = b"".join(field(1, item) for item in (container("old", 2, 0), container("new", 1, 1)))
    status = field(6, 1_796_000_100_000_000_000) + field(7, 137) + field(10, "OOMKilled") + field(11, "killed")
    with runtime(tmp_path / "s", {"ListContainers": listed, "ContainerStatus": field(1, status)}):
        found = cri.containers(tmp_path / "s", 20)
    old, new = read_containers(found)
    assert (old.name, old.pod, old.state, old.exit_code, old.reason) == (
        "etcd",
        "etcd-cp-1",
        "exited",
        137,
        "OOMKilled",
    )
    assert (new.state, new.attempt, new.exit_code, new.finished) == ("running", 1, None, None)
    assert old.created is not None
    assert old.finished is not None


def test_a_container_removed_meanwhile_has_no_exit_code(tmp_path: Path) -> None:
    with runtime(tmp_path / "s", {"ListContainers": field(1, container("old", 2, 0)), "ContainerStatus": None}):
        [old] = read_containers(cri.containers(tmp_path / "s", 20))
    assert (old.state, old.exit_code) == ("exited", None)


def test_images_and_version(tmp_path: Path) -> None:
    image = field(1, "sha256:ab") + field(2, "registry.k8s.io/etcd:3.7.0-0") + field(4, 86_784_668)
    version = field(1, "0.1.0") + field(2, "containerd") + field(3, "v2.1.4") + field(4, "v1")
    with runtime(tmp_path / "s", {"ListImages": field(1, image), "Version": version}):
        [found] = read_images(cri.images(tmp_path / "s", 20))
        assert cri.version(tmp_path / "s", 20) == "containerd 2.1.4"
    assert (found.id, found.tags) == ("sha256:ab", ("registry.k8s.io/etcd:3.7.0-0",))


def test_a_runtime_that_is_gone_refuses_or_hangs_is_silent(tmp_path: Path) -> None:
    with pytest.raises(RuntimeSilent, match="does not answer Version"):
        cri.version(tmp_path / "absent", 20)
    with runtime(tmp_path / "refuses", {}), pytest.raises(RuntimeSilent, match="refused the call"):
        cri.version(tmp_path / "refuses", 20)
    with runtime(tmp_path / "hangs", {}, silent=True), pytest.raises(RuntimeSilent, match="timed out"):
        cri.version(tmp_path / "hangs", 0.2)


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_message(data: bytes) -> None:
    list(fields(data))
