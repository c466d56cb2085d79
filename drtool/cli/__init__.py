"""The command line: one module a command (a hyphen is an underscore in its file name), each holding `command`.

Commands are imported only when they are called: `drtool check` must not pay for the terminal UI or an S3 client.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import pkgutil
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

import click

from drtool.cli._output import nobody_reads, visible
from drtool.core.errors import DrtoolError, what_to_do

INTERRUPTED, TERMINATED = 130, 143
STDERR = 2
TRACEBACK = "DRTOOL_TRACEBACK"


class Commands(click.Group):
    """Finds commands by the files beside this one."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        names = (found.name for found in pkgutil.iter_modules(__path__))
        return sorted(name.replace("_", "-") for name in names if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{__name__}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="drtool", message="drtool %(version)s")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Names the one cause of a control plane's outage, keeps proven backups, puts the node back.

    Without a command: the terminal UI on this node.
    """
    if os.environ.get("DRTOOL_REHEARSAL_ROOT"):
        ctx.default_map = _rehearsing(os.environ["DRTOOL_REHEARSAL_ROOT"])
    if ctx.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)
    tui = group.get_command(ctx, "tui")
    if tui is not None:
        ctx.invoke(tui)


def _rehearsing(place: str) -> dict[str, dict[str, object]]:
    """In the shell of a rehearsal every command is about its scratch node, unless --root says otherwise."""
    return {name: {"root": place, "roots": [place]} for name in Commands().list_commands(click.Context(group))}


def main() -> NoReturn:
    """The `drtool` program: every error a person can meet is one line with a hint, and an exit status."""
    gc.set_threshold(100_000)  # a command is short and makes few cycles: looking for them took a tenth of its start
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGHUP, _terminated)
    _open_streams()
    status = _run()
    gc.freeze()  # the interpreter's own last search for cycles took 0.1 s where gRPC and boto3 were loaded
    sys.exit(status)


def _open_streams() -> None:
    """A stream that the caller closed goes nowhere: else the next file that is opened, a db perhaps, takes its place.

    What no encoding has (a file name of any bytes) is escaped, in JSON too; it never ends a command.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(STDERR, "w", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _run() -> int:
    try:
        outcome = group.main(prog_name="drtool", standalone_mode=False)
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as wrong:
        return _told(wrong.show, wrong.exit_code)
    except DrtoolError as error:
        return _say(error.what, error.hint, error.exit_status)
    except KeyboardInterrupt:
        return _say("interrupted", "", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _say(f"{place}{error.strerror or error}", what_to_do(error.errno), 1)
    except Exception as fault:  # a person in an outage is not shown a traceback
        if os.environ.get(TRACEBACK):
            raise
        return _say(f"a fault of drtool itself: {_where(fault)}", f"please report it; {TRACEBACK}=1 shows all of it", 1)
    return outcome if isinstance(outcome, int) else 0


def _where(fault: Exception) -> str:
    last = fault.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = f" ({last.tb_frame.f_code.co_filename}:{last.tb_lineno})" if last else ""
    return f"{type(fault).__name__}: {fault}{place}"


def _say(what: str, hint: str, status: int) -> int:
    lines = f"drtool: {visible(what)}" + (f"\n  {visible(hint)}" if hint else "")
    return _told(lambda: click.echo(lines, err=True), status)


def _told(tell: Callable[[], None], status: int) -> int:
    """The status stands where nobody can be told: the log's disk is full, the terminal went away."""
    try:
        tell()
    except OSError:
        nobody_reads()
    return status


def _terminated(number: int, _: FrameType | None) -> NoReturn:
    """Unwinds like Ctrl-C does, so that nothing half written stays."""
    raise SystemExit(TERMINATED if number == signal.SIGTERM else 128 + number)
