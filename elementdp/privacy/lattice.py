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
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.signal import lfilter

from elementdp.privacy.curves import Floats
from elementdp.privacy.pairs import Cells

_EPS = float(np.finfo(float).eps)
_FOLDED = 1e-14  # tilted mass allowed outside the window of the transform


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
        return np.asarray(self.origin + self.h * (self.start + np.arange(len(self.mass))), dtype=float)

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


def below(cells: Cells, tilt: float) -> Lattice:
    """The lowered knots: a lower bound of the curve, as tight as it can be made where ``tilt`` looks.

    A law whose bulk is narrower than a cell (rare participation) is rougher than the lattice at knot 0. If its bulk is
    symmetric the cells within j of knot 0 have equal mass under both laws and may be merged there; the best j is taken.
    """
    plain, smooth = _lowered(cells, np.zeros(len(cells.down), dtype=bool))
    if smooth:
        return plain
    candidates = [plain]
    zero = -cells.start
    for width in (1, 2, 4, 8, 16, 32, 64):
        if cells.balanced and width < min(zero, len(cells.down) - zero):
            block = np.zeros(len(cells.down), dtype=bool)
            block[zero - width : zero + width] = True
            candidates.append(_lowered(cells, block)[0])
    return max(candidates, key=lambda lattice: lattice.cumulant(tilt))


def _lowered(cells: Cells, block: np.ndarray) -> tuple[Lattice, bool]:
    """Lower bound with the cells of ``block`` merged into knot 0, and whether the law is smooth."""
    merged = float(np.sum((cells.down + cells.rise)[block]))
    down, rise = np.where(block, 0.0, cells.down), np.where(block, 0.0, cells.rise)
    growth = math.expm1(cells.h)
    floored = block.copy()
    floored[[0, -1]] = True
    while True:
        lower = down + np.where(floored, rise, 0.0)
        upper = np.where(floored, 0.0, rise)
        total = lower + upper * math.exp(-cells.h)
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.where(total > 0, lower * upper * -math.expm1(-cells.h) / total, 0.0)
        mass = np.append(lower, 0.0)
        mass[1:] += upper
        if cells.atom or merged:
            mass[-cells.start] += cells.atom + merged
        padded = np.concatenate([[0.0, 0.0], gap, [0.0, 0.0]])
        drop = np.maximum(padded[1:], padded[:-1])  # at knots start−1 … end+1
        bend = (drop[2:] - (2 + growth) * drop[1:-1] + (1 + growth) * drop[:-2]) / growth
        result = mass - bend
        wrong = np.flatnonzero(result < 0)
        if not len(wrong):
            rough = float(np.sum((cells.down + cells.rise)[floored]))
            return Lattice(cells.origin, cells.h, cells.start, result, 0.0), rough < 1e-5
        for shift in (-2, -1, 0, 1):  # the cells whose gaps bend the curve at a knot; without gaps nothing is negative
            floored[np.clip(wrong + shift, 0, len(down) - 1)] = True


@dataclass(frozen=True)
class Waves:
    """The sum of :func:`_summed` over the periodic law, from its few Fourier terms: a geometric series for each.

    With many steps the transform's T-th power lives on few frequencies, and only a few knots are ever asked for. The
    periods to the right add e^{−τ·period} to δ at most, since Σ_j w_j e^{−τ ε_j} is the law's own mass.
    """

    terms: NDArray[np.complex128]
    angles: Floats

    @classmethod
    def of(
        cls, power: NDArray[np.complex128], kept: NDArray[np.int64], size: int, first: int, tilt: float, h: float
    ) -> "Waves":
        """From the kept values of a real transform of length ``size``, the knots counted from ``first``."""
        angles = np.asarray(2 * math.pi / size * kept, dtype=float)
        step = np.exp(-tilt * h + 1j * angles)
        series = step * -math.expm1(-h) / (np.expm1(-tilt * h + 1j * angles) * np.expm1(-(1 + tilt) * h + 1j * angles))
        twice = np.where((kept == 0) | (2 * kept == size), 1.0, 2.0) / size
        shift = np.exp(2j * math.pi / size * ((kept * (first % size)) % size))
        return cls(twice * power * series * shift, angles)

    def __getitem__(self, knot: int) -> float:
        return float(np.dot(self.terms, np.exp(1j * self.angles * knot)).real)


