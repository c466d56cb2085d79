"""What the user keys of a db come to: counted by prefix, and the most rewritten of them."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nlargest
from typing import NamedTuple, TypeAlias

REVISION_SHIFT = 40
SIZE_MASK = (1 << REVISION_SHIFT) - 1
Stored: TypeAlias = Mapping[bytes, int]
"""User key to its revisions << REVISION_SHIFT | their bytes."""
MOST = 10
REGISTRY = b"/registry/"
DEEPER = (b"services", b"ranges")
"""Segments below /registry that hold several resources, besides the API groups (which have a dot)."""


class Totals(NamedTuple):
    """`sums` has (keys, what Stored says of all of them) by prefix; `most` the keys with the most revisions."""

    sums: dict[bytes, tuple[int, int]]
    most: list[tuple[bytes, int]]


def totals(stored: Stored) -> Totals:
    return Totals(_sums(stored), _most(stored))


def together(first: Stored, second: Stored, one: Totals, other: Totals) -> Totals:
    """The totals of two parts of a db, whose own are `one` and `other`: only keys in both are looked at again."""
    before = map(first.get, second)
    both = {key: ours + theirs for (key, theirs), ours in zip(second.items(), before, strict=True) if ours}
    shared, sums = _sums(both), dict(one.sums)
    for prefix, (count, total) in other.sums.items():
        keys, held = sums.get(prefix, (0, 0))
        sums[prefix] = keys + count - shared.get(prefix, (0, 0))[0], held + total
    # a key of one part that is among the most of all is among the most of that part
    candidates = dict(one.most) | dict(other.most)
    return Totals(sums, _most({key: both.get(key, count) for key, count in candidates.items()} | dict(_most(both))))


def _most(stored: Stored) -> list[tuple[bytes, int]]:
    least = min(nlargest(MOST, stored.values()), default=0)
    found = [(key, count) for key, count in stored.items() if count >= least]
    return sorted(found, key=lambda one: (-one[1], one[0]))[:MOST]


def _sums(stored: Stored) -> dict[bytes, tuple[int, int]]:
    counts: dict[bytes, list[int]] = {}
    whole: dict[bytes, list[int]] = {}
    for key, count in stored.items():
        cut = key[: key.find(b"/", len(REGISTRY)) + 1]
        held = whole.get(cut)
        if held is None:
            prefix = prefix_of(key)
            held = counts.setdefault(prefix, [])
            if prefix == cut:  # what it is of one key, it is of all that begin with it
                whole[cut] = held
        held.append(count)
    return {prefix: (len(held), sum(held)) for prefix, held in counts.items()}


def prefix_of(key: bytes) -> bytes:
    """The resource that a Kubernetes key belongs to: `/registry/pods/`, `/registry/GROUP/RESOURCE/`.

    Of any other key the first segment, of one without segments the key itself.
    """
    end = key.find(b"/", 1) + 1
    if not key.startswith(REGISTRY):
        return key[:end] or key
    second = key.find(b"/", end) + 1
    segment = key[end : second - 1]
    if second and (b"." in segment or segment in DEEPER):
        second = key.find(b"/", second) + 1
    return key[:second] or key
