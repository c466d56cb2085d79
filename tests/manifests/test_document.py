"""YAML where every value knows its line, and nothing hostile gets through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drtool.core.report import Evidence
from manifests.document import MAX_BYTES, MAX_DEPTH, Document, Unparsable, line_text, parse

POD = b"""# a comment
apiVersion: v1
kind: Pod
spec:
  containers:
  - name: etcd
    command:
    - etcd
    - --name=cp-1
"""


def only(data: bytes) -> Document:
    [document] = parse("/a.yaml", data)
    return document


def test_values_and_their_lines() -> None:
    document = only(POD)
    assert document.get("spec", "containers", 0, "command", 1) == "--name=cp-1"
    assert document.evidence("spec", "containers", 0, "command", 1) == Evidence("/a.yaml", 9, "--name=cp-1")
    assert document.evidence("spec", "containers", 0, "image").line == 6
    assert document.get("spec", "volumes", default=[]) == []
    assert document.get("kind", "deeper") is None


def test_spans_are_the_characters_of_a_scalar() -> None:
    text = 'naïve: "ü"\nsecret: abc\n'
    document = only(text.encode())
    start, end = document.spans[("secret",)]
    assert text[start:end] == "abc"


def test_json_and_several_documents() -> None:
    assert only(b'{"kind": "Pod", "spec": {"a": [1, true, null]}}').get("spec", "a") == [1, True, None]
    assert [document.get("a") for document in parse("/a", b"a: 1\n---\na: 2\n")] == [1, 2]


@pytest.mark.parametrize(
    ("data", "problem", "line"),
    [
        (b"", "the file is empty", None),
        (b"  \n", "the file is empty", None),
        (b"a: b\n\tc: d\n", "", 2),
        (b"a: b\n\xff\xfe: c\n", "not UTF-8 text", 2),
        (b"a: [1, 2\n", "", None),
        (b"? [a, b]\n: c\n", "a key that is no plain value", 1),
        (b"a" * (MAX_BYTES + 1), "larger than", None),
    ],
)
def test_what_cannot_be_read_says_where(data: bytes, problem: str, line: int | None) -> None:
    with pytest.raises(Unparsable) as failed:
        parse("/a.yaml", data)
    assert problem in failed.value.problem
    assert line is None or failed.value.line == line


def test_aliases_and_depth_are_refused_as_drtools_own_limit() -> None:
    bomb = b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
    for data in (bomb, b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)):
        with pytest.raises(Unparsable) as failed:
            parse("/a.yaml", data)
        assert failed.value.refused


def test_odd_tags_and_endless_numbers_stay_as_written() -> None:
    document = only(
        b"a: !!timestamp soon\nb: !!python/object:os.system x\nc: " + b"9" * 3000 + b"\nd: 0x" + b"f" * 3000
    )
    assert document.get("a") == "soon"
    assert document.get("b") == "x"
    assert str(document.get("c")).startswith("999")
    assert str(document.get("d")).startswith("0xf")


def test_a_line_that_is_quoted_hides_what_is_secret() -> None:
    assert line_text(("- token: abc",), 1) == "token: <hidden>"
    assert line_text(('{"name": "a", "secret": "abc"}',), 1) == '{"name": "a", "secret": <hidden>'
    assert line_text(("client-key-data: LS0t",), 1) == "client-key-data: <hidden>"
    assert line_text((), 3) == ""


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_documents_or_unparsable(data: bytes) -> None:
    try:
        documents = parse("/a.yaml", data)
    except Unparsable:
        return
    for document in documents:
        for path in document.lines:
            assert document.evidence(*path).path == "/a.yaml"


YAML = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(YAML)
def test_json_comes_back_as_it_was(value: object) -> None:
    import json

    text = json.dumps({"value": value}, ensure_ascii=True)
    if "\\ud" in text or "\\u00" in text or "\\ufff" in text or "\\u2028" in text:
        return  # lone surrogates and control characters are no YAML
    assert only(text.encode()).get("value") == value
