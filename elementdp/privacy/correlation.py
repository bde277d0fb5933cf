"""Noise that is correlated from step to step, for the sums of a run in a fixed order.

Step k of such a run adds Σ_j (C⁻¹)_{kj} Z_j to its sum, with Z independent normal vectors and C lower triangular and
Toeplitz (matrix factorisation; Denisov et al. 2022, Choquette-Choo et al. 2023). Here C⁻¹ is banded: what one step adds
the next few subtract again in part, so that it hardly disturbs the sum of many steps. What that costs is counted by
:class:`elementdp.privacy.FixedOrder`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from elementdp.errors import ArgumentError, at_least, positive
from elementdp.privacy.curves import Floats

MOST_BANDS = 64
LONGEST_CORRELATED = 10**7  # steps of a run with correlated noise
_WORK = 30_000_000  # steps times rounds of an optimisation: any filter keeps its promise, so it may end early
_COLUMNS = 64  # columns of the workload an optimisation looks at where step sizes change; any filter keeps its promise


@dataclass(frozen=True)
class Correlation:
    """The noise of step k is Σ_j ``weights[j]``·Z_{k−j}: the bands of C⁻¹, from the diagonal down.

    A run keeps the last ``len(weights) − 1`` vectors Z, each of the model's size.

    Args:
        weights: the first is 1; (1,) is independent noise.

    Raises:
        ArgumentError: there are no weights, more than 64, one is not finite, or the first is not 1.

    >>> Correlation((1.0, -0.5)).column(4).tolist()  # C has the coefficients of 1/(1 − x/2)
    [1.0, 0.5, 0.25, 0.125]
    """

    weights: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        weights = tuple(float(weight) for weight in self.weights)
        if not 1 <= len(weights) <= MOST_BANDS or not all(map(math.isfinite, weights)) or weights[0] != 1:
            raise ArgumentError("weights", weights[:8], f"1 to {MOST_BANDS} finite numbers, the first of them 1")
        object.__setattr__(self, "weights", weights)

    @classmethod
    def inverse_root(cls, bands: int) -> "Correlation":
        """The banded inverse square root: the first ``bands`` coefficients of √(1−x).

        For prefix sums A the best factors are near A^{1/2}, whose inverse has these coefficients (Kalinin, McKenna,
        Upadhyay & Lampert 2025, who prove its error optimal up to a constant).
        """
        j = np.arange(1, _bands(bands))
        return cls((1.0, *np.cumprod((j - 1.5) / j).tolist()))

    @classmethod
    def optimised(
        cls, bands: int, steps: int, batches: int, step_sizes: Callable[[int], float] | None = None
    ) -> "Correlation":
        """The bands with the least error of the run's own prefix sums Σ_{i≤k} α_i·(sum_i + noise_i), at equal privacy.

        Minimised is ‖Σ_e C[:, eB]‖²·‖A C⁻¹‖²_F with A[k, i] = α_i for i ≤ k. For long runs with changing steps the
        second factor is taken over some columns of A only.

        Args:
            bands: how many steps the noise of one step reaches, its own included.
            steps: the number T of steps.
            batches: the number B of batches.
            step_sizes: α_k for k = 1, …, T; constant steps if left out.

        Raises:
            ArgumentError: a number is out of range, or a step size is not positive.
        """
        from scipy.optimize import minimize

        if at_least("steps", steps, 1) > LONGEST_CORRELATED:
            raise ArgumentError("steps", steps, f"at most {LONGEST_CORRELATED:,} with correlated noise")
        at_least("batches", batches, 1)
        if _bands(bands) == 1:
            return cls()
        sizes = [] if step_sizes is None else [positive("step size", step_sizes(k + 1)) for k in range(steps)]
        # The square root's hazards are 1/(2j), each a share (j−1)/j of the one before.
        shares = np.array([0.5, *(1 - 1 / np.arange(2, bands))])
        found = minimize(
            lambda logits: _objective(logits, steps, batches, np.array(sizes)),
            np.log(shares / (1 - shares)),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": min(300, max(20, _WORK // steps))},
        )
        return cls(tuple(_weights(_shares(found.x)).tolist()))

    def column(self, steps: int) -> Floats:
        """The first ``steps`` entries of the first column of C; each other column is this one moved down."""
        from scipy.signal import lfilter  # slow to import; independent noise does not need it

        impulse = np.zeros(at_least("steps", steps, 1))
        impulse[0] = 1.0
        return impulse if self.weights == (1.0,) else np.asarray(lfilter([1.0], self.weights, impulse), dtype=float)

    def error(self, steps: int, batches: int) -> float:
        """Root mean square error of prefix sums over that of independent noise, at equal privacy and constant steps.

        The ratio is that of ‖Σ_e C[:, eB]‖·‖A C⁻¹‖_F with this C to the same with C = I.
        """
        norms = [float(np.linalg.norm(visited(one.column(steps), batches))) for one in (self, Correlation())]
        errors = [_prefix_error(_padded(np.array(one.weights), steps), None)[0] for one in (self, Correlation())]
        return norms[0] / norms[1] * math.sqrt(errors[0] / errors[1])


def visited(column: Floats, batches: int) -> Floats:
    """Σ_e C[:, eB] of a Toeplitz C with this first column: what a user adds who is seen in every B-th step."""
    steps = len(column)
    epochs = -(-steps // batches)
    rows = _padded(column, epochs * batches).reshape(epochs, batches)
    return np.asarray(np.cumsum(rows, axis=0).ravel()[:steps])


def _bands(bands: int) -> int:
    if at_least("bands", bands, 1) > MOST_BANDS:
        raise ArgumentError("bands", bands, f"at most {MOST_BANDS}")
    return bands


def _padded(values: Floats, size: int) -> Floats:
    found = np.zeros(size)
    found[: min(size, len(values))] = values[:size]
    return found


def _shares(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logits)))


def _weights(shares: Floats) -> Floats:
    """1, −u₁, −u₂, … with u the law of a waiting time whose hazards h_j = share₁⋯share_j decrease.

    C = 1/(1 − Σ u_j x^j) is then the sequence of renewals, which decreases when hazards do (Brown 1980).
    """
    hazards = np.cumprod(shares)
    return np.concatenate([[1.0], -hazards * np.cumprod([1.0, *(1 - hazards[:-1])])])


def _objective(logits: Floats, steps: int, batches: int, sizes: Floats) -> tuple[float, Floats]:
    """log of squared sensitivity times squared error, and its gradient."""
    shares = _shares(logits)
    weights, hazards = _weights(shares), np.cumprod(shares)
    column = Correlation(tuple(weights.tolist())).column(steps)
    visits = visited(column, batches)
    square = float(visits @ visits)
    back = 2 * visited(np.asarray(visits[::-1]), batches)[::-1]  # d‖s‖²/dc_i = 2·Σ_e s_{i+eB}
    twice = np.convolve(column, column)[:steps] if steps < 4096 else _squared(column)  # dC/dw_i = −x^i·C²
    error, slope = _prefix_error(_padded(weights, steps), sizes if len(sizes) else None)
    some = range(1, min(len(weights), steps))
    gradient = np.zeros(len(weights))
    gradient[1 : len(some) + 1] = [slope[i] / error - float(back[i:] @ twice[: steps - i]) / square for i in some]
    pull = (gradient * weights)[1:]  # w_j is proportional to h_j and to 1 − h_i for each i < j
    later = np.cumsum(pull[::-1])[::-1] - pull
    by_hazard = pull - later * hazards / (1 - hazards)
    return math.log(square) + math.log(error), np.cumsum(by_hazard[::-1])[::-1] * (1 - shares)


def _squared(column: Floats) -> Floats:
    """The first entries of the column of C²."""
    from scipy.signal import fftconvolve

    return np.asarray(fftconvolve(column, column)[: len(column)], dtype=float)


def _prefix_error(inverse: Floats, sizes: Floats | None) -> tuple[float, Floats]:
    """‖A C⁻¹‖²_F and its gradient in the first column of C⁻¹."""
    steps = len(inverse)
    if sizes is None:
        sums, left = np.cumsum(inverse), np.arange(steps, 0, -1.0)
        return float(left @ (sums * sums)), np.cumsum((2 * left * sums)[::-1])[::-1]
    error, slope = 0.0, np.zeros(steps)
    for start in np.unique(np.linspace(0, steps - 1, min(_COLUMNS, steps)).astype(int)).tolist():
        later = sizes[start:]
        sums = np.cumsum(later * inverse[: steps - start])
        error += float(sums @ sums)
        slope[: steps - start] += later * np.cumsum(2 * sums[::-1])[::-1]
    return error, slope
