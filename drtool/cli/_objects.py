"""Options that the commands over objects share, and the source that they open."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from drtool.cli._output import visible
from drtool.cli._progress import shown
from drtool.cli._store import configured, store_options
from drtool.cli._types import ANY_PATH
from drtool.commands.opening import LIVE, Opening, opened
from drtool.core.errors import UsageError
from drtool.host.root import Root
from drtool.host.writing import write
from snapshots.registry.keys import PREFIX
from snapshots.registry.objects import Object, Registry

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
ETCD = {"endpoint": "etcd.endpoints", "cacert": "etcd.ca", "cert": "etcd.cert", "key": "etcd.key"}
SOURCE = "A backup's id, `latest` or `CLUSTER/latest`, a snapshot, a raw db, a data directory, an etcd URL, or `live`."
GAP = 3


def source_options(command: Decorated) -> Decorated:
    """What opens sources; `opening` takes them out of the keyword arguments."""
    path = ANY_PATH
    for option in reversed(
        (
            click.option("--encryption-config", type=path, help="The EncryptionConfiguration that opens values."),
            click.option("--prefix", default=PREFIX, show_default=True, help="The API server's --etcd-prefix."),
            click.option("--root", type=path, default=Path("/"), help="The node's tree: its etcd, keys, certificates."),
            click.option("--cacert", metavar="FILE", help="CA of etcd's certificate."),
            click.option("--cert", metavar="FILE", help="Client certificate for etcd."),
            click.option("--key", metavar="FILE", help="Its key."),
        )
    ):
        command = option(command)
    return store_options(command)


def from_option(command: Decorated) -> Decorated:
    option = click.option("--from", "source", default=LIVE, show_default=True, metavar="SOURCE", help=SOURCE)
    return option(
        click.option("--at-revision", type=click.IntRange(min=1), help="As of this revision of etcd.")(command)
    )


def namespace_options(command: Decorated) -> Decorated:
    option = click.option("-n", "--namespace", default="", help="Only this namespace.")
    return option(click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")(command))


@contextmanager
def opening(options: dict[str, Any], managed: bool = False) -> Iterator[Opening]:
    """How to open sources under these options, which are removed from `options`."""
    given: dict[str, object] = {dotted: options.pop(name) for name, dotted in ETCD.items() if name in options}
    encryption, prefix, root = (options.pop(name) for name in ("encryption_config", "prefix", "root"))
    config = configured(options, given)
    gc.disable()  # decoded objects are trees: counting references frees them, and looking for cycles costs a third
    try:
        with shown() as listener:
            yield Opening(config, encryption, "/" + prefix.strip("/"), managed, Root(root.resolve()), listener)
    finally:
        gc.enable()


@contextmanager
def source(
    name: str, options: dict[str, Any], revision: int | None = None, managed: bool = False
) -> Iterator[Registry]:
    with opening(options, managed) as how, opened(name, how, revision) as registry:
        yield registry


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns three spaces apart, as kubectl's."""
    shown_rows = [[visible(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) + GAP for column in zip(*shown_rows, strict=True)]
    return "\n".join("".join(map(str.ljust, row, widths)).rstrip() for row in shown_rows)


def say_troubles(found: Sequence[Object]) -> int:
    """What could not be read, each with its key and revision, on stderr; 1 where there is any, else 0."""
    for each in found:
        if each.trouble:
            key = each.key.decode("utf-8", "backslashreplace")
            click.echo(f"drtool: {visible(key)} at revision {each.revision}: {visible(each.trouble)}", err=True)
    return int(any(each.trouble for each in found))


def unmasked(asked: bool, file: Path | None) -> bool:
    """Whether Secrets are shown: in a file that was named, or where asked for on a terminal. Raises UsageError."""
    if asked and file is None and not sys.stdout.isatty():
        raise UsageError("Secrets go to a terminal or to a file, and stdout is neither", "name the file with -f FILE")
    return asked or file is not None


def put(text: str, file: Path | None) -> None:
    """On stdout, or into `file`, which only its owner may read."""
    if file is None:
        click.echo(text, nl=not text.endswith("\n"))
    else:
        write(file, (text if text.endswith("\n") else text + "\n").encode())
