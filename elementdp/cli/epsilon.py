"""``elementdp epsilon``: the ε of a run, as it is and as the paper would print it; ``noise`` shares its options."""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import click

from elementdp.cli.options import Command
from elementdp.privacy import Sampler, SubsampledGaussian, Unit, account, claimed
from elementdp.privacy.digits import rounded_down, rounded_up

SAMPLERS = [str(sampler) for sampler in Sampler if sampler is not Sampler.NONE]
_OPTIONS: list[Any] = [
    click.option("--sampler", type=click.Choice(SAMPLERS), required=True, help="What a step's coins decide on."),
    click.option("-q", type=float, required=True, help="Chance of a user (of a pair) to take part in one step."),
    click.option("--steps", type=int, default=1, show_default=True, help="Number T of steps."),
    click.option("--delta", type=float, required=True, help="The δ at which ε is asked for."),
    click.option("--elements-per-user", type=int, help="Bound on the elements of one user.  [default: unbounded]"),
    click.option("--unit", type=click.Choice([str(unit) for unit in Unit]), default="element", show_default=True),
    click.option("--json", "as_json", is_flag=True, help="One JSON object instead of words."),
]


@dataclass(frozen=True)
class Run:
    """What the options say of a run; the noise is apart, since one of the commands asks for it."""

    sampler: str
    q: float
    steps: int
    delta: float
    elements_per_user: int | None
    unit: str
    as_json: bool

    def event(self, sigma: float) -> SubsampledGaussian:
        """The run with noise ``sigma``."""
        return SubsampledGaussian(
            Sampler(self.sampler), sigma, self.q, self.steps, Unit(self.unit), self.elements_per_user
        )

    def tell(self, event: SubsampledGaussian, **more: float) -> None:
        """Print the band of ``event``, and the paper's value beside it; ``more`` are numbers to put first."""
        band, printed = account(event, self.delta), claimed(event, self.delta)
        if self.as_json:
            numbers = {"low": band.low, "estimate": band.estimate, "up": band.up, "claimed": printed}
            words = {"unit": str(event.unit), "relation": str(event.relation), "sampler": str(event.sampler)}
            click.echo(json.dumps({**more, **numbers, **words, "delta": self.delta}))
            return
        for name, value in more.items():
            click.echo(f"{name} = {rounded_up(value, 6)}")
        low, up = rounded_down(band.low, 6), rounded_up(band.up, 6)
        known = f"is {up}" if low == up else f"is between {low} and {up} (estimate {band.estimate:.6g})"
        click.echo(f"ε {known} at δ = {self.delta:g}; promise {up}")
        click.echo(f"  protects {event.unit.words}; neighbours have its {event.relation.words}; {event.sampler.words}")
        if printed < band.low:
            verdict = "too small: the run does not have it"
        else:
            verdict = "true, and loose" if printed >= band.up else "within what is not known"
        click.echo(f"the paper would print ε = {printed:.6g} ({verdict})")


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` the options of a run; it is called with a :class:`Run` first."""

    @functools.wraps(command)
    def gathered(**values: Any) -> None:
        run = Run(**{field.name: values.pop(field.name) for field in fields(Run)})
        command(run, **values)

    return functools.reduce(lambda function, option: option(function), reversed(_OPTIONS), gathered)


@click.command("epsilon", cls=Command)
@run_options
@click.option("--sigma", type=float, required=True, help="Noise in units of the clipping norm ρ.")
def command(run: Run, sigma: float) -> None:
    """The ε of STEPS adaptive steps of the subsampled Gaussian sum, as (low, estimate, up)."""
    run.tell(run.event(sigma))
