"""``elementdp data``: what data there is, where it is kept, and how to get it."""

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from elementdp.cli.options import Group
from elementdp.companion.data import SOURCES, directories, file_of, find, get


@click.group("data", cls=Group)
def command() -> None:
    """The data sources of the experiments. ELEMENTDP_DATA names directories that are searched first."""


@command.command("list")
def list_() -> None:
    """List every source: what it is, its licence, how it comes, and where it is if it is here."""
    table = Table("name", "what", "licence", "comes by", "here")
    for source in SOURCES.values():
        ways = "\n".join(str(way) for way in source.ways) or "hand"
        present = find(source.file)
        table.add_row(source.name, source.title, source.licence, ways, str(present) if present else "–")
    Console().print(table)
    click.echo("searched: " + ", ".join(str(folder) for folder in directories()))


@command.command("get")
@click.argument("names", nargs=-1, required=True, type=click.Choice(list(SOURCES)), metavar="NAME...")
def get_(names: tuple[str, ...]) -> None:
    """Fetch sources (those already here are verified instead) and print their files."""
    for name in names:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(name, total=None)
            path = get(name, lambda done, total, task=task: bar.update(task, completed=done, total=total))  # type: ignore[misc]
        click.echo(f"{name}: {path} (content verified)")


@command.command("path")
@click.argument("name", required=False, type=click.Choice(list(SOURCES)), metavar="[NAME]")
def path_(name: str | None) -> None:
    """Print the verified file of a source, fetching it if needed; without a NAME, the directories searched."""
    click.echo(str(file_of(name)) if name else "\n".join(str(folder) for folder in directories()))
