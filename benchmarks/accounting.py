"""Our accountants against dp-accounting on the same pairs: answers, times and their ratio, in one run.

Run ``python benchmarks/accounting.py``. Times are CPU seconds, the best of a few runs in turns. Ours are for the whole
band (low, estimate, up) at a relative width of at most 1e-3; theirs for one pessimistic ε at their default lattice of
step 1e-4 (connect the dots), where it has a relative error below 1e-3 in every case, as the table shows.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from dp_accounting.pld import privacy_loss_distribution as pld
from rich.console import Console
from rich.table import Table

from elementdp.privacy import Band, Sampler, SubsampledGaussian, account

T = TypeVar("T")

CASES = [  # q, σ, T, δ
    (0.01, 8.0, 40_000, 5e-5),
    (0.01, 2.0, 40_000, 1e-5),
    (0.01, 1.0, 40_000, 1e-6),
    (0.001, 1.0, 40_000, 1e-6),
    (0.05, 10.0, 40_000, 1e-9),
    (0.1, 40.0, 40_000, 1e-6),
]

REPEATS = 8
INTERVAL = 1e-4  # dp-accounting's own default


def timed(function: Callable[[], T]) -> tuple[T, float]:
    """The answer, and the CPU seconds it took."""
    start = time.process_time()
    value = function()
    return value, time.process_time() - start


def ours(q: float, sigma: float, steps: int, delta: float) -> Band:
    """The whole band, from nothing: a new event, and nothing is kept from call to call."""
    return account(SubsampledGaussian(Sampler.POISSON_PAIRS, sigma, q, steps), delta)


def peer(q: float, sigma: float, steps: int, delta: float) -> float:
    """dp-accounting's PLD for the printed pair (replace one, Poisson sampling), pessimistic."""
    law = pld.from_gaussian_mechanism(
        sigma,
        sampling_prob=q,
        value_discretization_interval=INTERVAL,
        neighboring_relation=pld.NeighborRel.REPLACE_ONE,
    )
    return float(law.self_compose(steps).get_epsilon_for_delta(delta))


def main() -> None:
    """Print the table."""
    table = Table("q", "σ", "T", "δ", "low", "up", "band", "theirs", "their error ≤", "ours s", "theirs s", "ratio")
    for q, sigma, steps, delta in CASES:
        seconds, peers = math.inf, math.inf
        for _ in range(REPEATS):  # in turns, so that both meet the same machine
            band, once = timed(partial(ours, q, sigma, steps, delta))
            value, theirs = timed(partial(peer, q, sigma, steps, delta))
            seconds, peers = min(seconds, once), min(peers, theirs)
        numbers = [
            f"{band.low:.5g}",
            f"{band.up:.5g}",
            f"{band.gap:.1e}",
            f"{value:.5g}",
            f"{value / band.low - 1:.1e}",
        ]
        table.add_row(
            f"{q:g}",
            f"{sigma:g}",
            f"{steps}",
            f"{delta:g}",
            *numbers,
            f"{seconds:.4f}",
            f"{peers:.4f}",
            f"{peers / seconds:.1f}",
        )
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
