"""The capture of a node: its files, a bundle's, or its files and what its programs say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from drtool.host.patience import Patience
from drtool.host.root import Root
from manifests.capture import Capture, capture
from manifests.node import Node
from manifests.saved import is_bundle, restored


def gather(root: Root, probe: bool = True) -> Capture:
    """Reads the node's files and, where it is this machine and `probe` is not off, asks its programs."""
    if root.live and root.patience is None:
        root = replace(root, patience=Patience())
    files = (restored(root) if is_bundle(root) else None) or capture(root)
    if not (root.live and probe):
        return files
    from drtool.commands.asking import ask  # sockets and TLS: a tree is judged without them

    return files.told(ask(Node(files, datetime.now(UTC)), root))
