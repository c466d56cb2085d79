"""Static Pods: manifests, containers, flags, mounts, probes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from msgspec import Struct

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence
from manifests.document import Document
from manifests.releases import tables

IMAGE = re.compile(r"^(?P<name>.+?)(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>[\w+.-]+:[0-9a-fA-F]+))?$")


class Flag(Struct, frozen=True):
    """One flag as given: `name` without dashes, with the hyphens that Kubernetes makes of underscores."""

    name: str
    value: str
    evidence: Evidence

    def __str__(self) -> str:
        return f"--{self.name}={self.value}"


class Argument(Struct, frozen=True):
    """One element of a container's command or args, before it is read as a flag."""

    text: str
    evidence: Evidence


class Mount(Struct, frozen=True):
    """A volume as a container sees it. `host_path` is None for volumes that are not hostPath."""

    volume: str
    path: str
    host_path: str | None
    host_type: str
    read_only: bool
    evidence: Evidence


class Probe(Struct, frozen=True):
    """`kind` is livenessProbe, readinessProbe or startupProbe; `action` httpGet, tcpSocket, exec or grpc.

    `port` is the number, after a name was looked up in the container's ports; None where it names none of them.
    """

    kind: str
    action: str
    host: str
    port: int | None
    scheme: str
    path: str
    evidence: Evidence
    settings: dict[str, Any]


@dataclass(frozen=True)
class Container:
    name: str
    image: str
    document: Document
    position: tuple[str | int, ...]

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        found = []
        for key in ("command", "args"):
            values = self.document.get(*self.position, key, default=[])
            for index, value in enumerate(values if isinstance(values, list) else []):
                found.append(Argument(str(value), self.document.evidence(*self.position, key, index)))
        return tuple(found)

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """In the order given. `--name value` in two arguments is understood as the flag library does."""
        found: list[Flag] = []
        arguments = self.arguments[1:] if self.document.get(*self.position, "command") else self.arguments
        pending: Argument | None = None
        for argument in arguments:
            text = argument.text
            if text.startswith("-") and text not in {"-", "--"}:
                if pending is not None:
                    found.append(_flag(pending.text, "true", pending.evidence))
                    pending = None
                if "=" in text:
                    name, _, value = text.partition("=")
                    found.append(_flag(name, value, argument.evidence))
                else:
                    pending = argument
            elif pending is not None:
                found.append(_flag(pending.text, text, argument.evidence))
                pending = None
        if pending is not None:
            found.append(_flag(pending.text, "true", pending.evidence))
        return tuple(found)

    @cached_property
    def mounts(self) -> tuple[Mount, ...]:
        volumes = {
            str(volume.get("name")): volume
            for volume in _list(self.document.get("spec", "volumes"))
            if isinstance(volume, dict)
        }
        found = []
        for index, mount in enumerate(_list(self.document.get(*self.position, "volumeMounts"))):
            if not isinstance(mount, dict):
                continue
            host = _dict(_dict(volumes.get(str(mount.get("name")))).get("hostPath"))
            evidence = self.document.evidence(*self.position, "volumeMounts", index, "mountPath")
            path, kind = host.get("path"), str(host.get("type") or "")
            path = posixpath.normpath(str(path)) if path else None
            where = str(mount.get("mountPath", ""))
            found.append(Mount(str(mount.get("name")), where, path, kind, bool(mount.get("readOnly")), evidence))
        return tuple(found)

    @cached_property
    def probes(self) -> tuple[Probe, ...]:
        found = []
        for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
            probe = _dict(self.document.get(*self.position, kind))
            for action in ("httpGet", "tcpSocket", "exec", "grpc"):
                if action not in probe:
                    continue
                target = _dict(probe[action])
                key = "host" if "host" in target else "port" if "port" in target else None
                where = (*self.position, kind, action) + ((key,) if key else ())
                found.append(
                    Probe(
                        kind,
                        action,
                        str(target.get("host") or ""),
                        self._port(target.get("port")),
                        str(target.get("scheme") or "HTTP"),
                        str(target.get("path") or ""),
                        self.document.evidence(*where),
                        probe,
                    )
                )
        return tuple(found)

    def _port(self, port: object) -> int | None:
        if isinstance(port, int):
            return port
        if isinstance(port, str) and port.isdecimal():
            return int(port)
        for known in _list(self.document.get(*self.position, "ports")):
            if isinstance(known, dict) and known.get("name") == port and isinstance(known.get("containerPort"), int):
                return int(known["containerPort"])
        return None

    def environment(self) -> Iterator[tuple[str, str, Evidence]]:
        for index, item in enumerate(_list(self.document.get(*self.position, "env"))):
            if isinstance(item, dict) and "name" in item:
                yield (
                    str(item["name"]),
                    str(item.get("value") or ""),
                    self.document.evidence(*self.position, "env", index, "value"),
                )

    def host_path(self, path: str) -> str | None:
        """Where a path inside the container lies on the host; None where no mount covers it."""
        best: Mount | None = None
        for mount in self.mounts:
            inside = mount.path.rstrip("/")
            covers = path == inside or path.startswith(inside + "/")
            if covers and (best is None or len(inside) > len(best.path.rstrip("/"))):
                best = mount
        if best is None or best.host_path is None:
            return None
        return best.host_path.rstrip("/") + path[len(best.path.rstrip("/")) :]


