"""The command ``elementdp``. Each module of this package is one subcommand, imported only when it is called."""

import importlib
import pkgutil
import sys

import click

from elementdp import __version__
from elementdp.errors import ElementdpError


class _Commands(click.Group):
    """Subcommands found by module name, so that ``elementdp --help`` does not import torch."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"{__name__}.{cmd_name}").command
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
