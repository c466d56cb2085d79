"""The kubelet: its configuration file, and the flags that systemd gives it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from drtool.core.report import Evidence
from drtool.host.root import Entry
from manifests.document import Document, line_text
from manifests.pod import Flag

UNIT_DIRECTORIES = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")


@dataclass(frozen=True, slots=True)
class Setting:
    """A directive of a unit file, or a variable of an environment file, with its line."""

    key: str
    value: str
    evidence: Evidence


@dataclass(frozen=True)
class Unit:
    """A systemd service as its file and drop-ins make it (systemd.unit(5): the first directory's file wins)."""

    name: str
    files: tuple[Entry, ...]
    settings: tuple[Setting, ...]

    def all(self, key: str) -> tuple[Setting, ...]:
        """Values of a directive; an empty assignment clears the ones before it."""
        found: list[Setting] = []
        for setting in self.settings:
            if setting.key == key:
                found = [*found, setting] if setting.value else []
        return tuple(found)


@dataclass(frozen=True)
class Kubelet:
    """`config` is None where its file is absent or cannot be parsed; `config_entry` then tells which.

    `drop_ins` are the documents of --config-dir in the order of their names; each wins over what is before it.
    `refused_drop_ins` are files there that stop the kubelet, each with what it says of them.
    """

    config_path: str
    config_entry: Entry
    config: Document | None
    config_problem: str
    flags: tuple[Flag, ...]
    version: tuple[int, int, int] | None
    version_evidence: Evidence | None
    hostname: str
    drop_ins: tuple[Document, ...] = ()
    refused_drop_ins: tuple[Evidence, ...] = ()

    @cached_property
    def _last(self) -> dict[str, Flag]:
        return {flag.name: flag for flag in self.flags}

    def flag(self, name: str) -> Flag | None:
        return self._last.get(name)

    def setting(self, flag: str, *path: str | int, default: Any = None) -> tuple[Any, Evidence]:
        """A value as the kubelet sees it: the flag wins over drop-ins, and they over the configuration file."""
        given = self._last.get(flag)
        if given is not None:
            return given.value, given.evidence
        for document in (*reversed(self.drop_ins), *([self.config] if self.config is not None else [])):
            value = document.get(*path)
            if value is not None:
                return value, document.evidence(*path)
        return default, Evidence(self.config_path)

    @property
    def static_pod_path(self) -> str:
        value, _ = self.setting("pod-manifest-path", "staticPodPath", default="")
        return str(value).rstrip("/")

    @property
    def node_name(self) -> str:
        override = self._last.get("hostname-override")
        return (override.value if override else self.hostname).strip().lower()


def read_unit(name: str, entry: Mapping[str, Entry]) -> Unit:
    """The unit's file and drop-ins, from what was captured."""
    main = next((entry[f"{d}/{name}"] for d in UNIT_DIRECTORIES if f"{d}/{name}" in entry), None)
    drop_ins: dict[str, Entry] = {}
    for directory in reversed(UNIT_DIRECTORIES):
        prefix = f"{directory}/{name}.d/"
        drop_ins.update({p.removeprefix(prefix): e for p, e in entry.items() if p.startswith(prefix)})
    files = tuple(([main] if main else []) + [drop_ins[key] for key in sorted(drop_ins)])
    return Unit(name, files, tuple(setting for file in files for setting in _settings(file)))


def _settings(file: Entry) -> Iterable[Setting]:
    """systemd.syntax(7): a line goes on after a backslash; comment lines are dropped, there too."""
    held, first = "", 0
    for number, line in enumerate([*(file.data or b"").decode("utf-8", "replace").split("\n"), ""], 1):
        if line.lstrip()[:1] in {"#", ";"}:
            continue
        first = first if held else number
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        content = held + (line[:-1] + " " if goes_on else line)
        held = content if goes_on else ""
        content = content.strip()
        if not goes_on and "=" in content and content[0] != "[":
            key, _, value = content.partition("=")
            yield Setting(key.strip(), value.strip(), Evidence(file.path, first, content[:300]))


_QUOTED = r"""'[^']*(?:'|\Z)|"(?:[^"\\]|\\.)*\\?(?:"|\Z)"""
_ASSIGNMENT = re.compile(
    rf"""[#;][^\r\n]*|(?P<key>\S[^=\r\n]*)=(?P<quoted>(?:[ \t]*(?:{_QUOTED}))*)[ \t]*(?P<bare>(?:[^\\\r\n]|\\.)*\\?)"""
    r"|[^\s][^\r\n]*",
    re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_environment(file: Entry) -> tuple[Setting, ...]:
    """systemd.exec(5) EnvironmentFile, as parse_env_file() of systemd 254 reads it; the line is that of the name.

    Quotes count only before the first bare character; a value goes on after a backslash or in an open quote. A comment
    ends with its line (before 254 a backslash made it go on), and what is no name (`export A`) is ignored.
    """
    found = []
    text = (file.data or b"").decode("utf-8", "replace")
    for match in _ASSIGNMENT.finditer(text):
        name = (match["key"] or "").strip()
        if _NAME.fullmatch(name):
            number = text.count("\n", 0, match.start()) + 1
            shown = re.sub(r"\\?[\r\n]+[ \t]*", " ", match[0])
            value = _unquoted(match["quoted"]) + _unescaped(match["bare"])
            found.append(Setting(name, value, Evidence(file.path, number, line_text((shown,), 1))))
    return tuple(found)


def _unquoted(text: str) -> str:
    """Quoted parts one after another; in double quotes a backslash stands before a sign of the shell or a line end."""
    parts = (match[0] for match in re.finditer(_QUOTED, text, re.DOTALL))
    return "".join(
        part.strip("'") if part[0] == "'" else re.sub(r'\\(?:(["\\`$])|\n)', r"\1", part[1:].removesuffix('"'))
        for part in parts
    )


def _unescaped(text: str) -> str:
    """A bare value: each backslash takes the next character as it is, and a line end away."""
    kept = re.sub(r"(?<!\\)((?:\\\\)*)[ \t]+\Z", r"\1", text)
    return re.sub(r"\\(.?)", lambda match: match[1].strip("\r\n"), kept, flags=re.DOTALL)


def kubelet_flags(unit: Unit, entry: Mapping[str, Entry]) -> tuple[Flag, ...]:
    """The flags of ExecStart after its variables are filled in, each with the line that gives it."""
    variables: dict[str, Setting] = {}
    for setting in unit.all("Environment"):
        for word in _words(setting.value):
            name, _, value = word.partition("=")
            variables[name] = Setting(name, value, setting.evidence)
    files = [setting.value.lstrip("-") for setting in unit.all("EnvironmentFile")]
    if not unit.files:  # a tree without the unit: these are the places that every package uses
        files = ["/var/lib/kubelet/kubeadm-flags.env", "/etc/default/kubelet", "/etc/sysconfig/kubelet"]
    for path in files:
        if path in entry:
            variables.update({setting.key: setting for setting in read_environment(entry[path])})
    commands = unit.all("ExecStart")
    if commands:
        words = [(word, commands[-1].evidence) for word in _words(commands[-1].value)[1:]]
        return tuple(_flags([pair for word in words for pair in _expanded(word, variables)]))
    given = [variable for name, variable in variables.items() if name.startswith("KUBELET")]
    return tuple(flag for variable in given for flag in _flags(_split(variable)))


Word = tuple[str, Evidence]


def _expanded(word: Word, variables: Mapping[str, Setting]) -> list[Word]:
    """systemd.exec(5): a variable that stands alone is split into words, one inside of a word is not."""
    text, evidence = word
    alone = re.fullmatch(r"\$\{?(\w+)\}?", text)
    if alone:
        return _split(variables[alone[1]]) if alone[1] in variables else []

    def value(match: re.Match[str]) -> str:
        return variables[match[1]].value if match[1] in variables else ""

    return [(re.sub(r"\$\{(\w+)\}", value, text), evidence)]


def _split(variable: Setting) -> list[Word]:
    return [(word, variable.evidence) for word in _words(variable.value)]


def _flags(words: list[Word]) -> Iterable[Flag]:
    """`--name=value` and `--name value`; the line of a flag is that of its name."""
    at = 0
    while at < len(words):
        text, evidence = words[at]
        at += 1
        if not text.startswith("-"):
            continue
        name, equals, value = text.lstrip("-").partition("=")
        if not equals and at < len(words) and not words[at][0].startswith("-"):
            value = words[at][0]
            at += 1
        yield Flag(name.replace("_", "-"), value if equals or value else "true", evidence)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, posix=True)
    except ValueError:
        return text.split()
