"""With a real etcd behind the screens: an outage repaired, a backup drilled, a lost object found again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from drtool.commands.rehearsal import Handover, rehearse
from drtool.commands.scenarios import scenario
from drtool.commands.scratch_node import ScratchNode, lay_scratch
from drtool.host.root import Root
from snapshots.etcd import Etcd
from snapshots.seal import throwaway
from tests.tui.test_app import text, until
from tui.app import DrtoolApp


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


def play(root: Root, journey: Callable[[DrtoolApp, Pilot[None]], Awaitable[None]]) -> None:
    async def run() -> None:
        app = DrtoolApp([root])
        async with app.run_test(size=(100, 30)) as pilot:
            await journey(app, pilot)

    asyncio.run(run())


async def ended(app: DrtoolApp, pilot: Pilot[None], state: str = "done") -> str:
    """What the command that was just started printed, once the screen says that it is over."""
    over = re.compile(r": (done|exit status -?\d+)$")
    await until(pilot, lambda: over.search(line(app, "#head")) is not None, "the end of the command")
    assert line(app, "#head").endswith(f": {state}"), text(app)
    return text(app)


def line(app: DrtoolApp, name: str) -> str:
    found = app.screen.query(name)
    return str(found.first(Static).content) if found else ""


def test_from_an_outage_to_the_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "This node's address 192.0.2.111 is gone; it has 192.0.2.120" in text(app), "cause")
        await pilot.press("f")
        await until(pilot, lambda: "A:carry it out" in line(app, "#foot"), "the plan")
        assert "/etc/kubernetes/manifests/etcd.yaml" in text(app)
        await pilot.press("A", *"another", "enter", "A", *app.cluster())
        assert "--apply" not in line(app, "#head")
        await pilot.press("enter")
        await until(pilot, lambda: "--apply --yes" in line(app, "#head"), "the plan being carried out")
        await ended(app, pilot)
        await pilot.press("escape", "1")
        await until(pilot, lambda: "no cause of an outage found" in text(app), "the repair on the first screen")
        await pilot.press("8", "enter")
        await until(pilot, lambda: "+++ /etc/kubernetes/manifests/etcd.yaml" in text(app), "what the plan changed")
        assert "+    - --listen-client-urls=https://127.0.0.1:" in text(app)

    def hand_over(node: Handover) -> None:
        with monkeypatch.context() as shell:
            for name, value in node.environment.items():
                shell.setenv(name, value)
            play(Root(node.root), journey)

    verdict = rehearse(scenario("address-lost"), hand_over)
    assert verdict.repaired, verdict.facts


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

    play(node.root, journey)


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
        assert f"- ConfigMap {name}" in await ended(app, pilot, "exit status 1")  # there are differences
        await pilot.press("escape", "u")
        written = await ended(app, pilot)
        assert "kind: ConfigMap" in written
        assert f"name: {name}" in written
        assert f"namespace: {namespace}" in written

    play(node.root, journey)
