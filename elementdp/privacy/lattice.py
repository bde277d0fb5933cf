"""Loss distributions on a lattice that provably lie above or below the exact one, and their T-fold composition.

**Order.** Write v(γ) = ∫ (x−γ)₊ dμ(x) for a finite measure μ of likelihood ratios x (the second law's measure). If v₁
≤ w₁ and v₂ ≤ w₂ for all γ > 0, the composed curves are ordered too: ∬(xy−γ)₊ dμ₁dμ₂ = ∫ y·v₁(γ/y) dμ₂(y) ≤ ∫
y·w₁(γ/y) dμ₂(y), and the same again for the second factor. So it is enough to bracket one step's curve H.

**Above.** Join the values of H at the knots e^{x_k} by chords ("connect the dots", Doroshenko et al. 2022): each
cell's mass goes to its two knots, keeping both laws' mass. **Below.** In a cell H lies above its two tangents at the
knots; lower the knots' values by the largest distance g between chord and tangents of the neighbouring cells, and
join. The masses are second differences of these values; where one would be negative (where the law is rougher than
the lattice) the two neighbouring cells are rounded down instead. Both errors are of order h², whatever T.

**Composition.** The lattice law is tilted by e^{τx} with τ near the saddle point of the answer, so that the answer
sits in the bulk of the tilted law and the Fourier transform's absolute error is a small relative one even for δ =
1e-12. What the window of the transform folds back is bounded by Chernoff's inequality, rounding by the length of the
sums.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.signal import lfilter

from elementdp.privacy.curves import Floats
from elementdp.privacy.pairs import Cells

_EPS = float(np.finfo(float).eps)
_FOLDED = 1e-13  # tilted mass allowed outside the window of the transform


@dataclass(frozen=True)
class Lattice:
    """Mass ``mass[i]`` (under the first law) at loss origin + h·(start + i); ``lost`` is mass at infinite loss."""

    origin: float
    h: float
    start: int
    mass: Floats
    lost: float

    @property
    def losses(self) -> Floats:
        """The loss at each knot."""
        return self.origin + self.h * (self.start + np.arange(len(self.mass)))

    def cumulant(self, tilt: float) -> float:
        """log Σ mass·e^{tilt·loss}."""
        powers = tilt * self.losses
        top = float(np.max(np.where(self.mass > 0, powers, -np.inf)))
        return top + math.log(float(np.dot(self.mass, np.exp(np.minimum(powers - top, 0.0)))))


def above(cells: Cells) -> Lattice:
    """The chords: an upper bound of the curve."""
    mass = np.append(cells.down, 0.0)
    mass[1:] += cells.rise
    if cells.atom:
        mass[-cells.start] += cells.atom
    return Lattice(cells.origin, cells.h, cells.start, mass, cells.outside)


def below(cells: Cells) -> Lattice:
    """The lowered knots: a lower bound of the curve."""
    down, rise = cells.down.copy(), cells.rise.copy()
    growth = math.expm1(cells.h)
    floored = np.zeros(len(down), dtype=bool)
    floored[[0, -1]] = True
    if len(down) > 1:
        floored[[1, -2]] = True
    while True:
        lower = down + np.where(floored, rise, 0.0)
        upper = np.where(floored, 0.0, rise)
        total = lower + upper * math.exp(-cells.h)
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.where(total > 0, lower * upper * -math.expm1(-cells.h) / total, 0.0)
        mass = np.append(lower, 0.0)
        mass[1:] += upper
        if cells.atom:
            mass[-cells.start] += cells.atom
        padded = np.concatenate([[0.0, 0.0], gap, [0.0, 0.0]])
        drop = np.maximum(padded[1:], padded[:-1])  # at knots start−1 … end+1
        bend = (drop[2:] - (2 + growth) * drop[1:-1] + (1 + growth) * drop[:-2]) / growth
        result = mass - bend
        wrong = np.flatnonzero(result < 0)
        if not len(wrong):
            return Lattice(cells.origin, cells.h, cells.start, result, 0.0)
        for shift in (-2, -1, 0, 1):  # the cells whose gaps bend the curve at a knot; without gaps nothing is negative
            floored[np.clip(wrong + shift, 0, len(down) - 1)] = True


@dataclass(frozen=True)
class Curve:
    """δ at the knots of the T-fold lattice near the saddle point: exp(``log_delta``) within ``error`` (relative)."""

    epsilon: Floats
    log_delta: Floats
    log_error: float  # log of the absolute error of e^{tilt·ε}·δ(ε), the same at every knot
    tilt: float
    lost: float


def compose(lattice: Lattice, steps: int, tilt: float, *, floor: float = -math.inf) -> Curve:
    """The curve of ``steps`` independent copies of ``lattice`` (knots above ``floor`` only), tilted by ``tilt``."""
    losses, h = lattice.losses, lattice.h
    log_scale = lattice.cumulant(tilt)
    tilted = lattice.mass * np.exp(tilt * losses - log_scale)
    low, high = _window(losses, tilted, steps)
    size = next_fast_len(max(64, int((high - low) / h) + 3), real=True)
    # Centre on the mean, so that the phases whose T-th power is taken stay small where the transform is large.
    centre = round(float(np.dot(tilted, np.arange(len(tilted)))))
    folded = np.bincount((np.arange(len(tilted)) - centre) % size, tilted, size)
    spectrum = rfft(folded)
    power = np.exp(steps * np.log(np.maximum(np.abs(spectrum), 1e-300))) * np.exp(1j * steps * np.angle(spectrum))
    density = irfft(power, size)
    first = math.floor((low - steps * lattice.origin) / h) - steps * (lattice.start + centre)
    density = np.roll(density, -(first % size))
    epsilon = steps * lattice.origin + h * (steps * (lattice.start + centre) + first + np.arange(size))
    # δ(ε_k) e^{τ ε_k} = Σ_{j>k} w_j e^{−τ u}(1−e^{−u}), u = ε_j−ε_k, by a recursion of positive terms from the right.
    decay, drop = math.exp(-tilt * h), math.exp(-h)
    right = density[::-1]
    lagged = np.concatenate([[0.0], right[:-1]])
    weighted = lfilter([decay * drop], [1.0, -decay * drop], lagged)  # Σ w e^{−(1+τ)u}
    source = np.concatenate([[0.0], (right + weighted)[:-1]]) * -math.expm1(-h) * decay
    total = lfilter([1.0], [1.0, -decay], source)[::-1]
    rounding = 8 * _EPS * math.log2(size) * (1 + steps) * float(np.mean(np.abs(spectrum) ** (steps - 1)))
    error = rounding / max(h * tilt * (1 + tilt), _EPS) * (1 + h * (1 + tilt)) + _FOLDED
    with np.errstate(divide="ignore", invalid="ignore"):
        log_delta = np.log(np.maximum(total, 0.0)) - tilt * epsilon + steps * log_scale
    keep = epsilon > floor
    lost = -math.expm1(steps * math.log1p(-min(lattice.lost, 0.5)))
    return Curve(epsilon[keep], log_delta[keep], math.log(error) + steps * log_scale, tilt, lost)


def _window(losses: Floats, tilted: Floats, steps: int) -> tuple[float, float]:
    """An interval that holds all but ``_FOLDED`` of the T-fold tilted law (Chernoff's inequality)."""
    mean = float(np.dot(tilted, losses))
    centred = losses - mean
    deviation = math.sqrt(max(float(np.dot(tilted, centred**2)), 1e-300) * steps)
    budget = -math.log(_FOLDED / 2)
    bounds = []
    for sign in (1.0, -1.0):
        best = steps * float(np.max(sign * centred))
        for angle in np.geomspace(0.05, 60, 20) / deviation:
            powers = angle * sign * centred
            top = float(np.max(powers))
            if top < 600:
                best = min(best, (steps * math.log(float(np.dot(tilted, np.exp(powers)))) + budget) / angle)
        bounds.append(best)
    return steps * mean - bounds[1], steps * mean + bounds[0]
