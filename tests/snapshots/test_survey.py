"""Any bytes at all: figures, a fault that names its page, or one clear error. `tests.soak.mutate` does more by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.snapshots import real
from tests.soak import mutate

ROUNDS = 20
EACH = 100


@pytest.mark.parametrize("block", range(ROUNDS))
def test_mutated_files_are_read_or_refused(block: int) -> None:
    original = mutate.made()
    for seed in range(block * EACH, (block + 1) * EACH):
        mutate.ask_everything(mutate.mutated(seed, original))


def test_a_tombstone_ends_with_its_mark() -> None:
    """Found by the soak: the stream refused a revision of 18 bytes without its "t", the file did not."""
    assert mutate.ask_everything(mutate.mutated(38788, mutate.made())) == "damaged"


@pytest.mark.parametrize("name", real.NAMES[-1:])
def test_mutated_real_files_are_read_or_refused(name: str) -> None:
    original = real.data(name)
    for seed in range(200):
        mutate.ask_everything(mutate.mutated(seed, original))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=20_000))
def test_noise_is_refused(data: bytes) -> None:
    assert mutate.ask_everything(data) == "refused"


def test_mutations_reach_every_outcome() -> None:
    original = mutate.made()
    found = {mutate.ask_everything(mutate.mutated(seed, original)) for seed in range(150)}
    assert found == {"sound", "damaged", "unreadable", "refused"}
