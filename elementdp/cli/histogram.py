"""``elementdp histogram``: a private histogram of a table of events."""

import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from elementdp.cli.options import Command
from elementdp.errors import ArgumentError, ElementdpError
from elementdp.files import sha256_file

if TYPE_CHECKING:
    from elementdp.histogram import Engine, PrivateHistogram


@click.command("histogram", cls=Command)
@click.argument("events")
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
@click.option(
    "--bad-rows",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="Rows without a user, item or element, or with a bad count: refuse the table, or drop them (you are told "
    "how many; the release is not).",
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
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="Where events are grouped: this machine, or Spark, for which EVENTS may be any file, folder or glob it reads.",
)
@click.option("--master", help="Where Spark runs.  [default: local[*], inside this command]")
@click.option("--force", is_flag=True, help="Replace an existing output.")
@click.option("--seed", type=int, help="Repeatable noise, for testing only: such a release protects no one.")
def command(
    events: str,
    output: Path | None,
    domain_file: Path | None,
    force: bool,
    **options: Any,
) -> None:
    """Write the private histogram of the items in EVENTS (.csv, .tsv, .jsonl, .parquet; one event a row).

    Protected is one element of one user: all the events of a user whose items lie in one element. Items come from a
    public list or are discovered privately; the set of items in the data is itself a secret.
    """
    from elementdp.histogram import write_release
    from elementdp.histogram.output import check_output

    target = output or Path(f"{Path(events.rstrip('/')).stem.strip('*') or 'events'}.histogram.csv")
    check_output(target, force=force)
    _check_apart(events, domain_file, target)
    signal.signal(signal.SIGTERM, _stop)
    with _disk_errors(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = _released(events, domain_file, options)
    with _disk_errors():
        written = write_release(result, target)
    for warning in caught:
        click.echo(f"warning: {warning.message}", err=True)
    _tell(result)
    for path in written:
        click.echo(path)


def _engine(name: str, master: str | None, progress: Callable[[str, float], None]) -> "Engine":
    from elementdp.histogram import LocalEngine, SparkEngine

    if name == "local" and master is not None:
        raise ArgumentError("master", master, "given with --engine spark only")
    return SparkEngine(master=master) if name == "spark" else LocalEngine(progress=progress)


def _released(events: str, domain_file: Path | None, options: dict[str, Any]) -> "PrivateHistogram":
    """The release that the options ask for, with a progress bar where someone is watching."""
    from elementdp.histogram import Budget, Discovery, RowPolicy, private_histogram
    from elementdp.histogram.tables import read_domain

    with progress_bar() as progress:
        return private_histogram(
            events,
            user=options["user"],
            item=options["item"],
            element=options["element"],
            privacy=Budget(options["epsilon"], options["delta"], seed=options["seed"]),
            count=options["count"],
            items=Discovery(options["max_items_per_element"])
            if domain_file is None
            else read_domain(domain_file, options["item"]),
            rho=options["rho"],
            policy=RowPolicy(
                bad_rows=options["bad_rows"],
                unknown_items="drop" if options["ignore_unknown_items"] else "refuse",
                tell=lambda rows: click.echo(f"{rows} bad rows were dropped (for you only)", err=True),
            ),
            engine=_engine(options["engine"], options["master"], progress),
        )


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """A line on standard error that says how far each stage is; nothing if standard error is no terminal."""
    if not sys.stderr.isatty():
        yield lambda stage, share: None
        return
    last: dict[str, int] = {}

    def show(stage: str, share: float) -> None:
        percent = int(100 * share)
        if last.get(stage) != percent:
            if last and stage not in last:
                click.echo(err=True)
            last[stage] = percent
            click.echo(f"\r{stage} {percent} %", err=True, nl=False)

    yield show
    if last:
        click.echo(err=True)


def _tell(result: "PrivateHistogram") -> None:
    """What was promised and spent, in words, on standard error."""
    promise = result.as_json()
    click.echo(f"{promise['statement']}; element: {result.element}", err=True)
    click.echo(f"{result.histogram.num_rows} items ({promise['items']}), rho {result.rho:g}", err=True)
    if result.histogram.num_rows == 0:
        click.echo(
            "no item had enough users to be discovered at this epsilon and delta: give --domain, a public list, or "
            "more epsilon",
            err=True,
        )
    elif result.clipped is not None:
        click.echo(result.clipped.words(), err=True)
    click.echo(f"{'stage':<16}{'mu':>12}{'delta':>12}{'sensitivity':>14}{'noise':>12}", err=True)
    for one in result.spent:
        numbers = f"{one.mu:>12.4g}{one.delta:>12.4g}{one.sensitivity:>14.4g}{one.noise:>12.4g}"
        click.echo(f"{one.stage:<16}{numbers}", err=True)


def _check_apart(events: str, domain_file: Path | None, target: Path) -> None:
    """Refuse to write over an input, and to take the events themselves for the public list of items."""
    from elementdp.histogram.output import files_of

    # What Spark reads need not be a file here; a local file that is not there is refused when it is opened.
    inputs = [path for path in (Path(events), domain_file) if path is not None and path.is_file()]
    for path in files_of(target):
        if any(path.exists() and path.samefile(source) for source in inputs):
            raise ArgumentError("output", str(path), "another file than the events and the list of items")
    if domain_file is not None and any(
        domain_file.samefile(source) or sha256_file(domain_file) == sha256_file(source)
        for source in inputs
        if source is not domain_file
    ):
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
