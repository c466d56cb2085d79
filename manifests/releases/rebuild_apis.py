"""Rebuilds apis.json: which API versions each minor stopped serving, and the etcd image that its kubeadm sets up.

Read from the Go modules k8s.io/api (zz_generated.prerelease-lifecycle.go) and k8s.io/kubernetes (kubeadm's constants)
of every minor: `python -m manifests.releases.rebuild_apis "$(go env GOMODCACHE)"`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

MINORS = range(24, 38)
REMOVED = re.compile(
    r"func \(in \*(\w+)\) APILifecycleRemoved\(\) \(major, minor int\) \{\s+return 1, (\d+)", re.MULTILINE
)
REPLACED = re.compile(
    r"func \(in \*(\w+)\) APILifecycleReplacement\(\).*?\{\s+return schema.GroupVersionKind\{"
    r'Group: "([^"]*)", Version: "([^"]*)", Kind: "([^"]*)"',
    re.DOTALL,
)
GROUP = re.compile(r"\+groupName=(\S+)")
ETCD = re.compile(r'DefaultEtcdVersion = "([^"]+)"')


def module(modules: Path, name: str, version: str) -> Path:
    """The newest patch of a minor in Go's module cache."""
    found = sorted(modules.glob(f"{name}@{version}.*"), key=lambda path: int(path.name.rpartition(".")[2]))
    if not found:
        sys.exit(f"{name} {version} is not in {modules}: go mod download it")
    return found[-1]


def removals(api: Path) -> Iterator[tuple[str, str, str, int, str]]:
    """Group, version, kind, the minor that no longer serves it, and the GROUP/VERSION to use instead."""
    for file in sorted(api.rglob("zz_generated.prerelease-lifecycle.go")):
        text = file.read_text()
        group = GROUP.search((file.parent / "doc.go").read_text())
        replaced = {kind: f"{group_}/{version}" for kind, group_, version, _ in REPLACED.findall(text)}
        for kind, minor in REMOVED.findall(text):
            if not kind.endswith("List"):
                name = group[1] if group else file.parent.parent.name
                yield name, file.parent.name, kind, int(minor), replaced.get(kind, "")


def rebuild(modules: Path) -> dict[str, object]:
    removed: dict[tuple[str, str, str], tuple[int, str]] = {}
    etcd = {}
    for minor in MINORS:
        for group, version, kind, gone, instead in removals(module(modules, "k8s.io/api", f"v0.{minor}")):
            removed[group, version, kind] = (gone, instead)
        constants = module(modules, "k8s.io/kubernetes", f"v1.{minor}") / "cmd/kubeadm/app/constants/constants.go"
        found = ETCD.search(constants.read_text())
        etcd[f"1.{minor}"] = found[1] if found else ""
    rows = sorted((gone, group, version, kind, instead) for (group, version, kind), (gone, instead) in removed.items())
    return {"removed": [list(row) for row in rows], "etcd": etcd}


def written(data: dict[str, object]) -> str:
    """One row a line, so that a change shows in a diff."""
    removed, etcd = data["removed"], data["etcd"]
    assert isinstance(removed, list)  # noqa: S101 - made above
    rows = ",\n  ".join(json.dumps(row) for row in removed)
    return f'{{"removed": [\n  {rows}],\n "etcd": {json.dumps(etcd)}}}\n'


if __name__ == "__main__":
    data = rebuild(Path(sys.argv[1]))
    (Path(__file__).parent / "apis.json").write_text(written(data))
