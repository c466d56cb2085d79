"""File modes, and programs that must read again what was renewed."""

from __future__ import annotations

from drtool.plans import site
from drtool.plans.fix import Case, Repair
from drtool.plans.fix.certificates import READERS
from drtool.plans.fix.kubeconfigs import RESTART
from manifests.pki.expected import LEAVES
from manifests.steps.files import ChangeMode


def tighten(case: Case) -> Repair:
    """0700 for directories and 0600 for files, as kubeadm makes them; who owns them stays as it is."""
    steps = []
    for path in dict.fromkeys(finding.evidence[0].path for finding in case.findings):
        entry = case.node.entry(path)
        steps.append(ChangeMode(path, entry.mode, 0o700 if entry.kind == "directory" else 0o600))
    return Repair(tuple(steps))


def reload(case: Case) -> Repair:
    """The programs that hold the old certificate of the files named."""
    by_path = {
        path: READERS[leaf.path] for leaf in LEAVES if leaf.path in READERS for path in site.leaf_files(case.node, leaf)
    }
    by_path |= {f"/etc/kubernetes/{name}": program for name, program in RESTART.items()}
    paths = {finding.evidence[0].path for finding in case.findings}
    return Repair(restart=frozenset(by_path[path] for path in paths if path in by_path))


BUILDERS = {"key-file-readable": tighten, "etcd-data-dir-permissions": tighten, "renewed-not-reloaded": reload}
