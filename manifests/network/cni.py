"""CNI on a node: where the runtime looks, and the network that it takes (libcni: the first file in byte order)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence
from drtool.host.root import Entry
from manifests.document import Document, Unparsable, parse
from manifests.host import crio
from manifests.host.containerd import MAIN, Configuration, last_line, setting
from manifests.node import Node

CONF_DIR, BIN_DIR = "/etc/cni/net.d", "/opt/cni/bin"
CRIO_BIN_DIRS = ("/opt/cni/bin", "/usr/libexec/cni", "/usr/lib/cni")
SUFFIXES = (".conf", ".conflist", ".json")
Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Network:
    """One network configuration. `problem` says why it cannot be used, "" where it can; `line` where, if known."""

    path: str
    document: Document | None = field(repr=False)
    problem: str = ""
    line: int | None = None

    @property
    def plugins(self) -> tuple[dict[str, Any], ...]:
        if self.document is None:
            return ()
        chain = self.document.get("plugins")
        listed = chain if isinstance(chain, list) else [self.document.data]
        return tuple(plugin for plugin in listed if isinstance(plugin, dict))

    @property
    def main(self) -> str:
        """The type of the first plugin, which makes the interface."""
        return str(self.plugins[0].get("type", "")) if self.plugins else ""

    @property
    def version(self) -> str:
        return str(self.document.get("cniVersion", default="")) if self.document else ""

    def programs(self) -> tuple[tuple[str, Evidence], ...]:
        """Each program that the chain needs, with the line that calls for it; IPAM plugins and delegates, too."""
        found: dict[str, Evidence] = {}
        for index, plugin in enumerate(self.plugins):
            for path, name in _called(plugin, ("plugins", index) if self._is_list else ()):
                if isinstance(name, str) and name and self.document is not None:
                    found.setdefault(name, self.document.evidence(*path))
        return tuple(found.items())

    @property
    def _is_list(self) -> bool:
        return self.document is not None and isinstance(self.document.get("plugins"), list)


def _called(plugin: dict[str, Any], where: Place) -> Iterator[tuple[Place, object]]:
    """The types that a plugin's configuration calls for, each with the place that does."""
    yield (*where, "type"), plugin.get("type")
    ipam, delegate = plugin.get("ipam"), plugin.get("delegate")
    if isinstance(ipam, dict):
        yield (*where, "ipam", "type"), ipam.get("type")
    if isinstance(delegate, dict):
        yield from _called(delegate, (*where, "delegate"))
    if plugin.get("type") == "flannel":  # flannel_linux.go: what it hands on where the file names nothing
        if not (isinstance(delegate, dict) and "type" in delegate):
            yield (*where, "type"), "bridge"
        if not (isinstance(ipam, dict) and "type" in ipam):
            yield (*where, "type"), "host-local"


def conf_dir(node: Node) -> str:
    if crio.in_use(node):
        directory = crio.setting(node, "network", "network_dir")
        return str(directory[0]).rstrip("/") if directory and directory[0] else CONF_DIR
    return (setting(node, _conf_dir) if _has_containerd(node) else "") or CONF_DIR


def bin_dirs(node: Node) -> tuple[tuple[str, ...], Evidence]:
    """Where the runtime looks for plugins, and the line that says so."""
    if crio.in_use(node):
        listed = crio.setting(node, "network", "plugin_dirs", list)
        if listed and isinstance(listed[0], list) and listed[0]:
            return tuple(str(path).rstrip("/") for path in listed[0]), listed[1]
        return CRIO_BIN_DIRS, Evidence((*crio.files(node), crio.MAIN)[0], None, "no plugin_dirs: CRI-O's own")
    paths = setting(node, _bin_dirs) if _has_containerd(node) else ()
    if paths:
        return paths, last_line(node, r"^\s*bin_dirs?\s*=") or Evidence(MAIN)
    return (BIN_DIR,), Evidence(MAIN, None, f"no bin_dir: {BIN_DIR}")


def _has_containerd(node: Node) -> bool:
    return node.entry(MAIN).data is not None


def _conf_dir(config: Configuration) -> str:
    found = [table["conf_dir"] for table in _cni_tables(config) if isinstance(table.get("conf_dir"), str)]
    return next((path.rstrip("/") for path in found if path), "")


def _bin_dirs(config: Configuration) -> tuple[str, ...]:
    for table in _cni_tables(config):
        listed = table.get("bin_dirs") or [table.get("bin_dir")]
        paths = tuple(str(path).rstrip("/") for path in listed if path) if isinstance(listed, list) else ()
        if paths:
            return paths
    return ()


def _cni_tables(config: Configuration) -> list[dict[str, Any]]:
    return [table for table in (each.get("cni") for each in config.cri()) if isinstance(table, dict)]


def files(node: Node) -> tuple[Entry, ...]:
    """The files that libcni considers, in byte order. EvidenceMissing where the directory is not in the tree."""
    directory = conf_dir(node)
    if directory not in node.capture.listings:
        if node.entry(directory).kind == "absent" and node.entry("/etc").kind != "absent":
            raise EvidenceMissing(f"{directory} is not in this tree")
        raise EvidenceMissing(f"{directory}: {node.entry(directory).error or 'not a directory'}")
    return tuple(
        entry
        for entry in node.capture.below(directory)
        if entry.path.endswith(SUFFIXES) and entry.kind not in {"directory", "socket", "special"}
    )


def networks(node: Node) -> tuple[Network, ...]:
    return tuple(_network(entry) for entry in files(node))


def _network(entry: Entry) -> Network:
    if entry.data is None:
        return Network(entry.path, None, entry.error or "cannot be read")
    try:
        documents = parse(entry.path, entry.data)
    except Unparsable as wrong:
        return Network(entry.path, None, wrong.problem, wrong.line)
    if not documents or not isinstance(documents[0].data, dict):
        return Network(entry.path, None, "no JSON object in it")
    network = Network(entry.path, documents[0])
    if not network.main:
        return Network(entry.path, documents[0], "no plugin with a type in it")
    return network


def used(node: Node) -> Network:
    """The network that the runtime takes: the first usable file. EvidenceMissing where there is none."""
    for network in networks(node):
        if not network.problem:
            return network
    raise EvidenceMissing(f"no network configuration in {conf_dir(node)}")


def installed(node: Node, directories: tuple[str, ...]) -> frozenset[str]:
    """The programs in the directories. EvidenceMissing where none of them is in the tree."""
    there = [directory for directory in directories if directory in node.capture.listings]
    if not there:
        raise EvidenceMissing(f"{', '.join(directories)} not in this tree")
    return frozenset(name for directory in there for name in node.capture.listings[directory])
