from __future__ import annotations

from tests.real_s3 import s3_server

__all__ = ["s3_server"]
