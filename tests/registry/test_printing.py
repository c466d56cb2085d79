from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from snapshots.registry import printing

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "a: plain\n"),
        ("true", 'a: "true"\n'),
        ("y", 'a: "y"\n'),
        ("1e3", 'a: "1e3"\n'),
        ("192.0.2.2", "a: 192.0.2.2\n"),
        ("2026-11-30T04:00:00Z", 'a: "2026-11-30T04:00:00Z"\n'),
        ("*", "a: '*'\n"),
        ("one\ntwo\n", "a: |\n  one\n  two\n"),
        ("", 'a: ""\n'),
        (None, "a: null\n"),
        ({}, "a: {}\n"),
        (["x"], "a:\n- x\n"),
    ],
)
def test_yaml_is_written_as_kubectl_writes_it(value: object, text: str) -> None:
    assert printing.as_yaml({"a": value}) == text


def test_shared_parts_do_not_become_anchors() -> None:
    shared = {"k": "v"}
    assert "&" not in printing.as_yaml({"a": shared, "b": shared})


@given(st.dictionaries(TEXT, TEXT, max_size=4))
def test_yaml_reads_back_as_it_was(body: dict[str, str]) -> None:
    assert yaml.safe_load(printing.as_yaml({"data": body}))["data"] == body


def test_json_is_indented_by_four_and_escaped_as_go_does() -> None:
    assert printing.as_json({"b": "<&>", "a": 1}) == '{\n    "a": 1,\n    "b": "\\u003c\\u0026\\u003e"\n}'
