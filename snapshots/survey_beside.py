"""A survey on two cores: a child process checks the trailing hash, then takes a share of what is left of the pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from drtool.core.events import Listener, silent
from drtool.host.beside import beside, pieces, possible
from snapshots.bolt import BRANCH, Bolt, Damaged
from snapshots.crc import combine
from snapshots.survey import below, descend, go_through, survey
from snapshots.tally import Survey
from snapshots.totals import Totals, together

WORTH = 64 << 20
"""Bytes of a db from which on a second process is worth its start."""
ENOUGH, MOST = 64, 512
"""Into how many shares bucket `key` is cut; a pipe holds a byte for each."""
Part: TypeAlias = "tuple[int, bytes | None, bytes | None]"
"""A page, its lowest key, and the one that all keys below it come before."""


def survey_beside(
    bolt: Bolt, trailer: Callable[[], bool | None], listener: Listener = silent, worth: int = WORTH
) -> tuple[Survey, bool | None]:
    """`survey`, and the outcome of `trailer`. Raises Damaged as `survey` does."""
    if bolt.used < worth or not possible():
        return survey(bolt, listener), trailer()
    walk = Survey(bolt, listener, bytearray(bolt.meta.pages))
    outcome: list[bool | None] = []
    try:
        go_through(walk, lambda root: outcome.append(_shared(walk, root, trailer)))
    except Damaged:
        walk, outcome = survey(bolt, listener), []  # names the first fault
    return walk, outcome[0] if outcome else trailer()


def _shared(walk: Survey, root: int, trailer: Callable[[], bool | None]) -> bool | None:
    """Bucket `key`. The bounds of its parts keep the order between them: any run of them is a pass of its own."""
    parts: list[Part] = [(root, None, None)]
    depth = 0
    while len(parts) < ENOUGH and (deeper := _deeper(walk, parts)) != parts:
        parts, depth = deeper, depth + 1
    step = -(-len(parts) // MOST)
    shares = [parts[at : at + step] for at in range(0, len(parts), step)]
    afterwards = len(shares) // 8  # what this process has to do after its share, in the time that shares take
    ours = 0

    def beside_us() -> tuple[Any, ...]:
        held = trailer()
        rest = Survey(walk.bolt, silent, bytearray(walk.bolt.meta.pages), in_key=True)
        for share in shares[ours or len(shares) - left.share(afterwards) :]:  # `ours` where the child has failed
            _take(rest, share, depth)
        passed = rest.crc, rest.hashed, rest.pairs, rest.previous, bytes(rest.seen)
        return held, *passed, rest.dead, rest.stored, tuple(rest.totals())

    with pieces(len(shares)) as left, beside(beside_us) as result:
        while left.one():
            _take(walk, shares[ours], depth)
            ours += 1
        walk.bolt.let_go()  # while the child is at work, not at the end
        first = walk.totals()
        held, crc, hashed, pairs, previous, seen, dead, stored, second = result()
        # while the child ends, which has a large mapping to give back
        walk.both = together(walk.stored, stored, first, Totals(*second))
    if int.from_bytes(seen) & int.from_bytes(walk.seen):
        raise walk.bolt.damaged(0, "a page is referred to twice")
    walk.seen = bytearray((int.from_bytes(seen) | int.from_bytes(walk.seen)).to_bytes(len(seen)))
    walk.crc, walk.hashed, walk.pairs = combine(walk.crc, crc, hashed), walk.hashed + hashed, walk.pairs + pairs
    walk.previous = previous or walk.previous
    walk.dead = (walk.dead - stored.keys()) | dead
    return held  # type: ignore[no-any-return]  # a tuple from the child


def _deeper(walk: Survey, parts: list[Part]) -> list[Part]:
    found: list[Part] = []
    for number, low, high in parts:
        page = walk.bolt.page(number)
        found += zip(*below(walk, page, low, high), strict=True) if page.flags == BRANCH else [(number, low, high)]
    return found


def _take(walk: Survey, share: list[Part], depth: int) -> None:
    for number, low, high in share:
        descend(walk, number, low, high, depth)
