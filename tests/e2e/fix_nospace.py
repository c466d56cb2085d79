"""etcd reaches its quota and refuses writes; one command compacts, defragments and clears the alarm."""

from __future__ import annotations

import sys

from tests.e2e.lab import causes, crictl_stop, healthy, kubectl, nodes, on, ready, run, told

ADDRESS, QUOTA = "198.51.100.11", 16 << 20
MANIFEST = "/etc/kubernetes/manifests/etcd.yaml"
FILL = """
from pathlib import Path
from snapshots.etcd import Etcd, EtcdAccess, EtcdRefused
pki = Path("/etc/kubernetes/pki/etcd")
access = EtcdAccess(("https://127.0.0.1:2379",), pki / "ca.crt", pki / "server.crt", pki / "server.key")
with Etcd(access) as etcd:
    try:
        for number in range(1000):
            etcd.put(b"/registry/configmaps/default/filled", bytes(200_000))
    except EtcdRefused as refused:
        print(refused)
    print(etcd.alarms())
"""


def main() -> None:
    with nodes(1):
        on(1, "systemctl", "stop", "kubelet")  # one that runs may leave etcd down, once the API server is gone with it
        on(1, "sed", "-i", f"s/    - --name=/    - --quota-backend-bytes={QUOTA}\\n    - --name=/", MANIFEST)
        crictl_stop(1, "etcd")
        on(1, "systemctl", "start", "kubelet")
        ready(1, ADDRESS)
        print(on(1, sys.executable, "-c", FILL))
        assert "etcd-nospace" in causes(1)
        told("fix", lambda: print(run(1, "fix", "etcd-nospace", "--apply", "--yes")))
        kubectl(1, "create", "configmap", "accepted")
        healthy(1)


if __name__ == "__main__":
    main()
