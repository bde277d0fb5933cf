"""``python -m elementdp.companion.experiments.record NAME``: make a recorded run again, at the paper's size."""

import functools
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elementdp.cli.options import Group
from elementdp.companion.experiments.recorded import FOLDER, recording
from elementdp.errors import ArgumentError, ElementdpError, one_of

if TYPE_CHECKING:
    from elementdp.companion.experiments.photo_set import PhotoSet
    from elementdp.companion.experiments.photos import Line, Task
    from elementdp.companion.experiments.photos.sizes import Sizes


@click.group(cls=Group)
def record() -> None:
    """Make a recorded run again; the table in the repository is replaced only when the run is complete."""


@record.command()
@click.option("--workers", default=2, show_default=True, help="Processes that share the repetitions.")
@click.option("--seed", default=0, show_default=True)
@click.option("--folder", default=FOLDER, type=click.Path(path_type=Path), help="Where the table goes.")
def logistic(workers: int, seed: int, folder: Path) -> None:
    """Figure 3: simulated logistic regression."""
    from elementdp.companion.experiments.logistic import Plan, figure

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
    from elementdp.companion.experiments.words import Plan, figure, prepare, readings

    counts = tuple(int(count) for count in _numbers("clusters", clusters))
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


@dataclass(frozen=True)
class _Images:
    """What the options of both image experiments say beside the plan: which lines, and where they go."""

    name: str
    seed: int
    ways: tuple[str, ...]
    work: Path
    device: str
    folder: Path

    def tell(self, choices: dict[str, Any], plan: "Sizes", prepare: "Callable[[], tuple[PhotoSet, Task]]") -> None:
        """Load the photos, tell every line that was asked for, record it."""
        from elementdp.companion.experiments.photos import figure

        lines = _of(plan.lines(), self.ways)
        data: dict[str, str] = {}
        parameters = {**choices, "device": self.device, **asdict(plan)}
        with recording(self.name, parameters, self.seed, data, self.folder) as tables:
            pool, task = prepare()
            if pool.stand_in:
                raise click.ClickException(f"a recorded run needs the real data: {pool.reason}")
            data.update(pool.data)
            tables["lines"] = [asdict(line) for line in figure(task, plan, lines, _say, self.work, self.device)]


def _image_options(command: Callable[..., None]) -> Callable[..., None]:
    """What both image experiments can be asked for; the defaults are the paper's sizes."""

    @functools.wraps(command)
    def gathered(**values: Any) -> None:
        run = _Images(**{field.name: values.pop(field.name) for field in fields(_Images)})
        command(run, **values)

    options = [
        click.option("--photos", type=int, required=True, help="Photos of the pool users are made from."),
        click.option("--tests", type=int, required=True, help="Test photos; half of them only tune."),
        click.option("--steps", default=40_000, show_default=True, help="T."),
        click.option("--tuning-steps", default=2_000, show_default=True),
        click.option("--step-sizes", default="", help="Ladder of step sizes to climb, separated by commas."),
        click.option("--rhos", default="", help="Clipping radii tried for every line, separated by commas."),
        click.option(
            "--rate-factors", default="", help="Multiples of q tried for every line at equal work, separated by commas."
        ),
        click.option(
            "--backbone",
            default="resnet50",
            show_default=True,
            help="resnet50 (the paper's), resnet50-torchvision or mobilenet-v2.",
        ),
        click.option(
            "--device", default="auto", show_default=True, help="cpu, cuda or mps; auto: a GPU if there is one."
        ),
        click.option("--evaluations", default=40, show_default=True, help="Points of a training curve."),
        click.option("--repetitions", default=1, show_default=True),
        click.option("--legend", default="", help="JSON list of lines instead of the paper's."),
        click.option("--way", "ways", multiple=True, help="Only lines told in this way; may be repeated."),
        click.option("--work", type=click.Path(path_type=Path), required=True, help="Folder to resume from."),
        click.option("--seed", default=0, show_default=True),
        click.option("--folder", default=FOLDER, type=click.Path(path_type=Path), help="Where the table goes."),
    ]
    return functools.reduce(lambda function, option: option(function), reversed(options), gathered)


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError as error:
        raise ArgumentError(name, text, "a list of numbers separated by commas") from error


def _chosen(legend: str, **sizes: Any) -> dict[str, Any]:
    """What was asked for; what was not is the plan's to say."""
    lists = ("step_sizes", "rhos", "rate_factors")
    found = {name: _numbers(name, value) if name in lists else value for name, value in sizes.items() if value != ""}
    if legend:
        try:
            found["legend"] = tuple(
                (str(what), math.inf if epsilon is None else float(epsilon), int(k), int(last))
                for what, epsilon, k, last in json.loads(legend)
            )
        except (ValueError, TypeError) as error:
            raise ArgumentError("legend", legend, 'JSON such as [["element", 3, 30, 500]]') from error
    return found


@record.command()
@_image_options
@click.option("--name", default="photos", show_default=True, help="Name of the recorded table.")
@click.option("--source", default="tiny-imagenet-101", show_default=True, help="Photos by name, or a folder of yours.")
@click.option("--users", default=8_000, show_default=True, help="n.")
@click.option("--q", default=0.01, show_default=True)
@click.option("--dimension", default=0, show_default=True, help="Numbers features are projected to; 0: not at all.")
def photos(
    run: _Images,
    photos: int,
    tests: int,
    source: str,
    users: int,
    q: float,
    dimension: int,
    backbone: str,
    **sizes: Any,
) -> None:
    """Figure 4: the last layer on photos."""
    from elementdp.companion.experiments.photos import Plan, last_layer, load_pool

    plan = Plan(users=users, q=q, **_chosen(**sizes))
    choices = {"source": source, "photos": photos, "tests": tests, "backbone": backbone, "dimension": dimension}

    def prepare() -> "tuple[PhotoSet, Task]":
        pool = load_pool(source, photos, tests, dimension, backbone, compute=True, report=_say)
        return pool, last_layer(pool, plan, run.seed)

    run.tell(choices, plan, prepare)


@record.command()
@_image_options
@click.option("--name", default="cifar", show_default=True, help="Name of the recorded table.")
@click.option("--users-a-step", default=20.0, show_default=True, help="qn.")
def cifar(run: _Images, photos: int, tests: int, users_a_step: float, backbone: str, **sizes: Any) -> None:
    """Figure 5: a whole network on CIFAR-10."""
    from elementdp.companion.experiments.cifar import Plan, load_photos, whole_network

    plan = Plan(users_a_step=users_a_step, **_chosen(**sizes))
    choices = {"photos": photos, "tests": tests, "backbone": backbone}

    def prepare() -> "tuple[PhotoSet, Task]":
        pool = load_photos(photos=photos, tests=tests, backbone=backbone, dimension=0, compute=True, report=_say)
        return pool, whole_network(pool, plan, run.seed)

    run.tell(choices, plan, prepare)


def _of(lines: "list[Line]", ways: tuple[str, ...]) -> "list[Line]":
    from elementdp.companion.experiments.photos import Way

    for way in ways:
        one_of("way", way, [str(known) for known in Way])
    found = [line for line in lines if not ways or str(line.way) in ways]
    if not found:
        raise click.BadParameter(f"no line of the legend is told {' or '.join(ways)}")
    return found


def _say(line: str) -> None:
    click.echo(line, err=True)


def main() -> None:
    """Run the command; a refusal is a line, not a traceback."""
    try:
        record()
    except ElementdpError as error:
        raise SystemExit(f"Error: {error}") from None


if __name__ == "__main__":
    main()
