"""``elementdp compose``: what several releases of one table promise together."""

import json
from pathlib import Path

import click

from elementdp.cli.options import Command


@click.command("compose", cls=Command)
@click.argument("guarantees", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--delta", type=float, help="The delta of the joint promise  [default: the sum of theirs]")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(guarantees: tuple[Path, ...], delta: float | None, as_json: bool) -> None:
    """Say what the releases whose GUARANTEES these files carry promise together.

    They must protect the same unit and element, by the same user column, against the same change; others are refused.
    The releases' stages are Gaussian, so the joint epsilon is smaller than the sum of theirs.
    """
    from elementdp.histogram.composition import ReleaseCost, composed_epsilon
    from elementdp.histogram.output import read_guarantee
    from elementdp.privacy import rounded_up

    costs = [ReleaseCost.of(read_guarantee(path)) for path in guarantees]
    epsilon, total = composed_epsilon(costs, delta)
    first = costs[0]
    if as_json:
        words = {"unit": first.unit, "element": first.element, "relation": first.relation}
        words["user_column"] = first.user_column
        click.echo(json.dumps({"epsilon": epsilon, "delta": total, "releases": len(costs)} | words, indent=1))
    else:
        click.echo(f"{len(costs)} releases together: epsilon {rounded_up(epsilon, 4)} at delta {rounded_up(total, 4)}")
        click.echo(f"for {first.unit} ({first.element}; user: column {first.user_column}; {first.relation})")
        click.echo(f"the sum of their epsilons would be {rounded_up(sum(cost.epsilon for cost in costs), 4)}")
