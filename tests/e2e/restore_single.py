"""A single control plane is put back from a snapshot, and the restore taken back."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.e2e.lab import etcdctl, healthy, kubectl, nodes, run, told

ADDRESS = "198.51.100.11"


def main() -> None:
    with nodes(1), tempfile.TemporaryDirectory() as place:
        snapshot = Path(place) / "snapshot.db"
        etcdctl(1, "snapshot", "save", snapshot)
        kubectl(1, "create", "configmap", "later", "--from-literal=written=after")
        told("restore", lambda: print(run(1, "restore", snapshot, "--node", "--apply", "--yes")))
        healthy(1)
        assert "later" not in kubectl(1, "get", "configmaps")
        kubectl(1, "create", "configmap", "new", "--from-literal=written=since")
        told("undo", lambda: run(1, "undo", "--yes"))
        told("healthy again", lambda: waited())
        healthy(1)
        names = kubectl(1, "get", "configmaps")
        assert "later" in names
        assert "new" not in names
        print(run(1, "undo", "--list"))


def waited() -> None:
    from tests.e2e.lab import ready

    ready(1, ADDRESS)


if __name__ == "__main__":
    main()
