"""Kubernetes' own examples: k8s.io/api's testdata, every type filled, as protobuf and as JSON, for several releases.

Read from Go's module cache, never copied into the repository. `python -m tests.registry.published` prints the table.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from snapshots.registry import envelope, rebuild
from tests.registry import real

NO_VERSION = "core.v1.WatchEvent"
"""The one type that is written without apiVersion and kind."""


class Sample(NamedTuple):
    name: str
    value: bytes
    shown: dict[str, Any]


def folder() -> Path | None:
    """k8s.io/api's testdata; None where neither the module cache nor Go has it."""
    module = f"k8s.io/api@v{rebuild.RELEASES[0]}"
    caches = [Path(os.environ.get("GOMODCACHE") or Path.home() / "go/pkg/mod")]
    found = next((cache / module / "testdata" for cache in caches if (cache / module).is_dir()), None)
    if found is None:
        try:
            asked = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, cwd="/")
        except FileNotFoundError:
            return None
        found = Path(json.loads(asked.stdout)["Dir"]) / "testdata" if asked.returncode == 0 else None
    return found


def releases(testdata: Path) -> list[str]:
    return sorted(path.name for path in testdata.iterdir() if path.is_dir())


def samples(testdata: Path, release: str) -> Iterator[Sample]:
    """Those that the API server of `release` shows as JSON: a few of the protobuf files have no JSON beside them."""
    for path in sorted((testdata / release).glob("*.pb")):
        shown = path.with_suffix(".json")
        if shown.is_file():
            yield Sample(path.name.removesuffix(".pb"), path.read_bytes(), json.loads(shown.read_bytes()))


def decoded(sample: Sample) -> dict[str, Any]:
    if not sample.name.startswith(NO_VERSION):
        return envelope.decode(sample.value)
    typed = sample.value.replace(b"\n\x04\n\x00\x12\x00", b"\n\x10\n\x02v1\x12\nWatchEvent", 1)
    body = envelope.decode(typed)
    return {name: value for name, value in body.items() if name not in ("apiVersion", "kind")}


def main() -> None:
    testdata = folder()
    if testdata is None:
        raise SystemExit(f"k8s.io/api v{rebuild.RELEASES[0]} is not in Go's module cache and Go is not at hand")
    print(f"{'release':10}{'types':>7}{'exact':>7}  not exact")  # noqa: T201 - it is what this module is run for
    for release in releases(testdata):
        found = list(samples(testdata, release))
        wrong = [sample.name for sample in found if decoded(sample) != sample.shown]
        print(f"{release:10}{len(found):7}{len(found) - len(wrong):7}  {', '.join(wrong) or '-'}")  # noqa: T201
    _against_kubectl()


def _against_kubectl() -> None:
    if not real.SHARED.is_dir():
        print("the snapshot of a real API server (../shared) is not here")  # noqa: T201
        return
    with tempfile.TemporaryDirectory() as scratch:
        found = real.compared(real.database(Path(scratch)))
    stored = len(found.equal) + len(found.different) + len(found.stored_only)
    differ = ", ".join([*found.different, *found.stored_only]) or "-"
    print(f"against kubectl 1.37.2: {stored} objects stored, {len(found.equal)} equal; not equal: {differ}")  # noqa: T201


if __name__ == "__main__":
    main()
