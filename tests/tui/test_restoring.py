"""With a real etcd behind the screens: from a backup to its drill, and from a lost object to its YAML."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from drtool.commands.scratch_node import ScratchNode, lay_scratch
from snapshots.etcd import Etcd
from snapshots.seal import throwaway
from tests.tui.test_app import text, until
from tui.app import DrtoolApp
from tui.screens.output import Output


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScratchNode]:
    identity, recipient = throwaway()
    (tmp_path / "store").mkdir()
    (tmp_path / "identity").touch(0o600)
    (tmp_path / "identity").write_text(f"{identity}\n")
    (tmp_path / "drtool.yaml").write_text(
        f"store: {{url: 'file://{tmp_path}/store'}}\nrecipients: [{recipient}]\n"
        f"identities: [{tmp_path}/identity]\nspool: {{directory: {tmp_path}/spool}}\n"
    )
    monkeypatch.setenv("DRTOOL_CONFIG", str(tmp_path / "drtool.yaml"))
    made = lay_scratch(tmp_path / "cp-1")
    with made.etcd():
        made.fill(30)
        yield made


def play(node: ScratchNode, journey: Callable[[DrtoolApp, Pilot[None]], Awaitable[None]]) -> None:
    async def run() -> None:
        app = DrtoolApp([node.root])
        async with app.run_test(size=(100, 30)) as pilot:
            await journey(app, pilot)

    asyncio.run(run())


async def ended(app: DrtoolApp, pilot: Pilot[None]) -> str:
    """What the command that was just started printed."""

    def over() -> bool:
        screen = app.screen
        return isinstance(screen, Output) and screen.running.status() is not None

    await until(pilot, over, "the end of the command")
    await pilot.pause(0.4)
    head = str(app.screen.query_one("#head", Static).content)
    assert head.endswith(": done"), text(app)
    return text(app)


async def backed_up(app: DrtoolApp, pilot: Pilot[None]) -> None:
    await pilot.press("6")
    await until(pilot, lambda: "the store holds no backup" in text(app), "an empty store")
    await pilot.press("t")
    await ended(app, pilot)
    await pilot.press("escape")
    await until(pilot, lambda: "good, never drilled" in text(app), "the backup")


def test_from_a_backup_to_its_drill(node: ScratchNode) -> None:
    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        await backed_up(app, pilot)
        await pilot.press("d")
        await ended(app, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "good, drilled 20" in text(app), "the drill in the list")

    play(node, journey)


def test_from_a_lost_object_to_its_yaml(node: ScratchNode) -> None:
    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        await backed_up(app, pilot)
        key = next(key for key in sorted(node.keys()) if key.startswith(b"/registry/configmaps/"))
        namespace, name = key.decode().split("/")[-2:]
        with Etcd(node.access) as etcd:
            etcd.delete(key)
        await pilot.press("o")
        await until(pilot, lambda: "configmaps" in text(app), "the kinds in the backup")
        await pilot.press("slash", *"configmaps", "enter", "enter")
        await until(pilot, lambda: name in text(app), "the objects")
        await pilot.press("escape", "slash", *name, "enter", "d")
        assert f"- ConfigMap {name}" in await ended_differing(app, pilot)
        await pilot.press("escape", "u")
        written = await ended(app, pilot)
        assert "kind: ConfigMap" in written
        assert f"name: {name}" in written
        assert f"namespace: {namespace}" in written

    play(node, journey)


async def ended_differing(app: DrtoolApp, pilot: Pilot[None]) -> str:
    """`diff` ends with 1 where there are differences."""

    def over() -> bool:
        screen = app.screen
        return isinstance(screen, Output) and screen.running.status() == 1

    await until(pilot, over, "differences")
    await pilot.pause(0.4)
    return text(app)
