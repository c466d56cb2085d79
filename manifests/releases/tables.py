"""What each release accepts: flags, feature gates, admission plugins, kubelet configuration fields, TLS names.

The tables lie beside this module as JSON and are read when first asked for; `rebuild.py` makes them and says where
their facts come from. A version that they do not cover gives None, never an empty set: such a check cannot tell.

Versions are (major, minor, ...) as parsed from an image tag. etcd's releases are named by their line, "3.6".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from manifests.quantity import quantity
from manifests.releases.replacements import FLAG_REPLACEMENTS, KUBEADM_GATES
from manifests.releases.spelling import nearest

HERE = Path(__file__).parent
OLDEST, NEWEST = 24, 37
ETCD_OLDEST, ETCD_NEWEST = 4, 7
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "etcd")

Version = tuple[int, ...]
Runs = list[list[Any]]


class State(StrEnum):
    """What a release makes of a name."""

    KNOWN = "known"
    DEPRECATED = "deprecated"
    REMOVED = "removed"
    NOT_YET = "not yet"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A name against one release.

    `last` is the last release that has it (REMOVED), `first` the first (NOT_YET), as "1.34"; `instead` says what
    replaces it, "" where nothing is known to; `nearest` is a known name one or two letters away (UNKNOWN).
    """

    name: str
    state: State
    last: str = ""
    first: str = ""
    instead: str = ""
    nearest: str = ""

    @property
    def accepted(self) -> bool:
        return self.state in {State.KNOWN, State.DEPRECATED}

    @property
    def why(self) -> str:
        """In words, to stand after the name: `was removed in 1.35; use ...`."""
        hint = f"; use {self.instead}" if self.instead else ""
        match self.state:
            case State.REMOVED:
                return f"was removed in {_after(self.last)}{hint}"
            case State.NOT_YET:
                return f"exists only from {self.first} on"
            case State.DEPRECATED:
                return f"is deprecated{hint}"
            case State.UNKNOWN:
                return f"is unknown; {self.nearest} is the nearest name" if self.nearest else f"is unknown{hint}"
            case _:
                return "is known"


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate in one release: `stage` is ALPHA, BETA, GA or DEPRECATED."""

    stage: str
    default: bool
    locked: bool


# ---- flags


def flags(component: str, version: Version) -> frozenset[str] | None:
    """Every flag that the program accepts, deprecated ones included; names without dashes, hyphens inside."""
    release = _release(component, version)
    return None if release is None else frozenset(_present(_flag_table(component), release))


def deprecated_flags(component: str, version: Version) -> frozenset[str] | None:
    release = _release(component, version)
    if release is None:
        return None
    return frozenset(n for n, run in _present(_flag_table(component), release).items() if len(run) > 2)


def explain_flag(component: str, name: str, version: Version) -> Verdict | None:
    """None where the version is not covered. `name` may have its dashes, and underscores for hyphens."""
    release = _release(component, version)
    if release is None:
        return None
    table = _flag_table(component)
    plain = name.lstrip("-").replace("_", "-")
    verdict = _explain(table, plain, release, _prefix(component))
    noted = next((run[2] for run in reversed(table.get(plain, [])) if len(run) > 2 and run[2]), "")
    instead = FLAG_REPLACEMENTS.get((component, plain)) or FLAG_REPLACEMENTS.get(("", plain)) or noted
    if not instead and component == "etcd":
        instead = _stable_name(table, plain, release)
    if verdict.state in {State.REMOVED, State.DEPRECATED}:
        return Verdict(plain, verdict.state, verdict.last, verdict.first, instead)
    return verdict


def _stable_name(table: Mapping[str, Runs], name: str, release: int) -> str:
    """etcd 3.6 gave its --experimental-X flags the name --X, or made feature gates of them."""
    stable = name.removeprefix("experimental-")
    return f"--{stable}" if stable != name and _at(table.get(stable, []), release) else ""


# ---- feature gates


def gates(version: Version, component: str = "kube-apiserver") -> Mapping[str, Gate] | None:
    """Every feature gate of a release. Kubernetes' programs share one table; etcd has its own from 3.6 on."""
    release = _release(component, version)
    if release is None:
        return None
    return {name: _gate(run) for name, run in _present(_gate_table(component), release).items()}


def explain_gate(name: str, version: Version, component: str = "kube-apiserver") -> Verdict | None:
    """DEPRECATED is said of gates past GA that are locked: setting them to their default still works."""
    release = _release(component, version)
    if release is None:
        return None
    table = _gate_table(component)
    run = _at(table.get(name, []), release)
    if run is not None:
        return Verdict(name, State.DEPRECATED if _gate(run).stage in {"GA", "DEPRECATED"} else State.KNOWN)
    verdict = _explain(table, name, release, _prefix(component))
    if verdict.state is State.UNKNOWN and name in KUBEADM_GATES:
        return Verdict(name, State.UNKNOWN, instead="featureGates of kubeadm's ClusterConfiguration")
    if verdict.state is State.REMOVED and table[name][-1][2:5] == ["GA", True, True]:
        return Verdict(name, State.REMOVED, verdict.last, "", "nothing, the feature is always on")
    return verdict


