"""Which etcd lines can boot on a restored db, and what must change in it for an older one.

Only two records decide: meta/storageVersion and cluster/clusterVersion, read by 3.6 and newer (server/storage/schema,
etcdserver/version). The buckets `key` and `lease` have one format in 3.4 to 3.7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from drtool.core.errors import Refused, UsageError

Pairs = Mapping[bytes, bytes]


class Line(NamedTuple):
    """A server line: 3.6 is (3, 6)."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


LINES = (Line(3, 4), Line(3, 5), Line(3, 6), Line(3, 7))
READS_RECORDS = Line(3, 6)
"""From this line on a server looks at the recorded versions when it boots."""


def parse(text: str) -> Line:
    """`3.6`, `3.6.0` or `v3.6.16`; raises UsageError for a line that restores are not known to boot under."""
    match = re.fullmatch(r"v?(\d+)\.(\d+)(?:\.\d+.*)?", text)
    line = Line(int(match[1]), int(match[2])) if match else None
    if line not in LINES:
        raise UsageError(f"etcd {text} is no line that drtool restores for", f"one of {', '.join(map(str, LINES))}")
    return line


def recorded(meta: Pairs, cluster: Pairs) -> Line | None:
    """The newest line that the db says it was used by; None where it says nothing (3.4 and older)."""
    found = [
        Line(int(match[1]), int(match[2]))
        for text in (meta.get(b"storageVersion", b""), cluster.get(b"clusterVersion", b""))
        if (match := re.match(rb"(\d{1,9})\.(\d{1,9})\.", text))
    ]
    return max(found, default=None)


def bootable(meta: Pairs, cluster: Pairs) -> tuple[Line, ...]:
    """The lines that boot on this db as it is."""
    line = recorded(meta, cluster)
    return tuple(one for one in LINES if line is None or one < READS_RECORDS or one >= line)


def check_known(meta: Pairs, cluster: Pairs) -> None:
    """Raises Refused for a db of a line that came after drtool: what it changed in the format is not known."""
    line = recorded(meta, cluster)
    if line is not None and line > LINES[-1]:
        raise Refused(
            f"the db was used by etcd {line}; drtool knows {LINES[0]} to {LINES[-1]}", f"restore it with etcdutl {line}"
        )


def adapted(meta: Pairs, cluster: Pairs, target: Line) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """(meta, cluster) as a server of `target` boots on them."""
    new_meta = {name: value for name, value in meta.items() if name != b"storageVersion"}
    if target >= READS_RECORDS:
        new_meta[b"storageVersion"] = f"{target}.0".encode()
    if target == LINES[0]:
        new_meta.pop(b"term", None)
        new_meta.pop(b"confState", None)
    return new_meta, {name: value for name, value in cluster.items() if name not in (b"clusterVersion", b"downgrade")}
