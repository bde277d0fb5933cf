"""Our accountants against dp-accounting on the same pairs: answers, times and their ratio, in one run.

Run ``python benchmarks/accounting.py``. Times are CPU seconds, the best of a few runs.
"""

import time
from collections.abc import Callable

from dp_accounting.pld import privacy_loss_distribution as pld
from rich.console import Console
from rich.table import Table

from elementdp.privacy import Sampler, SubsampledGaussian, account, guarantee

CASES = [  # q, σ, T, δ
    (0.01, 8.0, 40_000, 5e-5),
    (0.01, 2.0, 40_000, 1e-5),
    (0.01, 1.0, 40_000, 1e-6),
    (0.001, 1.0, 40_000, 1e-6),
    (0.05, 10.0, 40_000, 1e-9),
    (0.1, 40.0, 40_000, 1e-6),
]


def timed(function: Callable[[], float], repeats: int) -> tuple[float, float]:
    """The answer, and the CPU seconds of the best of ``repeats`` runs."""
    best, value = float("inf"), 0.0
    for _ in range(repeats):
        start = time.process_time()
        value = function()
        best = min(best, time.process_time() - start)
    return value, best


def peer(q: float, sigma: float, steps: int, delta: float) -> float:
    """dp-accounting's PLD for the printed pair (replace one, Poisson sampling), pessimistic, with its own defaults."""
    law = pld.from_gaussian_mechanism(
        sigma,
        sampling_prob=q,
        neighboring_relation=pld.NeighborRel.REPLACE_ONE,
    )
    return float(law.self_compose(steps).get_epsilon_for_delta(delta))


def main() -> None:
    """Print the table: upper bound against upper bound, and the time of our whole band beside it."""
    table = Table("q", "σ", "T", "δ", "ours low", "ours up", "theirs up", "ours s", "theirs s", "ratio", "our band s")
    for q, sigma, steps, delta in CASES:
        event = SubsampledGaussian(Sampler.POISSON_PAIRS, sigma, q, steps)
        up, ours = timed(lambda event=event, delta=delta: guarantee(event, delta).epsilon, 7)  # type: ignore[misc]
        low, band = timed(lambda event=event, delta=delta: account(event, delta).low, 7)  # type: ignore[misc]
        value, theirs = timed(lambda c=(q, sigma, steps, delta): peer(*c), 3)  # type: ignore[misc]
        numbers = [f"{x:.5g}" for x in (low, up, value)] + [f"{x:.4f}" for x in (ours, theirs)]
        table.add_row(f"{q:g}", f"{sigma:g}", f"{steps}", f"{delta:g}", *numbers, f"{theirs / ours:.1f}", f"{band:.4f}")
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
