"""A bundle's index is data from elsewhere: what makes no sense in it is left out."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drtool.commands.capture import gather
from drtool.host.patience import Patience
from drtool.host.root import GAVE_UP, Root
from manifests.capture import capture
from manifests.node import seen
from manifests.saved import INDEX, is_bundle, restored
from manifests.saving import files
from tests.builders.tree import laid

RECORD = {"schemaVersion": 1, "capturedAt": "2026-11-30T04:00:00Z"}


def unpacked(place: Path, kept: dict[str, bytes]) -> Root:
    for path, data in kept.items():
        file = place / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return Root(place)


def test_a_capture_comes_back_with_modes_links_listings_and_errors(tmp_path: Path) -> None:
    tree = laid(tmp_path / "tree")
    tree.place("/etc/kubernetes/ring.conf").symlink_to("ring.conf")
    taken = capture(Root(tree.root))
    root = unpacked(tmp_path / "bundle", files(taken, RECORD))
    assert is_bundle(root)
    found = restored(root)
    assert found is not None
    assert found.listings == taken.listings
    assert found.at is not None
    for path, entry in taken.entries.items():
        again = found.entry(path)
        assert (again.kind, again.mode, again.uid, again.gid) == (entry.kind, entry.mode, entry.uid, entry.gid), path
        assert (again.size, again.mtime, again.target, again.error) == (
            entry.size,
            entry.mtime,
            entry.target,
            entry.error,
        )
        if "key" not in path and not path.endswith((".conf", ".pem")):
            assert again.data == entry.data, path


def test_a_file_that_is_gone_from_a_bundle_is_missing(tmp_path: Path) -> None:
    root = unpacked(tmp_path / "bundle", files(capture(Root(laid(tmp_path / "tree").root)), RECORD))
    (tmp_path / "bundle/etc/hosts").unlink()
    found = restored(root)
    assert found is not None
    assert (found.entry("/etc/hosts").data, found.entry("/etc/hosts").error) == (None, "No such file or directory")


@pytest.mark.parametrize(
    "index", ["", "[]", "{}", '{"entries": []}', '{"entries": {}, "listings": 3}', "[" * 50_000, '{"entries": {"/a"']
)
def test_an_index_that_is_none_leaves_a_plain_tree(index: str, tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.write(INDEX, index)
    assert restored(Root(tree.root)) is None
    assert seen(gather(Root(tree.root))).layout == "kubeadm-stacked"


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.lists(st.integers(), max_size=2)
)
KEYS = st.sampled_from(["kind", "mode", "uid", "gid", "size", "mtime", "target", "cut", "error", "data"])
KINDS = st.sampled_from(["file", "link", "directory", "absent", "odd"])
SAID = st.builds(lambda said, kind: {**said, "kind": kind}, st.dictionaries(KEYS, VALUES), KINDS)
PATHS = (
    st.sampled_from(["/etc/hosts", "/../../etc/passwd", "etc/hosts", "", "/drtool/capture.json", "/a\0b"]) | st.text()
)


@given(st.dictionaries(PATHS, SAID | VALUES, max_size=5), st.dictionaries(PATHS, VALUES, max_size=3))
def test_any_index_gives_a_capture_of_what_lies_inside(entries: object, listings: object) -> None:
    with TemporaryDirectory() as place:
        root = unpacked(Path(place), {INDEX: json.dumps({"entries": entries, "listings": listings}).encode()})
        found = restored(root)
        assert found is not None
        for entry in found.entries.values():
            assert entry.data is None or b"root:" not in entry.data
        assert seen(found).layout


class GivesUp(Patience):
    """A disk on which no read ends."""

    def spend(self, call, otherwise):  # type: ignore[no-untyped-def]
        return otherwise


def test_on_a_dead_disk_every_file_says_so(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    taken = capture(Root(tree.root, GivesUp()))
    assert taken.entry("/etc/hosts").error == GAVE_UP
    kept = files(taken, RECORD)
    assert GAVE_UP in kept[INDEX].decode()
