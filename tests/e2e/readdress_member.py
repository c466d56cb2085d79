"""One of three control planes changes its address, is repaired by one command, and the repair is taken back."""

from __future__ import annotations

from tests.e2e.lab import etcdctl, lab, nodes, ready, run, told, waited_for

OLD, NEW = "198.51.100.13", "198.51.100.23"


def main() -> None:
    with nodes(3):
        lab("address", 3, NEW)
        assert "node-address-changed" in waited_for(3, "node-address-changed")
        told("readdress", lambda: run(3, "readdress", "--apply", "--yes"))
        ready(3, NEW)
        healthy_cluster(NEW)
        told("undo", lambda: run(3, "undo", "--yes"))
        lab("address", 3, OLD)
        told("ready again at the old address", lambda: ready(3, OLD))
        healthy_cluster(OLD)


def healthy_cluster(third: str) -> None:
    told("every member healthy", lambda: etcdctl(1, "endpoint", "health", "--cluster"))
    members = etcdctl(1, "member", "list")
    assert f"https://{third}:2380" in members
    assert members.count("started") == 3


if __name__ == "__main__":
    main()
