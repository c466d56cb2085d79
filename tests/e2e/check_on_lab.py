"""A healthy node is clean; after its address changed one cause is named; a bundle of it says the same elsewhere."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.e2e.lab import DRTOOL, lab, nodes, on, told

NEW = "198.51.100.21"


def checked(node: int, *words: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(on(node, DRTOOL, "check", "-o", "json", *words, check=False))
    return found


def faults(report: dict[str, Any]) -> list[str]:
    return [found["id"] for found in report["findings"] if found["severity"] in {"error", "critical"}]


def elsewhere(bundle: Path) -> dict[str, Any]:
    """The bundle judged on this machine, outside of the node's namespaces."""
    done = subprocess.run(
        [DRTOOL, "check", "--root", bundle, "-o", "json"], capture_output=True, text=True, check=False
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def settled(node: int, causes: list[str], seconds: float = 180.0) -> None:
    """Until the check names exactly these: a node that has just started has Pods that are not ready yet."""
    end = time.monotonic() + seconds
    while (found := checked(node)["rootCauses"]) != causes:
        if time.monotonic() > end:
            raise SystemExit(f"root causes {found} instead of {causes} after {seconds:.0f} s")
        time.sleep(3)


def shown(report: dict[str, Any]) -> None:
    for found in report["findings"]:
        print(f"  {found['role']:11} {found['severity']:8} {found['id']}: {found['title']}")
    for check in report["checks"]:
        if check["status"] in {"broken", "unknown"}:
            print(f"  {check['status']}: {check['id']}: {check.get('reason', '')}")


def main() -> None:
    with nodes(1), tempfile.TemporaryDirectory() as place:
        settled(1, [])
        told("check", lambda: shown(checked(1)))
        assert faults(checked(1)) == [], "a healthy node has faults"
        assert checked(1, "--no-probe")["rootCauses"] == []

        bundle = Path(place) / "healthy.tar.gz"
        told("collect", lambda: print(on(1, DRTOOL, "collect", "-f", bundle)))
        assert elsewhere(bundle)["findings"] == checked(1)["findings"], "the bundle says something else"

        lab("address", 1, NEW)
        settled(1, ["node-address-changed"])
        time.sleep(60)  # until etcd and the API server have crashed on the address that is gone
        moved = checked(1)
        shown(moved)
        assert moved["rootCauses"] == ["node-address-changed"], moved["rootCauses"]
        bundle = Path(place) / "moved.tar.gz"
        on(1, DRTOOL, "collect", "-f", bundle)
        assert elsewhere(bundle)["rootCauses"] == ["node-address-changed"]
        told("check of a node that is down", lambda: checked(1))


if __name__ == "__main__":
    main()
