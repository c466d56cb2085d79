"""What `--root` names: a directory that stands for a node's `/`, or a bundle, packed or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drtool.core.errors import CannotTell
from drtool.host.root import Root


@contextmanager
def opened(path: Path) -> Iterator[Root]:
    """The root, for as long as the block lasts: an archive is unpacked into a private directory that is then removed.

    Raises CannotTell where there is nothing to read.
    """
    place = path.resolve()
    if place.is_dir():
        yield Root(place)
        return
    if not place.is_file():
        raise CannotTell(
            f"{path} is not a directory{'' if place.exists() else ': it does not exist'}",
            "name the root of a node's tree, or a bundle of `drtool collect`",
        )
    import tempfile  # a directory is judged without what archives need

    from drtool.host.archive import unpack

    with tempfile.TemporaryDirectory(prefix="drtool-bundle-") as directory:
        yield Root(unpack(place, Path(directory)))
