"""What a person sees of plans: printed first, applied only on the node itself and only once agreed to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from drtool.cli import group
from drtool.cli._plan import Answers, agree, as_text, refuse_elsewhere, telling
from drtool.core.errors import UsageError
from drtool.core.plan import Event, Mark, Plan
from drtool.host.journal import DiskJournal
from drtool.host.machine import Host
from drtool.host.root import Root
from tests.builders.tree import Tree, laid
from tests.fakes.host import PLAN


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = laid(tmp_path)
    tree.addresses("127.0.0.1", "192.0.2.120")
    return tree


def drtool(*words: str) -> Result:
    return CliRunner().invoke(group, words)


def test_a_plan_is_printed_with_numbers_and_how_to_apply_it(tree: Tree) -> None:
    said = drtool("readdress", "--root", str(tree.root)).stdout
    assert "this node's address: 192.0.2.111 -> 192.0.2.120" in said
    assert "  1. stop the kubelet" in said
    assert said.rstrip().endswith("nothing was changed; to carry it out: drtool readdress --apply")


def test_a_plan_as_json_says_the_same(tree: Tree) -> None:
    data = json.loads(drtool("readdress", "--root", str(tree.root), "-o", "json").stdout)
    assert next(iter(data)) == "schemaVersion"
    assert data["phase"] == "planned"
    steps = data["plan"]["steps"]
    assert [step["number"] for step in steps] == list(range(1, len(steps) + 1))
    assert {step["step"] for step in steps} >= {"StopControlPlane", "EditFile", "IssueCertificate", "UpdateMember"}


@pytest.mark.parametrize("words", [("readdress",), ("fix", "node-address-changed")])
def test_a_copied_tree_is_never_changed(words: tuple[str, ...], tree: Tree) -> None:
    before = sorted(tree.root.rglob("*"))
    found = drtool(*words, "--root", str(tree.root), "--apply", "--yes")
    assert isinstance(found.exception, UsageError)
    assert "acts on this machine" in found.exception.what
    assert sorted(tree.root.rglob("*")) == before


def test_dry_run_wins_over_apply(tree: Tree) -> None:
    found = drtool("readdress", "--root", str(tree.root), "--apply", "--yes", "--dry-run")
    assert found.exit_code == 0
    assert "nothing was changed" in found.stdout


def test_nobody_at_the_terminal_means_no() -> None:
    with pytest.raises(UsageError, match="nobody is here to agree") as caught:
        agree(Plan("x", "t", "lab", ()))
    assert caught.value.hint == "add --yes"


def test_an_empty_plan_is_not_carried_out() -> None:
    with pytest.raises(UsageError, match="no steps"):
        refuse_elsewhere(Plan("x", "t", "lab", ()), Answers(apply=True))


def test_control_characters_of_a_node_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in as_text(Plan("x", "evil \x1b[2J", "lab\x1b", (), ("by \x07 hand",)), "")


def test_a_plan_is_only_called_unfinished_where_it_was_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan: Plan[Host] = Plan(PLAN, "t", "lab", ())
    with pytest.raises(OSError, match="read-only"), telling(Root(tmp_path), plan, False):
        raise OSError("read-only")
    assert capsys.readouterr().err == ""
    journal = DiskJournal(Root(tmp_path), PLAN)
    journal.start(b"{}")
    journal.record(Mark(Event.BEGUN, 0))
    with pytest.raises(OSError, match="read-only"), telling(Root(tmp_path), plan, False):
        raise OSError("read-only")
    assert f"the plan {PLAN} is unfinished" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["readdress", "move-endpoint", "fix", "undo", "resume", "restore", "survivors"])
def test_help_has_an_example(name: str) -> None:
    assert f"Example: drtool {name}" in drtool(name, "--help").stdout


def test_restore_wants_one_of_two_places() -> None:
    for words in (("restore", "x.db"), ("restore", "x.db", "--to", "/nowhere", "--node")):
        found = drtool(*words)
        assert isinstance(found.exception, UsageError)
        assert "where to?" in found.exception.what


@pytest.mark.parametrize(("typed", "status"), [(b"lab\n", 0), (b"prod\n", 1), (b"\n", 1)])
def test_the_clusters_name_is_what_agrees(typed: bytes, status: int) -> None:
    program = "from drtool.cli._plan import agree; from drtool.core.plan import Plan; agree(Plan('x', 't', 'lab', ()))"
    terminal, end = os.openpty()
    try:
        os.write(terminal, typed)
        run = subprocess.run([sys.executable, "-c", program], stdin=end, capture_output=True, check=False)
    finally:
        os.close(terminal)
        os.close(end)
    assert run.returncode == status
    assert b"type the cluster's name (lab)" in run.stderr
    assert (b"nothing was done" in run.stderr) == bool(status)