def gate(name: str, version: Version, component: str = "kube-apiserver") -> Gate | None:
    release = _release(component, version)
    run = None if release is None else _at(_gate_table(component).get(name, []), release)
    return None if run is None else _gate(run)


def split_gates(value: str) -> Iterator[tuple[str, str, str]]:
    """`A=true,kube:B=false` as (component, gate, value); component "" where there is no prefix.

    The value is "" where the pair has no `=`: the programs refuse that as well.
    """
    for pair in value.split(","):
        if pair.strip():
            name, _, setting = pair.strip().partition("=")
            prefix, colon, bare = name.strip().rpartition(":")
            yield (prefix if colon else "", bare, setting.strip())


# ---- admission plugins


def plugins(version: Version) -> frozenset[str] | None:
    release = _release("kube-apiserver", version)
    return None if release is None else frozenset(_present(_table("plugins.json"), release))


def explain_plugin(name: str, version: Version) -> Verdict | None:
    release = _release("kube-apiserver", version)
    return None if release is None else _explain(_table("plugins.json"), name, release, "1.")


# ---- kubelet configuration

_KUBELET_ROOT = "KubeletConfiguration"


def unknown_kubelet_fields(
    config: Mapping[str, Any], version: Version
) -> tuple[tuple[tuple[str | int, ...], Verdict], ...] | None:
    """Path and verdict of every field that KubeletConfiguration v1beta1 of this release does not have.

    A field of another release without a value is left out: to drop it changes nothing.
    """
    release = _release("kubelet", version)
    return None if release is None else tuple(_unknown_fields(config, _KUBELET_ROOT, release, ()))


def _unknown_fields(
    value: Any, struct: str, release: int, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Verdict]]:
    table = _kubelet_struct(struct)
    for name, item in value.items():
        runs = table.get(str(name), [])
        run = _at(runs, release)
        if run is None:
            if (path or name not in {"kind", "apiVersion"}) and not (runs and _unset(item, runs[-1][2])):
                yield (*path, str(name)), _explain(table, str(name), release, "1.")
            continue
        kind = re.sub(r"^[*\[\]]+", "", run[2]).rpartition(".")[2]
        items = enumerate(item) if isinstance(item, list) else [(None, item)]
        for index, inner in items:
            if isinstance(inner, dict) and _kubelet_struct(kind) and not run[2].startswith("map["):
                place = (*path, str(name)) if index is None else (*path, str(name), index)
                yield from _unknown_fields(inner, kind, release, place)


def _unset(item: Any, kind: str) -> bool:
    """The value says no more than a field left out: empty, or Go's zero of a type that is no pointer (kubeadm's 0s)."""
    if isinstance(item, dict):
        table = _kubelet_struct(kind.rpartition(".")[2])
        return all(_unset(inner, table[name][-1][2] if name in table else "*") for name, inner in item.items())
    return item is None or item == [] or (not kind.startswith("*") and item in ("", "0s", "0", 0))


def mistyped_kubelet_fields(
    config: Mapping[str, Any], version: Version
) -> tuple[tuple[tuple[str | int, ...], str], ...] | None:
    """Path of every value that the field's type cannot take, and what it must be. The kubelet reads none leniently."""
    release = _release("kubelet", version)

    def kinds(struct: str) -> Mapping[str, str]:
        present = ((name, _at(runs, release or 0)) for name, runs in _kubelet_struct(struct).items())
        return {name: run[2] for name, run in present if run is not None}

    return None if release is None else tuple(_mistyped(config, _KUBELET_ROOT, kinds, ()))


# ---- Pods


def mistyped_pod_fields(pod: Mapping[str, Any]) -> tuple[tuple[tuple[str | int, ...], str], ...]:
    """Path of every value of a v1 Pod that its field's type cannot take, and what it must be.

    The kubelet reads no such Pod at all. A field that Pods do not have is dropped without a word.
    """
    return tuple(_mistyped(pod, "Pod", _pod_struct, ()))


def pod_fields(struct: str) -> frozenset[str]:
    """JSON names of a struct of a v1 Pod, as `Volume`."""
    return frozenset(_pod_struct(struct))


@cache
def _pod_struct(struct: str) -> Mapping[str, str]:
    own = {n.partition(".")[2]: kind for n, kind in _table("pod.json").items() if n.partition(".")[0] == struct}
    fields = {name: kind for name, kind in own.items() if not name.startswith(":")}
    for kind in own.keys() - fields.keys():
        fields |= _pod_struct(kind.lstrip(":"))
    return fields


# ---- types

Kinds: TypeAlias = Callable[[str], Mapping[str, str]]
"""Struct to its fields and their Go types."""


