"""Facts of etcd's data survive the way through a bundle, without any value of etcd's."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from drtool.host.root import Root
from snapshots.contents import Contents, Sealed
from snapshots.facts import Database, DataDirectory, look
from snapshots.kept import decode, encode
from snapshots.walcheck import LogFacts
from tests.builders.whole import whole

SECRET = b"k8s:enc:aescbc:v1:key1:sealed bytes"


def test_a_real_data_directory_comes_back(tmp_path: Path) -> None:
    tree = whole("lab-live-1.37", tmp_path)
    facts = look(Root(tree.root), "/var/lib/etcd")
    found = decode(encode(facts, lambda data: data))
    assert found is not None
    assert found.log == facts.log
    assert found.database.cluster == facts.database.cluster
    assert found.database.contents.nodes == facts.database.contents.nodes
    assert found.database.contents.kubeadm == facts.database.contents.kubeadm
    assert (found.snaps, found.v2, found.names) == (facts.snaps, facts.v2, facts.names)


def test_values_stay_and_texts_are_redacted() -> None:
    contents = Contents(kubeadm=b"token: abc", stored=(Sealed("secrets", "aescbc", "key1", 3, b"/registry/a", SECRET),))
    database = Database("/var/lib/etcd/member/snap/db", 1, _contents=contents)
    encoded = encode(
        DataDirectory("/var/lib/etcd", True, _database=database), lambda data: data.replace(b"abc", b"xyz")
    )
    assert b"sealed" not in encoded
    found = decode(encoded)
    assert found is not None
    [sealed] = found.database.contents.stored
    assert (sealed.resource, sealed.count, sealed.key, sealed.value) == ("secrets", 3, b"/registry/a", b"")
    assert found.database.contents.kubeadm == b"token: xyz"


def test_a_log_with_a_fault_comes_back() -> None:
    facts = DataDirectory("/d", True, member=True, _log=LogFacts(("0-0.wal",), fault="checksum", torn=True))
    assert decode(encode(facts, bytes)) == facts


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["path", "present", "_database", "_log", "snaps", "names", "size"]), inner)
    ),
)


@given(JSON)
def test_any_json_is_facts_or_none(value: object) -> None:
    for data in (value, {"dataDirectory": value}):
        found = decode(json.dumps(data).encode())
        assert found is None or isinstance(found, DataDirectory)


@given(st.binary(max_size=50))
def test_any_bytes_are_facts_or_none(data: bytes) -> None:
    assert decode(data) is None
