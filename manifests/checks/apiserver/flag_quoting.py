"""An argument of a static Pod must be one flag, without quotes or spaces of its own.

No shell reads a manifest: `'--v=2'` inside double quotes keeps its single quotes, `--a=b --c=d` in one list item is one
argument, and a leading space hides the dashes. The program then refuses it (`does not take any arguments`, `invalid
argument`). Quotes that YAML itself takes away are fine, and so are values that may hold spaces or quotes (JSON, lists
of subjects).

Fix: one list item for each flag; quotes around the whole item or none.
"""

import re
from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.installed import layer_of
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")
QUOTES = "'\"`\u201c\u201d\u2018\u2019"


def find(node: Node) -> Iterator[Finding]:
    for program, component in node.components.items():
        for argument in component.container.arguments:
            problem = fault(argument.text)
            if problem:
                title = f"An argument of {program} {problem}: {argument.text.strip()[:80]!r}"
                yield Finding(title, (argument.evidence,), layer=layer_of(program))


def fault(text: str) -> str:
    """What is wrong with one argument, "" for nothing."""
    if text.strip() != text and text.strip().startswith("-"):
        return "has a space or a line end around it"
    if "\n" in text.strip() and text.startswith("-"):
        return "spans several lines"
    if re.match(rf"[{QUOTES}]+--?\w", text):
        return "starts with a quote"
    name, equals, value = text.partition("=")
    if not text.startswith("-"):
        return ""
    if re.search(rf"[\s{QUOTES}]", name):
        return (
            "has a space or a quote in the flag's name" if equals else "holds a flag and its value with a space between"
        )
    if re.search(r"\s--?[a-z][\w-]*(=|$)", value):
        return "holds more than one flag"
    if len(value) > 1 and value[0] in QUOTES and value[-1] in QUOTES:
        return "has its value in quotes"
    return "has a quote at the end" if value and value[-1] in QUOTES and value.count(value[-1]) == 1 else ""
