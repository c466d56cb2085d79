from tests.snapshots.real import snapshot

__all__ = ["snapshot"]
