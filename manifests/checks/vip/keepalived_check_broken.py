"""keepalived's health check of the API server cannot work.

A script that is not there or not executable fails for ever: the node leaves the election, or never notices that its API
server is down. The same holds for a check of a port that nothing here serves, and for a script that no instance tracks.

Fix: put the script where vrrp_script names it, mode 0755, asking https://localhost:PORT/healthz of the port that the
API server or the balancer on this node listens on; name it in track_script.
"""

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.network.balancer import binds
from manifests.network.keepalived import Block, configuration
from manifests.node import Node

SEVERITY = Severity.ERROR
ASKED = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])[:/\s](\d{2,5})\b")


def find(node: Node) -> Iterator[Finding]:
    scripts = list(configuration(node).all("vrrp_script"))
    if not scripts:
        raise NotApplicable("keepalived runs no check script here")
    tracked = {text.split()[0] for block in configuration(node).all("track_script") for text, _ in block.lines}
    for script in scripts:
        name = script.words[1] if len(script.words) > 1 else ""
        yield from _script(node, script)
        if name and name not in tracked:
            yield Finding(f"No instance tracks the script {name}", (script.evidence,), Severity.WARNING)


def _script(node: Node, script: Block) -> Iterator[Finding]:
    given = script.value("script")
    if given is None or not given[0]:
        yield Finding("A vrrp_script of keepalived names no script", (script.evidence,))
        return
    command, evidence = given
    path = command.split()[0]
    text = command
    if path.startswith("/") and not path.startswith(("/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/")):
        entry = node.entry(path)
        if entry.kind == "absent":
            if path.rpartition("/")[0] not in node.capture.listings and not path.startswith("/etc/keepalived/"):
                raise EvidenceMissing(f"{path} is not in this tree")
            yield Finding(f"keepalived's check {path} is not there", (evidence, Evidence(path)))
            return
        if entry.kind == "file" and not entry.mode & 0o111:
            said = Evidence(path, None, f"mode {entry.mode:04o}")
            yield Finding(f"keepalived's check {path} is not executable", (evidence, said))
        text = f"{command}\n{(entry.data or b'').decode('utf-8', 'replace')}"
    yield from _ports(node, text, evidence)


def _ports(node: Node, text: str, evidence: Evidence) -> Iterator[Finding]:
    assigned = dict(re.findall(r"""(?m)^\s*(?:export\s+)?(\w+)=["']?([^\s"';]+)""", text))
    expanded = re.sub(r"\$\{?(\w+)\}?", lambda variable: assigned.get(variable[1], variable[0]), text)
    asked = {int(match[1]) for match in ASKED.finditer(expanded)}
    served = _served(node)
    if asked and served and not asked & served:
        ports = ", ".join(str(port) for port in sorted(asked))
        yield Finding(
            f"keepalived's check asks port {ports}, which neither API server nor balancer serves", (evidence,)
        )


def _served(node: Node) -> set[int]:
    apiserver = node.components.get("kube-apiserver")
    port = apiserver.value("secure-port", "6443") if apiserver else ""
    own = {int(port)} if port.isdecimal() else set()
    return own | {bind.port for bind in binds(node) if bind.port is not None}
