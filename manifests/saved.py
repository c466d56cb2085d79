"""A bundle's files as the capture that they were.

Beside the files themselves lies /drtool/entries.json: kind, mode, owner, size and time of all that was looked at, what
could not be read and why, and the listing of each directory. A bundle unpacked by anyone, on any file system, is then
read as the node was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from drtool.host.root import Entry, Root
from manifests.capture import Capture, captured_at
from manifests.live import read_json

INDEX, KEYS = "/drtool/entries.json", "/drtool/keys.json"
LARGEST_INDEX = 16 << 20
LARGEST_FILE = 16 << 20
MOST = 8000
KINDS = frozenset({"file", "link", "directory", "socket", "special", "dangling", "absent", "unreadable"})


def is_bundle(root: Root) -> bool:
    """Whether a tree is a bundle that drtool made. A live node never is."""
    return not root.live and root.read(INDEX, 0).kind == "file"


def restored(root: Root) -> Capture | None:
    """The capture that a bundle holds; None where its index makes no sense, so that it is read as any tree."""
    index = read_json(root.read(INDEX, LARGEST_INDEX))
    described = index.get("entries") if isinstance(index, dict) else None
    listings = index.get("listings") if isinstance(index, dict) else None
    if not isinstance(described, dict) or not isinstance(listings, dict):
        return None
    entries = {entry.path: entry for entry in _entries(root, described)}
    for path in ("/drtool/capture.json", KEYS):
        entries[path] = root.read(path, LARGEST_FILE)
    names = {
        path: tuple(name for name in found if isinstance(name, str))
        for path, found in listings.items()
        if isinstance(found, list)
    }
    return Capture(MappingProxyType(entries), MappingProxyType(names), False, captured_at(entries))


def _entries(root: Root, described: Mapping[str, Any]) -> Iterator[Entry]:
    for path, said in list(described.items())[:MOST]:
        if not (path.startswith("/") and isinstance(said, dict) and said.get("kind") in KINDS):
            continue
        entry = Entry(
            path,
            said["kind"],
            mode=_whole(said, "mode"),
            uid=_whole(said, "uid"),
            gid=_whole(said, "gid"),
            size=_whole(said, "size"),
            mtime=_number(said, "mtime"),
            target=_text(said, "target"),
            cut=said.get("cut") is True,
            error=_text(said, "error"),
        )
        if said.get("data") is True:
            found = root.read(path, LARGEST_FILE)
            entry = replace(entry, data=found.data, error=entry.error or found.error)
        yield entry


def _whole(said: Mapping[str, Any], key: str) -> int:
    return int(_number(said, key))


def _number(said: Mapping[str, Any], key: str) -> float:
    value = said.get(key)
    return value if isinstance(value, int | float) and abs(value) < 1 << 63 else 0


def _text(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key)
    return value if isinstance(value, str) else ""
