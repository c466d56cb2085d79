"""Each scenario is broken for real, and repaired once by drtool's own commands, typed into the rehearsal's shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from drtool.commands.scenarios import SCENARIOS, scenario
from drtool.commands.scratch_marker import MARKER, PLACE, TOKEN, Marker, refuse_elsewhere, rehearsed
from drtool.core.errors import NotFound, UsageError
from drtool.host.root import Root

REPAIRS = {
    "address-lost": "drtool readdress --to 192.0.2.120 --apply --yes",
    "certificates-expired": "drtool fix --apply --yes",
    "quorum-lost": 'drtool survivors "$DRTOOL_REHEARSAL_ROOT/var/lib/etcd" --rebuild --apply --yes',
    "data-directory-deleted": "drtool restore latest --node --apply --yes",
    "nospace": "drtool fix etcd-nospace --apply --yes",
    "wrong-manifest": "drtool fix --apply --yes",
}
CAUSES = {
    "address-lost": ["node-address-changed"],
    "certificates-expired": ["cert-expired"],
    "quorum-lost": ["etcd-quorum-impossible"],
    "data-directory-deleted": [],  # etcd made itself an empty one, and is well
    "nospace": ["etcd-nospace"],
    "wrong-manifest": ["etcd-flag-vs-version"],
}
DRILL = [sys.executable, "-m", "drtool.cli", "drill", "--scenario"]


def environment(directory: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRTOOL_")}
    return kept | {"TMPDIR": str(directory), "HOME": str(directory / "home")}


def play(name: str, commands: str, directory: Path) -> tuple[int, dict[str, Any], str]:
    """Exit status, verdict, and all that was said meanwhile. Nothing is left in `directory`."""
    done = subprocess.run(
        [*DRILL, name, "-o", "json"],
        input=commands,
        capture_output=True,
        text=True,
        env=environment(directory),
        timeout=300,
    )
    assert list(directory.iterdir()) == [], done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("name", [one.name for one in SCENARIOS])
def test_drtool_repairs_each_scenario(name: str, tmp_path: Path) -> None:
    named = f'"{CAUSES[name][0]}"' if CAUSES[name] else '"rootCauses": []'
    commands = (  # etcd needs a moment to start, and another one to say in its log what is wrong
        "for try in $(seq 60); do drtool check -o json >causes.json;"
        f" grep -A1 rootCauses causes.json | grep -qF '{named}' && break; sleep 0.2; done\n"
        f"cat causes.json >&2\n{REPAIRS[name]}\nrm causes.json\n"
    )
    status, verdict, said = play(name, commands, tmp_path)
    causes, _ = json.JSONDecoder().raw_decode(said[said.index('{\n  "schemaVersion"') :])
    assert causes["rootCauses"] == CAUSES[name]
    assert verdict["repaired"], said
    assert status == 0
    assert [fact["what"] for fact in verdict["facts"] if not fact["good"]] == []
    assert "all 300 keys are there, with their values" in [fact["what"] for fact in verdict["facts"]]


def test_nothing_done_is_not_repaired(tmp_path: Path) -> None:
    status, verdict, said = play("data-directory-deleted", "true\n", tmp_path)
    assert status == 4
    assert not verdict["repaired"]
    (lost,) = [fact for fact in verdict["facts"] if not fact["good"]]
    assert lost["what"] == "all 300 keys are there, with their values"
    assert lost["why"].startswith("300 are gone or changed")
    assert "REHEARSAL: etcd's data directory was deleted" in said


def test_a_plan_may_be_taken_back_and_no_other_root_is_touched(tmp_path: Path) -> None:
    """The address is moved and moved back; then the machine itself and a copy of the node are refused."""
    commands = (
        "drtool readdress --to 192.0.2.120 --apply --yes\ndrtool undo --yes\ndrtool undo --list\n"
        'drtool undo --root / --yes\ncp -r "$DRTOOL_REHEARSAL_ROOT" ../copy\n'
        "drtool readdress --to 192.0.2.120 --root ../copy --apply --yes\nrm -r ../copy\n"
    )
    status, verdict, said = play("address-lost", commands, tmp_path)
    assert status == 4
    assert "taken back: this node's address: 192.0.2.111 -> 192.0.2.120" in said
    assert "left out, a rehearsal has no API server: wait until the API server" in said
    assert said.count("this shell is a rehearsal, and ") == 2
    bad = {fact["what"]: fact["why"] for fact in verdict["facts"] if not fact["good"]}
    assert bad["`drtool check` names no cause"] == "node-address-changed"


def test_ended_by_a_signal_it_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*DRILL, "nospace"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(tmp_path),
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("cat ../kubelet/containers.json\necho\nsleep 600\n")
        process.stdin.flush()
        known = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        process.stdin.close()
        assert process.wait(60) == 143
    (etcd,) = [one["pid"] for one in known if one["running"]]
    assert not Path(f"/proc/{etcd}").exists()
    assert list(tmp_path.iterdir()) == []


def marked(directory: Path, token: str, root: Path | None = None) -> Root:
    place = directory / MARKER.lstrip("/")
    place.parent.mkdir()
    place.touch(0o600)
    place.write_bytes(msgspec.json.encode(Marker(token, str(root or directory), str(directory), (1, 2, 3))))
    return Root(directory)


def test_only_the_rehearsals_own_root_is_one(tmp_path: Path) -> None:
    directory = tmp_path / "cp-1"
    directory.mkdir()
    root = marked(directory, "f00d")
    assert rehearsed(root, {TOKEN: "f00d"}) is not None
    assert rehearsed(root, {TOKEN: "beef"}) is None
    assert rehearsed(root, {}) is None
    assert rehearsed(Root(Path("/")), {TOKEN: "f00d"}) is None
    assert rehearsed(Root(tmp_path), {TOKEN: "f00d"}) is None
    moved = directory.rename(tmp_path / "elsewhere")
    assert rehearsed(Root(moved), {TOKEN: "f00d"}) is None


def test_a_marker_that_others_can_read_or_that_is_none(tmp_path: Path) -> None:
    root = marked(tmp_path, "f00d")
    place = tmp_path / MARKER.lstrip("/")
    place.chmod(0o644)
    assert rehearsed(root, {TOKEN: "f00d"}) is None
    place.chmod(0o600)
    place.write_bytes(b"{}")
    assert rehearsed(root, {TOKEN: "f00d"}) is None


def test_who_may_be_acted_on(tmp_path: Path) -> None:
    root = marked(tmp_path, "f00d")
    refuse_elsewhere(root, {TOKEN: "f00d", PLACE: str(tmp_path)})
    refuse_elsewhere(Root(Path("/")), {})
    with pytest.raises(UsageError, match="acts on this machine"):
        refuse_elsewhere(root, {})
    with pytest.raises(UsageError, match="is a rehearsal"):
        refuse_elsewhere(Root(Path("/")), {TOKEN: "f00d"})


def test_an_unknown_scenario() -> None:
    with pytest.raises(NotFound, match="no scenario earthquake"):
        scenario("earthquake")
