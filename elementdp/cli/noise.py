"""``elementdp noise``: the smallest σ that reaches a target ε."""

import warnings
from typing import Any

import click

from elementdp import privacy
from elementdp.cli.epsilon import described, run_options, tell
from elementdp.cli.options import Command
from elementdp.errors import ElementdpError


@click.command("noise", cls=Command)
@run_options
@click.option("--epsilon", type=float, required=True, help="The target: the upper end of the band is at most this.")
def command(epsilon: float, delta: float, as_json: bool, **run: Any) -> None:
    """The smallest noise σ, in units of ρ, with which STEPS steps are (EPSILON, DELTA)-private."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", privacy.LeastNoiseWarning)
        try:
            event = privacy.calibrate(described(sigma=1.0, **run), epsilon, delta)
        except privacy.LeastNoiseWarning as edge:  # the edge of what is tested would be read as the answer
            raise ElementdpError(f"--epsilon {epsilon:g} has no smallest sigma in the tested range: {edge}") from edge
    tell(event, delta, as_json, sigma=event.sigma)
