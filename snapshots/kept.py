"""The facts of a data directory as JSON and back: what a bundle holds in the place of etcd's db, which holds Secrets.

Only names, numbers and dates are kept: fields of plain types and of the classes below. Values of keys never are, so
what needs one (does this key open that value?) is unknown to a bundle.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import types
from collections.abc import Callable, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from snapshots.cluster import Alarm, Cluster, Lease, Member
from snapshots.contents import Contents, Sealed
from snapshots.facts import Database, DataDirectory
from snapshots.walcheck import LogFacts

CLASSES: tuple[type, ...] = (DataDirectory, Database, Cluster, Contents, Sealed, LogFacts, Member, Alarm, Lease)
PLAIN = (str, int, float, bool, types.NoneType)
TEXTS = {(Contents, "kubeadm")}
KEYS = {(Sealed, "key")}

Redact = Callable[[bytes], bytes]


def encode(facts: DataDirectory, redact: Redact) -> bytes:
    """`redact` takes secrets out of a text (the kubeadm-config)."""
    return json.dumps({"schemaVersion": 1, "dataDirectory": _encoded(facts, redact)}, indent=1).encode()


def decode(data: bytes) -> DataDirectory | None:
    """None for what `encode` did not write."""
    try:
        found = _decoded(json.loads(data)["dataDirectory"], DataDirectory)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if isinstance(found, DataDirectory) else None


class _Unknown(Exception):
    """A value of a kind that is not kept."""


def _encoded(value: Any, redact: Redact) -> Any:
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, tuple | list):
        return [_encoded(item, redact) for item in value]
    if not isinstance(value, CLASSES):
        raise _Unknown
    kept: dict[str, Any] = {}
    for field in dataclasses.fields(value):  # type: ignore[arg-type]
        held, place = getattr(value, field.name), (type(value), field.name)
        try:
            if place in TEXTS | KEYS:
                kept[field.name] = base64.b64encode(redact(held) if place in TEXTS else held).decode()
            else:
                kept[field.name] = _encoded(held, redact)
        except _Unknown:
            continue
    return kept


def _decoded(value: Any, kind: Any) -> Any:
    """The value as `kind` says. Raises ValueError or TypeError where it is something else."""
    if get_origin(kind) in (Union, types.UnionType):
        kinds = get_args(kind)
        if value is None and types.NoneType in kinds:
            return None
        return _decoded(value, next(one for one in kinds if one is not types.NoneType))
    if get_origin(kind) is tuple:
        return _tuple(value, get_args(kind))
    if kind in CLASSES and isinstance(value, Mapping):
        hints = get_type_hints(kind)
        known = {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.name in value}
        return kind(**{name: _decoded(value[name], hint) for name, hint in known.items()})
    if kind is bytes and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    if kind in PLAIN and type(value) is kind:
        return value
    raise ValueError(f"{type(value).__name__} where {kind} belongs")


def _tuple(value: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise TypeError("no list")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_decoded(item, kinds[0]) for item in value)
    return tuple(_decoded(item, kind) for item, kind in zip(value, kinds, strict=True))
