"""Rebuilds fields.txt, by which Kubernetes objects are decoded: `python -m snapshots.registry.rebuild > FILE`.

Needs Go, whose module cache it fills with the releases named below, newest first. Types and numbers come from
the published generated.proto files, JSON names, omitempty, inlining and pointers from the Go structs that the API
server marshals. The newest minor speaks first; an older one adds the messages and the fields that were removed since,
so that objects of old clusters decode too.

One line a message: `MESSAGE<TAB>FIELD;FIELD;...`, FIELD being `NAME NUMBER CODE [TYPE]`, in the order of JSON. CODE:

    s i b y d m   string, integer, boolean, bytes, double, message
    n             message whose fields stand in the outer object (`json:",inline"`)
    *             after it: repeated
    %             after it: the value of a map with string keys
    !             after it: shown even when empty
    ?             after it: a pointer: shown when it is on the wire, whatever it holds
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

RELEASES = (
    *("0.37.2", "0.36.3", "0.35.4", "0.34.4", "0.33.13", "0.32.13", "0.31.14"),
    *("0.30.14", "0.29.15", "0.28.15", "0.27.16", "0.26.15", "0.25.16", "0.24.17"),
)
MODULES = ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")
LEFT_OUT = ("testapigroup", "/pkg/runtime/schema")

MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (optional|repeated|required|map<string, ([\w.]+)>) ?([\w.]*) (\w+) = (\d+);", re.MULTILINE)
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
SLICE = re.compile(r"^type (\w+) \[\]\w+", re.MULTILINE)
MEMBER = re.compile(
    r'^\s*(?:\w+\s+)?(?P<type>[\w.*\[\]]+)\s+`(?:[^`\n]*json:"(?P<json>[^"]*)")?[^`\n]*protobuf:"\w+,(?P<number>\d+)',
    re.MULTILINE,
)
GROUP = re.compile(r'GroupName\s*=\s*"([^"]*)"')
CODES = {"string": "s", "bool": "b", "bytes": "y", "double": "d"} | dict.fromkeys(("int32", "int64", "uint32"), "i")


class Member(NamedTuple):
    """A field as its Go struct has it."""

    name: str
    order: int
    omitted: bool
    inline: bool
    pointer: bool
    omitzero: bool


def main() -> None:
    sys.stdout.write(made())


def made() -> str:
    """The table as text; raises CalledProcessError where Go cannot have a module."""
    table: dict[str, dict[int, str]] = {}
    for release in RELEASES:
        for package, folder in _packages(release):
            _add(table, package, folder)
    return "".join(f"{message}\t{';'.join(fields.values())}\n" for message, fields in sorted(table.items()))


def _packages(release: str) -> Iterator[tuple[str, Path]]:
    """(the package's name in protobuf, its folder)."""
    for module in MODULES:
        query = ["go", "mod", "download", "-json", f"k8s.io/{module}@v{release}"]
        found = json.loads(subprocess.run(query, check=True, capture_output=True, cwd="/").stdout)
        sys.stderr.write(f"{found['Path']} {found['Version']}\n")
        for proto in sorted(Path(found["Dir"]).rglob("generated.proto")):
            name = "k8s.io." + module + str(proto.parent).removeprefix(found["Dir"]).replace("/", ".")
            if not any(part in str(proto) for part in LEFT_OUT):
                yield name, proto.parent


def _add(table: dict[str, dict[int, str]], package: str, folder: Path) -> None:
    members, slices = _go(folder)
    for message, body in MESSAGE.findall((folder / "generated.proto").read_text()):
        name = f"{_short(package, folder)}.{message}"
        removed_since = name in table
        fields = table.setdefault(name, {})
        lines: list[tuple[int, int, str]] = []
        for label, value, kind, proto_name, number in FIELD.findall(body):
            member = members.get((message, int(number)), Member("", int(number), True, False, False, False))
            target = value or kind
            code = CODES.get(target) or ("n" if member.inline else "m") + " " + _type(target, package, folder)
            shown = "" if member.inline else member.name or proto_name
            lines.append((member.order, int(number), f"{shown} {number} {_code(member, code, label)}"))
        if message in slices:
            lines = [(0, 1, lines[0][2].replace("items 1 ", "[] 1 "))]
        for _, number, line in sorted(lines):
            # what newer servers do not know they do not show when empty
            fields.setdefault(number, line.replace("!", "") if removed_since else line)


def _code(member: Member, code: str, label: str) -> str:
    many = "*" if label == "repeated" else "%" if label.startswith("map") else ""
    struct = code[0] in "mn" and not member.pointer and not many
    # "omitempty" leaves out an empty string, number, slice, map and a nil pointer, but never a struct
    shown = not member.omitted or (struct and not member.omitzero)
    return code[0] + many + ("?" if member.pointer and not many else "") + ("!" if shown else "") + code[1:]


def _go(folder: Path) -> tuple[dict[tuple[str, int], Member], set[str]]:
    """The fields of the package's structs by message and number, and its types that are slices."""
    members: dict[tuple[str, int], Member] = {}
    slices: set[str] = set()
    for source in sorted(folder.glob("*.go")):
        if source.name.endswith("_test.go") or source.name.startswith("zz_"):
            continue
        text = re.sub(r"^\s*//.*\n", "", source.read_text(), flags=re.MULTILINE)
        if source.name != "generated.pb.go":
            slices.update(SLICE.findall(text))
        for struct, body in STRUCT.findall(text):
            for order, found in enumerate(MEMBER.finditer(body)):
                members[struct, int(found["number"])] = _member(found, order)
    return members, slices


def _member(found: re.Match[str], order: int) -> Member:
    name, *options = (found["json"] or "").split(",")
    return Member(
        name=name,
        order=order,
        omitted=bool({"omitempty", "omitzero"} & set(options)),
        inline="inline" in options or not (name or found["json"] is None),
        pointer=found["type"].startswith("*"),
        omitzero="omitzero" in options,
    )


def _type(target: str, package: str, folder: Path) -> str:
    if "." not in target:
        return f"{_short(package, folder)}.{target}"
    other, _, message = target.lstrip(".").rpartition(".")
    version, module = other.split(".")[-1], other.split(".")[2]
    if module != "api":
        return f"{_short(other, Path())}.{message}"
    root = next(parent for parent in folder.parents if (parent / "core").is_dir())
    return f"{_short(other, root / other.split('.')[3] / version)}.{message}"


def _short(package: str, folder: Path) -> str:
    """An API group's version as apiVersion has it (`apps/v1`); `meta/v1`, `runtime`, `resource`, `intstr` else."""
    parts = package.split(".")
    if parts[2] == "apimachinery":
        return "/".join(part for part in parts[3:] if part not in {"pkg", "apis", "api", "util"})
    register = folder / "register.go"
    group = GROUP.search(register.read_text()) if register.is_file() else None
    if group is None:
        raise LookupError(f"no GroupName for {package} in {folder}")
    return f"{group[1]}/{parts[-1]}".lstrip("/")


if __name__ == "__main__":
    main()
