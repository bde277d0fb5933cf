"""``elementdp epsilon``: the ε of a run, as it is and as the paper would print it."""

import json
from collections.abc import Callable
from typing import Any

import click

from elementdp.privacy import Band, Sampler, SubsampledGaussian, Unit, account, claimed

SAMPLERS = [str(sampler) for sampler in Sampler if sampler is not Sampler.NONE]


def run_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options that describe a run, shared by ``epsilon`` and ``noise``."""
    options: list[Any] = [
        click.option("--sampler", type=click.Choice(SAMPLERS), required=True, help="What a step's coins decide on."),
        click.option("-q", type=float, required=True, help="Chance of a user (of a pair) to take part in one step."),
        click.option("--steps", type=int, default=1, show_default=True, help="Number T of steps."),
        click.option("--delta", type=float, required=True, help="The δ at which ε is asked for."),
        click.option("--elements-per-user", type=int, help="Bound on the elements of one user.  [default: unbounded]"),
        click.option("--unit", type=click.Choice([str(unit) for unit in Unit]), default="element", show_default=True),
        click.option("--json", "as_json", is_flag=True, help="One JSON object instead of words."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def describe(event: SubsampledGaussian, delta: float, band: Band, as_json: bool, **more: float) -> None:
    """Print the band of ``event``, and the paper's value beside it."""
    printed = claimed(event, delta)
    if as_json:
        numbers = {"low": band.low, "estimate": band.estimate, "up": band.up, "claimed": printed}
        words = {"unit": str(event.unit), "relation": str(event.relation), "sampler": str(event.sampler)}
        click.echo(json.dumps({**more, **numbers, **words, "delta": delta}))
        return
    for name, value in more.items():
        click.echo(f"{name} = {value:.6g}")
    ends = f"{band.low:.6g}", f"{band.up:.6g}"
    range_ = (
        f"is {ends[1]}" if ends[0] == ends[1] else f"is between {ends[0]} and {ends[1]} (estimate {band.estimate:.6g})"
    )
    click.echo(f"ε {range_} at δ = {delta:g}; promise {ends[1]}")
    click.echo(f"  protects {event.unit.words}; neighbours have its {event.relation.words}; {event.sampler.words}")
    if printed < band.low:
        verdict = "too small: the run does not have it"
    else:
        verdict = "true, and loose" if printed >= band.up else "within what is not known"
    click.echo(f"the paper would print ε = {printed:.6g} ({verdict})")


@click.command("epsilon")
@run_options
@click.option("--sigma", type=float, required=True, help="Noise in units of the clipping norm ρ.")
def command(
    sampler: str,
    q: float,
    steps: int,
    delta: float,
    elements_per_user: int | None,
    unit: str,
    as_json: bool,
    sigma: float,
) -> None:
    """The ε of STEPS adaptive steps of the subsampled Gaussian sum, as (low, estimate, up)."""
    event = SubsampledGaussian(Sampler(sampler), sigma, q, steps, Unit(unit), elements_per_user)
    describe(event, delta, account(event, delta), as_json)
