"""Draws the README's pictures from a node laid in a scratch directory: `python docs/pictures/draw.py`."""

from __future__ import annotations

import asyncio
import errno
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from drtool.host.root import Root
from manifests.kubeadm import Design, kernel_addresses, lay
from tui.app import DrtoolApp

HERE = Path(__file__).parent
BORN, NOW = datetime(2026, 11, 30, 4, tzinfo=UTC), datetime(2026, 12, 15, tzinfo=UTC)
PICTURES = {
    "causes": ("1", "enter"),
    "checks": ("2", "enter"),
    "certificates": ("3",),
    "etcd": ("4",),
    "pods": ("5", "enter"),
    "backups": ("6",),
    "objects": ("7",),
    "plans": ("8",),
    "nodes": ("9", "enter"),
    "keys": ("question_mark",),
}
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main(into: Path = HERE) -> None:
    with TemporaryDirectory() as directory:
        root = Path(directory)
        lay(root, Design(), BORN)
        for path, text in kernel_addresses("192.0.2.120").items():
            (root / path.lstrip("/")).write_text(text)
        for name, keys in PICTURES.items():
            picture = asyncio.run(drawn(root, keys, name))
            (into / f"{name}.svg").write_text(picture)


def store_down() -> NoReturn:
    raise OSError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


async def drawn(root: Path, keys: tuple[str, ...], name: str) -> str:
    """Without the fonts that the picture would fetch from elsewhere."""
    app = DrtoolApp([Root(root)], NOW)
    app.session.questions["backups"] = store_down
    app.session.clock = lambda: NOW
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press(*keys)
        while not app.session._asked <= app.session._known.keys():
            await pilot.pause(0.1)
        await pilot.pause(0.3)
        picture = FONTS.sub("", app.export_screenshot(title=f"drtool: {name}"))
        return re.sub(r"terminal-\d+", "terminal", picture).replace(str(root), "/mnt/cp-1")


if __name__ == "__main__":
    main()
