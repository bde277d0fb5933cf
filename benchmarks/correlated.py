"""Our correlated noise against jax_privacy's on the same runs: sensitivities, and errors at equal memory, in one run.

Run ``python benchmarks/correlated.py``. The error is the root mean square error of prefix sums at equal privacy, over
that of independent noise, by jax_privacy's own functions for its filters. Memory is counted in vectors of the model's
size: k for k + 1 bands, and for a filter of k buffers. With the buffers jax_privacy itself chooses, at most k of them,
its error is less than ours.
"""

import math
import time

import jax
import jax.numpy as jnp
from jax_privacy.matrix_factorization import buffered_toeplitz, toeplitz
from rich.console import Console
from rich.table import Table

from elementdp.privacy import Correlation, FixedOrder

CASES = [(500, 100, 3), (500, 100, 7), (1000, 1000, 7)]  # T, B, vectors kept


def error(coefficients: jax.Array, steps: int, batches: int) -> float:
    """By jax_privacy: sensitivity times error of the strategy C, over that of C = I."""
    epochs = -(-steps // batches)
    square = toeplitz.minsep_sensitivity_squared(coefficients, batches, epochs, n=steps)
    mean = jnp.mean(toeplitz.per_query_error(strategy_coef=coefficients, n=steps))
    return math.sqrt(float(square) * float(mean) / (epochs * (steps + 1) / 2))


def main() -> None:
    """Print the table."""
    jax.config.update("jax_enable_x64", True)
    table = Table("T", "B", "kept", "sensitivity, ours/theirs", "ours", "s", "their banded C", "s", "buffered", "s")
    for steps, batches, kept in CASES:
        start = time.perf_counter()
        ours = Correlation.optimised(kept + 1, steps, batches)
        seconds = [time.perf_counter() - start]
        epochs = -(-steps // batches)
        column = jnp.asarray(ours.column(steps))
        theirs = math.sqrt(float(toeplitz.minsep_sensitivity_squared(column, batches, epochs, n=steps)))
        ratio = FixedOrder(1.0, steps, batches, correlation=ours).exposure / theirs
        start = time.perf_counter()
        banded = toeplitz.optimize_banded_toeplitz(steps, kept + 1)
        seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        visits = {"min_sep": batches, "max_participations": epochs}
        buffered = buffered_toeplitz.optimize(n=steps, error="mean", max_buffers=kept, **visits).toeplitz_coefs(steps)
        seconds.append(time.perf_counter() - start)
        errors = [ours.error(steps, batches), error(banded, steps, batches), error(buffered, steps, batches)]
        cells = [cell for pair in zip(errors, seconds, strict=True) for cell in (f"{pair[0]:.3f}", f"{pair[1]:.1f}")]
        table.add_row(str(steps), str(batches), str(kept), f"{ratio:.9f}", *cells)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
