"""Outage 2 before it happens: the endpoint moves from cp-1's address to a virtual one, while clients poll both.

The virtual address is simply added to node 2, whose API server listens on every address.
"""

from __future__ import annotations

import threading
import time

from tests.e2e.lab import causes, kubectl, nodes, on, run, told

OLD, NEW = "198.51.100.11:6443", "198.51.100.100:6443"


class Client(threading.Thread):
    """Asks /readyz by one name again and again; keeps the longest time without an answer."""

    def __init__(self, server: str) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.longest = 0.0
        self.asked = 0
        self.stop = threading.Event()

    def run(self) -> None:
        last = time.monotonic()
        while not self.stop.is_set():
            answer = on(1, "curl", "-sk", "-m", "2", f"https://{self.server}/readyz", check=False)
            now = time.monotonic()
            self.longest = max(self.longest, now - last)
            self.asked += 1
            if answer == "ok":
                last = now
            time.sleep(0.2)


def main() -> None:
    with nodes(3):
        assert "endpoint-is-one-node" in causes(1)
        on(2, "ip", "addr", "add", f"{NEW.partition(':')[0]}/32", "dev", "eth2")
        clients = [Client(server) for server in (OLD, NEW)]
        for client in clients:
            client.start()
        words = ("move-endpoint", "--to", NEW, "--apply", "--yes")
        told("first half, on every node", lambda: [run(node, *words) for node in (1, 2)])
        told("second half, on every node", lambda: [run(node, *words) for node in (3, 1, 2)])
        for node in (1, 2, 3):
            assert NEW in on(node, "cat", "/etc/kubernetes/admin.conf")
            assert "endpoint-is-one-node" not in causes(node)
        for name in ("kubeadm-config", "kube-proxy"):
            assert NEW in kubectl(1, "get", "configmap", "-n", "kube-system", name, "-o", "yaml")
        told("undo", lambda: [run(node, "undo", "--yes") for node in (2, 1, 3)])
        assert OLD in kubectl(1, "get", "configmap", "-n", "kube-public", "cluster-info", "-o", "yaml")
        for client in clients:
            client.stop.set()
            client.join()
            print(f"{client.server}: {client.asked} requests, at most {client.longest:.1f} s without an answer")
            assert client.longest < 15


if __name__ == "__main__":
    main()
