"""Objects as text, as `kubectl get -o yaml` and `-o json` print them: keys sorted."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import yaml

GO_FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?0[oO][0-7]+|[-+]?0b[01]+")
"""What Go's YAML reads as a number and PyYAML does not."""
SHORT_BOOLEANS = frozenset({"y", "Y", "n", "N"})
TEXT = "tag:yaml.org,2002:str"
TYPED = frozenset({"bool", "float", "int", "null", "timestamp", "merge"})
RESOLVER = yaml.resolver.Resolver()
ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Decoded objects share parts, which must not become anchors."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def _text(dumper: Any, value: str) -> Any:
    if "\n" in value:
        return dumper.represent_scalar(TEXT, value, style="|" if _literal(value) else None)
    kind = str(RESOLVER.resolve(yaml.ScalarNode, value, (True, False))).rpartition(":")[2]  # type: ignore[no-untyped-call]
    quoted = kind in TYPED or value in SHORT_BOOLEANS or GO_FLOAT.fullmatch(value)
    return dumper.represent_scalar(TEXT, value, style='"' if quoted else None)


def _literal(value: str) -> bool:
    """Whether a block scalar holds it as it is: no control characters, no space before a line's end or at its start."""
    lines = value.split("\n")
    return value[:1] not in (" ", "\n") and all(line.isprintable() and line == line.rstrip() for line in lines)


_Dumper.add_representer(str, _text)


def listed(bodies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Several objects as kubectl wraps them."""
    return {"apiVersion": "v1", "items": list(bodies), "kind": "List", "metadata": {"resourceVersion": ""}}


def as_yaml(body: dict[str, Any]) -> str:
    text: str = yaml.dump(body, Dumper=_Dumper, sort_keys=True, allow_unicode=True)
    return text


def as_json(body: dict[str, Any]) -> str:
    """Indented by four, and HTML's special characters escaped, as Go's encoder does."""
    text = json.dumps(body, indent=4, sort_keys=True, ensure_ascii=False)
    for char, escape in ESCAPES.items():
        text = text.replace(char, escape)
    return text
