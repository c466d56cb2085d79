"""YAML and JSON as Kubernetes' own files use them, where every value knows its line.

Data from a broken node is hostile by accident: sizes and depth are capped, aliases refused (kubeadm and the kubelet
write none, and a few of them can fill any memory). Of duplicate keys the last one counts, as for Kubernetes; the lines
of the later ones are kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from drtool.core.report import Evidence

MAX_DEPTH = 60
MAX_BYTES = 1 << 20
MAX_BITS = 128  # a longer number is a text; Python refuses to print a very long one
TEXTS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp")
"""What Kubernetes takes as text: a date, too (goyaml decodes one into a string where no type asks for a time)."""
SECRET = re.compile(r"""(?i)((?:secret|token|password|[\w-]*-data)["']?\s*[:=]\s*)\S.*""")

Path = tuple[str | int, ...]


class Unparsable(Exception):
    """`problem` in words, at `line` (from 1; None for the file as a whole).

    `refused` is true where Kubernetes itself could read the file and only drtool does not (aliases, size, depth).
    """

    def __init__(self, path: str, problem: str, line: int | None = None, refused: bool = False) -> None:
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path}: {problem}")
        self.path = path
        self.problem = problem
        self.line = line
        self.refused = refused


@dataclass(frozen=True)
class Document:
    """One YAML document: `data` as plain values, `lines` from the path of a value to its line in the file.

    A mapping's entry is at the line of its key. `spans` gives for scalars the character range of the value as written.
    """

    path: str
    data: Any
    text: tuple[str, ...] = field(repr=False)
    lines: dict[Path, int] = field(repr=False)
    spans: dict[Path, tuple[int, int]] = field(repr=False)
    duplicates: tuple[tuple[str, int], ...] = ()

    def get(self, *path: str | int, default: Any = None) -> Any:
        value = self.data
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return default
        return default if value is None else value

    def evidence(self, *path: str | int) -> Evidence:
        """The line that holds this value, or the nearest enclosing one; secrets masked."""
        for length in range(len(path), 0, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return Evidence(self.path, line, line_text(self.text, line))
        return Evidence(self.path)


def line_text(lines: tuple[str, ...], number: int) -> str:
    text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    text = text.removeprefix("- ")
    return SECRET.sub(r"\1<hidden>", text)[:300]


def parse(path: str, data: bytes) -> tuple[Document, ...]:
    """All documents of a file; raises Unparsable with the line."""
    if len(data) > MAX_BYTES:
        raise Unparsable(path, f"larger than {MAX_BYTES} bytes", refused=True)
    if not data.strip():
        raise Unparsable(path, "the file is empty")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Unparsable(path, "not UTF-8 text", line) from error
    try:
        _refuse_hostile(path, text)
        nodes = list(yaml.compose_all(text, Loader=yaml.CSafeLoader))
        lines = tuple(text.splitlines())
        return tuple(_document(path, node, lines) for node in nodes if node is not None)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unparsable(path, error.problem or "not YAML", mark.line + 1 if mark else None) from error
    except (yaml.YAMLError, ValueError) as error:
        raise Unparsable(path, str(error).splitlines()[0]) from error


def _goyaml(text: str) -> Any:
    """What goyaml, and so Kubernetes, makes of a plain scalar that PyYAML takes for text: 0o644, y, 1e3."""
    if re.fullmatch(r"0o[0-7]+", text):
        return int(text, 0)
    if re.fullmatch(r"[-+]?\d{1,3}[eE]\d{1,2}", text):
        return float(text)
    return {"y": True, "Y": True, "n": False, "N": False}.get(text, text)


def _refuse_hostile(path: str, text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise Unparsable(path, f"alias *{event.anchor}, which drtool does not follow", _line(event), refused=True)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise Unparsable(path, f"nested deeper than {MAX_DEPTH}", _line(event), refused=True)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _line(event: yaml.Event) -> int | None:
    return event.start_mark.line + 1 if event.start_mark is not None else None


def _document(path: str, root: yaml.Node, text: tuple[str, ...]) -> Document:
    lines: dict[Path, int] = {}
    spans: dict[Path, tuple[int, int]] = {}
    duplicates: list[tuple[str, int]] = []
    constructor = yaml.SafeLoader("")

    def build(node: yaml.Node, here: Path) -> Any:
        lines.setdefault(here, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            mapping: dict[Any, Any] = {}
            for key_node, value_node in node.value:
                key = build_key(key_node)
                if key in mapping:
                    duplicates.append((str(key), key_node.start_mark.line + 1))
                lines[(*here, key)] = key_node.start_mark.line + 1
                mapping[key] = build(value_node, (*here, key))
            return mapping
        if isinstance(node, yaml.SequenceNode):
            return [build(child, (*here, position)) for position, child in enumerate(node.value)]
        spans[here] = (node.start_mark.index, node.end_mark.index)
        return scalar(node) if isinstance(node, yaml.ScalarNode) else None

    def build_key(node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise Unparsable(path, "a key that is no plain value", node.start_mark.line + 1)
        return scalar(node)

    def scalar(node: yaml.ScalarNode) -> Any:
        if node.tag in TEXTS or ":" in node.value:  # base 60, which only PyYAML knows
            return node.value if node.style else _goyaml(node.value)
        try:
            value = constructor.construct_object(node)
        except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            return node.value  # a tag or a number that PyYAML cannot make: what was written
        return node.value if isinstance(value, int) and value.bit_length() > MAX_BITS else value

    return Document(path, build(root, ()), text, lines, spans, tuple(duplicates))
