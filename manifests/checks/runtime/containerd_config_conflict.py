"""containerd must be able to read its configuration, and to use what stands in it.

A file that is no TOML, or that has a table twice, stops containerd. With both `config_path` and `mirrors` (or auths
per mirror) the CRI plugin refuses to load: `mirrors cannot be set when config_path is provided`, and the kubelet says
`unknown service`. Tables under the names of another version than the file's header are ignored, so that defaults
apply instead: a risk, unless another check names what follows. containerd 1.4 and older take both registry settings.

Fix: keep one of the two registry settings (config_path, with hosts.toml files); write tables by the names of the
header's version; `containerd config migrate` does both ways.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.host.containerd import Configuration, configurations, in_use, line_of, release
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "cgroup-driver-mismatch",
    "sandbox-image-unavailable",
    "runtime-not-running",
    "kubelet-not-running",
    "component-not-ready",
    "container-exited",
)
NAMES = {
    1: ("cri",),
    2: ("io.containerd.grpc.v1.cri",),
    3: ("io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images"),
}


def find(node: Node) -> Iterator[Finding]:
    in_use(node)
    for file in configurations(node):
        if file.problem:
            yield Finding(f"containerd cannot read {file.path}: {file.problem}", (line_of(node, file.path, r"(?!)"),))
        elif _both(file) and not _lenient(node):
            yield Finding(
                f"{file.path} sets both config_path and mirrors: the CRI plugin does not load",
                (
                    line_of(node, file.path, r"^\s*config_path\s*="),
                    line_of(node, file.path, r"registry\.mirrors|mirrors"),
                ),
            )
        else:
            yield from _misnamed(node, file)


def _both(file: Configuration) -> bool:
    registries = [table.get("registry") for table in file.cri()]
    return any(isinstance(r, dict) and r.get("config_path") and r.get("mirrors") for r in registries)


def _lenient(node: Node) -> bool:
    """containerd up to 1.4 knows no config_path and takes mirrors alone."""
    try:
        return release(node)[0] < (1, 5, 0)
    except EvidenceMissing:
        return False


def _misnamed(node: Node, file: Configuration) -> Iterator[Finding]:
    right = NAMES.get(file.header, ())
    for version, names in NAMES.items():
        for name in names:
            if version != file.header and name not in right and file.table("plugins", name):
                header = (
                    f"has version {file.header}" if "version" in file.data else "has no version, so it is read as 1"
                )
                yield Finding(
                    f"{file.path} {header}: its table {name} is of version {version} and ignored",
                    (line_of(node, file.path, r"^\s*version\s*="), line_of(node, file.path, name.replace(".", r"\."))),
                    severity=Severity.WARNING,
                )
