"""The kubelet must be able to read each control-plane manifest as a Pod.

It skips a file that it cannot read, says so in its own log only, and the running container is not replaced once it
stops. Tabs, a wrong indent, an empty or truncated file, a flag written as a mapping (`--a: b`), a number or a `true`
without quotes where the API has a string (env, labels) are the usual ones; from 1.34 on, too, anything that has to be
asked of the API, as an imagePullSecret. Of a key that is given twice the kubelet takes the last one; that is a warning.

Fix: correct the file elsewhere and move it into place; a copy may be under /etc/kubernetes/tmp.
"""

from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.document import Unparsable
from manifests.installed import kubelet_release
from manifests.layout import Layout
from manifests.node import PROGRAMS, Node
from manifests.refusal import reference

SEVERITY = Severity.CRITICAL
NO_REFERENCES = (1, 34)  # pkg/kubelet/config/common.go, HasAPIObjectReference
EXPLAINS = ("manifest-missing", "container-exited", "component-not-ready", "etcd-servers-vs-etcd")


def find(node: Node) -> Iterator[Finding]:
    for entry, problem in node.unparsable_manifests:
        program = _meant(entry.path, entry.data or b"")
        if program and program not in node.components:
            yield _unparsable(program, entry.data or b"", problem)
    for pod, problem_at in node.refused_pods:
        yield Finding(f"The kubelet refuses {pod.path}: {problem_at[0]}", (problem_at[1],))
    for document in (pod.document for pod in node.pods):
        for key, line in document.duplicates:
            yield Finding(
                f'"{key}" is set twice in {document.path}; the last one counts',
                (Evidence(document.path, line, document.text[line - 1].strip()),),
                severity=Severity.WARNING,
            )
    for document in node.other_manifests:
        if document.path.rpartition("/")[2].rpartition(".")[0] in set(_expected(node)) - node.components.keys():
            kind = f"its kind is {document.get('kind')}" if document.get("kind") else "it has no kind (truncated?)"
            yield Finding(f"{document.path} is no Pod: {kind}", (document.evidence("kind"),))
    yield from _references(node)


def _references(node: Node) -> Iterator[Finding]:
    found = [(pod, held) for pod in node.pods if (held := reference(pod.document)) is not None]
    if not found:
        return
    release = kubelet_release(node)
    for pod, (what, place) in found if release.numbers >= NO_REFERENCES else ():
        who, severity = f"The kubelet {release}", SEVERITY
        if not release.certain:
            who, severity = "A kubelet from 1.34 on", Severity.WARNING
        title = f"{who} refuses {pod.path}: it refers to {what}, and no static Pod may"
        yield Finding(title, (place, release.evidence), severity=severity)


def _expected(node: Node) -> tuple[str, ...]:
    return node.layout.programs if node.layout is not Layout.EMPTY else PROGRAMS


def _unparsable(program: str, data: bytes, problem: Unparsable) -> Finding:
    text = ""
    if problem.line:
        lines = data.decode("utf-8", "replace").splitlines()
        text = lines[problem.line - 1].strip()[:200] if problem.line <= len(lines) else ""
    if problem.refused:
        title = f"drtool does not judge the manifest of {program}: {problem.problem}"
        return Finding(title, (Evidence(problem.path, problem.line, text),), severity=Severity.WARNING)
    return Finding(
        f"The kubelet cannot read the manifest of {program}: {problem.problem}",
        (Evidence(problem.path, problem.line, text),),
    )


def _meant(path: str, data: bytes) -> str:
    """Which program a file that cannot be parsed was meant to be: by its name, or by its command."""
    name = path.rpartition("/")[2]
    for program in PROGRAMS:
        if name in {f"{program}.yaml", f"{program}.yml", f"{program}.json"}:
            return program
    return next((p for p in PROGRAMS if f"- {p}\n".encode() in data and name.startswith(p)), "")
