from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from drtool.config import Seconds, Timeouts
from drtool.host.deadline import OutOfTime
from snapshots.scratch_s3 import Server
from tests.builders.live_node import LiveNode
from tests.commands.backing import config_for, opened, run, s3_config
from tests.fakes.fault_proxy import Fault, Request, fault_proxy


def test_a_run_that_hangs_ends_itself_and_leaves_nothing(node: LiveNode, s3_server: Server, tmp_path: Path) -> None:
    def stalling(request: Request) -> Fault:
        return Fault.STALL if request.of_part and "/db.zst" in request.key else Fault.NONE

    slow = Timeouts(stall=Seconds(20), request=Seconds(5), retries=Seconds(600), total=Seconds(20))
    with fault_proxy(s3_server.endpoint, stalling) as proxy:
        config = config_for(tmp_path, s3_config(s3_server, proxy.endpoint), slow)
        with pytest.raises(OutOfTime):
            run(config, node, s3_server)
    direct = replace(config, store=replace(config.store, endpoint=s3_server.endpoint))
    found = opened(direct, s3_server).inventory()
    assert (found.backups, found.orphans) == ((), ())
    assert run(direct, node, s3_server).good
