"""``elementdp noise``: the smallest σ that reaches a target ε."""

import click

from elementdp.cli.epsilon import Run, run_options
from elementdp.options import Command
from elementdp.privacy import calibrate


@click.command("noise", cls=Command)
@run_options
@click.option("--epsilon", type=float, required=True, help="The target: the upper end of the band is at most this.")
def command(run: Run, epsilon: float) -> None:
    """The smallest noise σ, in units of ρ, with which STEPS steps are (EPSILON, DELTA)-private."""
    event = calibrate(run.event(sigma=1.0), epsilon, run.delta)
    run.tell(event, sigma=event.sigma)
