"""The version skew policy as it is published, case by case."""

from __future__ import annotations

import pytest

from drtool.core.skew import State, violations


def state(servers: list[int], **more: object) -> State:
    found: dict[str, object] = {"apiservers": {f"cp-{n}": minor for n, minor in enumerate(servers, 1)}}
    return State(**{**found, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("servers", [[37], [37, 37, 37], [36, 37], [37, 36, 36]])
def test_api_servers_within_one_minor(servers: list[int]) -> None:
    assert violations(state(servers)) == ()


def test_api_servers_two_minors_apart() -> None:
    assert violations(state([35, 37])) == ("API servers 1.35 and 1.37 are more than one minor apart",)


@pytest.mark.parametrize(
    ("servers", "kubelet", "right"),
    [
        ([37], 37, True), ([37], 36, True), ([37], 34, True), ([37], 33, False), ([37], 38, False),
        ([36, 37], 37, False), ([36, 37], 34, True), ([36, 37], 33, False),
        ([26], 24, True), ([27], 24, False), ([28], 25, True),
    ],
)  # fmt: skip
def test_kubelets(servers: list[int], kubelet: int, right: bool) -> None:
    assert (violations(state(servers, kubelets={"w-1": kubelet})) == ()) is right


@pytest.mark.parametrize(("minor", "right"), [(37, True), (36, True), (35, False), (38, False)])
def test_controllers_of_their_own_api_server(minor: int, right: bool) -> None:
    assert (violations(state([37, 36], controllers={"cp-1": minor})) == ()) is right
    assert (violations(state([37, 36], schedulers={"cp-1": minor})) == ()) is right


@pytest.mark.parametrize(
    ("proxy", "kubelet", "right"), [(37, 37, True), (34, 37, True), (38, 37, False), (33, 36, False), (37, 34, True)]
)
def test_kube_proxy(proxy: int, kubelet: int, right: bool) -> None:
    assert (violations(state([37], proxy=proxy, kubelets={"w-1": kubelet})) == ()) is right
