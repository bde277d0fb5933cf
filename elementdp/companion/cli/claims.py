"""``elementdp claims``: the ledger on the terminal."""

import json
from collections import Counter

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from elementdp.cli.options import Command
from elementdp.companion.claims import Effort, Entry, Severity, Verdict, ledger


@click.command("claims", cls=Command)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--effort", type=click.Choice([str(effort) for effort in Effort]), default=str(Effort.SMOKE), show_default=True
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the simulated checks.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list instead of a table.")
def command(ids: tuple[str, ...], effort: str, seed: int, as_json: bool) -> None:
    """Check every statement of the paper and print a line for each; with IDs, all that was found about these."""
    entries = ledger(effort, seed, ids)
    if as_json:
        click.echo(json.dumps([entry.as_json() for entry in entries], indent=2, ensure_ascii=False))
        return
    console = Console()
    if ids:
        for entry in entries:
            _details(console, entry)
    else:
        console.print(_lines(entries, console.width))
    counts = Counter(entry.verdict for entry in entries)
    console.print(" · ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]))
    if not ids:
        console.print("elementdp claims ID … shows the evidence and the repair.", style="dim")


def _lines(entries: list[Entry], width: int) -> Table:
    """A line of ``width`` characters for each statement: where it stands in the paper is cut, its verdict is not."""
    rows = [(entry.id, entry.number, str(entry.verdict), _severity(entry)) for entry in entries]
    table = Table(box=None, pad_edge=False)
    for name, cells in zip(("id", "in the paper", "verdict", "severity"), zip(*rows, strict=True), strict=True):
        table.add_column(name, no_wrap=True, overflow="ellipsis", min_width=max(map(len, cells)))
    spaces = 2 * (len(table.columns) - 1)
    place = table.columns[1]
    others = sum(column.min_width or 0 for column in table.columns if column is not place)
    place.min_width = place.max_width = max(len("in the paper"), min(place.min_width or 0, width - others - spaces))
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _severity(entry: Entry) -> str:
    return "" if entry.severity is Severity.NONE else str(entry.severity)


def _details(console: Console, entry: Entry) -> None:
    """Everything about one statement."""
    severity = "" if entry.severity is Severity.NONE else f" ({entry.severity})"
    console.print(f"[bold]{entry.id}[/bold] · {escape(entry.where)} · [bold]{entry.verdict}[/bold]{severity}")
    console.print(escape(entry.statement))
    for line in entry.evidence:
        console.print(f"- {escape(line)}")
    if entry.repair:
        console.print(f"[bold]Repaired:[/bold] {escape(entry.repair)}")
    console.print()
