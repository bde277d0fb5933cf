"""The symmetrised pair of one user-sampled step, and its T-fold product, by a route of its own.

A = (1-q)N(0) + qN(s) and B = (1-q)N(0) + qN(s-c) are what one step shows of the worst neighbours (swing s, change c, in
units of ρ). Neither order of them dominates all neighbours; the larger of their two curves does, and is a pair's.
"""

import numpy as np
from scipy.optimize import brentq

from elementdp.audit.mixtures import Mixture
from elementdp.companion.theory.losses import FloatArray
from elementdp.errors import one_of

_SPACING, _FARTHEST = 1e-4, 1.5  # z, and the largest loss of one step that is kept
DIRECTIONS = ("A against B", "B against A", "symmetrised")


def step_pair(q: float, sigma: float, swing: float, change: float = 2.0) -> tuple[Mixture, Mixture]:
    """A and B."""
    return Mixture((0.0, swing), (1 - q, q), sigma), Mixture((0.0, swing - change), (1 - q, q), sigma)


def curves(first: Mixture, second: Mixture, gammas: FloatArray, cells: int = 40_000) -> dict[str, FloatArray]:
    """H_γ(A‖B) = sup_E A(E) - γB(E), H_γ(B‖A) and the larger of both, at each γ ≥ 0."""
    means = [*first.means, *second.means]
    edges = np.linspace(min(means) - 12 * first.sigma, max(means) + 12 * first.sigma, cells + 1)
    a, b = (np.diff([law.cdf(x) for x in edges]) for law in (first, second))
    one, other = _curve(a, b, gammas), _curve(b, a, gammas)
    return dict(zip(DIRECTIONS, (one, other, np.maximum(one, other)), strict=True))


def _curve(p: FloatArray, q: FloatArray, gammas: FloatArray) -> FloatArray:
    """Σ(p - γq)₊ at each γ: cells in the order of their likelihood ratio, summed from the top."""
    ratio = p / np.maximum(q, 1e-300)
    order = np.argsort(-ratio)
    tops = [np.concatenate([[0.0], np.cumsum(mass[order])]) for mass in (p, q)]
    taken = np.searchsorted(-ratio[order], -gammas, side="right")
    return np.asarray(tops[0][taken] - gammas * tops[1][taken])


def composed_epsilon(
    q: float, sigma: float, swing: float, steps: int, delta: float, direction: str = "symmetrised"
) -> float:
    """ε at δ of the T-fold product of the pair with one of the three curves.

    A curve h is that of the pair with Q(ratio > γ) = -h'(γ). Joining its points at γ = e^(iz) by chords can only raise
    it, so the pair with atoms there is an upper bound. Its losses are multiples of z: the T-fold sum is a power of a
    discrete Fourier transform.
    """
    one_of("direction", direction, DIRECTIONS)
    half = 1 << 17
    losses = np.arange(-half, half) * _SPACING
    near = np.abs(losses) <= _FARTHEST
    gammas = np.exp(losses[near])
    curve = curves(*step_pair(q, sigma, swing), gammas)[direction]
    slopes = np.concatenate([[-1.0], np.diff(curve) / np.diff(gammas), [0.0]])  # h(γ) = 1 - γ to the left
    law = np.zeros(2 * half)
    law[near] = gammas * np.clip(np.diff(slopes), 0.0, None)  # P has γ times the mass of Q
    composed = np.fft.ifft(np.fft.fft(np.fft.ifftshift(law / law.sum())) ** steps).real
    sums = np.fft.fftshift(np.clip(composed, 0.0, None))

    def excess(epsilon: float) -> float:
        above = losses > epsilon
        return float(sums[above] @ -np.expm1(epsilon - losses[above])) - delta

    return float(brentq(excess, 0.0, losses[-1])) if excess(0.0) > 0 else 0.0
