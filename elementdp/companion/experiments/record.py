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
from elementdp.errors import ArgumentError, ElementdpError

if TYPE_CHECKING:
    from elementdp.companion.experiments.images import ImagePlan, ImageTask, PhotoSet

_folder = click.option("--folder", default=FOLDER, type=click.Path(path_type=Path), help="Where the table goes.")
_seed = click.option("--seed", default=0, show_default=True)


@click.group(cls=Group)
def record() -> None:
    """Make a recorded run again; the table in the repository is replaced only when the run is complete."""


@record.command()
@click.option("--workers", default=2, show_default=True, help="Processes that share the repetitions.")
@click.option("--without-coins", is_flag=True, help="The methods of that chapter, instead of the figure's.")
@_seed
@_folder
def logistic(workers: int, without_coins: bool, seed: int, folder: Path) -> None:
    """Figure 3: simulated logistic regression."""
    from elementdp.companion.experiments.logistic import PAPER, WITHOUT_COINS, LogisticPlan, figure

    plan = LogisticPlan(seed=seed)
    name, methods = ("logistic-without-coins", WITHOUT_COINS) if without_coins else ("logistic", PAPER)
    with recording(name, asdict(plan), seed, {}, folder) as tables:
        points, rates = figure(plan, workers, _say, methods)
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
@_seed
@_folder
def words(name: str, clusters: str, splits: int, seed: int, folder: Path, **choices: Any) -> None:
    """Figure 2: histograms of users' words."""
    from elementdp.companion.experiments.words import WordsPlan, figure, prepare, readings

    choices["clusters"] = tuple(int(count) for count in _numbers("clusters", clusters))
    plan = WordsPlan(seed=seed, splits=splits)
    data: dict[str, str] = {}
    with recording(name, {**choices, **asdict(plan)}, seed, data, folder) as tables:
        found = prepare(seed=seed, **choices)
        _need_real(found.stand_in, found.reason)
        data.update(found.data)
        _say("corpus and clusters ready")
        points, partitions = figure(found.corpus, found.partitions, plan, _say)
        tables["points"] = [asdict(point) for point in points]
        tables["lines"] = [asdict(partition) for partition in partitions]
        tables["readings"], tables["elements"] = readings(found, points, seed=seed)


@dataclass(frozen=True)
class _ImageRun:
    """What the options of both image experiments say beside the plan: which variants, and where they go."""

    name: str
    seed: int
    accountings: tuple[str, ...]
    work: Path
    device: str
    folder: Path

    def record(
        self, choices: dict[str, Any], plan: "ImagePlan", prepare: "Callable[[], tuple[PhotoSet, ImageTask]]"
    ) -> None:
        """Load the photos, run every variant that was asked for, record it."""
        from elementdp.companion.experiments.images import Compute, study, to_row

        variants = plan.counted(self.accountings)
        data: dict[str, str] = {}
        parameters = {**choices, "device": self.device, **asdict(plan)}
        with recording(self.name, parameters, self.seed, data, self.folder) as tables:
            photos, task = prepare()
            _need_real(photos.stand_in, photos.reason)
            data.update(photos.data)
            results = study(task, plan, variants, _say, Compute(self.device, self.work))
            tables["lines"] = [to_row(result) for result in results]


def _image_options(command: Callable[..., None]) -> Callable[..., None]:
    """What both image experiments can be asked for; the defaults are the paper's sizes."""

    @functools.wraps(command)
    def gathered(**values: Any) -> None:
        run = _ImageRun(**{field.name: values.pop(field.name) for field in fields(_ImageRun)})
        command(run, **values)

    options = [
        click.option("--photos", type=int, required=True, help="Photos of the pool users are made from."),
        click.option("--tests", type=int, required=True, help="Test photos; half of them only tune."),
        click.option("--steps", default=40_000, show_default=True, help="T."),
        click.option("--until", default=0, help="End after so many steps (or their work), with the noise of all T."),
        click.option("--tuning-steps", default=2_000, show_default=True),
        click.option("--step-sizes", default="", help="Step sizes to climb, separated by commas."),
        click.option("--rhos", default="", help="Clipping radii to climb, separated by commas."),
        click.option("--rate-factors", default="", help="Multiples of q to climb at equal work, separated by commas."),
        click.option(
            "--backbone", default="resnet50", show_default=True, help="Or resnet50-torchvision, mobilenet-v2."
        ),
        click.option("--device", default="auto", show_default=True, help="cpu, cuda or mps; auto: a GPU if any."),
        click.option("--evaluations", default=40, show_default=True, help="Points of a training curve."),
        click.option("--repetitions", default=1, show_default=True),
        click.option("--legend", default="", help="JSON list of curves instead of the paper's."),
        click.option("--accounting", "accountings", multiple=True, help="Only curves counted so; may be repeated."),
        click.option("--work", type=click.Path(path_type=Path), required=True, help="Folder to resume from."),
        _seed,
        _folder,
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
def photos(run: _ImageRun, users: int, q: float, **values: Any) -> None:
    """Figure 4: the last layer on photos."""
    from elementdp.companion.experiments.images import PhotosPlan, last_layer, load_photos

    choices = {name: values.pop(name) for name in ("source", "photos", "tests", "backbone", "dimension")}
    plan = PhotosPlan(users=users, q=q, **_chosen(**values))

    def prepare() -> "tuple[PhotoSet, ImageTask]":
        pool = load_photos(**choices, compute=True, report=_say)
        return pool, last_layer(pool, plan.images, run.seed)

    run.record(choices, plan, prepare)


@record.command()
@_image_options
@click.option("--name", default="cifar", show_default=True, help="Name of the recorded table.")
@click.option("--users-a-step", default=20.0, show_default=True, help="qn.")
def cifar(run: _ImageRun, users_a_step: float, **values: Any) -> None:
    """Figure 5: a whole network on CIFAR-10."""
    from elementdp.companion.experiments.images import CifarPlan, load_cifar, whole_network

    choices = {name: values.pop(name) for name in ("photos", "tests", "backbone")}
    plan = CifarPlan(users_a_step=users_a_step, **_chosen(**values))

    def prepare() -> "tuple[PhotoSet, ImageTask]":
        pool = load_cifar(**choices, dimension=0, compute=True, report=_say)
        return pool, whole_network(pool, plan.images, run.seed)

    run.record(choices, plan, prepare)


def _need_real(stand_in: bool, reason: str) -> None:
    if stand_in:
        raise click.ClickException(f"a recorded run needs the real data: {reason}")


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
