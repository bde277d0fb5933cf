"""``elementdp book``: build the book, run one notebook, sweep a grid, list what can be turned."""

from pathlib import Path

import click
import nbformat
from rich.console import Console
from rich.table import Table

from elementdp.cli.options import Group
from elementdp.companion.book.build import build
from elementdp.companion.book.console import Board, summary
from elementdp.companion.book.execute import Workers
from elementdp.companion.book.fill import Filling
from elementdp.companion.book.notebooks import PROFILES, Notebook, profile_values, read_all
from elementdp.companion.book.parameters import resolve
from elementdp.companion.book.project import Project, keep
from elementdp.companion.book.run import Runner
from elementdp.companion.book.stage import signed
from elementdp.companion.book.sweep import sweep
from elementdp.errors import ArgumentError
from elementdp.files import require_writable

_profile = click.option("--profile", type=click.Choice(PROFILES), default="quick", show_default=True)
_jobs = click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Notebooks to run at once."
)


@click.group("book", cls=Group)
def command() -> None:
    """Build the book, or run its notebooks with other parameters."""


@command.command("build")
@_profile
@click.option("--only", metavar="NAME", help="Run no other notebook than this one.")
@_jobs
def build_command(profile: str, only: str | None, jobs: int) -> None:
    """Execute what changed, build the static book and print where to open it."""
    built = build(Project.find(), profile, only, jobs)
    Console().print(summary(built.outcomes))
    click.echo(f"open {built.index}")


@command.command("run")
@click.argument("name")
@click.option("-p", "--parameter", "typed", nargs=2, multiple=True, metavar="NAME VALUE", help="Set a parameter.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Default: NAME.out.ipynb.")
@_profile
def run_command(name: str, typed: tuple[tuple[str, str], ...], output: Path | None, profile: str) -> None:
    """Run one notebook with other parameters and keep the executed notebook."""
    project = Project.find()
    notebook = Notebook.read(project, name)
    base = profile_values(project, profile).get(notebook.name, {})
    parameters = resolve(notebook.parameters, notebook.name, base, typed)
    target = output or Path(f"{notebook.name}.out.ipynb")
    if target.suffix != ".ipynb":
        raise ArgumentError("output", str(target), "a file name ending in .ipynb")
    require_writable("output", target)
    board = Board()
    with board, board.notebook(notebook.name) as progress:
        outcome = Runner(project, Workers(project), profile).run(notebook, parameters, progress)
    board.done(outcome)
    executed = outcome.executed
    Filling({notebook.page: executed.notebook}, {}, strict=False).fill()
    keep(target, nbformat.writes(signed(executed.notebook, executed.provenance.as_html())))
    click.echo(f"wrote {target}")


@command.command("sweep")
@click.argument("name")
@click.option("--grid", "axes", multiple=True, required=True, metavar="NAME=VALUES", help="a,b,c or start:stop.")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), help="Default: NAME.results/.")
@_profile
@_jobs
def sweep_command(name: str, axes: tuple[str, ...], output: Path | None, profile: str, jobs: int) -> None:
    """Run one notebook over a grid; run again to go on where it stopped."""
    swept = sweep(Project.find(), name, axes, output, profile, jobs)
    click.echo(f"{swept.ran} run, {swept.kept} kept; rows in {swept.table}")


@command.command("list")
def list_command() -> None:
    """Show each notebook with its parameters, their defaults and what they mean."""
    table = Table("notebook", "parameter", "type", "default", "meaning")
    for notebook in read_all(Project.find()):
        if not notebook.code:
            continue
        table.add_row(notebook.name, "", "", "", notebook.title, style="bold")
        for parameter in notebook.parameters.values():
            table.add_row("", parameter.name, parameter.type, repr(parameter.default), parameter.meaning)
    Console().print(table)
