"""A capture as the files of a bundle, without its secrets; `manifests.saved` reads them back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from drtool.host.root import Entry
from manifests.capture import Capture
from manifests.redaction import Redaction
from manifests.saved import INDEX, KEYS

LEFT_OUT = "left out of the bundle"


def files(
    capture: Capture, record: Mapping[str, Any], more: Mapping[str, bytes] = MappingProxyType({})
) -> dict[str, bytes]:
    """Every file of the bundle by its path, without secrets. `record` becomes capture.json."""
    redaction = Redaction()
    kept: dict[str, bytes] = {}
    entries = {**capture.entries, **{path: Entry(path, "file", 0o600, data=data) for path, data in more.items()}}
    for path, entry in entries.items():
        data = None if entry.data is None else redaction.file(path, entry.data)
        if data is not None:
            kept[path] = data
    kept = {path: redaction.last_look(data) for path, data in kept.items()}
    index = {
        "schemaVersion": 1,
        "entries": {path: _described(entry, path in kept) for path, entry in sorted(entries.items())},
        "listings": {path: list(names) for path, names in sorted(capture.listings.items())},
    }
    kept["/drtool/capture.json"] = json.dumps(record, indent=1).encode()
    kept[KEYS] = json.dumps(redaction.keys, indent=1).encode()
    kept[INDEX] = json.dumps(index).encode()
    return kept


def _described(entry: Entry, kept: bool) -> dict[str, Any]:
    error = entry.error if kept or entry.data is None else LEFT_OUT
    said: dict[str, Any] = {"kind": entry.kind, "mode": entry.mode, "uid": entry.uid, "gid": entry.gid}
    said |= {"size": entry.size, "mtime": entry.mtime, "data": kept}
    said |= {"target": entry.target} if entry.target else {}
    said |= {"cut": True} if entry.cut else {}
    return said | ({"error": error} if error else {})
