from __future__ import annotations

import pytest

from snapshots import wire
from snapshots.registry import wellknown


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (90_000_000_000, "1m30s"),
        (1_500_000_000, "1.5s"),
        (3_600_000_000_000, "1h0m0s"),
        (20_000_000, "20ms"),
        (1_500, "1.5µs"),
        (7, "7ns"),
        (-61_000_000_000, "-1m1s"),
    ],
)
def test_durations_are_as_go_prints_them(nanoseconds: int, text: str) -> None:
    assert wellknown.duration(wire.field(1, nanoseconds)) == text


def test_times() -> None:
    assert wellknown.time(b"") is None
    assert wellknown.time(wire.field(1, 1764475200)) == "2025-11-30T04:00:00Z"
    assert wellknown.micro_time(wire.field(1, 0) + wire.field(2, 1000)) == "1970-01-01T00:00:00.000001Z"
    assert wellknown.time(wire.field(1, -62135596800)) == "0001-01-01T00:00:00Z"
    with pytest.raises(wire.Malformed, match="beyond the year 9999"):
        wellknown.time(wire.field(1, 1 << 50))


def test_int_or_string() -> None:
    assert wellknown.int_or_string(wire.field(1, 0) + wire.field(2, 80)) == 80
    assert wellknown.int_or_string(wire.field(1, 1) + wire.field(3, b"50%")) == "50%"


def test_what_is_no_json_is_kept_as_bytes() -> None:
    assert wellknown.embedded(b'{"a": 1}') == {"a": 1}
    assert wellknown.embedded(b"k8s\x00") == {"$unknown": "azhzAA=="}
