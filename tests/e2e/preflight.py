"""`drtool preflight` against `kubeadm init phase preflight` on this host.

    python -m tests.e2e.preflight KUBEADM

Every check of kubeadm's that an item of drtool's names must come to the same verdict. Two are left out: kubeadm's port
checks call a port taken where only the address is not this host's, and its runtime checks are one item of drtool's.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.111}
nodeRegistration: {criSocket: "unix:///var/run/containerd/containerd.sock"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.2
"""


def main() -> None:
    kubeadm = Path(sys.argv[1])
    theirs = kubeadms(kubeadm)
    done = subprocess.run(
        [Path(sys.executable).with_name("drtool"), "preflight", "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    items = json.loads(done.stdout)["hosts"][0]["items"]
    ours = {name: item for item in items for name in item["kubeadm"]}
    differing = 0
    for name in sorted({*theirs, *ours}):
        if name.startswith("Port-") or name not in ours:
            continue
        item = ours[name]
        mine = (
            item["severity"] if item["status"] == "failed" and item["severity"] in {"error", "critical"} else "no error"
        )
        told = theirs.get(name, "no error")
        same = (mine == "no error") == (told != "ERROR")
        differing += not same
        print(f"{'same' if same else 'DIFFERENT':10} {name:44} kubeadm: {told:10} drtool: {mine} ({item['id']})")
    for name in sorted(set(theirs) - set(ours)):
        print(f"{'kubeadm':10} {name:44} {theirs[name]}: no item of drtool's has this name")
    sys.exit(1 if differing else 0)


def kubeadms(kubeadm: Path) -> dict[str, str]:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(CONFIG)
        config.flush()
        command = [str(kubeadm), "init", "phase", "preflight", "--config", config.name]
        path = f"{kubeadm.parent}:/usr/sbin:/usr/bin:/sbin:/bin"
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": path})
    said = done.stdout + done.stderr
    return {name: level for level, name in re.findall(r"\[(ERROR|WARNING) ([\w.-]+)\]", said)}


if __name__ == "__main__":
    main()
