"""Names read out of Go source text: flag registrations, feature-gate tables, constants, struct fields.

Nothing is compiled. What is understood is the narrow way in which Kubernetes writes these things; what is not
understood is returned as it stands, so that the caller can see and refuse it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\\n])*"|`[^`]*`|'(?:\\.|[^'\\\n])+')""", re.DOTALL
)
_REGISTER = re.compile(
    r"(?:\.(?P<variable>(?:[A-Z]\w*)?VarP?)|\bfs\.(?P<value>(?:Bool|Duration|Int|Int64|String|StringSlice|Uint)P?))\("
)
_REGISTER_GLOBAL = re.compile(r"\b(?:globalflag\.Register|pflagRegister|register(?:Deprecated)?)\(")
_DEPRECATE = re.compile(r"\.(?:MarkDeprecated\(|Lookup\((?=[^()]+\)\.Deprecated\s*=))")
_CONSTANT = re.compile(r"^\s*(?:const\s+|var\s+)?(\w+)(?:\s+[\w.]+)?\s*=\s*(\"[^\"]*\")\s*$", re.MULTILINE)
_IMPORT = re.compile(r"^\s*(?:import\s+)?(?:([\w.]+)\s+)?\"([\w.\-/]+)\"\s*$", re.MULTILINE)
_GATE_TABLE = re.compile(r"map\[(?:featuregate\.)?Feature\](?:featuregate\.)?(FeatureSpec|VersionedSpecs)\s*\{")
_STRUCT = re.compile(r"^type\s+(\w+)\s+struct\s*\{", re.MULTILINE)
_STRING_TYPE = re.compile(r"^type\s+(\w+)\s+string\b", re.MULTILINE)
_FIELD = re.compile(r"^\s*(?:(\w+)\s+)?([\w.*\[\]]+)\s*`json:\"([^\"]*)\"", re.MULTILINE)


def without_comments(source: str) -> str:
    """The source with each comment put out; strings stay, line ends stay."""

    def keep(match: re.Match[str]) -> str:
        return match["string"] or "\n" * match["comment"].count("\n")

    return _TOKEN.sub(keep, source)


def arguments(source: str, start: int) -> list[str]:
    """The top-level arguments of the call or literal whose opening bracket ends just before `start`."""
    parts, depth, begin, at = [], 0, start, start
    while at < len(source):
        token = _TOKEN.match(source, at)
        if token:
            at = token.end()
            continue
        char = source[at]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            if depth == 0:
                parts.append(source[begin:at])
                return [part.strip() for part in parts if part.strip()]
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(source[begin:at])
            begin = at + 1
        at += 1
    return []


def registrations(source: str) -> Iterator[tuple[str, str]]:
    """Name expression (mostly a string literal with its quotes) and usage of every flag put on a flag set."""
    for match in _REGISTER.finditer(source):
        found = arguments(source, match.end())
        position = 1 if match["variable"] else 0
        if len(found) >= position + 2:
            yield found[position], found[-1]
    for match in _REGISTER_GLOBAL.finditer(source):
        literal = [part for part in arguments(source, match.end()) if part.startswith(('"', "cadvisor"))]
        if literal:
            yield literal[0], ""


def deprecations(source: str) -> Iterator[tuple[str, str]]:
    """Name expression of every flag that is marked deprecated, and the expression of what is said about it."""
    for match in _DEPRECATE.finditer(source):
        name, *text = arguments(source, match.end())
        yield name, text[0] if text else ""


def constants(source: str) -> dict[str, str]:
    return {match[1]: match[2].strip('"') for match in _CONSTANT.finditer(source)}


def imports(source: str) -> dict[str, str]:
    """Alias -> import path; without an alias, the last part of the path."""
    return {match[1] or match[2].rpartition("/")[2]: match[2] for match in _IMPORT.finditer(source)}


@dataclass(frozen=True, slots=True)
class GateSpec:
    since: int
    stage: str
    default: bool
    locked: bool


def gates(source: str) -> Iterator[tuple[str, tuple[GateSpec, ...]]]:
    """Key expression and specifications, oldest first, of every entry of every feature-gate table.

    `since` is the minor from which a specification counts, 0 where the table is not versioned.
    """
    for table in _GATE_TABLE.finditer(source):
        for entry in arguments(source, table.end()):
            parts = re.fullmatch(r"([\w.]+):\s*(?:featuregate\.)?\w*(\{.*)", entry, re.DOTALL)
            if parts:
                texts = arguments(parts[2], 1) if table[1] == "VersionedSpecs" else [parts[2]]
                yield parts[1], tuple(sorted(map(_spec, texts), key=lambda spec: spec.since))


def _spec(text: str) -> GateSpec:
    since = re.search(r"MustParse\(\"1\.(\d+)\"\)|MajorMinor\(1,\s*(\d+)\)", text)
    stage = re.search(r"PreRelease:\s*(?:featuregate\.)?(\w+)", text)
    return GateSpec(
        since=int(since[1] or since[2]) if since else 0,
        stage=(stage[1] if stage else "GA").upper(),
        default=bool(re.search(r"\bDefault:\s*true", text)),
        locked=bool(re.search(r"LockToDefault:\s*true", text)),
    )


def structs(source: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Struct name and its JSON fields -> Go type; an inlined struct has the field name '' + its type."""
    for match in _STRUCT.finditer(source):
        body = source[match.end() : source.index("\n}", match.end())]
        fields: dict[str, str] = {}
        for _, kind, tag in _FIELD.findall(body):
            name, _, options = tag.partition(",")
            if name and name != "-":
                fields[name] = kind
            elif "inline" in options or not tag:
                fields[":" + kind] = kind
        yield match[1], fields


def string_types(source: str) -> frozenset[str]:
    """Names of types that are strings underneath."""
    return frozenset(_STRING_TYPE.findall(source))
