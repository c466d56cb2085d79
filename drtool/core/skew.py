"""The version skew policy (https://kubernetes.io/releases/version-skew-policy/), as rules over minor versions. Pure.

Minors are the N of 1.N.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

KUBELET_BEHIND, OLD_KUBELET_BEHIND, OLD_KUBELET = 3, 2, 25


def kubelet_may_lag(kubelet: int) -> int:
    """How many minors older than the newest API server a kubelet may be: three, before 1.25 two."""
    return KUBELET_BEHIND if kubelet >= OLD_KUBELET else OLD_KUBELET_BEHIND


@dataclass(frozen=True)
class State:
    """Which minor each program runs, by node. kube-proxy is one DaemonSet: one minor for all, None where not known."""

    apiservers: Mapping[str, int]
    controllers: Mapping[str, int] = field(default_factory=dict)
    schedulers: Mapping[str, int] = field(default_factory=dict)
    kubelets: Mapping[str, int] = field(default_factory=dict)
    proxy: int | None = None


def violations(state: State) -> tuple[str, ...]:
    """What the policy forbids in a state, each in words with both sides; none for a supported one."""
    if not state.apiservers:
        return ()
    return (*_apiservers(state), *_controllers(state), *_kubelets(state), *_proxy(state))


def _apiservers(state: State) -> Iterator[str]:
    oldest, newest = min(state.apiservers.values()), max(state.apiservers.values())
    if newest - oldest > 1:
        yield f"API servers 1.{oldest} and 1.{newest} are more than one minor apart"


def _controllers(state: State) -> Iterator[str]:
    """kubeadm's controllers dial the API server of their own node; without one there, any may answer."""
    oldest = min(state.apiservers.values())
    for program, running in (("controller-manager", state.controllers), ("scheduler", state.schedulers)):
        for node, minor in running.items():
            server = state.apiservers.get(node, oldest)
            if minor > server:
                yield f"{program} 1.{minor} on {node} is newer than its API server 1.{server}"
            elif server - minor > 1:
                yield f"{program} 1.{minor} on {node} is more than one minor older than its API server 1.{server}"


def _kubelets(state: State) -> Iterator[str]:
    oldest, newest = min(state.apiservers.values()), max(state.apiservers.values())
    for node, minor in state.kubelets.items():
        if minor > oldest:
            yield f"kubelet 1.{minor} on {node} is newer than API server 1.{oldest}"
        elif newest - minor > kubelet_may_lag(minor):
            lag = kubelet_may_lag(minor)
            yield f"kubelet 1.{minor} on {node} is more than {lag} minors older than API server 1.{newest}"


def _proxy(state: State) -> Iterator[str]:
    if state.proxy is None:
        return
    oldest, newest = min(state.apiservers.values()), max(state.apiservers.values())
    if state.proxy > oldest:
        yield f"kube-proxy 1.{state.proxy} is newer than API server 1.{oldest}"
    elif newest - state.proxy > kubelet_may_lag(state.proxy):
        yield f"kube-proxy 1.{state.proxy} is more than {kubelet_may_lag(state.proxy)} minors older than 1.{newest}"
    for node, minor in state.kubelets.items():
        if abs(minor - state.proxy) > kubelet_may_lag(state.proxy):
            yield f"kube-proxy 1.{state.proxy} and kubelet 1.{minor} on {node} are too far apart"
