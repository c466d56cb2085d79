"""`drtool restore --to` against `etcdutl snapshot restore`: `python -m bench.restore [--db FILE]... [--keep DIR]`."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from bench.make_db import made
from bench.measuring import Run, compare, drtool, etcdutl, run


def restoring(program: list[str], target: Path) -> Run:
    measured = run(program)
    shutil.rmtree(target)
    return measured


def measure(db: Path, scratch: Path, rounds: int) -> None:
    target = scratch / "restored"
    ours = [str(drtool()), "restore", str(db), "--to", str(target)]
    theirs = [str(etcdutl()), "snapshot", "restore", str(db), "--data-dir", str(target)]
    restoring(theirs, target)
    name = f"restore {db.stat().st_size / 1e6:.0f} MB"
    compare(name, lambda: restoring(ours, target), lambda: restoring(theirs, target), rounds)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--db", type=Path, action="append", default=[])
    options.add_argument("--megabytes", type=int, nargs="*", default=[100, 500, 774, 2000])
    options.add_argument("--keep", type=Path, help="A directory that keeps the dbs for further runs.")
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.db[0].parent if chosen.db else None) as scratch:
        for db in chosen.db:
            measure(db, Path(scratch), chosen.rounds)
        for megabytes in chosen.megabytes if not chosen.db else ():
            db = made(chosen.keep or Path(scratch), megabytes)
            measure(db, Path(scratch), chosen.rounds)
            if chosen.keep is None:
                db.unlink()


if __name__ == "__main__":
    main()
