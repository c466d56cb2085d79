"""Three control planes are put back from one snapshot with one token, and the restore taken back on all of them."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.lab import DRTOOL, drtool, etcdctl, kubectl, nodes, on, ready, run, told

ADDRESSES = {1: "198.51.100.11", 2: "198.51.100.12", 3: "198.51.100.13"}
MEMBERS = ",".join(f"lab-cp{n}=https://{address}:2380" for n, address in ADDRESSES.items())


def main() -> None:
    with nodes(3), tempfile.TemporaryDirectory() as place:
        snapshot = Path(place) / "snapshot.db"
        etcdctl(1, "snapshot", "save", snapshot)
        kubectl(1, "create", "configmap", "later", "--from-literal=written=after")
        words = ("restore", str(snapshot), "--node", "--members", MEMBERS)
        planned = drtool(1, *words)["plan"]
        token = planned["byHand"][0].partition("--token ")[2].split()[0]
        refuses_another_backup(place, words, token)
        told("restore of three", lambda: everywhere(*words, "--token", token, "--apply", "--yes"))
        all_ready()
        assert "later" not in kubectl(1, "get", "configmaps")
        told("undo on three", lambda: everywhere("undo", "--yes"))
        all_ready()
        assert "later" in kubectl(1, "get", "configmaps")


def refuses_another_backup(place: str, words: tuple[str, ...], token: str) -> None:
    other = Path(place) / "other.db"
    etcdctl(2, "snapshot", "save", other)
    said = on(2, DRTOOL, words[0], other, *words[2:], "--token", token, "--apply", "--yes", check=False)
    assert "1." not in said, said


def everywhere(*words: str) -> None:
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda node: run(node, *words), ADDRESSES))


def all_ready() -> None:
    for node, address in ADDRESSES.items():
        ready(node, address)
    etcdctl(1, "endpoint", "health", "--cluster")
    assert "before" in kubectl(1, "get", "configmap", "witness", "-o", "yaml")


if __name__ == "__main__":
    main()
