"""Mutates a db and asks everything that reads one: figures, a fault with its page, or one clear error; nothing else.

By hand: `python -m tests.soak.mutate --count 100000 [--seed N] [--log FILE] SNAPSHOT...`. Without snapshots a made one
is mutated. Each mutation is a process-wide promise: no other exception, less than SECONDS, less than MEMORY more.
"""

from __future__ import annotations

import argparse
import random
import resource
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from drtool.core.errors import DrtoolError
from snapshots import amend, bolt, figures, hashkv, mvcc
from snapshots.amend import Amendment
from snapshots.mvcc import Revision, encode_revision
from snapshots.stream.check import StreamCheck
from tests.builders import etcd_db

SECONDS = 20.0
MEMORY = 400 << 20
Mutation = Callable[[random.Random, bytearray, int], None]
"""Changes the data in place; the last argument is the page size."""


def flip_bit(chance: random.Random, data: bytearray, page: int) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def flip_header(chance: random.Random, data: bytearray, page: int) -> None:
    """In the first bytes of a page, where headers and element tables are."""
    at = chance.randrange(len(data) // page) * page
    data[at + chance.randrange(96)] ^= 1 << chance.randrange(8)


def huge_number(chance: random.Random, data: bytearray, page: int) -> None:
    at = chance.randrange(len(data) // page) * page
    form, size = chance.choice((("<H", 2), ("<I", 4), ("<Q", 8)))
    value = chance.choice(((1 << 8 * size) - 1, 1 << (8 * size - 1), 0, 1, len(data) // page))
    struct.pack_into(form, data, at + chance.randrange(0, 96, 2), value)


def swap_pages(chance: random.Random, data: bytearray, page: int) -> None:
    first, second = (chance.randrange(len(data) // page) * page for _ in range(2))
    data[first : first + page], data[second : second + page] = (
        data[second : second + page],
        data[first : first + page],
    )


def copy_page(chance: random.Random, data: bytearray, page: int) -> None:
    first, second = (chance.randrange(len(data) // page) * page for _ in range(2))
    data[first : first + page] = data[second : second + page]


def renumbered_copy(chance: random.Random, data: bytearray, page: int) -> None:
    """A page in another's place that calls itself that page: cycles and double references."""
    copy_page(chance, data, page)
    number = chance.randrange(len(data) // page)
    struct.pack_into("<Q", data, number * page, number)


def cycle(chance: random.Random, data: bytearray, page: int) -> None:
    """Some branch page names some page, itself and its parents too."""
    pages = [at for at in range(0, len(data) - page, page) if data[at + 8 : at + 10] == b"\x01\x00"]
    if pages:
        at = chance.choice(pages)
        count = max(1, int.from_bytes(data[at + 10 : at + 12], "little"))
        element = at + 16 + 16 * chance.randrange(min(count, 250))
        struct.pack_into("<Q", data, element + 8, chance.choice((at // page, chance.randrange(len(data) // page))))


def truncate(chance: random.Random, data: bytearray, page: int) -> None:
    del data[chance.randrange(len(data)) :]


def zero_sector(chance: random.Random, data: bytearray, page: int) -> None:
    at = chance.randrange(len(data) // 512) * 512
    data[at : at + 512] = bytes(512)


def noise(chance: random.Random, data: bytearray, page: int) -> None:
    at = chance.randrange(len(data))
    size = min(chance.randrange(1, 64), len(data) - at)
    data[at : at + size] = chance.randbytes(size)


def meta_fields(chance: random.Random, data: bytearray, page: int) -> None:
    """A meta with valid checksum and hostile numbers."""
    root, freelist, pages = (
        chance.choice((0, 1, 2, chance.randrange(1 << 64), len(data) // page, chance.randrange(len(data) // page)))
        for _ in range(3)
    )
    for number in (0, 1):
        known = bolt.read_metas(bytes(data[: 3 * page]))[number]
        if known is None:
            continue
        changed = known
        for name, value in (("root", root), ("freelist", freelist), ("pages", pages)):
            if chance.random() < 0.5:
                changed = changed._replace(**{name: value})
        data[number * page : number * page + page] = amend.meta_page(changed, number)


MUTATIONS: tuple[Mutation, ...] = (
    flip_bit, flip_header, flip_header, huge_number, huge_number, swap_pages, copy_page, renumbered_copy, cycle,
    truncate, zero_sector, noise, meta_fields,
)  # fmt: skip


def mutated(seed: int, original: bytes) -> bytes:
    """The same for the same seed: one to four mutations."""
    chance = random.Random(seed)  # noqa: S311 - to be repeated, not secret
    data = bytearray(original)
    page = next(meta.page_size for meta in bolt.read_metas(original) if meta)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        if len(data) > 2 * page:
            chance.choice(MUTATIONS)(chance, data, page)
    return bytes(data)


def ask_everything(data: bytes) -> str:
    """What became of it in one word; raises what must never be raised."""
    try:
        db = bolt.parse(data, "db")
    except DrtoolError:
        outcome = "refused"
        ask_stream(data, None)
        return outcome
    status = figures.status(db)
    outcome = "sound" if status.structure.sound else "damaged" if status.figures else "unreadable"
    assert outcome == "sound" or status.structure.faults
    ask_stream(data, status)
    for read in (ask_keys, ask_hash, ask_restore):
        try:
            read(db)
        except DrtoolError:
            assert outcome != "sound" or status.cluster is None or read is not ask_keys
    return outcome


def ask_stream(data: bytes, status: figures.Status | None) -> None:
    """A stream finds a fault where the file has one, and the same figures where it has none."""
    check = StreamCheck("db")
    for at in range(0, len(data), 1 << 16):
        check.feed(data[at : at + (1 << 16)])
    found = check.finish()
    if status is None:
        assert not found.structure.sound
    else:
        assert found.structure.sound == status.structure.sound, (found.structure, status.structure)
        if status.structure.sound and found.figures and status.figures:
            assert found.figures.hash == status.figures.hash
            assert found.figures.total_key == status.figures.total_key


def ask_keys(db: bolt.Bolt) -> None:
    keys = mvcc.keyspace(db)
    index = keys.index()
    for key in index.keys()[:50]:
        index.get(key)
    list(keys.history(b"/registry/pods/default/x"))


def ask_hash(db: bolt.Bolt) -> None:
    hashkv.hashkv(mvcc.keyspace(db))


def ask_restore(db: bolt.Bolt) -> None:
    keys = mvcc.keyspace(db)
    appended = [(encode_revision(Revision(keys.last().main + 10)), b"")] if keys.last().main < 1 << 60 else []
    amend.tail(db, Amendment({b"members": {}, b"meta": keys.meta()}, {b"key": appended}))


def made() -> bytes:
    """A hundred small pages with branches, overflow pages, inline and other buckets, and free pages."""
    chance = random.Random(1)  # noqa: S311 - to be repeated, not secret
    changes: list[etcd_db.Change] = []
    for main in range(2, 200):
        key = b"/registry/pods/default/%d" % chance.randrange(90)
        size = chance.choice((10, 100, 300)) if main % 60 else 4000
        changes.append((main, key, None if chance.random() < 0.1 else chance.randbytes(size)))
    buckets = {
        b"key": etcd_db.key_bucket(changes),
        b"lease": {number.to_bytes(8): b"\x08\x01\x10\x3c" for number in range(90)},
        b"meta": {b"consistent_index": (9).to_bytes(8), b"term": (2).to_bytes(8), b"storageVersion": b"3.6.0"},
        b"members": {b"1f": b'{"id":31,"peerURLs":["http://127.0.0.1:2380"],"name":"m"}'},
    }
    return etcd_db.snapshot(buckets, page_size=1024)


def soak(original: bytes, seeds: range, log: Callable[[str], None]) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for seed in seeds:
        data = mutated(seed, original)
        begun = time.perf_counter()
        try:
            outcomes[ask_everything(data)] += 1
        except BaseException:
            log(f"seed {seed} FAILED")
            raise
        slowest = max(slowest, time.perf_counter() - begun)
        if slowest > SECONDS:
            raise AssertionError(f"seed {seed} took {slowest:.1f} s")
        if (seed + 1) % 1000 == 0:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            log(f"seed {seed}: {dict(outcomes)}, slowest {slowest:.2f} s, most memory {memory} MiB")
            if memory > MEMORY >> 20:
                raise AssertionError(f"{memory} MiB")
    return outcomes


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("snapshots", nargs="*", type=Path)
    options.add_argument("--count", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--log", type=argparse.FileType("a"), default=sys.stdout)
    chosen = options.parse_args()

    def log(line: str) -> None:
        chosen.log.write(f"{time.strftime('%H:%M:%S')} {line}\n")
        chosen.log.flush()

    originals = {path.name: path.read_bytes() for path in chosen.snapshots} or {"made": made()}
    share = chosen.count // len(originals)
    for place, (name, original) in enumerate(originals.items()):
        first = chosen.seed + place * share
        log(f"{name}: {len(original)} bytes, seeds {first} to {first + share - 1}")
        log(f"{name}: done: {dict(soak(original, range(first, first + share), log))}")


if __name__ == "__main__":
    main()
