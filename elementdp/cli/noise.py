"""``elementdp noise``: the smallest σ that reaches a target ε."""

import warnings

import click

from elementdp.cli.epsilon import Run, run_options
from elementdp.cli.options import Command
from elementdp.errors import ElementdpError
from elementdp.privacy import LeastNoiseWarning, calibrate


@click.command("noise", cls=Command)
@run_options
@click.option("--epsilon", type=float, required=True, help="The target: the upper end of the band is at most this.")
def command(run: Run, epsilon: float) -> None:
    """The smallest noise σ, in units of ρ, with which STEPS steps are (EPSILON, DELTA)-private."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeastNoiseWarning)
        try:
            event = calibrate(run.event(sigma=1.0), epsilon, run.delta)
        except LeastNoiseWarning as edge:  # the edge of what is tested would be read as the answer
            raise ElementdpError(f"--epsilon {epsilon:g} has no smallest sigma in the tested range: {edge}") from edge
    run.tell(event, sigma=event.sigma)
