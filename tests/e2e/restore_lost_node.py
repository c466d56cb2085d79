"""A node loses its PKI, manifests, kubeconfigs, kubelet configuration and etcd's data: all comes back from a backup.

The restore is taken back once, and then carried out again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.e2e.lab import crictl_stop, healthy, nodes, on, ready, run, told

ADDRESS = "198.51.100.11"
LOST = ("/etc/kubernetes", "/var/lib/etcd", "/var/lib/kubelet/pki")
WIPE = """
import pathlib, shutil, sys
for place in sys.argv[1:]:
    for path in pathlib.Path(place).iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
"""


def main() -> None:
    import sys

    with nodes(1), tempfile.TemporaryDirectory() as place:
        store = ("--store", Path(place, "store").as_uri())
        Path(place, "store").mkdir()
        told("backup", lambda: run(1, "backup", *store))
        on(1, "systemctl", "stop", "kubelet")
        crictl_stop(1, "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
        on(1, sys.executable, "-c", WIPE, *LOST)
        print(run(1, "restore", "latest", "--node", *store))
        told("restore", lambda: print(run(1, "restore", "latest", "--node", *store, "--apply", "--yes")))
        ready(1, ADDRESS)
        healthy(1)
        told("undo", lambda: run(1, "undo", "--yes"))
        left = on(1, "find", *LOST, "-type", "f", "-not", "-path", "*/.drtool-*").split()  # kept aside
        assert not left, left
        told("the same restore again", lambda: run(1, "restore", "latest", "--node", *store, "--apply", "--yes"))
        ready(1, ADDRESS)
        healthy(1)


if __name__ == "__main__":
    main()
