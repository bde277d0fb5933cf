"""``elementdp epsilon``: the ε of a run, as it is and as the paper would print it; ``noise`` shares its options."""

import functools
import json
from collections.abc import Callable
from typing import Any

import click

from elementdp import privacy
from elementdp.cli.options import Command
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.guarantee import Sampler, Unit

_SAMPLERS = [str(sampler) for sampler in Sampler if sampler is not Sampler.NONE]
_RUN: list[Any] = [  # each but the last two is a field of SubsampledGaussian
    click.option("--sampler", type=click.Choice(_SAMPLERS), required=True, help="What a step's coins decide on."),
    click.option("-q", type=float, required=True, help="Chance of a user (of a pair) to take part in one step."),
    click.option("--steps", type=int, default=1, show_default=True, help="Number T of steps."),
    click.option("--elements-per-user", type=int, help="Bound on the elements of one user.  [default: unbounded]"),
    click.option("--unit", type=click.Choice([str(unit) for unit in Unit]), default="element", show_default=True),
    click.option("--delta", type=float, required=True, help="The δ at which ε is asked for."),
    click.option("--json", "as_json", is_flag=True, help="One JSON object instead of words."),
]


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` the options of a run: its keywords are ``delta``, ``as_json`` and the fields of the event."""
    return functools.reduce(lambda function, option: option(function), reversed(_RUN), command)


def tell(event: SubsampledGaussian, delta: float, as_json: bool, **more: float) -> None:
    """Print the band of ``event`` and the paper's value beside it; ``more`` are numbers to put first."""
    band, printed = privacy.account(event, delta), privacy.claimed(event, delta)
    if as_json:
        numbers = {"low": band.low, "estimate": band.estimate, "up": band.up, "claimed": printed}
        words = {"unit": str(event.unit), "relation": str(event.relation), "sampler": str(event.sampler)}
        click.echo(json.dumps({**more, **numbers, **words, "delta": delta}))
        return
    for name, value in more.items():
        click.echo(f"{name} = {privacy.rounded_up(value, 6)}")
    low, up = privacy.rounded_down(band.low, 6), privacy.rounded_up(band.up, 6)
    known = f"is {up}" if low == up else f"is between {low} and {up} (estimate {band.estimate:.6g})"
    click.echo(f"ε {known} at δ = {delta:g}; promise {up}")
    click.echo(f"  protects {event.unit.words}; neighbours have its {event.relation.words}; {event.sampler.words}")
    if printed < band.low:
        verdict = "too small: the run does not have it"
    else:
        verdict = "true, and loose" if printed >= band.up else "within what is not known"
    click.echo(f"the paper would print ε = {printed:.6g} ({verdict})")


@click.command("epsilon", cls=Command)
@run_options
@click.option("--sigma", type=float, required=True, help="Noise in units of the clipping norm ρ.")
def command(delta: float, as_json: bool, **run: Any) -> None:
    """The ε of STEPS adaptive steps of the subsampled Gaussian sum, as (low, estimate, up)."""
    tell(SubsampledGaussian(**run), delta, as_json)
