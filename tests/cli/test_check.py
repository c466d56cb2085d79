"""`drtool check` by one who may not read the node."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from drtool.cli import certs, fix, hashkv, status
from drtool.cli.check import command
from drtool.core.errors import CannotTell
from tests.builders.nobody import as_nobody, close, reachable
from tests.builders.tree import laid


@pytest.mark.parametrize("closed", ["etc/kubernetes/manifests", "etc/kubernetes"])
def test_manifests_that_may_not_be_read_are_unknown_and_not_missing(closed: str) -> None:
    with reachable() as directory:
        tree = laid(directory / "node")
        close(tree.root / closed)
        with as_nobody():
            done = CliRunner().invoke(command, ["--root", str(tree.root)])
        Path(tree.root / closed).chmod(0o755)
    assert isinstance(done.exception, CannotTell)
    assert "/etc/kubernetes/manifests: Permission denied" in done.exception.what
    assert "as root" in done.exception.hint
    assert "no cause of an outage found" in done.output
    assert "manifest-missing" not in done.output


def test_keys_that_may_not_be_read_are_not_missing() -> None:
    with reachable() as directory:
        tree = laid(directory / "node")
        with as_nobody():
            done = CliRunner().invoke(command, ["--root", str(tree.root)])
    assert "ca-key-missing" not in done.output


@pytest.mark.parametrize("other", [certs.command, fix.command])
def test_nothing_to_fix_and_all_certificates_are_not_said_of_what_may_not_be_read(other: click.Command) -> None:
    with reachable() as directory:
        tree = laid(directory / "node")
        close(tree.root / "etc/kubernetes/manifests")
        with as_nobody():
            done = CliRunner().invoke(other, ["--root", str(tree.root)])
        (tree.root / "etc/kubernetes/manifests").chmod(0o755)
    assert isinstance(done.exception, CannotTell)
    assert "/etc/kubernetes/manifests: Permission denied" in done.exception.what


@pytest.mark.parametrize(("other", "words"), [(status.command, []), (hashkv.command, []), (command, ["--db"])])
def test_a_file_that_may_not_be_read_is_a_failure_and_no_wrong_usage(other: click.Command, words: list[str]) -> None:
    with reachable() as directory:
        (directory / "closed.db").write_bytes(b"x")
        (directory / "closed.db").chmod(0)
        with as_nobody():
            done = CliRunner().invoke(other, [*words, str(directory / "closed.db")])
    assert isinstance(done.exception, PermissionError)
