"""containerd must be able to read its configuration, and to use what stands in it.

A file that is no TOML, that has a table twice or that is imported and not there stops containerd. With both
`config_path` and `mirrors` (or auths per mirror) the CRI plugin refuses to load: `mirrors cannot be set when
config_path is provided`, and the kubelet says `unknown service`. Tables under the names of another version than the
files' are ignored, so that defaults apply instead: a risk, unless another check names what follows; but containerd 1
does not start with a plugin `cri` in version 2 (`invalid plugin key URI`). containerd 1.4 and older take both registry
settings.

Fix: keep one of the two registry settings (config_path, with hosts.toml files); write tables by the names of the
header's version; `containerd config migrate` does both ways.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.host.containerd import NAMES, Configuration, configurations, in_use, last_line, line_of, release, setting
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
STREAMING = {
    "disable_tcp_service",
    "stream_server_address",
    "stream_server_port",
    "stream_idle_timeout",
    "enable_tls_streaming",
    "x509_key_pair_streaming",
}
"""What version 3 keeps in the table io.containerd.grpc.v1.cri (ServerConfig); its default file has them there."""


def find(node: Node) -> Iterator[Finding]:
    in_use(node)
    files = configurations(node)
    broken = [file for file in files if file.problem]
    for file in broken:
        at = node.line(file.path, file.line) if file.line else Evidence(file.path)
        yield Finding(f"containerd cannot read {file.path}: {file.problem}", (at,))
    if broken:
        return
    if setting(node, _both) and not _before(node, (1, 5, 0)):
        lines = (last_line(node, r"^\s*config_path\s*="), last_line(node, r"registry\.mirrors|mirrors"))
        yield Finding(
            "containerd's configuration sets both config_path and mirrors: the CRI plugin does not load",
            tuple(filter(None, lines)),
        )
        return
    header = setting(node, lambda config: config.header)
    for file in files:
        yield from _misnamed(node, file, header)


def _both(config: Configuration) -> bool:
    registries = [table.get("registry") for table in config.cri()]
    return any(isinstance(r, dict) and bool(r.get("config_path")) and bool(r.get("mirrors")) for r in registries)


def _before(node: Node, numbers: tuple[int, int, int]) -> bool:
    """Whether this is known to be an older containerd."""
    try:
        return release(node)[0] < numbers
    except EvidenceMissing:
        return False


def _misnamed(node: Node, file: Configuration, header: int) -> Iterator[Finding]:
    """`header` is of the files together: one that has no version is read by that of the others."""
    for version, names in NAMES.items():
        for name in names:
            table = file.table("plugins", name)
            if version == header or name in NAMES.get(header, ()) or (header == 3 and table.keys() <= STREAMING):
                continue
            if table:
                told = last_line(node, r"^\s*version\s*=")
                read = f"is of version {header}" if told else "has no version, so it is read as 1"
                stops = version == 1 and header > 1 and _before(node, (2, 0, 0))
                yield Finding(
                    f"{file.path} {read}: its table {name} is of version {version} and "
                    + ("stops containerd" if stops else "ignored"),
                    (told or Evidence(file.path), line_of(node, file.path, name.replace(".", r"\."))),
                    severity=None if stops else Severity.WARNING,
                )
