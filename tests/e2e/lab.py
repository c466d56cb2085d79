"""Drives the lab (real kubelet nodes in namespaces) for the scripts beside this file; each is run by hand, as root.

    python -m tests.e2e.readdress_single

The lab is found as ../shared/lab/lab.py or by DRTOOL_LAB; only one run at a time, held by a lock. `drtool` is the one
beside this Python. DNS is switched off on the nodes: the kubelet looks its own hostname up, and without a network each
look-up would wait ten seconds for nobody.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SCRIPT = Path(os.environ.get("DRTOOL_LAB", "../shared/lab/lab.py"))
DRTOOL = Path(sys.executable).with_name("drtool")
ADMIN = "--kubeconfig=/etc/kubernetes/super-admin.conf"


def lab(*words: object, check: bool = True) -> str:
    run = subprocess.run([sys.executable, str(SCRIPT), *map(str, words)], capture_output=True, text=True, check=False)
    if check and run.returncode:
        raise SystemExit(
            f"lab {' '.join(map(str, words))}: status {run.returncode}\n{run.stdout[-3000:]}{run.stderr[-3000:]}"
        )
    return run.stdout


def on(node: int, *words: object, check: bool = True) -> str:
    return lab("exec", node, "--", *words, check=check)


def drtool(node: int, *words: object) -> dict[str, Any]:
    """A command's JSON."""
    found: dict[str, Any] = json.loads(on(node, DRTOOL, *words, "-o", "json"))
    return found


def run(node: int, *words: object) -> str:
    """A drtool command that must succeed; its table."""
    return on(node, DRTOOL, *words)


def causes(node: int) -> list[str]:
    """The root causes that `drtool check` names; its exit status is then 4."""
    found: list[str] = json.loads(on(node, DRTOOL, "check", "-o", "json", check=False))["rootCauses"]
    return found


def waited_for(node: int, cause: str, seconds: float = 60.0) -> list[str]:
    """The root causes, once that one is among them."""
    end = time.monotonic() + seconds
    while cause not in (found := causes(node)) and time.monotonic() < end:
        time.sleep(1)
    return found


STOP = """
import sys
from pathlib import Path
from drtool.host.cri import Runtime
runtime = Runtime(Path("/run/containerd/containerd.sock"))
for container in runtime.all():
    if container.running and container.name in sys.argv[1:]:
        runtime.stop(container.id, 5)
"""


def crictl_stop(node: int, *names: str) -> None:
    """Ends containers as `crictl stop` would."""
    on(node, sys.executable, "-c", STOP, *names)


def etcdctl(node: int, *words: object) -> str:
    pki = "/etc/kubernetes/pki/etcd"
    access = (
        "--cacert",
        f"{pki}/ca.crt",
        "--cert",
        f"{pki}/healthcheck-client.crt",
        "--key",
        f"{pki}/healthcheck-client.key",
    )
    return on(node, "etcdctl", "--endpoints=https://127.0.0.1:2379", *access, *words)


def kubectl(node: int, *words: object, check: bool = True) -> str:
    return lab("kubectl", node, *words, check=check)


@contextmanager
def nodes(count: int, endpoint: str = "") -> Iterator[None]:
    """That many control planes, the cluster's own ConfigMaps and RBAC filled in by kubeadm; gone at the end."""
    if os.geteuid():
        raise SystemExit("the lab needs root")
    if not SCRIPT.is_file():
        raise SystemExit(f"no lab at {SCRIPT}: name its script with DRTOOL_LAB")
    with (Path(tempfile.gettempdir()) / "lab.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        tidy(count)
        try:
            told("node 1", lambda: lab("up", 1, *(["--endpoint", endpoint] if endpoint else [])))
            for node in range(2, count + 1):
                no_dns(node - 1)
                told(f"node {node}", lambda node=node: lab("join", node))  # type: ignore[misc]
            no_dns(count)
            fill()
            yield
        finally:
            lab("down", check=False)
            tidy(count)


def tidy(count: int) -> None:
    """Ends of cables whose node is gone: the kernel keeps one while anything of the node still lives."""
    for node in range(1, count + 1):
        subprocess.run(["ip", "-n", "lab-sw", "link", "del", f"p{node}"], capture_output=True, check=False)


def no_dns(node: int) -> None:
    on(node, "mount", "--bind", "/dev/null", "/etc/resolv.conf")


def fill() -> None:
    config = "--config=/etc/kubernetes/kubeadm-config.yaml"
    for phase in (["upload-config", "kubeadm"], ["bootstrap-token", "--skip-token-print"], ["addon", "kube-proxy"]):
        on(1, "kubeadm", "init", "phase", *phase, config, ADMIN)
    kubectl(1, "create", "clusterrolebinding", "kubeadm:cluster-admins", "--clusterrole=cluster-admin",
            "--group=kubeadm:cluster-admins", check=False)  # fmt: skip
    kubectl(1, "create", "configmap", "witness", "--from-literal=written=before")


def told(what: str, action: Any) -> float:
    """Run it, print how long it took, return that."""
    begun = time.monotonic()
    action()
    seconds = time.monotonic() - begun
    print(f"{what}: {seconds:.1f} s", flush=True)
    return seconds


def ready(node: int, address: str, seconds: float = 180.0) -> None:
    """Until /readyz answers ok at that address, asked from the node."""
    end = time.monotonic() + seconds
    while on(node, "curl", "-sk", "-m", "2", f"https://{address}:6443/readyz", check=False) != "ok":
        if time.monotonic() > end:
            raise SystemExit(f"node {node} is not ready at {address} after {seconds:.0f} s")
        time.sleep(0.5)


def healthy(node: int) -> None:
    end = time.monotonic() + 60
    while found := causes(node):  # controllers that were restarted a moment ago
        if time.monotonic() > end:
            raise SystemExit(f"node {node}: {found}\n{on(node, DRTOOL, 'check', check=False)}")
        time.sleep(2)
    assert "before" in kubectl(node, "get", "configmap", "witness", "-o", "yaml")