def _mistyped(
    value: Mapping[str, Any], struct: str, kinds: Kinds, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    fields = kinds(struct)
    for name, item in value.items():
        if str(name) in fields and item is not None:
            yield from _fits(item, fields[str(name)].lstrip("*"), kinds, (*path, str(name)))


def _fits(
    item: Any, kind: str, kinds: Kinds, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if item is None:
        return
    if kind == "[]byte":
        kind = "string"  # base64
    if kind.startswith("[]"):
        if not isinstance(item, list):
            yield path, "a list"
        for index, inner in enumerate(item if isinstance(item, list) else ()):
            yield from _fits(inner, kind.removeprefix("[]"), kinds, (*path, index))
    elif kind.startswith("map[string]"):
        if not isinstance(item, dict):
            yield path, "a mapping"
        for name, inner in item.items() if isinstance(item, dict) else ():
            yield from _fits(inner, kind.removeprefix("map[string]"), kinds, (*path, name))
    elif kind in _SCALARS:
        words, fits = _SCALARS[kind]
        if not fits(item):
            yield path, words
    elif kinds(struct := kind.rpartition(".")[2]):
        if isinstance(item, dict):
            yield from _mistyped(item, struct, kinds, path)
        else:
            yield path, "a mapping"


def _whole(item: Any) -> bool:
    return not isinstance(item, bool) and (isinstance(item, int) or (isinstance(item, float) and item.is_integer()))


def _duration(item: Any) -> bool:
    return isinstance(item, str) and _DURATION.fullmatch(item) is not None


_DURATION = re.compile(r"[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)")
_SCALARS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda item: isinstance(item, str)),
    "bool": ("true or false", lambda item: isinstance(item, bool)),
    "float64": ("a number", lambda item: isinstance(item, int | float) and not isinstance(item, bool)),
    "metav1.Duration": ("a duration such as 10s", _duration),
    "intstr.IntOrString": ("a number or a name", lambda item: isinstance(item, str) or _whole(item)),
    "resource.Quantity": ("a quantity such as 250m or 1Gi", lambda item: quantity(item) is not None),
    **dict.fromkeys(("int32", "int64", "uint32"), ("a whole number", _whole)),
}


@cache
def _kubelet_struct(struct: str) -> Mapping[str, Runs]:
    """Fields of a struct, those of the structs embedded in it included."""
    own = {n.partition(".")[2]: runs for n, runs in _table("kubelet.json").items() if n.partition(".")[0] == struct}
    fields = {name: runs for name, runs in own.items() if not name.startswith(":")}
    for name in own.keys() - fields.keys():
        for inner, runs in _kubelet_struct(name.lstrip(":").rpartition(".")[2]).items():
            fields[inner] = [*fields.get(inner, []), *runs]  # a field that moved into the embedded struct
    return fields


# ---- the tables


@cache
def _table(file: str) -> Any:
    return json.loads((HERE / file).read_text())


def _flag_table(component: str) -> Mapping[str, Runs]:
    table: Mapping[str, Runs] = _table("etcd.json")["flags"] if component == "etcd" else _table("flags.json")[component]
    return table


def _gate_table(component: str) -> Mapping[str, Runs]:
    table: Mapping[str, Runs] = _table("etcd.json")["gates"] if component == "etcd" else _table("gates.json")
    return table


def _gate(run: list[Any]) -> Gate:
    stage, default, locked = (run[2:] + ["ALPHA", False, False][len(run) - 2 :])[:3]
    return Gate(stage, default, locked)


def _prefix(component: str) -> str:
    return "3." if component == "etcd" else "1."


def _release(component: str, version: Version) -> int | None:
    """The minor, where the tables cover it."""
    if component not in COMPONENTS:
        raise ValueError(f"no release data of {component}")
    major, oldest, newest = (3, ETCD_OLDEST, ETCD_NEWEST) if component == "etcd" else (1, OLDEST, NEWEST)
    return version[1] if version[0] == major and oldest <= version[1] <= newest else None


def _present(table: Mapping[str, Runs], release: int) -> dict[str, list[Any]]:
    found = ((name, _at(runs, release)) for name, runs in table.items())
    return {name: run for name, run in found if run is not None}


def _at(runs: Runs, release: int) -> list[Any] | None:
    return next((run for run in runs if run[0] <= release <= run[1]), None)


def _after(last: str) -> str:
    major, _, minor = last.partition(".")
    return f"{major}.{int(minor) + 1}"


def _explain(table: Mapping[str, Runs], name: str, release: int, prefix: str) -> Verdict:
    runs = table.get(name, [])
    run = _at(runs, release)
    if run is not None:
        return Verdict(name, State.DEPRECATED if len(run) > 2 and isinstance(run[2], str) else State.KNOWN)
    before = [run[1] for run in runs if run[1] < release]
    if before:
        return Verdict(name, State.REMOVED, last=f"{prefix}{max(before)}")
    if runs:
        return Verdict(name, State.NOT_YET, first=f"{prefix}{runs[0][0]}")
    return Verdict(name, State.UNKNOWN, nearest=nearest(name, _present(table, release)))
