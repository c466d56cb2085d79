"""Files that a person names: keys, certificates, settings. Small ones."""

from __future__ import annotations

import errno
import os
from pathlib import Path

LARGEST = 1 << 20


def small(path: Path) -> bytes:
    """At most 1 MiB: /dev/zero or a disk's image in the place of a key must not fill the memory. Raises OSError."""
    with path.open("rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data
