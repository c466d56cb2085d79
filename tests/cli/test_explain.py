"""`drtool explain`: each check's own words, and the nearest id for a wrong one."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from drtool.cli.explain import command
from drtool.commands.check import all_checks
from drtool.core.errors import UsageError


def told(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_one_check() -> None:
    text = told("cert-expired")
    assert text.startswith("cert-expired (critical, host)\n\nA certificate in use has expired.\n")
    assert "Fix: " in text
    found = json.loads(told("cert-expired", "-o", "json"))
    assert found["schemaVersion"] == 1
    assert found["checks"][0]["id"] == "cert-expired"


def test_the_list_has_every_check_with_its_severity() -> None:
    lines = told().splitlines()[1:]
    assert {line.split()[0] for line in lines} == {check.id for check in all_checks()}
    assert {line.split()[1] for line in lines} <= {"critical", "error", "warning", "info"}


def test_every_check_can_be_explained() -> None:
    for check in all_checks():
        assert check.explanation, check.id
        assert check.id in told(check.id)


@pytest.mark.parametrize(
    ("wrong", "near"), [("cert-expird", "cert-expired"), ("cert_expired", "cert-expired"), ("vip-interface", "vip-int")]
)
def test_an_unknown_id_names_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(UsageError, match=near) as raised:
        CliRunner().invoke(command, [wrong], catch_exceptions=False)
    assert raised.value.exit_status == 2


def test_nothing_near() -> None:
    with pytest.raises(UsageError, match="lists them"):
        CliRunner().invoke(command, ["qqqqqq"], catch_exceptions=False)
