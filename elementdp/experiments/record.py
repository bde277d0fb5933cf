"""``python -m elementdp.experiments.record NAME``: make a recorded run again, at the paper's size."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

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


def _image_options(command: Callable[..., None]) -> Callable[..., None]:
    """What both image experiments can be asked for; the defaults are the paper's sizes."""
    options = [
        click.option("--photos", type=int, required=True, help="Photos of the pool users are made from."),
        click.option("--tests", type=int, required=True, help="Test photos; half of them only tune."),
        click.option("--steps", default=40_000, show_default=True, help="T."),
        click.option("--tuning-steps", default=2_000, show_default=True),
        click.option("--step-sizes", default="", help="Step sizes tried, separated by commas."),
        click.option("--repetitions", default=1, show_default=True),
        click.option("--legend", default="", help="JSON list of lines instead of the paper's."),
        click.option("--way", "ways", multiple=True, help="Only lines told in this way; may be repeated."),
        click.option("--work", type=click.Path(path_type=Path), required=True, help="Folder to resume from."),
        click.option("--seed", default=0, show_default=True),
        click.option("--folder", default=FOLDER, type=click.Path(path_type=Path), help="Where the table goes."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _chosen(steps: int, tuning_steps: int, step_sizes: str, repetitions: int, legend: str) -> dict[str, Any]:
    found: dict[str, Any] = {"steps": steps, "tuning_steps": tuning_steps, "repetitions": repetitions}
    if step_sizes:
        found["step_sizes"] = tuple(float(size) for size in step_sizes.split(","))
    if legend:
        found["legend"] = tuple(
            (str(what), math.inf if epsilon is None else float(epsilon), int(k), int(last))
            for what, epsilon, k, last in json.loads(legend)
        )
    return found


@record.command()
@_image_options
@click.option("--name", default="photos", show_default=True, help="Name of the recorded table.")
@click.option("--users", default=8_000, show_default=True, help="n.")
@click.option("--q", default=0.01, show_default=True)
def photos(
    photos: int,
    tests: int,
    name: str,
    users: int,
    q: float,
    ways: tuple[str, ...],
    work: Path,
    seed: int,
    folder: Path,
    **sizes: Any,
) -> None:
    """Figure 4: the last layer on photos."""
    from elementdp.experiments.photos import Plan, figure, last_layer, load_pool

    plan = Plan(users=users, q=q, **_chosen(**sizes))
    data: dict[str, str] = {}
    with recording(name, {"photos": photos, "tests": tests, **asdict(plan)}, seed, data, folder) as tables:
        pool = load_pool(photos=photos, tests=tests, compute=True, report=_say)
        if pool.stand_in:
            raise click.ClickException(f"a recorded run needs the real data: {pool.reason}")
        data.update(pool.data)
        lines = [line for line in plan.lines() if not ways or str(line.way) in ways]
        told = figure(last_layer(pool, plan, seed), plan, lines, _say, work)
        tables["lines"] = [asdict(line) for line in told]


@record.command()
@_image_options
@click.option("--users-a-step", default=20.0, show_default=True, help="qn.")
def cifar(
    photos: int,
    tests: int,
    users_a_step: float,
    ways: tuple[str, ...],
    work: Path,
    seed: int,
    folder: Path,
    **sizes: Any,
) -> None:
    """Figure 5: a whole network on CIFAR-10."""
    from elementdp.experiments.cifar import Plan, load_photos, whole_network
    from elementdp.experiments.photos import figure

    plan = Plan(users_a_step=users_a_step, **_chosen(**sizes))
    data: dict[str, str] = {}
    with recording("cifar", {"photos": photos, "tests": tests, **asdict(plan)}, seed, data, folder) as tables:
        pool = load_photos(photos=photos, tests=tests, compute=True, report=_say)
        if pool.stand_in:
            raise click.ClickException(f"a recorded run needs the real data: {pool.reason}")
        data.update(pool.data)
        lines = [line for line in plan.lines() if not ways or str(line.way) in ways]
        told = figure(whole_network(pool, plan, seed), plan, lines, _say, work)
        tables["lines"] = [asdict(line) for line in told]


def _say(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    record()
