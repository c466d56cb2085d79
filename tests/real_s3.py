"""A real S3 server for the tests of a session; imported by the conftest of the directories that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drtool.core.errors import NotFound
from snapshots import scratch_s3


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[scratch_s3.Server]:
    try:
        scratch_s3.binary()
    except NotFound as absent:
        pytest.skip(str(absent))
    with scratch_s3.running(tmp_path_factory.mktemp("weed")) as server:
        yield server
