"""Every screen as it looks, at 80x24 and at 120x40, on a fixed broken node and a fixed clock.

`DRTOOL_UPDATE=1 pytest tests/tui/test_screens.py` writes the pictures anew; read the difference before committing it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from drtool.core.errors import NotFound
from drtool.host.root import Root
from snapshots.catalog import Backup, Part, Record, Report, Verified
from snapshots.inventory import Inventory
from tests.builders.tree import NOW, Tree, laid
from tests.tui.test_app import until
from tui.app import DrtoolApp
from tui.questions import questions

PICTURES = Path(__file__).parent / "screens"
SIZES = {"80x24": (80, 24), "120x40": (120, 40)}
JOURNEYS: dict[str, tuple[str, ...]] = {
    "causes": ("1",),
    "causes-detail": ("1", "enter"),
    "checks": ("2",),
    "checks-explained": ("2", "enter"),
    "certificates": ("3",),
    "etcd": ("4",),
    "pods": ("5", "enter"),
    "backups": ("6", "enter"),
    "objects": ("7",),
    "plans": ("8",),
    "nodes": ("9", "enter"),
    "keys": ("question_mark",),
    "filter": ("2", "slash", "e", "t", "c", "d"),
}


def backup(age: timedelta, good: bool, drilled: bool) -> Backup:
    part = Part("db.zst.age", 4_763_648, "0" * 64, 812_003, "1" * 64)
    at = NOW - age
    record = Record(
        id=f"{at:%Y%m%dT%H%M%SZ}-4711-0a1b2c",
        cluster_id="0a318f42a9bf875f",
        member_id="8e9e05c52164694d",
        node="cp-1",
        taken_at=at,
        finished_at=at,
        endpoint="https://127.0.0.1:2379",
        etcd="3.7.0",
        kubernetes="v1.37.2",
        revision=4711,
        compact_revision=4000,
        raft_index=5210,
        raft_term=3,
        keys=1234,
        keys_by_prefix={"/registry/pods/": 40},
        db=part,
        sealed_for=("age1example",),
        verified=Verified(at, True) if good else None,
    )
    reports = (Report("drill", at + timedelta(hours=1), True),) if drilled else ()
    return Backup(record, reports, True, 812_003)


def asked(tree: Tree) -> dict[str, Callable[[], Any]]:
    def no_db() -> Any:
        raise NotFound("/var/lib/etcd holds no db")

    held = (backup(timedelta(hours=3), True, False), backup(timedelta(days=2), False, False))
    held = (*held, backup(timedelta(days=5), True, True))
    return {
        **questions([Root(tree.root)], NOW, ""),
        "backups": lambda: Inventory(backups=held),
        "objects": no_db,
    }


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    made = laid(tmp_path_factory.mktemp("screens"))
    made.addresses("192.0.2.120")
    made.log("etcd", '{"level":"fatal","msg":"discovery failed","error":"listen tcp 192.0.2.111:2380: bind"}')
    return made


def painted(app: DrtoolApp) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


@pytest.mark.parametrize("size", list(SIZES))
@pytest.mark.parametrize("name", list(JOURNEYS))
def test_the_screen_is_as_it_was(tree: Tree, name: str, size: str) -> None:
    async def run() -> str:
        app = DrtoolApp([Root(tree.root)], NOW, asked=asked(tree))
        app.session.clock = lambda: NOW
        async with app.run_test(size=SIZES[size]) as pilot:
            await settled(app, pilot)
            await pilot.press(*JOURNEYS[name])
            await settled(app, pilot)
            for _ in range(100):  # what is painted late on a slow machine is waited for; what is wrong stays wrong
                if (shown := painted(app).replace(str(tree.root), "/mnt/cp-1")) == known:
                    break
                await pilot.pause(0.1)
            return shown

    picture = PICTURES / f"{name}-{size}.txt"
    known = picture.read_text() if picture.exists() else ""
    shown = asyncio.run(run())
    if os.environ.get("DRTOOL_UPDATE"):
        PICTURES.mkdir(exist_ok=True)
        picture.write_text(shown)
    assert shown == picture.read_text()
    width, height = SIZES[size]
    assert shown.count("\n") == height
    assert all(len(line) <= width for line in shown.splitlines())


async def settled(app: DrtoolApp, pilot: Pilot[None]) -> None:
    """Until every question that was asked has its answer on the screen."""
    session = app.session
    await until(pilot, lambda: session._asked <= session._known.keys(), "all answers")
    await pilot.pause(0.1)
