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


@record.command()
@click.option("--name", default="words-blogs", show_default=True, help="Name of the recorded table.")
@click.option("--source", default="blogs", show_default=True, help="chitchat, reddit, blogs or a JSONL file.")
@click.option("--vectors", default="glove-50d", show_default=True)
@click.option("--n", default=2_000, show_default=True)
@click.option("--m", default=4_000, show_default=True)
@click.option("--clusters", default="1,10,100,1000,10000", show_default=True, help="K, beside every word its own.")
@click.option("--splits", default=50, show_default=True)
@click.option("--unit-length", is_flag=True, help="Cluster directions of word vectors instead of the vectors.")
@click.option("--stop", default="listed", show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--folder", default=FOLDER, type=click.Path(path_type=Path), help="Where the table goes.")
def words(
    name: str,
    source: str,
    vectors: str,
    n: int,
    m: int,
    clusters: str,
    splits: int,
    unit_length: bool,
    stop: str,
    seed: int,
    folder: Path,
) -> None:
    """Figure 2: histograms of users' words."""
    from elementdp.experiments.words import Plan, figure, prepare, readings

    counts = tuple(int(count) for count in clusters.split(","))
    plan = Plan(seed=seed, splits=splits)
    choices = {"source": source, "vectors": vectors, "n": n, "m": m, "clusters": counts}
    choices |= {"unit_length": unit_length, "stop": stop}
    data: dict[str, str] = {}
    with recording(name, {**choices, **asdict(plan)}, seed, data, folder) as tables:
        found = prepare(source, vectors, n, m, counts, seed, unit_length=unit_length, stop=stop)
        if found.stand_in:
            raise click.ClickException(f"a recorded run needs the real data: {found.reason}")
        data.update(found.data)
        click.echo("corpus and clusters ready", err=True)
        points, lines = figure(found.corpus, found.partitions, plan, lambda line: click.echo(line, err=True))
        tables["points"] = [asdict(point) for point in points]
        tables["lines"] = [asdict(line) for line in lines]
        tables["readings"], tables["elements"] = readings(found, points, seed=seed)


if __name__ == "__main__":
    record()
