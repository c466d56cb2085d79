"""What `drtool fleet job` writes, and the manifests in deploy/kubernetes, are taken by a real kube-apiserver.

A server-side dry run with strict field validation, in a namespace that enforces the Pod Security Standard `restricted`
for what the fleet and the drills run. Needs kube-apiserver and kubectl: $LAB (/tmp/drtool-lab) or PATH.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from drtool.commands import scratch_apiserver
from drtool.commands.fleet import Standing, job
from drtool.commands.scratch_node import lay_scratch
from manifests.api import Api
from snapshots import bundle

LAB = Path(os.environ.get("LAB", "/tmp/drtool-lab"))
DEPLOY = Path(__file__).parent.parent.parent / "deploy/kubernetes"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def program(name: str) -> str:
    built = sorted(LAB.glob(f"*/bin/{name}"))
    found = str(built[-1]) if built else shutil.which(name)
    if not found:
        raise SystemExit(f"no {name}: set LAB, or put it on PATH")
    return found


def kubeconfig(api: Api, place: Path) -> Path:
    def pem(data: bytes) -> str:
        return base64.b64encode(data).decode()

    who = api.identity
    cluster = {"server": f"https://{api.server}", "certificate-authority-data": pem(who.ca)}
    user = {"client-certificate-data": pem(who.certificate), "client-key-data": pem(who.key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "scratch", "cluster": cluster}],
        "users": [{"name": "drtool", "user": user}],
        "contexts": [{"name": "scratch", "context": {"cluster": "scratch", "user": "drtool"}}],
        "current-context": "scratch",
    }
    place.touch(0o600)
    place.write_text(yaml.safe_dump(document))
    return place


def pods(text: str) -> list[dict[str, Any]]:
    """The Pods that the Jobs and CronJobs of a file would make."""
    found = []
    for document in yaml.safe_load_all(text):
        spec = document.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            names = {"name": document["metadata"]["name"], "namespace": document["metadata"]["namespace"]}
            found.append({"apiVersion": "v1", "kind": "Pod", "metadata": names, "spec": spec["template"]["spec"]})
    return found


def checked(config: Path, what: str, text: str) -> None:
    command = [program("kubectl"), "--kubeconfig", str(config), "create", "--dry-run=server", "--validate=strict"]
    said = subprocess.run([*command, "-f", "-"], input=text, capture_output=True, text=True, check=False)
    print(f"{what}:\n{said.stdout}{said.stderr}", end="", flush=True)
    if said.returncode or "Warning" in said.stderr:
        raise SystemExit(f"{what} is not taken as it is")


def main() -> None:
    standings = tuple(Standing(f"{number:016x}", ("cp-1",), 1, None, None, ()) for number in range(200))
    fleet = job(standings, "registry.example/drtool:0.1.0", "drtool", 8)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        node = lay_scratch(place / "cp-1")
        held = bundle.collect(node.root, "cp-1", control_plane=True, stacked=True)
        binary = Path(program("kube-apiserver"))
        with node.etcd(), scratch_apiserver.running(binary, place / "api", held, node.access, 180) as server:
            config = kubeconfig(server.api, place / "kubeconfig")
            for namespace, labels in (("drtool", RESTRICTED), ("kube-system", {})):
                told = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
                server.api.apply(f"/api/v1/namespaces/{namespace}", told)
                account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
                server.api.apply(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", account)
            texts = {path.name: path.read_text() for path in sorted(DEPLOY.glob("*.yaml"))}
            for what, text in {"drtool fleet job": fleet, **texts}.items():
                checked(config, what, text)
                for pod in pods(text):
                    checked(config, f"{what}, its Pod", yaml.safe_dump(pod))
    print("taken as they are, by a kube-apiserver")


if __name__ == "__main__":
    main()
