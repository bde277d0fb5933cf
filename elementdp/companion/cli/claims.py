"""``elementdp claims``: the ledger on the terminal."""

import json
from collections import Counter

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from elementdp.cli.options import Command
from elementdp.companion.claims import Effort, Verdict, ledger


@click.command("claims", cls=Command)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--effort", type=click.Choice([str(effort) for effort in Effort]), default=str(Effort.SMOKE), show_default=True
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the simulated checks.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list instead of a table.")
def command(ids: tuple[str, ...], effort: str, seed: int, as_json: bool) -> None:
    """Run the check of every statement of the paper (or of the IDs given) and print the verdicts."""
    entries = ledger(effort, seed, ids)
    if as_json:
        click.echo(json.dumps([entry.as_json() for entry in entries], indent=2, ensure_ascii=False))
        return
    table = Table("id", "where", "verdict", "evidence", show_lines=True)
    for entry in entries:
        repair = [f"[bold]repair:[/bold] {escape(entry.repair)}"] if entry.repair else []
        evidence = "\n".join([*map(escape, entry.evidence), *repair])
        table.add_row(entry.id, escape(entry.where), str(entry.verdict), evidence)
    console = Console()
    console.print(table)
    counts = Counter(str(entry.verdict) for entry in entries)
    console.print(" · ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]))
