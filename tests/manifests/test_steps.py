from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from drtool.core.errors import Refused
from drtool.core.plan import Ahead
from manifests.editing import Set
from manifests.steps.files import ChangeMode, ParkFile, PointLink, edit_yaml
from tests.fakes.host import rooted

DATA = b"a: x # c\nb: y\n"


def test_an_edit_and_its_way_back(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(DATA)
    (step,) = edit_yaml("/f.yaml", DATA, (Set(("a",), "z"),))
    assert step.describe() == "edit /f.yaml: x -> z"
    host = rooted(tmp_path)
    step.apply(host)
    step.apply(host)
    assert file.read_bytes() == b"a: z # c\nb: y\n"
    step.revert(host)
    step.revert(host)
    assert file.read_bytes() == DATA


def test_the_lines_of_an_edit_are_the_same_before_and_after_it() -> None:
    (step,) = edit_yaml("/f.yaml", DATA, (Set(("a",), "z"),))
    lines = ("--- /f.yaml", "+++ /f.yaml", "@@ -1 +1 @@", "-a: x # c", "+a: z # c")
    assert step.diff(DATA) == step.diff(b"a: z # c\nb: y\n") == lines
    assert step.diff(b"") == ("/f.yaml is neither as this step found it nor as it left it",)


def test_a_file_edited_by_someone_meanwhile_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(DATA + b"c: 1\n")
    (step,) = edit_yaml("/f.yaml", DATA, (Set(("a",), "z"),))
    host = rooted(tmp_path)
    with pytest.raises(Refused, match="changed by someone else"):
        step.apply(host)
    step.revert(host)
    assert file.read_bytes() == DATA + b"c: 1\n"


def test_what_was_edited_after_this_step_is_not_put_back_over(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(DATA)
    (step,) = edit_yaml("/f.yaml", DATA, (Set(("a",), "z"),))
    host = rooted(tmp_path)
    step.apply(host)
    file.write_bytes(file.read_bytes() + b"c: 1\n")
    with pytest.raises(Refused, match="changed by someone else"):
        step.revert(host)
    assert file.read_bytes().endswith(b"c: 1\n")


def test_it_is_told_beforehand_that_an_edit_cannot_be_taken_back(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(DATA)
    (step,) = edit_yaml("/f.yaml", DATA, (Set(("a",), "z"),))
    host = rooted(tmp_path)
    step.foresee(host, Ahead(), complete=False)
    step.apply(host)
    ahead = Ahead()
    step.foresee(host, ahead, complete=True)
    assert ahead.of("/f.yaml") == step.before
    file.write_bytes(file.read_bytes() + b"c: 1\n")
    with pytest.raises(Refused, match=r"/f[.]yaml was changed by someone else"):
        step.foresee(host, Ahead(), complete=True)
    file.unlink()
    with pytest.raises(Refused, match=r"/f[.]yaml is gone"):
        step.foresee(host, Ahead(), complete=True)
    shutil.rmtree(tmp_path / host.aside.lstrip("/"))
    with pytest.raises(Refused, match=r"/aside/remembered/edited_f[.]yaml-[0-9a-f]* is gone"):
        step.foresee(host, Ahead(), complete=True)


def test_two_edits_of_one_file_are_foreseen_newest_first(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_bytes(DATA)
    (one,) = edit_yaml("/f.yaml", DATA, (Set(("a",), "z"),))
    (two,) = edit_yaml("/f.yaml", DATA.replace(b"x", b"z"), (Set(("b",), "w"),))
    park, host, ahead = ParkFile("/f.yaml", "/parked/f.yaml"), rooted(tmp_path), Ahead()
    for step in (one, two, park):
        step.apply(host)
    for step in (park, two, one):
        step.foresee(host, ahead, complete=True)
    assert ahead.of("/f.yaml") == one.before


def test_an_edit_that_someone_made_before_is_none_of_the_steps(tmp_path: Path) -> None:
    (step,) = edit_yaml("/f.yaml", DATA, (Set(("a",), "z"),))
    edited = DATA.replace(b"x", b"z")
    (tmp_path / "f.yaml").write_bytes(edited)
    host = rooted(tmp_path)
    step.apply(host)
    step.foresee(host, Ahead(), complete=True)
    step.revert(host)
    assert (tmp_path / "f.yaml").read_bytes() == edited


def test_it_is_told_beforehand_that_a_parked_file_cannot_return(tmp_path: Path) -> None:
    step, host = ParkFile("/a", "/parked/a"), rooted(tmp_path)
    step.foresee(host, Ahead(), complete=False)
    with pytest.raises(Refused, match="/parked/a is gone"):
        step.foresee(host, Ahead(), complete=True)
    (tmp_path / "a").write_text("1")
    step.apply(host)
    (tmp_path / "a").write_text("2")
    with pytest.raises(Refused, match="/parked/a cannot return: there is another /a"):
        step.foresee(host, Ahead(), complete=True)


def test_nothing_to_change_is_no_step() -> None:
    assert edit_yaml("/f.yaml", DATA, (Set(("a",), "x"),)) == ()


def test_many_like_changes_are_told_once() -> None:
    data = b"".join(b"- 192.0.2.1\n" for _ in range(9))
    (step,) = edit_yaml("/f", data, tuple(Set((i,), "192.0.2.2") for i in range(9)))
    assert step.describe() == "edit /f: 192.0.2.1 -> 192.0.2.2 (9 times)"


def test_parking_refuses_where_both_are_there_or_neither(tmp_path: Path) -> None:
    step, host = ParkFile("/a", "/parked/a"), rooted(tmp_path)
    with pytest.raises(Refused, match="is gone"):
        step.apply(host)
    (tmp_path / "a").write_text("1")
    (tmp_path / "parked").mkdir()
    (tmp_path / "parked/a").write_text("2")
    with pytest.raises(Refused, match="already there"):
        step.apply(host)
    assert ((tmp_path / "a").read_text(), (tmp_path / "parked/a").read_text()) == ("1", "2")


def test_a_mode_is_changed_and_changed_back_but_never_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k")
    (tmp_path / "key").chmod(0o644)
    step, host = ChangeMode("/key", 0o644, 0o600), rooted(tmp_path)
    step.apply(host)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    step.revert(host)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o644
    (tmp_path / "link").symlink_to("key")
    with pytest.raises(OSError, match="symbolic links"):
        ChangeMode("/link", 0o644, 0o600).apply(host)


@pytest.mark.parametrize("plain", [True, False])
def test_a_link_is_pointed_elsewhere_and_back(plain: bool, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    link = tmp_path / "current"
    if plain:
        link.write_text("a plain file")
    else:
        link.symlink_to("/old")
    step, host = PointLink("/current", "" if plain else "/old", "/new"), rooted(tmp_path)
    step.apply(host)
    step.apply(host)
    assert str(link.readlink()) == "/new"
    step.foresee(host, Ahead(), complete=True)
    step.revert(host)
    assert (link.read_text() == "a plain file") if plain else (str(link.readlink()) == "/old")