@dataclass(frozen=True)
class Curve:
    """δ of T steps at knots ``start + h·k``: e^{tilt·ε − log_scale}·δ(ε) is ``scaled`` within ``error``."""

    start: float
    h: float
    size: int
    scaled: Floats | Waves
    error: float
    tilt: float
    log_scale: float
    lost: float  # of δ: mass left out, which the upper bound adds
    folded: float  # of δ: what the periodic sum has too much, which the lower bound subtracts

    def log_delta(self, knot: int, sign: int) -> float:
        """log of the upper (``sign`` = 1) or lower (−1) bound of δ at a knot."""
        value = float(self.scaled[knot]) + sign * self.error
        log = self.log_scale - self.tilt * (self.start + self.h * knot) + math.log(value) if value > 0 else -math.inf
        if sign > 0:
            return float(np.logaddexp(log, math.log(self.lost))) if self.lost > 0 else log
        return log + math.log1p(-self.folded * math.exp(-log)) if math.exp(min(log, 0.0)) > self.folded else -math.inf

    def epsilon(self, target: float, sign: int) -> float:
        """The ε where the bound, a chord in e^ε between knots, falls to e^target; −inf or inf if outside the window."""
        left, right = 0, self.size - 1
        if self.log_delta(right, sign) > target:
            return math.inf
        if self.log_delta(left, sign) <= target:
            # Far left a lower bound may drown in the error: look for a knot where it does not.
            over = [
                knot for knot in range(0, self.size, max(1, self.size // 256)) if self.log_delta(knot, sign) > target
            ]
            if not over:
                return -math.inf
            left = over[-1]
        while right - left > 1:
            middle = (left + right) // 2
            left, right = (middle, right) if self.log_delta(middle, sign) > target else (left, middle)
        high, low = (math.exp(self.log_delta(knot, sign) - target) for knot in (left, right))
        return self.start + self.h * left + math.log1p((high - 1) / (high - low) * math.expm1(self.h))

    def slope(self, epsilon: float) -> float:
        """How fast log δ falls at ``epsilon``: the tilt whose saddle point is there."""
        knot = min(max(0, math.floor((epsilon - self.start) / self.h)), self.size - 2)
        ends = [self.log_delta(place, 1) for place in (knot, knot + 1)]
        return (ends[0] - ends[1]) / self.h

    def delta(self, epsilon: float, sign: int) -> float:
        """The bound at ``epsilon``."""
        knot = math.floor((epsilon - self.start) / self.h)
        if not 0 <= knot < self.size - 1:
            return 1.0 if sign > 0 else 0.0
        share = math.expm1(epsilon - self.start - self.h * knot) / math.expm1(self.h)
        low, high = (math.exp(self.log_delta(place, sign)) for place in (knot, knot + 1))
        return (1 - share) * low + share * high


def compose(lattice: Lattice, steps: int, tilt: float) -> Curve:
    """The curve of ``steps`` independent copies of ``lattice``, tilted by ``tilt``."""
    losses, h = lattice.losses, lattice.h
    log_scale = lattice.cumulant(tilt)
    tilted = lattice.mass * np.exp(np.where(lattice.mass > 0, tilt * losses - log_scale, -np.inf))
    low, high = _window(losses, tilted, steps, h)
    size = next_fast_len(max(64, int((high - low) / h) + 3), real=True)
    # Centre on the mean, so that the phases whose T-th power is taken stay small where the transform is large.
    centre = round(float(np.dot(tilted, np.arange(len(tilted)))))
    spectrum = rfft(np.bincount((np.arange(len(tilted)) - centre) % size, tilted, size))
    log_square = np.log(np.maximum(spectrum.real**2 + spectrum.imag**2, 1e-300))
    kept = np.flatnonzero(log_square * steps > 4 * math.log(_EPS))  # the rest is below rounding
    power = np.zeros_like(spectrum)
    power[kept] = np.exp(0.5 * steps * log_square[kept] + 1j * steps * np.angle(spectrum[kept]))
    first = math.floor((low - steps * lattice.origin) / h) - steps * (lattice.start + centre)
    start = steps * lattice.origin + h * (steps * (lattice.start + centre) + first)
    folded = math.exp(-tilt * h * size)
    if len(kept) * 16 < size and folded < 1e-16:
        scaled: Floats | Waves = Waves.of(power[kept], kept, size, first, tilt, h)
    else:
        scaled, folded = _summed(np.roll(irfft(power, size), -(first % size)), tilt, h), 0.0
    strength = float(np.sum(np.abs(power[kept]))) * 2 / size
    rounding = 8 * _EPS * math.log2(size) * (1 + steps) * strength + _EPS**2 * size
    error = rounding / (h * tilt * (1 + tilt)) * (1 + h * (1 + tilt)) + _FOLDED
    lost = -math.expm1(steps * math.log1p(-min(lattice.lost, 0.5)))
    return Curve(start, h, size, scaled, error, tilt, steps * log_scale, lost, 1.001 * folded)


def _summed(density: Floats, tilt: float, h: float) -> Floats:
    """Σ_{j>k} w_j e^{−τu}(1−e^{−u}), u = (j−k)h, at every k, by a recursion of positive terms from the right."""
    decay, drop = math.exp(-tilt * h), math.exp(-h)
    right = np.concatenate([[0.0], density[:0:-1]])
    weighted = lfilter([decay * drop], [1.0, -decay * drop], right)  # Σ w e^{−(1+τ)u}
    source = np.concatenate([[0.0], density[:0:-1] + weighted[:-1]]) * (-math.expm1(-h) * decay)
    return np.asarray(lfilter([1.0], [1.0, -decay], source)[::-1], dtype=float)


def _window(losses: Floats, tilted: Floats, steps: int, h: float) -> tuple[float, float]:
    """An interval that holds all but ``_FOLDED`` of the T-fold tilted law (Chernoff's inequality)."""
    mean = float(np.dot(tilted, losses))
    some = tilted > 0
    centred, log_mass = losses[some] - mean, np.log(tilted[some])
    deviation = max(math.sqrt(steps * float(np.dot(tilted[some], centred**2))), h)
    budget = -math.log(_FOLDED / 2)
    bounds = []
    for sign in (1.0, -1.0):
        best = steps * float(np.max(sign * centred))
        for angle in np.geomspace(0.3, 20, 8) / deviation:
            powers = angle * sign * centred + log_mass
            top = float(np.max(powers))
            cumulant = top + math.log(float(np.sum(np.exp(powers - top))))
            best = min(best, (steps * cumulant + budget) / angle)
        bounds.append(best)
    return steps * mean - bounds[1], steps * mean + bounds[0]


def blur(cells: Cells, steps: int, tilt: float, budget: float) -> float:
    """How far T roundings to the knots may have raised the total loss, except with tilted probability e^{-budget}.

    Rounding moves one loss L to L̂ = L + D with |D| ≤ h, E[D²|L] ≤ h·E[D₊|L]. By Bernstein's inequality under the tilted
    law, E[e^{τL̂+θD}] ≤ M + θ·E[e^{τL̂}D] + θ²/2·φ(θh)·E[e^{τL̂}D²] with φ(x) = 2(e^x−1−x)/x²; Chernoff's does the rest.
    So δ(ε) ≥ δ̂(ε + x) − sup_s e^{−τs}(1−e^{−s})·M^T·e^{−τ(ε+x)−budget}: a lower bound for laws of any roughness.
    """
    h, powers = cells.h, tilt * cells.knots
    top = float(powers.max())
    weight = np.exp(powers - top)
    total = float(np.dot(cells.down, weight[:-1]) + np.dot(cells.rise, weight[1:])) + cells.atom * math.exp(-top)
    drift = max(0.0, float(np.dot(cells.lift, weight[1:]) - np.dot(cells.sink, weight[:-1]))) / total
    square = h * float(np.dot(cells.lift, weight[1:])) / total
    best = math.inf
    for angle in np.geomspace(0.3, 20, 24) / math.sqrt(steps * square + 1e-300):
        x = angle * h
        if x < 50:
            swell = 2 * (math.expm1(x) - x) / (x * x) if x > 1e-4 else 1 + x / 3
            best = min(best, (steps * math.log1p(angle * drift + angle**2 / 2 * swell * square) + budget) / angle)
    return best