@dataclass(frozen=True)
class StaticPod:
    """One manifest whose kind is Pod."""

    path: str
    document: Document

    @property
    def name(self) -> str:
        return str(self.document.get("metadata", "name", default=""))

    @property
    def namespace(self) -> str:
        return str(self.document.get("metadata", "namespace", default="default"))

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        found = []
        for index, item in enumerate(_list(self.document.get("spec", "containers"))):
            if isinstance(item, dict):
                position = ("spec", "containers", index)
                found.append(Container(str(item.get("name", "")), str(item.get("image", "")), self.document, position))
        return tuple(found)

    @cached_property
    def host_ports(self) -> tuple[tuple[tuple[str, int], Evidence], ...]:
        """(protocol, port) of the host that it asks for; in the host's network each of its ports is one."""
        own = "containerPort" if self.document.get("spec", "hostNetwork") is True else "hostPort"
        found = []
        for container in self.containers:
            for index, item in enumerate(_list(self.document.get(*container.position, "ports"))):
                port = _dict(item).get("hostPort") or _dict(item).get(own)
                if isinstance(port, int):
                    evidence = self.document.evidence(*container.position, "ports", index, own)
                    found.append(((str(item.get("protocol") or "TCP"), port), evidence))
        return tuple(found)

    def evidence(self, *path: str | int) -> Evidence:
        return self.document.evidence(*path)


@dataclass(frozen=True)
class Component:
    """A control-plane program: its static Pod and the container that runs it."""

    program: str
    pod: StaticPod
    container: Container

    @property
    def path(self) -> str:
        return self.pod.path

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """As they are meant: one that is misspelt, and stops the program, stands for the flag that it resembles."""
        given = {flag.name for flag in self.container.flags}
        return tuple(_meant(self.program, flag, self.version, given) for flag in self.container.flags)

    @cached_property
    def _last(self) -> dict[str, Flag]:
        return {flag.name: flag for flag in self.flags}

    def has(self, name: str) -> bool:
        return name in self._last

    def flag(self, name: str) -> Flag:
        """The flag that counts (the last one given); NotApplicable where it is not set."""
        try:
            return self._last[name]
        except KeyError:
            raise NotApplicable(f"{self.program} has no --{name}") from None

    def value(self, name: str, default: str = "") -> str:
        return self._last[name].value if name in self._last else default

    def all(self, name: str) -> tuple[Flag, ...]:
        return tuple(flag for flag in self.flags if flag.name == name)

    def names(self, name: str) -> tuple[str, ...]:
        """A comma-separated value, over every time the flag is given."""
        return tuple(part.strip() for flag in self.all(name) for part in flag.value.split(",") if part.strip())

    @property
    def version(self) -> tuple[int, int, int] | None:
        """From the image's tag; None for a digest, `latest`, or a tag that is no version."""
        return version(image_tag(self.container.image))

    @property
    def image_evidence(self) -> Evidence:
        return self.pod.evidence(*self.container.position, "image")


def image_tag(image: str) -> str:
    match = IMAGE.match(image)
    return (match["tag"] or "") if match else ""


def version(text: str) -> tuple[int, int, int] | None:
    """`v1.37.2`, `3.5.15-0`, `v1.36.3+k3s1`: the three numbers."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?$", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _flag(name: str, value: str, evidence: Evidence) -> Flag:
    """Quotes around a value, and flags after it, are taken off: that the program gets them is the argument's fault."""
    value = re.split(r"\s--?[a-z][\w-]*(?:=|$)", value)[0]
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return Flag(name.lstrip("-").replace("_", "-"), value[1:-1] if quoted else value, evidence)


def _meant(program: str, flag: Flag, release: tuple[int, int, int] | None, given: set[str]) -> Flag:
    verdict = tables.explain_flag(program, flag.name, release) if release else None
    if verdict is None or not verdict.nearest or verdict.nearest in given:
        return flag
    return Flag(verdict.nearest, flag.value, flag.evidence)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
