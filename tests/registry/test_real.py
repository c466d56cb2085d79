"""A real API server's snapshot against what kubectl said, object by object."""

from __future__ import annotations

from pathlib import Path

from tests.registry import real

MOVED_ON = ["Lease kube-system/apiserver-nf5hmobm7fnbbghrppqevdm55y"]
"""Renewed between kubectl's answer and the snapshot."""


@real.needed
def test_every_object_equals_what_kubectl_said(tmp_path: Path) -> None:
    found = real.compared(real.database(tmp_path))
    assert found.different == MOVED_ON
    assert found.stored_only == []
    assert {name.partition(" ")[0] for name in found.told_only} == {"ComponentStatus"}  # never stored
    assert len(found.equal) == 371
