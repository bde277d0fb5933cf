"""``elementdp histogram``: a private histogram of a table of events."""

import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from elementdp.cli.options import Command
from elementdp.errors import ArgumentError, ElementdpError
from elementdp.files import sha256_file


@click.command("histogram", cls=Command)
@click.argument("events", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--user", required=True, help="Column that names the user.")
@click.option("--item", required=True, help="Column that names the item counted.")
@click.option(
    "--element",
    required=True,
    help="What is protected: a column, or 'domain' (of a URL), 'item' (each item), 'user' (all a user has).",
)
@click.option("--epsilon", required=True, type=float)
@click.option("--delta", required=True, type=float)
@click.option("--count", help="Column of counts; without it each row counts once.")
@click.option(
    "--domain",
    "domain_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Public list of items: a text file with one a line, or a table with the --item column. "
    "Must not be read off the events. Without it, items are discovered privately.",
)
@click.option("--ignore-unknown-items", is_flag=True, help="Drop items outside --domain instead of refusing.")
@click.option(
    "--rho", type=float, help="Bound on the l2 norm of one element of one user; chosen privately if not given."
)
@click.option("--max-items-per-element", type=int, default=100, show_default=True, help="In private discovery.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help=".csv, .tsv, .parquet or .json  [default: EVENTS.histogram.csv here]",
)
@click.option("--force", is_flag=True, help="Replace an existing output.")
@click.option("--seed", type=int, help="Repeatable noise, for testing only: such a release protects no one.")
def command(
    events: Path,
    user: str,
    item: str,
    element: str,
    epsilon: float,
    delta: float,
    count: str | None,
    domain_file: Path | None,
    ignore_unknown_items: bool,
    rho: float | None,
    max_items_per_element: int,
    output: Path | None,
    force: bool,
    seed: int | None,
) -> None:
    """Write the private histogram of the items in EVENTS (.csv, .tsv, .jsonl, .parquet; one event a row).

    Protected is one element of one user: all the events of a user whose items lie in one element. Items come from a
    public list or are discovered privately; the set of items in the data is itself a secret.
    """
    from elementdp.histogram import private_histogram
    from elementdp.histogram.output import check_output, write_release
    from elementdp.histogram.tables import read_domain

    target = output or Path(f"{events.stem}.histogram.csv")
    check_output(target, force=force)
    _check_apart(events, domain_file, target)
    console = Console(stderr=True)
    signal.signal(signal.SIGTERM, _stop)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    tasks: dict[str, TaskID] = {}

    def progress(stage: str, share: float) -> None:
        if stage not in tasks:
            tasks[stage] = bar.add_task(stage, total=1.0)
        bar.update(tasks[stage], completed=share)

    with _disk_errors(), bar, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = private_histogram(
            events,
            user=user,
            item=item,
            element=element,
            epsilon=epsilon,
            delta=delta,
            count=count,
            domain=None if domain_file is None else read_domain(domain_file, item),
            rho=rho,
            ignore_unknown_items=ignore_unknown_items,
            max_items_per_element=max_items_per_element,
            seed=seed,
            progress=progress,
        )
    with _disk_errors():
        written = write_release(result, target)
    for warning in caught:
        console.print(f"[bold]warning:[/bold] {warning.message}")
    promise = result.as_json()
    console.print(f"{promise['statement']}; element: {result.element}", highlight=False)
    console.print(
        f"{result.histogram.num_rows} items ({promise['items']}), rho {result.rho:g}",
        highlight=False,
    )
    if result.histogram.num_rows == 0:
        console.print(
            "no item had enough users to be discovered at this epsilon and delta: give --domain, a public list, or "
            "more epsilon",
            highlight=False,
        )
    table = Table("stage", "mu", "delta", "sensitivity", "noise")
    for one in result.spent:
        table.add_row(one.stage, *(f"{value:.4g}" for value in (one.mu, one.delta, one.sensitivity, one.noise)))
    console.print(table)
    for path in written:
        click.echo(path)


def _check_apart(events: Path, domain_file: Path | None, target: Path) -> None:
    """Refuse to write over an input, and to take the events themselves for the public list of items."""
    from elementdp.histogram.output import files_of

    inputs = [events] if domain_file is None else [events, domain_file]
    for path in files_of(target):
        if any(path.exists() and path.samefile(source) for source in inputs):
            raise ArgumentError("output", str(path), "another file than the events and the list of items")
    if domain_file is not None and (domain_file.samefile(events) or sha256_file(domain_file) == sha256_file(events)):
        raise ArgumentError(
            "domain",
            str(domain_file),
            "a public list, not the events: an item only one user has would be listed because of that user",
        )


@contextmanager
def _disk_errors() -> Iterator[None]:
    """A full disk or a folder without write permission is a refusal like others."""
    try:
        yield
    except OSError as error:
        raise ElementdpError(f"{error} (temporary files go to {tempfile.gettempdir()}; TMPDIR changes that)") from error


def _stop(number: int, frame: FrameType | None) -> None:
    """Unwind on SIGTERM, so that nothing half-written stays."""
    sys.exit(128 + number)
