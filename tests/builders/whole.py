"""Real kubeadm's trees with all of their files, etcd's too, unpacked as `--root ARCHIVE` unpacks them."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.host.archive import unpack
from tests.builders.real import SHARED
from tests.builders.tree import Tree


def whole(name: str, into: Path) -> Tree:
    """Skips where the archive is not at hand."""
    archive = SHARED / f"{name}.tar.gz"
    if not archive.is_file():
        pytest.skip(f"{archive.name}: the trees of real nodes (../shared/trees) are not here")
    into.mkdir(exist_ok=True)
    return Tree(unpack(archive, into))
