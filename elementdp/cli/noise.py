"""``elementdp noise``: the smallest σ that reaches a target ε."""

import click

from elementdp.cli.epsilon import describe, run_options
from elementdp.privacy import Sampler, SubsampledGaussian, Unit, account, calibrate


@click.command("noise")
@run_options
@click.option("--epsilon", type=float, required=True, help="The target: the upper end of the band is at most this.")
def command(
    sampler: str,
    q: float,
    steps: int,
    delta: float,
    elements_per_user: int | None,
    unit: str,
    as_json: bool,
    epsilon: float,
) -> None:
    """The smallest noise σ, in units of ρ, with which STEPS steps are (EPSILON, DELTA)-private."""
    start = SubsampledGaussian(Sampler(sampler), 1.0, q, steps, Unit(unit), elements_per_user)
    event = calibrate(start, epsilon, delta)
    describe(event, delta, account(event, delta), as_json, sigma=event.sigma)
