"""``python -m elementdp.experiments.record NAME``: make a recorded run again, at the paper's size."""

from dataclasses import asdict
from pathlib import Path

import click

from elementdp.experiments.recorded import FOLDER, recording


@click.group()
def record() -> None:
    """Make a recorded run again; the table in the repository is replaced only when the run is complete."""


@record.command()
@click.option("--workers", default=2, show_default=True, help="Processes that share the repetitions.")
@click.option("--seed", default=0, show_default=True)
@click.option("--folder", default=FOLDER, type=click.Path(path_type=Path), help="Where the table goes.")
def logistic(workers: int, seed: int, folder: Path) -> None:
    """Figure 3: simulated logistic regression."""
    from elementdp.experiments.logistic import Plan, figure

    plan = Plan(seed=seed)
    with recording("logistic", asdict(plan), seed, {}, folder) as tables:
        points, rates = figure(plan, workers, lambda line: click.echo(line, err=True))
        tables["points"] = [asdict(point) for point in points]
        tables["rates"] = [asdict(rate) for rate in rates]


if __name__ == "__main__":
    record()
