"""Address arithmetic, against tables of cases and against the standard library's own notion of overlap."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.network.ranges import Layout, Range, capacities, clashes, problems, propose, usable


def layout(
    pods: str = "10.244.0.0/16", services: str = "10.96.0.0/12", nodes: str = "192.0.2.0/24", **more: int
) -> Layout:
    def ranges(what: str, text: str) -> tuple[Range, ...]:
        return tuple(Range(what, ip_network(part), "test") for part in text.split(",") if part)

    return Layout(ranges("Pods", pods), ranges("Services", services), ranges("nodes", nodes), **more)


@pytest.mark.parametrize(
    ("pods", "services", "nodes", "wanted"),
    [
        ("10.244.0.0/16", "10.96.0.0/12", "192.0.2.0/24", 0),
        ("10.96.0.0/16", "10.96.0.0/12", "192.0.2.0/24", 1),
        ("10.0.0.0/8", "10.96.0.0/12", "10.1.0.0/16", 3 - 1),
        ("2001:db8:42::/56,10.244.0.0/16", "2001:db8:42::/112,10.96.0.0/16", "192.0.2.0/24", 1),
    ],
)
def test_clashes(pods: str, services: str, nodes: str, wanted: int) -> None:
    assert len(clashes(layout(pods, services, nodes).all)) == wanted


@pytest.mark.parametrize(
    ("pods", "block", "max_pods", "nodes", "per_node", "binds"),
    [
        ("10.244.0.0/16", 24, 110, 256, 110, "the kubelet's maxPods"),
        ("10.244.0.0/16", 26, 110, 1024, 61, "the node's address block"),
        ("10.244.0.0/22", 24, 300, 4, 253, "the node's address block"),
        ("10.244.0.0/24", 24, 110, 1, 110, "the kubelet's maxPods"),
    ],
)
def test_capacity(pods: str, block: int, max_pods: int, nodes: int, per_node: int, binds: str) -> None:
    (found,) = capacities(layout(pods, block_ipv4=block, max_pods=max_pods))
    assert (found.nodes, found.pods_per_node, found.binds) == (nodes, per_node, binds)


def test_a_block_of_a_node_gives_its_addresses_less_three() -> None:
    assert usable(24, 4) == 253
    assert usable(32, 4) == 0


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"pods": "10.244.0.0/25"}, "smaller than one node's block"),
        ({"pods": "2001:db8::/47", "services": "2001:db8:1:ffff::/112"}, "more than 16 bits larger"),
        ({"services": "10.0.0.0/11"}, "21 bits of Service addresses"),
        ({"services": "10.96.0.0/29"}, "too small"),
        ({"services": "2001:db8::/112"}, "a family of Services that no Pod has"),
        ({"pods": "10.244.0.0/16,10.245.0.0/16"}, "one range a family"),
        ({"node_count": 300}, "feeds 256 nodes"),
        ({"block_ipv4": 26}, "has 61 addresses"),
    ],
)
def test_problems(kwargs: dict[str, object], words: str) -> None:
    found = problems(layout(**kwargs))  # type: ignore[arg-type]
    assert any(words in problem.why for problem in found), found


def test_kubeadms_defaults_are_sound() -> None:
    assert problems(layout()) == ()
    assert problems(layout("10.244.0.0/16,2001:db8:42::/56", "10.96.0.0/16,2001:db8:43::/112")) == ()


@given(
    nodes=st.integers(1, 5000),
    pods=st.integers(1, 1000),
    dual=st.booleans(),
    avoid=st.lists(
        st.sampled_from(["10.0.0.0/9", "10.1.2.0/24", "172.16.0.0/16", "192.168.0.0/24", "fd00::/16"]), max_size=3
    ),
)
def test_a_proposal_fits_and_collides_with_nothing(nodes: int, pods: int, dual: bool, avoid: list[str]) -> None:
    found = propose(nodes, pods, [ip_network(text) for text in avoid], dual)
    if found is None:
        assert nodes * pods > 100_000
        return
    assert clashes(found.all) == ()
    assert problems(found) == ()
    assert all(capacity.nodes >= nodes and capacity.pods_per_node >= pods for capacity in capacities(found))
