"""`drtool status` against `etcdutl snapshot status`: `python -m bench.status [--db FILE]... [--keep DIR]`.

drtool does more in that time: the trailing hash, members, prefixes, most rewritten keys. Without --db it makes dbs of
the sizes given with a real etcd, once where --keep names a place for them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.make_db import made
from bench.measuring import compare, drtool, etcdutl, run


def measure(db: Path, rounds: int) -> None:
    ours = [str(drtool()), "status", str(db), "-o", "json"]
    theirs = [str(etcdutl()), "snapshot", "status", str(db), "-w", "json"]
    run(theirs)  # both find the file in the page cache
    compare(f"status {db.stat().st_size / 1e6:.0f} MB", lambda: run(ours), lambda: run(theirs), rounds)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--db", type=Path, action="append", default=[])
    options.add_argument("--megabytes", type=int, nargs="*", default=[100, 500, 774, 2000])
    options.add_argument("--keep", type=Path, help="A directory that keeps the dbs for further runs.")
    options.add_argument("--rounds", type=int, default=7)
    chosen = options.parse_args()
    for db in chosen.db:
        measure(db, chosen.rounds)
    for megabytes in chosen.megabytes if not chosen.db else ():
        with tempfile.TemporaryDirectory() as scratch:
            measure(made(chosen.keep or Path(scratch), megabytes), chosen.rounds)


if __name__ == "__main__":
    main()
