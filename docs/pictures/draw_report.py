"""Draws drill-report.png: three real drills of one backup, and their page in Chromium.

python -m docs.pictures.draw_report [--etcd FILE] [--apiserver FILE]
"""

from __future__ import annotations

import argparse
import base64
import tempfile
from pathlib import Path

from bench.drill import fill
from drtool.commands.backup import backup
from drtool.commands.drill import Wish, drill, past
from drtool.commands.drill_report import html
from drtool.commands.fetch import shelf
from drtool.commands.scratch_node import lay_scratch
from drtool.config import Config, Spool, StoreConfig
from snapshots import seal
from tests.browser import page

PICTURE = Path(__file__).with_name("drill-report.png")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--etcd", type=Path)
    options.add_argument("--apiserver", default="")
    given = options.parse_args()
    identity, recipient = seal.throwaway()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "store").mkdir()
        (place / "identity").touch(0o600)
        (place / "identity").write_text(f"{identity}\n")
        config = Config(
            store=StoreConfig(url=(place / "store").as_uri()),
            recipients=(recipient,),
            identities=(str(place / "identity"),),
            spool=Spool(""),
        )
        held = shelf(config)
        node = lay_scratch(place / "cp-1")
        with node.etcd(given.etcd):
            fill(node, 20)
            backup(config, held, node.root)
        wish = Wish(str(given.etcd or ""), given.apiserver)
        found = [drill(held, held.choose(), wish) for _ in range(3)][-1]
        report = place / "report.html"
        report.write_text(html(found, [one for one in past(held, found.cluster) if one.at != found.at]))
        with page(place / "profile") as shown:
            shown.open(report.as_uri())
            shown.call("Emulation.setDeviceMetricsOverride", width=820, height=1180, deviceScaleFactor=1, mobile=False)
            picture = shown.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        PICTURE.write_bytes(base64.b64decode(picture["data"]))


if __name__ == "__main__":
    main()
