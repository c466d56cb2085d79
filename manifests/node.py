"""The Node: one immutable, typed picture of a capture. Every value knows its file and line.

A property raises EvidenceMissing where the tree does not hold what it needs, and NotApplicable where this kind of node
has no such thing; so a check that reads it needs no guard, and nothing absent ever passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence
from drtool.host.root import Entry, Root
from manifests import live, logs
from manifests.capture import Capture, capture
from manifests.document import Document, Unparsable, line_text, parse
from manifests.kubeconfig import Kubeconfig, read_kubeconfig, split_url
from manifests.kubelet import Kubelet, Unit, kubelet_flags, read_unit
from manifests.layout import Layout, detect
from manifests.network.addresses import Address, Addresses, address_of, read_addresses
from manifests.network.sockets import listening
from manifests.pki.certificates import Certificate, Pem, read_pem
from manifests.pod import Component, StaticPod, version
from manifests.refusal import refusal

MANIFESTS = "/etc/kubernetes/manifests"
PKI = "/etc/kubernetes/pki"
HOME_CONFIG = "/root/.kube/config"
EXPIRY_DAYS = 30
PEM_SUFFIXES = (".crt", ".pem", ".key", ".pub")
EPOCH = datetime.fromtimestamp(0, UTC)
KUBEADM_CONFIGS = (
    "/drtool/kubeadm-config.yaml",
    "/root/kubeadm-config.yaml",
    "/etc/kubernetes/kubeadm-config.yaml",
    "/kubeadm-config.yaml",
)


def read(root: Root, at: datetime | None = None) -> Node:
    """Captures and parses the node below `root`; `at` is the moment to judge by (else the capture's own, else now)."""
    return seen(capture(root), at)


def seen(taken: Capture, at: datetime | None = None, expiry_days: int = EXPIRY_DAYS) -> Node:
    return Node(taken, at or taken.at or datetime.now(UTC), expiry_days)


@dataclass(frozen=True)
class Node:
    capture: Capture = field(repr=False)
    at: datetime
    expiry_days: int = EXPIRY_DAYS  # how far ahead the end of a certificate is worth a warning

    # ---- files

    def entry(self, path: str) -> Entry:
        return self.capture.entry(path)

    def data(self, path: str) -> bytes:
        """A file's bytes; EvidenceMissing says why there are none."""
        entry = self.capture.entry(path)
        if entry.data is None:
            raise EvidenceMissing(f"{path}: {entry.error or 'not a file'}")
        return entry.data

    def text(self, path: str) -> str:
        return self.data(path).decode("utf-8", "replace")

    def line(self, path: str, number: int) -> Evidence:
        return Evidence(path, number, line_text(tuple(self.text(path).splitlines()), number))

    def find(self, path: str, pattern: str) -> tuple[tuple[re.Match[str], Evidence], ...]:
        """Each line of a file that matches, with its evidence; none where the file is absent."""
        entry = self.capture.entry(path)
        lines = tuple((entry.data or b"").decode("utf-8", "replace").splitlines())
        expression = re.compile(pattern)
        matches = ((number, expression.search(line)) for number, line in enumerate(lines, 1))
        return tuple((match, Evidence(path, number, line_text(lines, number))) for number, match in matches if match)

    def document(self, path: str) -> Document:
        """The first YAML or JSON document of a file; EvidenceMissing where there is none."""
        try:
            return parse(path, self.data(path))[0]
        except (Unparsable, IndexError) as problem:
            raise EvidenceMissing(str(problem)) from problem

    # ---- who it is

    @cached_property
    def layout(self) -> Layout:
        return detect(self)

    @cached_property
    def hostname(self) -> str:
        for path in ("/etc/hostname", "/proc/sys/kernel/hostname"):
            entry = self.capture.entry(path)
            text = (entry.data or b"").decode("utf-8", "replace").strip()
            if text:
                return text.splitlines()[0].strip()
        return ""

    @cached_property
    def name(self) -> str:
        """The node's name as the kubelet registers it, else etcd's, else the hostname."""
        if self.kubelet.flag("hostname-override") or self.hostname:
            return self.kubelet.node_name
        etcd = self.components.get("etcd")
        return etcd.value("name") if etcd else ""

    @cached_property
    def kubernetes(self) -> tuple[int, int, int] | None:
        """The API server's version from its image, else the kubelet's."""
        apiserver = self.components.get("kube-apiserver")
        return (apiserver.version if apiserver else None) or self.kubelet.version

    # ---- static Pods

    @cached_property
    def manifests_directory(self) -> str:
        return self.kubelet.static_pod_path or MANIFESTS

    @cached_property
    def manifests(self) -> tuple[Entry, ...]:
        """What the kubelet reads: every file there that does not start with a dot, whatever its extension."""
        return tuple(
            entry
            for entry in self.capture.below(self.manifests_directory)
            if not entry.path.rpartition("/")[2].startswith(".")
            and entry.kind not in {"directory", "special", "socket"}
            and not (entry.kind == "link" and entry.data is None)
        )

    @cached_property
    def _parsed(self) -> tuple[tuple[Entry, Document | Unparsable], ...]:
        return tuple((entry, _first_document(entry)) for entry in self.manifests)

    @cached_property
    def pods(self) -> tuple[StaticPod, ...]:
        """The Pods that the kubelet takes."""
        return tuple(pod for pod in self._pods if refusal(pod.document) is None)

    @cached_property
    def refused_pods(self) -> tuple[tuple[StaticPod, tuple[str, Evidence]], ...]:
        """The Pods that it does not take, with the reason and the line."""
        return tuple((pod, reason) for pod in self._pods if (reason := refusal(pod.document)) is not None)

    @cached_property
    def _pods(self) -> tuple[StaticPod, ...]:
        documents = (document for _, document in self._parsed if isinstance(document, Document))
        return tuple(StaticPod(document.path, document) for document in documents if document.get("kind") == "Pod")

    @cached_property
    def unparsable_manifests(self) -> tuple[tuple[Entry, Unparsable], ...]:
        return tuple((entry, found) for entry, found in self._parsed if isinstance(found, Unparsable))

    @cached_property
    def other_manifests(self) -> tuple[Document, ...]:
        """Documents in the manifests directory that are no Pod."""
        return tuple(d for _, d in self._parsed if isinstance(d, Document) and d.get("kind") != "Pod")

    @cached_property
    def components(self) -> Mapping[str, Component]:
        """Control-plane programs by name (`etcd`, `kube-apiserver`, ...); the file of that name wins over copies."""
        found: dict[str, Component] = {}
        for pod in sorted(self.pods, key=lambda pod: pod.path.endswith(f"/{pod.name}.yaml")):
            for container in pod.containers:
                program = _program(container.name, tuple(a.text for a in container.arguments))
                if program:
                    found[program] = Component(program, pod, container)
        return MappingProxyType(found)

    def component(self, program: str) -> Component:
        """NotApplicable where this layout has none; EvidenceMissing where its manifest is gone or unreadable."""
        if program in self.components:
            return self.components[program]
        if program not in self.layout.programs:
            raise NotApplicable(f"a {self.layout} node runs no {program}")
        raise EvidenceMissing(f"no readable manifest of {program} in {self.manifests_directory}")

    @property
    def etcd(self) -> Component:
        return self.component("etcd")

    @property
    def apiserver(self) -> Component:
        return self.component("kube-apiserver")

    @property
    def controller_manager(self) -> Component:
        return self.component("kube-controller-manager")

    @property
    def scheduler(self) -> Component:
        return self.component("kube-scheduler")

    # ---- certificates and kubeconfigs

    @cached_property
    def pems(self) -> Mapping[str, Pem]:
        """Every PEM file that was captured, by path."""
        paths = [p for p, e in self.capture.entries.items() if e.data is not None and p.endswith(PEM_SUFFIXES)]
        return MappingProxyType({path: self._read_pem(path) for path in sorted(paths)})

    def pem(self, path: str) -> Pem:
        """A PEM file; EvidenceMissing where it is absent (a bundle keeps the public halves of keys instead)."""
        if path in self.pems:
            return self.pems[path]
        if path in self.kept_keys:
            return Pem(path, private_keys=self.kept_keys[path])
        return self._read_pem(path)

    def _read_pem(self, path: str) -> Pem:
        return read_pem(path, self.data(path))

    @cached_property
    def kept_keys(self) -> Mapping[str, tuple[str, ...]]:
        """Public halves of the private keys that a bundle leaves out, by path: SHA-256, hex."""
        kept = live.read_json(self.capture.entry("/drtool/keys.json"))
        items = kept.items() if isinstance(kept, dict) else ()
        return {str(path): tuple(map(str, keys)) for path, keys in items if isinstance(keys, list)}

    def certificate(self, path: str) -> Certificate:
        """The first certificate of a file, the one a server sends; EvidenceMissing where there is none."""
        found = self.pem(path).certificates
        if not found:
            raise EvidenceMissing(f"{path}: {self.pem(path).problem or 'no certificate in it'}")
        return found[0]

    @cached_property
    def kubeconfigs(self) -> Mapping[str, Kubeconfig]:
        """/etc/kubernetes/*.conf that can be parsed, by path, with the files they name read in."""
        found = {}
        for entry in self.capture.below("/etc/kubernetes"):
            if entry.path.endswith(".conf") and entry.data is not None:
                document = _first_document(entry)
                if isinstance(document, Document) and isinstance(document.data, dict):
                    found[entry.path] = self._with_files(read_kubeconfig(document))
        return MappingProxyType(found)

    @cached_property
    def home_kubeconfig(self) -> Kubeconfig | None:
        """The copy of admin.conf that people make for kubectl; None where there is none that can be parsed."""
        try:
            return read_kubeconfig(self.document(HOME_CONFIG))
        except EvidenceMissing:
            return None

    def kubeconfig(self, name: str) -> Kubeconfig:
        path = f"/etc/kubernetes/{name}"
        if path not in self.kubeconfigs:
            raise EvidenceMissing(f"{path}: {self.entry(path).error or 'not a kubeconfig'}")
        return self.kubeconfigs[path]

    def _with_files(self, config: Kubeconfig) -> Kubeconfig:
        changes: dict[str, Any] = {}
        named = (("ca", config.ca_file), ("client", config.client_file), ("key", config.key_file))
        for attribute, path in named:
            if path and getattr(config, attribute) is None:
                try:
                    changes[attribute] = self.pem(path)
                except EvidenceMissing:
                    continue
        return replace(config, **changes)

    # ---- kubelet, runtime, kubeadm

    @cached_property
    def kubelet_unit(self) -> Unit:
        return read_unit("kubelet.service", self.capture.entries)

    @cached_property
    def kubelet(self) -> Kubelet:
        flags = kubelet_flags(self.kubelet_unit, self.capture.entries)
        path = next((f.value for f in reversed(flags) if f.name == "config"), "/var/lib/kubelet/config.yaml")
        entry = self.capture.entry(path)
        document: Document | None = None
        problem = entry.error
        if entry.data is not None:
            parsed = _first_document(entry)
            document, problem = (None, str(parsed)) if isinstance(parsed, Unparsable) else (parsed, "")
        numbers, evidence = self._kubelet_version()
        found = tuple(self._kubelet_drop_ins(next((f.value for f in reversed(flags) if f.name == "config-dir"), "")))
        drop_ins = tuple(one for one in found if isinstance(one, Document))
        refused = tuple(one for one in found if isinstance(one, Evidence))
        return Kubelet(path, entry, document, problem, flags, numbers, evidence, self.hostname, drop_ins, refused)

    def _kubelet_drop_ins(self, directory: str) -> Iterator[Document | Evidence]:
        """The kubelet reads *.conf there, in the order of their names (--config-dir, beta since 1.30).

        Each is decoded by itself, so each needs a kind; apiVersion it does without.
        """
        for entry in self.capture.below(directory) if directory else ():
            if not entry.path.endswith(".conf") or entry.data is None:
                continue
            document = _first_document(entry)
            if isinstance(document, Unparsable):
                if not document.refused:
                    yield Evidence(entry.path, document.line, document.problem)
            elif not isinstance(document.data, dict) or not document.get("kind"):
                yield Evidence(entry.path, None, "Object 'Kind' is missing")
            else:
                yield document

    def _kubelet_version(self) -> tuple[tuple[int, int, int] | None, Evidence | None]:
        told = self.versions.get("kubelet")
        if told:
            return version(str(told)), Evidence("/drtool/versions.json", None, f"kubelet {told}")
        for line in reversed(self.journal("kubelet")):
            match = re.search(r'"?Kubelet version"?\S* kubeletVersion="(v[\d.]+)', line.text)
            if match:
                return version(match[1]), line.evidence
        return None, None

    @cached_property
    def versions(self) -> Mapping[str, Any]:
        found = live.read_json(self.capture.entry("/drtool/versions.json"))
        return found if isinstance(found, dict) else {}

    @cached_property
    def cluster_configuration(self) -> Document:
        """kubeadm's ClusterConfiguration from the places where people and bundles keep it."""
        found = self.kubeadm_documents.get("ClusterConfiguration")
        if found is None:
            raise EvidenceMissing("no kubeadm ClusterConfiguration of this cluster in this tree")
        return found

    def _superseded(self, configuration: Document) -> bool:
        """A ClusterConfiguration given to kubeadm long ago: no upgrade touches it, and the endpoint has moved since."""
        told = version(str(configuration.get("kubernetesVersion", default="")))
        endpoint = split_url(str(configuration.get("controlPlaneEndpoint", default="")))[0].lower()
        apiserver, admin = self.components.get("kube-apiserver"), self.kubeconfigs.get("/etc/kubernetes/admin.conf")
        if configuration.path == KUBEADM_CONFIGS[0] or not (told and endpoint and apiserver and admin and admin.host):
            return False
        older = apiserver.version is not None and told[:2] < apiserver.version[:2]
        here = admin.host.lower() in (endpoint, apiserver.value("advertise-address"))
        return older and not here and not set(self.resolve(admin.host)) & set(self.resolve(endpoint))

    @cached_property
    def kubeadm_documents(self) -> Mapping[str, Document]:
        """What kubeadm was given, or its ConfigMap as somebody saved it: the first document of each kind."""
        found: dict[str, Document] = {}
        for path in KUBEADM_CONFIGS:
            entry = self.capture.entry(path)
            if entry.data is None:
                continue
            try:
                for document in parse(path, entry.data):
                    for one in (document, *_held(path, document)):
                        if not self._superseded(one):
                            found.setdefault(str(one.get("kind")), one)
            except Unparsable:
                continue
        return found

    # ---- host

    @cached_property
    def addresses(self) -> Addresses:
        """EvidenceMissing where the kernel's files are not in the tree (a mounted disk)."""
        trie = self.entry("/proc/net/fib_trie")
        found = read_addresses(trie, self.entry("/proc/net/if_inet6"))
        if not found.own and not trie.data:  # one with loopback alone tells that the host has lost all others
            raise EvidenceMissing("the host's addresses are unknown: no /proc/net/fib_trie or if_inet6 with any")
        return found

    @cached_property
    def hosts(self) -> Mapping[str, tuple[tuple[Address, Evidence], ...]]:
        """/etc/hosts: name (lower case) to its addresses."""
        found: dict[str, tuple[tuple[Address, Evidence], ...]] = {}
        lines = tuple((self.entry("/etc/hosts").data or b"").decode("utf-8", "replace").splitlines())
        for number, line in enumerate(lines, 1):
            fields = line.partition("#")[0].split()
            address = address_of(fields[0]) if fields else None
            if address is None:
                continue
            for name in fields[1:]:
                evidence = Evidence("/etc/hosts", number, line.strip()[:300])
                found[name.lower()] = (*found.get(name.lower(), ()), (address, evidence))
        return MappingProxyType(found)

    def resolve(self, host: str) -> tuple[Address, ...]:
        """A host part as addresses: itself, or what /etc/hosts says; none where only DNS could tell."""
        address = address_of(host)
        if address is not None:
            return (address,)
        return tuple(found for found, _ in self.hosts.get(host.lower().rstrip("."), ()))

    def sysctl(self, name: str) -> tuple[str, Evidence]:
        path = "/proc/sys/" + name.replace(".", "/")
        value = self.text(path).strip()
        return value, Evidence(path, 1, value)

    # ---- what only programs tell

    def _told(self, path: str) -> Any:
        """NotApplicable on a copied tree and with --no-probe, EvidenceMissing where the node did not answer."""
        record = live.read_json(self.capture.entry("/drtool/capture.json"))
        missing = record.get("missing") if isinstance(record, dict) else None
        return live.told(self.capture.entry(path), live.text(missing, path) if isinstance(missing, dict) else "")

    @cached_property
    def units(self) -> tuple[live.UnitState, ...]:
        return live.read_units(self._told(live.UNITS))

    @cached_property
    def containers(self) -> tuple[live.ContainerState, ...]:
        """Every container that the runtime knows, running or not, oldest first."""
        found = live.read_containers(self._told(live.CONTAINERS))
        return tuple(sorted(found, key=lambda container: (container.created or EPOCH, container.id)))

    @cached_property
    def images(self) -> tuple[live.Image, ...]:
        return live.read_images(self._told(live.IMAGES))

    @cached_property
    def filesystems(self) -> tuple[live.Filesystem, ...]:
        """EvidenceMissing on a copied tree: how full a disk is belongs to every node."""
        try:
            return live.read_filesystems(self._told(live.FILESYSTEMS))
        except NotApplicable as gap:
            raise EvidenceMissing(f"how full the disks are: {gap}") from gap

    @cached_property
    def probes(self) -> tuple[live.ProbeAnswer, ...]:
        return live.read_probes(self._told(live.PROBES))

    @cached_property
    def listeners(self) -> tuple[live.Listener, ...]:
        """Who listens on which TCP port; on a copied tree the kernel's table, which names no program."""
        if self.entry(live.LISTENERS).data is not None:
            return live.read_listeners(self._told(live.LISTENERS))
        return listening(self.entry("/proc/net/tcp"), self.entry("/proc/net/tcp6"))

    @cached_property
    def etcd_state(self) -> live.EtcdState:
        """What the running etcd says of members, alarms, status and hashes."""
        return live.read_etcd(self._told(live.ETCD))

    # ---- logs

    def journal(self, unit: str) -> tuple[logs.Line, ...]:
        """The unit's journal as the bundle keeps it (`kubelet`, `containerd`, `crio`, `kernel`), oldest first."""
        return self._journals.get(unit, ())

    @cached_property
    def _journals(self) -> Mapping[str, tuple[logs.Line, ...]]:
        entries = self.capture.matching(r"/drtool/journal/[^/]+\.log")
        return {entry.path.rpartition("/")[2].removesuffix(".log"): logs.read_journal(entry) for entry in entries}

    @cached_property
    def container_logs(self) -> Mapping[str, tuple[logs.Line, ...]]:
        """Lines of each kube-system container's logs by container name, over all its restarts, oldest first."""
        return logs.read_containers(self.capture.matching(r"/var/log/pods/kube-system_[^/]+/[^/]+/\d+\.log"))

    def log(self, container: str) -> tuple[logs.Line, ...]:
        """EvidenceMissing where the tree holds no log of it."""
        if container not in self.container_logs:
            raise EvidenceMissing(f"no log of {container} under /var/log/pods")
        return self.container_logs[container]


def _held(path: str, document: Document) -> Iterator[Document]:
    """The documents in a ConfigMap kubeadm-config; their lines are not the file's."""
    data = document.get("data") if document.get("kind") == "ConfigMap" else None
    for text in data.values() if isinstance(data, dict) else ():
        if isinstance(text, str):
            yield from (replace(one, lines={}) for one in parse(path, text.encode())[:1])


def _first_document(entry: Entry) -> Document | Unparsable:
    try:
        if entry.data is None:
            return Unparsable(entry.path, entry.error or f"a {entry.kind}")
        documents = parse(entry.path, entry.data)
        return documents[0] if documents else Unparsable(entry.path, "no document in it")
    except Unparsable as problem:
        return problem


PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def _program(container: str, arguments: Iterable[str]) -> str:
    """Which control-plane program a container runs: by its command first, since people rename containers."""
    for argument in arguments:
        name = argument.split()[0].rpartition("/")[2] if argument.split() else ""
        if name in PROGRAMS:
            return name
    return container if container in PROGRAMS else ""
