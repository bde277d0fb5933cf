"""A command of this package, run on a page: its line, and what it printed, folded to the width of the page."""

import shlex
import textwrap

from click.testing import CliRunner

from elementdp.cli import cli
from elementdp.errors import ElementdpError

WIDTH = 80


def folded(text: str) -> str:
    """Long lines folded, with what follows set in."""
    return "\n".join(textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in text.rstrip().splitlines())


def run_command(line: str) -> None:
    """Run ``elementdp …`` and print the line and its output; a command that fails raises its error."""
    words = shlex.split(line)
    done = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(cli, words[1:], catch_exceptions=False)
    if done.exit_code:
        raise ElementdpError(f"{line}: {done.output.strip()}")
    print(" \\\n".join(textwrap.wrap(f"$ {line}", WIDTH - 2, subsequent_indent="    ", break_on_hyphens=False)))
    print(folded(done.output))
