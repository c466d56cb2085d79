from __future__ import annotations

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from snapshots.crc import combine


@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(0, 40))
def test_two_parts_give_the_crc_of_the_whole(first: bytes, second: bytes, times: int) -> None:
    second *= times
    assert combine(crc32c(first), crc32c(second), len(second)) == crc32c(first + second)
