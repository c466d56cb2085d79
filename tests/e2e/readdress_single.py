"""Outage 1 on a single control plane: its address moves, one command repairs it, one takes the repair back."""

from __future__ import annotations

from tests.e2e.lab import causes, etcdctl, healthy, kubectl, lab, nodes, on, ready, run, told

OLD, NEW = "198.51.100.11", "198.51.100.21"


def main() -> None:
    with nodes(1):
        healthy(1)
        lab("address", 1, NEW)
        on(1, "systemctl", "restart", "kubelet")
        assert causes(1) == ["node-address-changed"]
        told("readdress", lambda: run(1, "readdress", "--apply", "--yes"))
        ready(1, NEW)
        healthy(1)
        for where in (
            ("kube-public", "cluster-info"),
            ("kube-system", "kube-proxy"),
            ("kube-system", "kubeadm-config"),
        ):
            text = kubectl(1, "get", "configmap", "-n", where[0], where[1], "-o", "yaml")
            assert NEW in text, where
            assert OLD not in text, where
        assert NEW in etcdctl(1, "member", "list")
        told("undo", lambda: run(1, "undo", "--yes"))
        lab("address", 1, OLD)
        told("ready again at the old address", lambda: ready(1, OLD))
        healthy(1)
        assert OLD in etcdctl(1, "member", "list")
        print(run(1, "undo", "--list"))


if __name__ == "__main__":
    main()
