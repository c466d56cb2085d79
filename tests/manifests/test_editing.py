from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from drtool.core.errors import Refused
from manifests.editing import Change, Insert, Remove, Set, changed, edit, reverse, rewritten, scalars

COMMAND = ("spec", "containers", 0, "command")
FLAGS = [
    "--name=cp-1", "--listen-peer-urls=https://192.0.2.111:2380", '"--quoted=a: b"', "'--single=it''s'", "--é=ü",
]  # fmt: skip


@st.composite
def manifests(draw: st.DrawFn) -> bytes:
    """Manifests as people leave them: comments, blank lines, any quoting, any indentation of the list."""
    indent = draw(st.sampled_from(["  ", "    ", "      "]))
    lines = ["# kept by hand: ü", "kind: Pod", "spec:", "  containers:", "  - name: etcd", "    command:"]
    lines.append(f"  {indent}- etcd")
    for flag in draw(st.lists(st.sampled_from(FLAGS), min_size=1, max_size=6)):
        comment = draw(st.sampled_from(["", "  # why", "   "]))
        lines.append(f"  {indent}- {flag}{comment}")
        if draw(st.booleans()):
            lines.append(draw(st.sampled_from(["", "    # between", f"  {indent}# here"])))
    lines += ['    image: "x"   # image', "  hostNetwork: true"]
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    return ending.join([*lines, ""]).encode()


values = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=("Cs", "Zl", "Zp")), max_size=20
)


@given(manifests(), st.data(), values)
def test_setting_a_flag_changes_only_its_line_and_back_is_the_identity(
    data: bytes, draw: st.DataObject, value: str
) -> None:
    command = yaml.safe_load(data)["spec"]["containers"][0]["command"]
    position = draw.draw(st.integers(1, len(command) - 1))
    changes = edit("/m", data, [Set((*COMMAND, position), f"--flag={value}")])
    after = changed(data, changes)
    old, new = data.decode().split("\n"), after.decode().split("\n")
    assert len(old) == len(new)
    assert sum(a != b for a, b in zip(old, new, strict=True)) == len(changes)
    assert yaml.safe_load(after)["spec"]["containers"][0]["command"][position] == f"--flag={value}"
    assert changed(after, reverse(changes)) == data


@given(manifests(), st.data(), values)
def test_any_edits_together_come_back_to_the_same_bytes(data: bytes, draw: st.DataObject, value: str) -> None:
    count = len(yaml.safe_load(data)["spec"]["containers"][0]["command"])
    kinds = draw.draw(st.lists(st.sampled_from(["set", "remove", "insert", "leave"]), min_size=count, max_size=count))
    edits: list[Set | Remove | Insert] = []
    for position, kind in enumerate(kinds[1:], 1):
        if kind == "set":
            edits.append(Set((*COMMAND, position), value))
        elif kind == "remove":
            edits.append(Remove((*COMMAND, position)))
        elif kind == "insert":
            edits.append(Insert((*COMMAND, position), value))
    changes = edit("/m", data, edits)
    after = changed(data, changes)
    comments = [line for line in data.decode().splitlines() if line.lstrip().startswith("#")]
    assert [line for line in after.decode().splitlines() if line in comments] == comments
    assert changed(after, reverse(changes)) == data


@given(st.binary(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.text(max_size=4), st.text(max_size=4))))
def test_changes_apply_in_full_or_not_at_all(data: bytes, raw: list[tuple[int, str, str]]) -> None:
    changes = tuple(Change(*one) for one in raw)
    try:
        after = changed(data, changes)
    except Refused:
        return
    assert changed(after, reverse(changes)) == data


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [1, 2]\nb: &x 1\nc: *x\n", "alias"),
        ("a: 1\n---\na: 2\n", "several documents"),
        ("a: |\n  text\n", "several lines"),
        ("a: 1\n\tb: 2\n", "/m"),
        ("a: 1\na: 2\n", "/m:2: a is given twice"),
        ("", "empty"),
        ("b: 1\n", "no plain value at a"),
    ],
)
def test_what_is_odd_is_refused_with_the_place(text: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        edit("/m", text.encode(), [Set(("a",), "x")])


def test_an_item_without_a_line_of_its_own_is_not_removed() -> None:
    data = b"command: [etcd, --a, --b]\n"
    with pytest.raises(Refused, match="/m:1: the item has no line of its own"):
        edit("/m", data, [Remove(("command", 1))])
    after = changed(data, edit("/m", data, [Set(("command", 1), "--c")]))
    assert after == b"command: [etcd, --c, --b]\n"


def test_what_is_so_already_is_no_change() -> None:
    assert edit("/m", b"port: 6443\n", [Set(("port",), 6443)]) == ()


def test_a_text_that_reads_as_a_number_is_quoted() -> None:
    data = b"a: x\n"
    assert changed(data, edit("/m", data, [Set(("a",), "123")])) == b'a: "123"\n'
    assert changed(data, edit("/m", data, [Set(("a",), 123)])) == b"a: 123\n"


def real_manifests() -> list[Path]:
    import io
    import tarfile

    here = Path("../shared/trees")
    if not here.is_dir():
        pytest.skip("../shared/trees is absent")
    found = []
    for archive in sorted(here.glob("*.tar.gz")):
        with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as tar:
            for member in tar:
                if "/etc/kubernetes/manifests/" in f"/{member.name}" and member.isfile():
                    file = tar.extractfile(member)
                    assert file is not None
                    found.append((f"{archive.name}:{member.name}", file.read()))
    return found


def test_every_value_of_the_real_manifests_can_be_edited_and_put_back() -> None:
    for name, data in real_manifests():
        document = yaml.safe_load(data)
        for path, value in scalars(document):
            if not isinstance(value, str):
                continue
            changes = edit(name, data, [Set(path, value + "x")])
            after = changed(data, changes)
            assert sum(a != b for a, b in zip(data.splitlines(), after.splitlines(), strict=True)) == 1
            assert changed(after, reverse(changes)) == data


def test_an_address_is_rewritten_wherever_it_stands() -> None:
    data = b"a: https://192.0.2.111:2379 # 192.0.2.111\nb:\n- --x=192.0.2.111,192.0.2.1110\n"
    edits = rewritten("/m", data, lambda _, value: value.replace("192.0.2.111:", "192.0.2.120:"))
    assert changed(data, edit("/m", data, edits)) == data.replace(b"111:2379", b"120:2379")
