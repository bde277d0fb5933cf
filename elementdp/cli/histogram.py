"""``elementdp histogram``: a private histogram of a table of events."""

import ctypes
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from elementdp.cli.histogram_checks import check_apart, check_budget, check_engine, counted, preview, warn_of_existing
from elementdp.cli.options import Command
from elementdp.errors import ArgumentError, ElementdpError, at_least

if TYPE_CHECKING:
    from elementdp.histogram import Budget, Engine, PrivateHistogram
    from elementdp.histogram.charged import ChargedEngine

_LARGE_DELTA = 1e-4
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # the numbers of these settings in malloc.h


@click.command("histogram", cls=Command)
@click.argument("events", nargs=-1, required=True)
@click.option("--user", required=True, help="Column that names the user.")
@click.option(
    "--item", required=True, multiple=True, help="Column that names the item counted; several name it together."
)
@click.option(
    "--element",
    required=True,
    help="What is protected: a column (column:NAME if in doubt), or 'domain' (of a URL), 'item' (each item), 'user' "
    "(all a user has).",
)
@click.option("--epsilon", required=True, type=float)
@click.option("--delta", required=True, type=float)
@click.option("--count", help="Column of counts or weights; without it each row counts once.")
@click.option(
    "--value",
    type=(str, float, float),
    metavar="COLUMN LOW HIGH",
    help="Add up this column beside the counts, each row's number moved into the public range LOW to HIGH.",
)
@click.option(
    "--domain",
    "domain_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Public list of items: a text file with one a line, or a table with the --item columns. "
    "Must not be read off the events. Without it, items are discovered privately.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="Where events are grouped: this machine, or Spark, for which EVENTS are files, folders and globs it reads.",
)
@click.option("--master", help="Where Spark runs.  [default: local[*], inside this command]")
@click.option("--format", "form", type=click.Choice(["csv", "tsv", "jsonl", "parquet"]), help="If no name tells it.")
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
@click.option("--split", help="Shares of the budget, such as discovery=0.2,radius=0.1,clipping=0.02.")
@click.option(
    "--budget", type=click.Path(path_type=Path), help="File of releases that share a budget: refuses to go over it."
)
@click.option("--top", type=int, help="Write only the largest noisy counts (post-processing).")
@click.option("--nonnegative", is_flag=True, help="Raise negative counts to 0 (post-processing).")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help=".csv, .tsv, .parquet or .json  [default: EVENTS.histogram.csv here]",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    help="Draw the largest items with their intervals (.svg or .png; needs elementdp[plot]).",
)
@click.option("--force", is_flag=True, help="Replace an existing output.")
@click.option("--dry-run", is_flag=True, help="Check the options, print the noise to expect; read and spend nothing.")
@click.option("--quiet", is_flag=True, help="Print the names of the files only.")
@click.option("--json", "as_json", is_flag=True, help="Print the guarantee as JSON instead of words.")
@click.option("--seed", type=int, help="Repeatable noise, for testing only: such a release protects no one.")
def command(
    events: tuple[str, ...], output: Path | None, domain_file: Path | None, force: bool, dry_run: bool, **options: Any
) -> None:
    """Write the private histogram of the items in EVENTS, one event a row.

    EVENTS are files (.csv, .tsv, .jsonl, .parquet, the first three also .gz or .zst), folders, patterns, or - for
    standard input with --format. Protected is one element of one user: all the events of a user whose items lie in one
    element. Items come from a public list or are discovered privately; the set of items in the data is itself a secret.

    Exit codes: 0 written, 2 refused (nothing is written), 130 and 143 stopped. Shell completion:
    eval "$(_ELEMENTDP_COMPLETE=bash_source elementdp)".
    """
    from elementdp.histogram import Budget, plot_release, write_release
    from elementdp.histogram.output import check_output
    from elementdp.histogram.plot import check_plot

    say, warn = _sayer(quiet=options["quiet"] or options["as_json"]), _sayer(quiet=options["quiet"])
    privacy = Budget(options["epsilon"], options["delta"], _split(options["split"]), options["seed"])
    if privacy.delta > _LARGE_DELTA:
        warn(f"warning: delta {privacy.delta:g} is no small number; it should be far below 1 over the number of users")
    check_engine(events, options)
    check_budget(events, privacy, options)
    if options["top"] is not None:
        at_least("top", options["top"], 1)
    target = output or _default_output(events[0])
    check_output(target, force=force or dry_run)
    if options["plot"] is not None:
        check_plot(options["plot"], force=force or dry_run)
    if dry_run:
        if not force:
            warn_of_existing(events, target, options["plot"])
        return preview(privacy, domain_file, options)
    check_apart(events, domain_file, target, options["plot"], options["engine"])
    signal.signal(signal.SIGTERM, _stop)
    _keep_freed_memory()
    with _disk_errors(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = _released(events, domain_file, privacy, options, say)
    with _disk_errors():
        result = _processed(result, options)
        written = write_release(result, target, force=force)
        if options["plot"] is not None:
            written.append(plot_release(result, options["plot"], force=force))
    for warning in caught:
        warn(f"warning: {warning.message}")
    _tell(result, say)
    if options["as_json"]:
        click.echo(json.dumps(result.as_json() | {"files": list(map(str, written))}, indent=1))
    else:
        for path in written:
            click.echo(os.path.relpath(path))
    return None


def _keep_freed_memory() -> None:
    """Let the C library keep what arrays give back: taking pages anew costs a third of the time of a release."""
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        for setting in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            mallopt(setting, 1 << 30)


def _default_output(events: str) -> Path:
    name = "stdin" if events == "-" else Path(events.rstrip("/")).stem.strip("*")
    return Path(f"{name or 'events'}.histogram.csv")


def _sayer(*, quiet: bool) -> Callable[[str], None]:
    """Words for whoever watches, on standard error."""
    return (lambda words: None) if quiet else (lambda words: click.echo(words, err=True))


def _split(text: str | None) -> Any:
    from elementdp.histogram import Split

    try:
        shares = {name: float(share) for name, share in (part.split("=") for part in (text or "").split(",") if part)}
        return Split(**shares)
    except (ValueError, TypeError) as error:
        if isinstance(error, ElementdpError):
            raise
        raise ArgumentError("split", text, "such as discovery=0.2,radius=0.1,clipping=0.02") from error


def _processed(result: "PrivateHistogram", options: dict[str, Any]) -> "PrivateHistogram":
    """The release after the post-processing that was asked for."""
    if options["nonnegative"]:
        result = result.nonnegative()
    return result if options["top"] is None else result.top(options["top"])


def _released(
    events: tuple[str, ...],
    domain_file: Path | None,
    privacy: "Budget",
    options: dict[str, Any],
    say: Callable[[str], None],
) -> "PrivateHistogram":
    """The release that the options ask for, with a progress bar where someone is watching."""
    from elementdp.histogram import Discovery, RowPolicy, private_histogram
    from elementdp.histogram.tables import read_domain

    listed = None if domain_file is None else read_domain(domain_file, options["item"])
    with progress_bar(quiet=options["quiet"] or options["as_json"]) as progress:
        return private_histogram(
            list(events),
            user=options["user"],
            item=options["item"],
            element=options["element"],
            privacy=privacy,
            count=counted(options),
            items=Discovery(options["max_items_per_element"]) if listed is None else listed,
            rho=options["rho"],
            policy=RowPolicy(
                bad_rows=options["bad_rows"],
                unknown_items="drop" if options["ignore_unknown_items"] else "refuse",
                tell=lambda rows: click.echo(f"{rows} bad rows were dropped (for you only)", err=True),
            ),
            engine=_engine(options, progress, privacy, say),
        )


def _engine(
    options: dict[str, Any], progress: Callable[[str, float], None], privacy: "Budget", say: Callable[[str], None]
) -> "Engine":
    from elementdp.histogram import LocalEngine, SparkEngine

    engine: Engine
    if options["engine"] == "local":
        engine = LocalEngine(progress=progress, form=options["form"])
    else:
        engine = SparkEngine(master=options["master"], format={"jsonl": "json"}.get(options["form"], options["form"]))
    return engine if options["budget"] is None else _charged(engine, privacy, options, say)


def _charged(
    engine: "Engine", privacy: "Budget", options: dict[str, Any], say: Callable[[str], None]
) -> "ChargedEngine":
    """The engine that enters the release in the budget it shares with others, right before the table is read."""
    from elementdp.histogram.charged import ChargedEngine
    from elementdp.histogram.composition import BudgetFile
    from elementdp.privacy import rounded_up

    def tell(spent: float, allowed: float) -> None:
        say(f"budget: epsilon {rounded_up(spent, 4)} of {allowed:g} is spent with this release")

    return ChargedEngine(engine, BudgetFile(options["budget"]), privacy, options["rho"] is None, tell)


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[Callable[[str, float], None]]:
    """A line on standard error that says how far each stage is; nothing if standard error is no terminal."""
    if quiet or not sys.stderr.isatty():
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


def _tell(result: "PrivateHistogram", say: Callable[[str], None]) -> None:
    """What was promised and spent, in words."""
    from elementdp.privacy import rounded_up

    promise = result.as_json()
    say(f"{promise['statement']}; element: {result.element}")
    say(f"{result.histogram.num_rows} items ({promise['items']}), rho {result.rho:g}")
    if result.histogram.num_rows == 0:
        say(
            "no item had enough users to be discovered at this epsilon and delta: give --domain, a public list, or "
            "more epsilon"
        )
    elif result.clipped is not None:
        say(result.clipped.words())
    say(f"{'stage':<16}{'mu':>12}{'delta':>12}{'sensitivity':>14}{'noise':>12}")
    for one in result.spent:
        numbers = f"{rounded_up(one.mu, 4):>12}{rounded_up(one.delta, 4):>12}{one.sensitivity:>14.4g}{one.noise:>12.4g}"
        say(f"{one.stage:<16}{numbers}")


@contextmanager
def _disk_errors() -> Iterator[None]:
    """A full disk or a folder without write permission is a refusal like others."""
    from elementdp.histogram.spill import temporary_folder

    try:
        yield
    except OSError as error:
        raise ElementdpError(f"{error} (temporary files go to {temporary_folder()}; TMPDIR changes that)") from error


def _stop(number: int, frame: FrameType | None) -> None:
    """Unwind on SIGTERM, so that nothing half-written stays."""
    sys.exit(128 + number)
