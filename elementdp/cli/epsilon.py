"""``elementdp epsilon``: the ε of a run, as it is and as the paper would print it; ``noise`` shares its options."""

import functools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from elementdp import privacy
from elementdp.cli.options import Command
from elementdp.errors import ArgumentError
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.guarantee import Relation, Sampler, Unit

if TYPE_CHECKING:
    from elementdp.privacy.accountant import Event

_SAMPLERS = [str(sampler) for sampler in Sampler if sampler is not Sampler.NONE]
_RUN: list[Any] = [
    click.option("--sampler", type=click.Choice(_SAMPLERS), required=True, help="Which users or pairs a step sees."),
    click.option("-q", type=float, help="Chance of a user (of a pair) to take part in one step."),
    click.option("--steps", type=int, help="Number T of steps.  [default: 1]"),
    click.option("--epochs", type=int, help="In a fixed order or allocated: how often each user or pair is seen."),
    click.option("--batches", type=int, help="In a fixed order or allocated: steps B of an epoch, T = epochs × B."),
    click.option("--bands", type=int, help="In a fixed order: correlate the noise of so many steps, B given."),
    click.option("--elements-per-user", type=int, help="Bound on the elements of one user.  [default: unbounded]"),
    click.option("--unit", type=click.Choice([str(unit) for unit in Unit]), default="element", show_default=True),
    click.option(
        "--relation",
        type=click.Choice([str(relation) for relation in Relation]),
        default="replace",
        show_default=True,
        help="Replacing is removing and adding: its ε is about twice that of add-remove, which many libraries print.",
    ),
    click.option("--delta", type=float, required=True, help="The δ at which ε is asked for."),
    click.option("--json", "as_json", is_flag=True, help="One JSON object instead of words."),
]


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` the options of a run, which :func:`described` takes, and ``delta`` and ``as_json``."""
    return functools.reduce(lambda function, option: option(function), reversed(_RUN), command)


def described(
    sampler: str, steps: int | None, epochs: int | None, batches: int | None, bands: int | None, **run: Any
) -> "Event":
    """The run that the options describe."""
    kind = Sampler(sampler)
    if kind is not Sampler.FIXED_ORDER and bands is not None:
        raise ArgumentError("bands", bands, "left out unless --sampler is fixed-order")
    if kind not in (Sampler.FIXED_ORDER, Sampler.ALLOCATED_PAIRS):
        for name, value in (("epochs", epochs), ("batches", batches)):
            if value is not None:
                raise ArgumentError(name, value, "left out unless --sampler is fixed-order or allocated-pairs")
        if run["q"] is None:
            raise ArgumentError("q", None, f"given for --sampler {sampler}")
        return SubsampledGaussian(sampler=kind, steps=1 if steps is None else steps, **run)
    if (rate := run.pop("q")) is not None:
        raise ArgumentError("q", rate, f"left out for --sampler {sampler}: give --batches")
    if (steps is None) == (epochs is None) or (steps is not None and batches is None):
        raise ArgumentError("epochs", epochs, f"given for --sampler {sampler}; or --steps together with --batches")
    if kind is Sampler.ALLOCATED_PAIRS and batches is None:
        raise ArgumentError("batches", None, "given for --sampler allocated-pairs: the steps of an epoch")
    number = batches or 1  # only how often a user is seen counts for independent noise
    total = number * epochs if epochs is not None else steps or 1
    if kind is Sampler.ALLOCATED_PAIRS:
        return privacy.RandomAllocation(steps=total, batches=number, **run)
    correlation = privacy.Correlation()
    if bands is not None:
        if batches is None:
            raise ArgumentError("batches", None, "given along with --bands: correlated noise depends on it")
        correlation = privacy.Correlation.optimised(bands, total, number)
    return privacy.FixedOrder(steps=total, batches=number, correlation=correlation, **run)


def tell(event: "Event", delta: float, as_json: bool, **more: float) -> None:
    """Print the band of ``event``, and what else there is to know; ``more`` are numbers to put first."""
    band, others = privacy.account(event, delta), _alternatives(event, delta)
    paper = isinstance(event, SubsampledGaussian) and event.relation is Relation.REPLACE
    printed = privacy.claimed(event, delta) if paper and isinstance(event, SubsampledGaussian) else None
    if as_json:
        numbers = {**more, "low": band.low, "estimate": band.estimate, "up": band.up, "claimed": printed}
        words = {"unit": str(event.unit), "relation": str(event.relation), "sampler": str(event.sampler)}
        alternatives = {str(other.sampler): _finite(up) for other, up in others}
        found = {name: _finite(value) for name, value in numbers.items()}
        click.echo(json.dumps({**found, **words, "delta": delta, "alternatives": alternatives}, allow_nan=False))
        return
    for name, value in more.items():
        click.echo(f"{name} = {privacy.rounded_up(value, 6)}")
    low, up = privacy.rounded_down(band.low, 6), privacy.rounded_up(band.up, 6)
    known = f"is {up}" if low == up else f"is between {low} and {up} (estimate {band.estimate:.6g})"
    click.echo(f"ε {known} at δ = {delta:g}; promise {up}")
    click.echo(f"  protects {event.unit.words}; neighbours have its {event.relation.words}; {event.sampler.words}")
    if event.relation is Relation.REPLACE:
        click.echo("  replacing is removing and adding: libraries that count only one of both print about half this ε")
    if printed is not None:
        if printed < band.low:
            verdict = "too small: the run does not have it"
        else:
            verdict = "true, and loose" if printed >= band.up else "within what is not known"
        click.echo(f"the paper would print ε = {printed:.6g} ({verdict})")
    for other, most in others:
        click.echo(_compared(other, most, band, delta))
    if isinstance(event, privacy.FixedOrder) and event.correlation != privacy.Correlation():
        error = event.correlation.error(event.steps, event.batches)
        click.echo(f"sums over all steps so far have {error:.3g} times the error of independent noise at this ε")


def _alternatives(event: "Event", delta: float) -> list[tuple["Event", float]]:
    """The same work done in other ways, and the ε to promise for each."""
    if event.unit is not Unit.ELEMENT or event.sampler is Sampler.POISSON_PAIRS:
        return []
    others: list[Event] = []
    if isinstance(event, SubsampledGaussian):
        visits = math.ceil(event.q * event.steps * (1 - 1e-12))
        pairs = replace(event, sampler=Sampler.POISSON_PAIRS, elements_per_user=None)
        others = [privacy.FixedOrder(event.sigma, visits, relation=event.relation), pairs]
    elif isinstance(event, privacy.RandomAllocation):
        others = [privacy.FixedOrder(event.sigma, event.epochs, relation=event.relation)]
    elif event.batches > 1 and event.correlation == privacy.Correlation():
        rate, most = 1 / event.batches, event.elements_per_user
        others = [
            SubsampledGaussian(sampler, event.sigma, rate, event.steps, event.unit, most, event.relation)
            for sampler in (Sampler.POISSON_USERS, Sampler.POISSON_PAIRS)
        ]
        others += [privacy.RandomAllocation(event.sigma, event.steps, event.batches, relation=event.relation)]
    return [(other, privacy.promise(other, delta).epsilon) for other in others]


def _compared(other: "Event", most: float, band: "privacy.Band", delta: float) -> str:
    """One line that says whether the other way has less ε, and what it needs."""
    value = privacy.rounded_up(most, 4)
    if isinstance(other, privacy.FixedOrder):
        times = "once" if other.steps == 1 else f"{other.steps} times"
        verdict = "better" if most < band.low else "no better" if most > band.up else "not known to be better"
        return f"seeing every user {times} in a fixed order has ε = {value} ({verdict}), and needs no coins"
    if isinstance(other, privacy.RandomAllocation):
        return f"allocating pairs to a random step of each epoch has ε = {value}; one coin a pair and epoch, unseen"
    if other.sampler is Sampler.POISSON_PAIRS:
        return f"sampling (user, element) pairs has ε = {value}; each pair needs a coin in each step that nobody sees"
    assert isinstance(other, SubsampledGaussian)
    low = privacy.account(other, delta).low
    verdict = "better" if most < band.low else "worse" if low > band.up else "not known to be better"
    proof = other.elements_per_user is None and privacy.proved_better(other, band.estimate) is not None
    return f"sampling users has ε = {value} ({verdict}{', as is proved' if proof else ''})"


def _finite(value: float | None) -> float | None:
    """A number that JSON knows."""
    return value if value is not None and math.isfinite(value) else None


@click.command("epsilon", cls=Command)
@run_options
@click.option("--sigma", type=float, required=True, help="Noise in units of the clipping norm ρ.")
def command(delta: float, as_json: bool, **run: Any) -> None:
    """The ε of STEPS adaptive noisy sums, as (low, estimate, up)."""
    tell(described(**run), delta, as_json)
