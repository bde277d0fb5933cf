"""The command ``elementdp``. Each subcommand is a module of its own, imported only when it is called."""

import importlib
import sys
from typing import Any

import click

from elementdp import __version__
from elementdp.errors import ElementdpError, missing_extra

_COMMANDS = {
    "book": ("elementdp.companion.cli.book", "List, run, sweep and build the notebooks."),
    "claims": ("elementdp.companion.cli.claims", "Check the statements of the paper."),
    "compose": ("elementdp.cli.compose", "What several releases of one table promise together."),
    "data": ("elementdp.companion.cli.data", "List and fetch the data of the notebooks."),
    "epsilon": ("elementdp.cli.epsilon", "The ε of a training run."),
    "histogram": ("elementdp.cli.histogram", "A private histogram of a table of events."),
    "noise": ("elementdp.cli.noise", "The noise that reaches a target ε."),
    "report": ("elementdp.cli.report", "A page about a release, for people who are not experts."),
}


class _Commands(click.Group):
    """Subcommands by name, so that ``elementdp --help`` imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(_COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in _COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as missing:  # what the library's own commands need is always installed
            raise missing_extra(missing, "companion") from missing


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
