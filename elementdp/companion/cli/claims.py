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
        console.print(_lines(entries))
    counts = Counter(entry.verdict for entry in entries)
    console.print(" · ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]))
    if not ids:
        console.print("elementdp claims ID … shows the evidence and the repair.", style="dim")


def _lines(entries: list[Entry]) -> Table:
    """A line for each statement."""
    table = Table(box=None, pad_edge=False)
    for name, least in (("id", 21), ("in the paper", 12), ("verdict", 14), ("severity", 18)):
        table.add_column(name, no_wrap=True, overflow="ellipsis", min_width=least)
    for entry in entries:
        severity = "" if entry.severity is Severity.NONE else str(entry.severity)
        table.add_row(entry.id, escape(entry.number), str(entry.verdict), severity)
    return table


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
