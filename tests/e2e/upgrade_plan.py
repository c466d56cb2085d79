"""A cluster of 1.36 in the lab: what `drtool upgrade-plan` says against what kubeadm 1.37's `upgrade plan` says.

    LAB_KUBE=1.36.3 python -m tests.e2e.upgrade_plan KUBEADM_OF_1.37

Build the lab for 1.36.3 first; kubeadm 1.37 is in the lab's folder of 1.37.2 (bin/kubeadm).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.e2e.lab import drtool, healthy, kubectl, nodes, on

TARGET = "1.37.2"
CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration: {name: lab-cp1, criSocket: "unix:///var/run/containerd/containerd.sock"}
localAPIEndpoint: {advertiseAddress: 198.51.100.11, bindPort: 6443}
---
"""
ROW = re.compile(r"^(kube-[\w-]+|etcd|kubelet)\s+(?:lab-cp1\s+)?v?(\S+)\s+v?(\S+)$", re.MULTILINE)


def main() -> None:
    kubeadm = sys.argv[1]
    with nodes(1):
        healthy(1)
        kubectl(1, "wait", "--for=create", "node/lab-cp1", "--timeout=60s")
        compare(kubeadm)


def compare(kubeadm: str) -> None:
    config = Path("/tmp/drtool-upgrade-plan.yaml")
    config.write_text(CONFIG + on(1, "cat", "/etc/kubernetes/kubeadm-config.yaml"))
    for phase in ("upload-config", "addon"):
        on(1, "kubeadm", "init", "phase", phase, "all", "--config", config)
    theirs = {
        name: (old, new)
        for name, old, new in ROW.findall(
            on(1, kubeadm, "upgrade", "plan", f"v{TARGET}", "--ignore-preflight-errors=all")
        )
    }
    ours = drtool(1, "upgrade-plan", "--to", TARGET)
    versions, text = ours["versions"], str(ours["steps"])
    found = {
        "kube-apiserver": versions["apiServers"]["lab-cp1"],
        "kube-controller-manager": versions["controllerManagers"]["lab-cp1"],
        "kube-scheduler": versions["schedulers"]["lab-cp1"],
        "kubelet": versions["kubelets"]["lab-cp1"],
        "kube-proxy": versions["kubeProxy"],
    }
    for name, minor in found.items():
        old, new = theirs[name]
        print(f"{name:26} kubeadm {old} -> {new}, drtool 1.{minor} -> {TARGET}")
        assert old.startswith(f"1.{minor}."), name
        assert new == TARGET, name
    old, new = (version.partition("-")[0] for version in theirs["etcd"])
    print(f"{'etcd':26} kubeadm {old} -> {new}")
    assert f"etcd {old} -> {new}" in text
    assert f"kubeadm upgrade apply v{TARGET}" in text
    assert all(step["violations"] == [] for step in ours["steps"])


if __name__ == "__main__":
    main()
