"""The leaves below one branch page read together, as columns: what makes a pass over a large db fast.

Their element tables are read in one go and compared column by column. Nothing is taken where anything is unusual: the
caller then goes page by page.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, chain, islice, repeat
from operator import add, eq, le, sub
from struct import Struct
from typing import NamedTuple

from snapshots.bolt import BRANCH, ELEMENT_SIZE, HEADER_SIZE, LEAF, MAX_DEPTH, Bolt, Bucket, Columns, Data, leaf_table

KEY_TAG = 0x0A
GROUP_LIMIT = 1 << 16
"""Elements below one branch page; more are gone through page by page, in less memory."""


class Group(NamedTuple):
    """Leaves that bbolt wrote: pairs back to back, no bucket among them, no empty page or key.

    By page: `numbers`, `overflows`, `places` (of its first key in the columns), `floors` and `lasts` (where its pairs
    begin and end). By pair: `keys`, and the value at `starts[i]:ends[i]`.
    """

    numbers: tuple[int, ...]
    overflows: tuple[int, ...]
    places: list[int]
    floors: list[int]
    lasts: list[int]
    keys: list[bytes]
    starts: list[int]
    ends: list[int]


def group(bolt: Bolt, numbers: tuple[int, ...]) -> Group | None:
    """The leaves `numbers`; None where one is no leaf or anything looks unusual."""
    data, size = bolt.data, bolt.page_size
    if min(numbers) < 2 or max(numbers) >= bolt.meta.pages:
        return None
    offsets = [number * size for number in numbers]
    heads = _heads(len(numbers)).unpack(b"".join([data[at : at + HEADER_SIZE] for at in offsets]))
    counts, overflows = heads[2::4], heads[3::4]
    total = sum(counts)
    if heads[0::4] != numbers or set(heads[1::4]) != {LEAF} or 0 in counts or total > GROUP_LIMIT:
        return None
    runs = [at + (overflow + 1) * size for at, overflow in zip(offsets, overflows, strict=True)]
    bases = [at + HEADER_SIZE for at in offsets]
    floors = [base + count * ELEMENT_SIZE for base, count in zip(bases, counts, strict=True)]
    if max(runs) > bolt.used or not all(map(le, floors, runs)):
        return None
    table = leaf_table(total).unpack(b"".join([data[base:floor] for base, floor in zip(bases, floors, strict=True)]))
    elements = chain.from_iterable(map(range, bases, floors, repeat(ELEMENT_SIZE)))
    begins = list(map(add, elements, table[1::4]))
    starts = list(map(add, begins, table[2::4]))
    ends = list(map(add, starts, table[3::4]))
    places = list(accumulate(counts, initial=0))
    lasts = [ends[place - 1] for place in islice(places, 1, None)]
    del places[-1]
    back_to_back = sum(map(eq, islice(begins, 1, None), ends)) == total - len(numbers)
    if any(table[0::4]) or 0 in table[2::4] or not back_to_back:
        return None
    if [begins[place] for place in places] != floors or not all(map(le, lasts, runs)):
        return None
    keys = [data[begin:start] for begin, start in zip(begins, starts, strict=True)]
    return Group(numbers, overflows, places, floors, lasts, keys, starts, ends)


@lru_cache(maxsize=512)
def _heads(count: int) -> Struct:
    return Struct("<" + "QHHI" * count)


def columns(bolt: Bolt, bucket: Bucket) -> Iterator[Columns | Group]:
    """A bucket in key order: what `bolt.columns` has of each of `bolt.leaves`, of many leaves at a time."""
    if bucket.inline is not None:
        yield bolt.columns(bucket.inline)
        return
    seen = bytearray(bolt.meta.pages)
    stack = [iter((bucket.root,))]
    while stack:
        number = next(stack[-1], None)
        if number is None:
            stack.pop()
            continue
        page = bolt.page(number)
        if seen[number]:
            raise bolt.damaged(number, "referred to twice")
        seen[number] = 1
        if page.flags == LEAF:
            yield bolt.columns(page)
        elif page.flags != BRANCH:
            raise bolt.damaged(number, f"flags {page.flags:#x} where a branch or a leaf belongs")
        elif len(stack) > MAX_DEPTH:
            raise bolt.damaged(number, "the tree is deeper than any real one")
        else:
            children = bolt.children(page)[1]
            found = group(bolt, children)
            if found is None or any(map(seen.__getitem__, children)) or len(set(children)) < len(children):
                stack.append(iter(children))
                continue
            for child in children:
                seen[child] = 1
            yield found


def user_keys(data: Data, starts: list[int], ends: list[int]) -> list[bytes] | None:
    """The keys of as many KeyValues as servers write them, the key first; None where one is otherwise."""
    if min(map(sub, ends, starts)) < 2 or {data[start] for start in starts} != {KEY_TAG}:
        return None
    sizes = [data[start + 1] for start in starts]
    begins = [start + 2 for start in starts]
    stops = list(map(add, begins, sizes))
    if max(sizes) > 0x7F or not all(map(le, stops, ends)):
        return None
    return [data[begin:stop] for begin, stop in zip(begins, stops, strict=True)]
