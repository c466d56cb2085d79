from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshots import wire
from snapshots.registry import envelope, fields, protobuf
from tests.registry import published

TESTDATA = published.folder()
needs_testdata = pytest.mark.skipif(TESTDATA is None, reason="k8s.io/api is not in Go's module cache, Go not at hand")


@needs_testdata
@pytest.mark.parametrize("release", ["HEAD", "v1.33.0", "v1.34.0", "v1.36.0"])
def test_every_published_type_decodes_to_exactly_its_json(release: str) -> None:
    samples = list(published.samples(TESTDATA or Path(), release))
    assert len(samples) > 150
    assert [sample.name for sample in samples if published.decoded(sample) != sample.shown] == []


def sealed(raw: bytes, version: str = "v1", kind: str = "ConfigMap") -> bytes:
    meta = wire.field(1, version.encode()) + wire.field(2, kind.encode())
    return envelope.PROTOBUF_MAGIC + wire.field(1, meta) + wire.field(2, raw)


def test_unknown_fields_are_kept_with_number_and_bytes() -> None:
    metadata = wire.field(1, b"a") + wire.field(99, b"later")
    body = envelope.decode(sealed(wire.field(1, metadata) + wire.field(77, 5)))
    assert body["metadata"]["name"] == "a"
    assert body["metadata"]["$unknown"] == [{"field": 99, "wireType": 2, "base64": "bGF0ZXI="}]
    assert body["$unknown"] == [{"field": 77, "wireType": 0, "base64": "BQ=="}]


def test_an_unknown_kind_is_shown_with_its_bytes() -> None:
    assert envelope.decode(sealed(b"\x01", "made.up/v1", "Thing")) == {
        "apiVersion": "made.up/v1",
        "kind": "Thing",
        "$unknown": "AQ==",
    }


def test_what_is_empty_is_shown_where_go_shows_it() -> None:
    body = envelope.decode(sealed(wire.field(2, b""), "v1", "Pod"))
    assert body["spec"] == {"containers": None}


def test_managed_fields_can_be_passed_over() -> None:
    entry = wire.field(1, b"kubectl") + wire.field(7, wire.field(1, b'{"f:data":{}}'))
    value = sealed(wire.field(1, wire.field(1, b"a") + wire.field(17, entry) + wire.field(14, b"final")))
    kept = envelope.decode(value)["metadata"]
    assert kept["managedFields"][0]["fieldsV1"] == {"f:data": {}}
    assert envelope.decode(value, managed=False)["metadata"] == {"name": "a", "finalizers": ["final"]}
    assert envelope.decode(b'{"metadata": {"name": "a", "managedFields": []}}', managed=False) == {
        "metadata": {"name": "a"}
    }


def test_truncated_at_any_byte_is_damaged_or_shorter() -> None:
    value = sealed(wire.field(1, wire.field(1, b"name") + wire.field(8, wire.field(1, 5))) + wire.field(2, b"\n\x01a"))
    for end in range(len(value) - 1):
        with pytest.raises(envelope.Damaged):
            envelope.decode(value[:end])


def test_a_recursion_bomb_is_damaged() -> None:
    schema = b""
    for _ in range(2000):
        schema = wire.field(28, schema)  # JSONSchemaProps.not
    with pytest.raises(wire.Malformed, match="deeper than 200"):
        protobuf.decode(schema, fields.message("apiextensions.k8s.io/v1.JSONSchemaProps"))


def test_a_huge_map_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf, "MOST_ELEMENTS", 100)
    pairs = b"".join(wire.field(2, wire.field(1, str(number).encode())) for number in range(102))
    with pytest.raises(envelope.Damaged, match="more than 100"):
        envelope.decode(sealed(pairs))


def test_a_wrong_envelope_is_damaged() -> None:
    for value in (
        b"",
        b"k8s",
        b"plain text",
        b"k8s\x00\xff",
        b"{",
        b"[1]",
        b'{"metadata": 1}',
        b'{"metadata": {"labels": "x"}}',
        b"\xd9\xd9\xf7\xbf",
    ):
        with pytest.raises(envelope.Damaged):
            envelope.decode(value)


KINDS = (
    "v1.Pod",
    "apiextensions.k8s.io/v1.CustomResourceDefinition",
    "v1.ConfigMap",
    "autoscaling/v2.HorizontalPodAutoscaler",
)


@given(raw=st.binary(max_size=300), kind=st.sampled_from(KINDS))
def test_any_bytes_decode_or_are_damaged(raw: bytes, kind: str) -> None:
    version, _, name = kind.rpartition(".")
    with contextlib.suppress(envelope.Damaged):
        assert envelope.decode(sealed(raw, version, name))["kind"] == name
