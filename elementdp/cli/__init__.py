"""The command ``elementdp``. Each subcommand is a module of its own, imported only when it is called."""

import importlib
import sys

import click

from elementdp import __version__
from elementdp.errors import ElementdpError

_COMMANDS = {
    "book": "elementdp.companion.cli.book",
    "claims": "elementdp.companion.cli.claims",
    "data": "elementdp.companion.cli.data",
    "epsilon": "elementdp.cli.epsilon",
    "histogram": "elementdp.cli.histogram",
    "noise": "elementdp.cli.noise",
}


class _Commands(click.Group):
    """Subcommands by name, so that ``elementdp --help`` does not import torch."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(_COMMANDS[cmd_name]).command
        assert isinstance(command, click.Command)
        return command


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Element-level differential privacy: the book, the accountants and the mechanisms."""


def main() -> None:
    """Run the command line; a refusal is one line on standard error and exit code 2, never a traceback."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except ElementdpError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(getattr(error, "exit_code", 2))
