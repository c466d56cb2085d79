"""Two of three members are lost: the third becomes a cluster of one, and the others join it empty.

The rebuild is taken back once, as where the two turn up after all; and so is a join.
"""

from __future__ import annotations

from tests.e2e.lab import crictl_stop, etcdctl, kubectl, nodes, on, ready, run, told

ADDRESSES = {1: "198.51.100.11", 2: "198.51.100.12", 3: "198.51.100.13"}
REBUILD = ("survivors", "/var/lib/etcd", "--rebuild", "--apply", "--yes")
JOIN = ("restore", "--node", "--join", f"https://{ADDRESSES[1]}:2379")


def main() -> None:
    with nodes(3):
        lose()
        told("rebuild", lambda: run(1, *REBUILD))
        alone()
        told("undo of the rebuild", lambda: run(1, "undo", "--yes"))
        for node in (2, 3):
            on(node, "systemctl", "start", "kubelet")
        for node, address in ADDRESSES.items():
            ready(node, address)
        etcdctl(1, "endpoint", "health", "--cluster")
        assert etcdctl(1, "member", "list").count("started") == 3
        assert "before" in kubectl(1, "get", "configmap", "witness", "-o", "yaml")
        lose()
        told("the same rebuild again", lambda: run(1, *REBUILD))
        alone()
        for node in (2, 3):
            on(node, "systemctl", "start", "kubelet")
            told(f"join of node {node}", lambda node=node: run(node, *JOIN, "--apply", "--yes"))  # type: ignore[misc]
        etcdctl(1, "endpoint", "health", "--cluster")
        assert etcdctl(1, "member", "list").count("started") == 3
        told("undo of the last join", lambda: run(3, "undo", "--yes"))
        assert etcdctl(1, "member", "list").count("started") == 2
        told("the same join again", lambda: run(3, *JOIN, "--apply", "--yes"))
        etcdctl(1, "endpoint", "health", "--cluster")
        assert etcdctl(1, "member", "list").count("started") == 3


def lose() -> None:
    for node in (2, 3):
        on(node, "systemctl", "stop", "kubelet")
        crictl_stop(node, "etcd", "kube-apiserver")


def alone() -> None:
    ready(1, ADDRESSES[1])
    assert etcdctl(1, "member", "list").count("started") == 1
    assert "before" in kubectl(1, "get", "configmap", "witness", "-o", "yaml")


if __name__ == "__main__":
    main()
