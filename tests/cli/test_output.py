"""Tables: one row a line for programs, readable on the terminal that is there."""

from __future__ import annotations

import pytest

from drtool.cli import _output
from drtool.cli._output import columns

HEADS = ("FILE", "READ BY", "NAMES")
ROW = ("/etc/kubernetes/pki/apiserver.crt", "kube-apiserver", "cp-1, kubernetes, kubernetes.default, 192.0.2.111")


def on_terminal(monkeypatch: pytest.MonkeyPatch, width: int | None) -> str:
    monkeypatch.setattr(_output, "terminal_width", lambda: width)
    return columns(HEADS, [ROW, ("a.crt", "-", "b")])


@pytest.mark.parametrize("width", [None, 120])
def test_one_row_a_line_for_programs_and_where_there_is_room(
    monkeypatch: pytest.MonkeyPatch, width: int | None
) -> None:
    assert on_terminal(monkeypatch, width).splitlines() == [
        "FILE                               READ BY         NAMES",
        "/etc/kubernetes/pki/apiserver.crt  kube-apiserver  cp-1, kubernetes, kubernetes.default, 192.0.2.111",
        "a.crt                              -               b",
    ]


def test_the_last_column_goes_over_several_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_terminal(monkeypatch, 80).splitlines() == [
        "FILE                               READ BY         NAMES",
        "/etc/kubernetes/pki/apiserver.crt  kube-apiserver  cp-1, kubernetes,",
        "                                                   kubernetes.default,",
        "                                                   192.0.2.111",
        "a.crt                              -               b",
    ]


def test_each_row_goes_over_lines_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_terminal(monkeypatch, 40).splitlines() == [
        "/etc/kubernetes/pki/apiserver.crt",
        "  READ BY  kube-apiserver",
        "  NAMES    cp-1, kubernetes,",
        "           kubernetes.default,",
        "           192.0.2.111",
        "a.crt",
        "  READ BY  -",
        "  NAMES    b",
    ]


def test_what_the_terminal_folds_once_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(on_terminal(monkeypatch, 60).splitlines()) == 3


def test_control_characters_are_written_out() -> None:
    assert columns(("A",), [("x\x1b[31m",)]) == "A\nx\\x1b[31m"
