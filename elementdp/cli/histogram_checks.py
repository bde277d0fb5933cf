"""What ``elementdp histogram`` refuses before any work, and what it foretells without a look at the events."""

import glob
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from elementdp.errors import ArgumentError
from elementdp.files import sha256_file

if TYPE_CHECKING:
    from elementdp.histogram import BoundedValue, Budget


def counted(options: dict[str, Any]) -> "str | BoundedValue | None":
    """What an event counts, or the value that is added up beside the counts."""
    from elementdp.histogram import BoundedValue

    if options["value"] is None:
        return cast("str | None", options["count"])
    if options["count"] is not None:
        raise ArgumentError("count", options["count"], "left out with --value, where each row counts once")
    return BoundedValue(*options["value"])


def check_engine(events: tuple[str, ...], options: dict[str, Any]) -> None:
    """Refuse what only the other engine can do."""
    if options["engine"] == "local" and options["master"] is not None:
        raise ArgumentError("master", options["master"], "given with --engine spark only")
    if options["engine"] == "spark" and "-" in events:
        raise ArgumentError("engine", "spark", "given with files, folders or globs, not with standard input")


def check_budget(events: tuple[str, ...], privacy: "Budget", options: dict[str, Any]) -> None:
    """Refuse a budget for a release that has no cost, or whose table is not there to be looked at first."""
    if options["budget"] is None:
        return
    if privacy.seed is not None:
        raise ArgumentError("budget", str(options["budget"]), "left out for a seeded release, which promises nothing")
    if "-" in events:
        raise ArgumentError("budget", str(options["budget"]), "left out for standard input, which can be read once")


def check_apart(
    events: tuple[str, ...], domain_file: Path | None, target: Path, plot: Path | None, engine: str
) -> None:
    """Refuse to write over an input, and to take the events themselves for the public list of items."""
    from elementdp.histogram.event_files import files_of_table
    from elementdp.histogram.output import files_of

    if engine == "spark":
        read = [path for table in events for path in _files_here(table)]
    else:
        read = [file.path for table in events if table != "-" for file in files_of_table(table, "csv")]
    inputs = read if domain_file is None else [*read, domain_file]
    outputs = [("output", path) for path in files_of(target)] + ([("plot", plot)] if plot is not None else [])
    for name, path in outputs:
        if any(path.exists() and path.samefile(source) for source in inputs):
            raise ArgumentError(name, str(path), "another file than the events and the list of items")
    if domain_file is not None and any(_same(domain_file, source) for source in read):
        raise ArgumentError(
            "domain",
            str(domain_file),
            "a public list, not the events: an item only one user has would be listed because of that user",
        )


def _files_here(table: str) -> list[Path]:
    """The files of a table for Spark that are on this machine, which need be none."""
    found = [Path(table)] if Path(table).exists() else [Path(one) for one in glob.glob(table)]  # noqa: PTH207
    return [file for path in found for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]


def _same(one: Path, other: Path) -> bool:
    alike = one.stat().st_size == other.stat().st_size
    return one.samefile(other) or (alike and sha256_file(one) == sha256_file(other))


def preview(privacy: "Budget", domain_file: Path | None, options: dict[str, Any]) -> None:
    """What the options would cost and add, without a look at the events."""
    import numpy as np

    from elementdp.histogram import BoundedValue
    from elementdp.histogram.budget import Ledger
    from elementdp.histogram.discovery import Threshold
    from elementdp.histogram.item_columns import item_columns
    from elementdp.histogram.projection import GridBall

    ledger = Ledger(privacy, discovers=domain_file is None, chooses_radius=options["rho"] is None)
    item, value = item_columns(options["item"]), counted(options)
    alone = options["element"] in ("item", *(f"{prefix}{item[0]}" for prefix in ("", "column:") if len(item) == 1))
    ball = GridBall.of(1.0 if options["rho"] is None else options["rho"])
    mu, valued = ledger.mu_for("release"), isinstance(value, BoundedValue)
    noise = ball.sensitivity(one_item=alone, valued=valued) / ball.grid / mu
    times = " times rho" if options["rho"] is None else ""
    expected: dict[str, float | str] = {"noise": noise}
    words = [f"noise of a count: {noise:.4g}{times}"]
    if isinstance(value, BoundedValue):
        _, (spread,) = value.sums(np.zeros(1), np.array([noise]), np.zeros(1), 2 * ball.rho / mu)
        expected["sum_noise"] = float(spread)
        words.append(f"noise of a sum: {spread:.4g}{times}")
    if domain_file is None:
        most = options["max_items_per_element"]
        rule = Threshold.of(ledger.mu_for("discovery"), ledger.threshold_delta, most, one_item=alone)
        expected["discovered_from"] = needed = rule.value / rule.naming.ball.grid
        words.append(f"an item is discovered if about {needed:.4g} groups have it (more if they have other items, too)")
    if options["as_json"]:
        click.echo(json.dumps(expected | {"noise_unit": "rho" if times else "counts"}, indent=1))
    else:
        click.echo("\n".join([*words, "nothing was read or spent"]))


def warn_of_existing(events: tuple[str, ...], target: Path, plot: Path | None) -> None:
    """Say which outputs a run would be refused for; the events themselves can be no output at all."""
    from elementdp.histogram.output import files_of

    read = {Path(table).resolve() for table in events}
    for path in [*files_of(target), *([] if plot is None else [plot])]:
        if path.resolve() in read:
            raise ArgumentError("output", str(path), "another file than the events")
        if path.exists():
            click.echo(f"{path} exists: a run would be refused; name another --output, or give --force", err=True)
