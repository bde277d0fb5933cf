"""Loss distributions on a lattice that provably lie above or below the exact one, and their T-fold composition.

**Order.** Write v(γ) = ∫ (x−γ)₊ dμ(x) for a finite measure μ of likelihood ratios x (the second law's measure). If v₁
≤ w₁ and v₂ ≤ w₂ for all γ > 0, the composed curves are ordered too: ∬(xy−γ)₊ dμ₁dμ₂ = ∫ y·v₁(γ/y) dμ₂(y) ≤ ∫
y·w₁(γ/y) dμ₂(y), and the same again for the second factor. So it is enough to bracket one step's curve H.

**Above.** Join the values of H at the knots e^{x_k} by chords ("connect the dots", Doroshenko et al. 2022): each
cell's mass goes to its two knots, keeping both laws' mass. **Below.** In a cell H lies above its two tangents at the
knots; lower the knots' values by the largest distance g between chord and tangents of the neighbouring cells, and
join. The masses are second differences of these values; where one would be negative (where the law is rougher than
the lattice) the two neighbouring cells are rounded down instead. Both errors are of second order in the cells'
widths, whatever T. The knots are multiples of h, but not all of them: cells are wide where little mass is.

**Composition.** The lattice law is tilted by e^{τx} with τ near the saddle point of the answer, so that the answer
sits in the bulk of the tilted law and the Fourier transform's absolute error is a small relative one even for δ =
1e-12. With many steps the transform's T-th power vanishes at all but a few frequencies, provably (``_silent``), and
only these are computed. What the window of the transform folds back is bounded by Chernoff's inequality, rounding by
the length of the sums.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.signal import lfilter

from elementdp.privacy.curves import Floats
from elementdp.privacy.pairs import Cells, Whole

Complexes = NDArray[np.complex128]
_EPS = float(np.finfo(float).eps)
_MOST_TERMS = 1 << 22  # of Fourier terms times knots held at a time
_LONGEST = 1 << 23  # knots of a full transform
QUIET = 50.0  # minus log of a Fourier term that may be left out
_FOLDED = 1e-14  # tilted mass allowed outside the window of the transform


@dataclass(frozen=True)
class Lattice:
    """Mass ``mass[i]`` (under the first law) at loss origin + h·index[i]; ``lost`` is mass at infinite loss."""

    origin: float
    h: float
    index: Whole
    mass: Floats
    lost: float

    @property
    def losses(self) -> Floats:
        """The loss at each knot."""
        return np.asarray(self.origin + self.h * self.index, dtype=float)

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
        mass[cells.zero] += cells.atom
    return Lattice(cells.origin, cells.h, cells.index, mass, cells.outside)


def below(cells: Cells, tilt: float) -> Lattice:
    """The lowered knots: a lower bound of the curve, as tight as it can be made where ``tilt`` looks.

    A law whose bulk is narrower than a cell (rare participation) is rougher than the lattice at knot 0. If its bulk is
    symmetric the cells within j of knot 0 have equal mass under both laws and may be merged there; the best j is taken.
    """
    plain, smooth = _lowered(cells, np.zeros(len(cells.down), dtype=bool))
    if smooth or not cells.balanced:
        return plain
    candidates = [plain]
    both = np.intersect1d(cells.index[cells.index > 0], -cells.index[cells.index < 0])
    for width in both[[place for place in (0, 1, 3, 7, 15, 31, 63) if place < len(both)]]:
        block = (cells.index[:-1] >= -width) & (cells.index[1:] <= width)
        candidates.append(_lowered(cells, block)[0])
    return max(candidates, key=lambda lattice: lattice.cumulant(tilt))


def _lowered(cells: Cells, block: NDArray[np.bool_]) -> tuple[Lattice, bool]:
    """Lower bound with the cells of ``block`` merged into knot 0, and whether the law is smooth."""
    merged = float(np.sum((cells.down + cells.rise)[block]))
    down, rise = np.where(block, 0.0, cells.down), np.where(block, 0.0, cells.rise)
    shrink = np.exp(-cells.widths)
    fall, growth = -np.expm1(-cells.widths), np.expm1(cells.widths)
    floored = block.copy()
    floored[[0, -1]] = True
    while True:
        lower = np.where(floored, down + rise, down)
        upper = np.where(floored, 0.0, rise)
        total = lower + upper * shrink
        gap = np.divide(lower * upper * fall, total, out=np.zeros_like(total), where=total > 0)
        mass = np.append(lower, 0.0)
        mass[1:] += upper
        mass[cells.zero] += cells.atom + merged
        drop = np.maximum(np.append(gap, 0.0), np.append(0.0, gap))
        rises = np.diff(drop)
        mass[:-1] -= rises / growth
        mass[1:] += rises / fall
        wrong = np.flatnonzero(mass < 0)
        if not len(wrong):
            rough = float(np.sum((cells.down + cells.rise)[floored]))
            return Lattice(cells.origin, cells.h, cells.index, mass, 0.0), rough < 1e-5
        for shift in (-2, -1, 0, 1):  # the cells whose gaps bend the curve at a knot; without gaps nothing is negative
            floored[np.clip(wrong + shift, 0, len(down) - 1)] = True


@dataclass(frozen=True)
class Waves:
    """The sum of :func:`_summed` over the periodic law, from its few Fourier terms: a geometric series for each.

    With many steps the transform's T-th power lives on few frequencies, and only a few knots are ever asked for. The
    periods to the right add e^{−τ·period} to δ at most, since Σ_j w_j e^{−τ ε_j} is the law's own mass.
    """

    terms: Complexes
    angles: Floats

    @classmethod
    def of(cls, power: Complexes, size: int, first: int, tilt: float, h: float) -> "Waves":
        """From the first values of a real transform of length ``size``, the knots counted from ``first``."""
        kept = np.arange(len(power))
        angles = np.asarray(2 * math.pi / size * kept, dtype=float)
        step = np.exp(-tilt * h + 1j * angles)
        series = step * -math.expm1(-h) / (np.expm1(-tilt * h + 1j * angles) * np.expm1(-(1 + tilt) * h + 1j * angles))
        twice = np.where(kept == 0, 1.0, 2.0) / size
        shift = np.exp(2j * math.pi / size * ((kept * (first % size)) % size))
        return cls(twice * power * series * shift, angles)

    def __getitem__(self, knot: Whole) -> Floats:
        return np.asarray((np.exp(1j * np.multiply.outer(knot, self.angles)) @ self.terms).real, dtype=float)


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

    def log_delta(self, knot: Whole, sign: int) -> Floats:
        """log of the upper (``sign`` = 1) or lower (−1) bound of δ at knots."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = np.log(np.maximum(self.scaled[knot] + sign * self.error, 0.0))
            log = self.log_scale - self.tilt * (self.start + self.h * knot) + value
            if sign > 0:
                return np.asarray(np.logaddexp(log, math.log(self.lost)) if self.lost > 0 else log, dtype=float)
            kept = np.log(np.maximum(1 - self.folded * np.exp(-log), 0.0)) if self.folded > 0 else 0.0
            return np.asarray(log + kept, dtype=float)

    def epsilon(self, target: float, sign: int) -> float:
        """The ε where the bound, a chord in e^ε between knots, falls to e^target; −inf or inf if outside the window.

        An upper bound may take any crossing, a lower one the last: far left it may drown in the error.
        """
        left, right = 0, self.size - 1
        while True:
            knots = np.append(np.arange(left, right, max(1, (right - left) // 48)), right)
            logs = self.log_delta(knots, sign)
            if logs[-1] > target:
                return math.inf
            over = np.flatnonzero(logs > target)
            if not len(over):
                return -math.inf
            left, right = int(knots[over[-1]]), int(knots[over[-1] + 1])
            if right == left + 1:
                break
        high, low = (math.exp(log - target) for log in logs[over[-1] : over[-1] + 2])
        return self.start + self.h * left + math.log1p((high - 1) / (high - low) * math.expm1(self.h))

    def slope(self, epsilon: float) -> float:
        """How fast log δ falls at ``epsilon``: the tilt whose saddle point is there."""
        knot = min(max(0, math.floor((epsilon - self.start) / self.h)), self.size - 2)
        ends = self.log_delta(np.array([knot, knot + 1]), 1)
        return float(ends[0] - ends[1]) / self.h

    def delta(self, epsilon: float, sign: int) -> float:
        """The bound at ``epsilon``."""
        knot = math.floor((epsilon - self.start) / self.h)
        if not 0 <= knot < self.size - 1:
            return 1.0 if sign > 0 else 0.0
        share = math.expm1(epsilon - self.start - self.h * knot) / math.expm1(self.h)
        low, high = (math.exp(min(log, 0.0)) for log in self.log_delta(np.array([knot, knot + 1]), sign))
        return (1 - share) * low + share * high


@dataclass(frozen=True)
class Plan:
    """How to compose T copies of a tilted lattice: ``size`` knots from loss ``low`` hold all but a trifle of their law.

    Its transform vanishes, for all that matters, except at the first ``few`` frequencies.
    """

    lattice: Lattice
    steps: int
    tilt: float
    log_scale: float
    tilted: Floats
    low: float
    size: int
    few: int

    @classmethod
    def of(cls, lattice: Lattice, steps: int, tilt: float) -> "Plan":
        """For ``steps`` copies of ``lattice`` tilted by ``tilt``."""
        losses, log_scale = lattice.losses, lattice.cumulant(tilt)
        tilted = lattice.mass * np.exp(np.where(lattice.mass > 0, tilt * losses - log_scale, -np.inf))
        low, high = _window(losses, tilted, steps, lattice.h)
        size = next_fast_len(max(64, int((high - low) / lattice.h) + 3), real=True)
        few = math.ceil(_silent(lattice.index, tilted, steps) * size / (2 * math.pi)) + 1
        return cls(lattice, steps, tilt, log_scale, tilted, low, size, few)

    @property
    def folded(self) -> float:
        """How much of δ the periods to the right add when Fourier terms are summed."""
        return math.exp(-self.tilt * self.lattice.h * self.size)

    @property
    def waves(self) -> bool:
        """Whether to sum Fourier terms one by one rather than make a full transform."""
        work = self.few * len(self.tilted)
        return 16 * self.few < self.size and work < min(self.size, _MOST_TERMS) and self.folded < 1e-16

    @property
    def feasible(self) -> bool:
        """Whether it gets by without a very long transform."""
        return self.waves or self.size <= _LONGEST


def compose(plan: Plan) -> Curve:
    """The curve of the T-fold law."""
    lattice, steps, tilt, size, h = plan.lattice, plan.steps, plan.tilt, plan.size, plan.lattice.h
    # Centre on the mean, so that the phases whose T-th power is taken stay small where the transform is large.
    centre = round(float(np.dot(plan.tilted, lattice.index)))
    place = lattice.index - centre
    first = math.floor((plan.low - steps * lattice.origin) / h) - steps * centre
    start = steps * lattice.origin + h * (steps * centre + first)
    if plan.waves:
        power = _power(_transform(place, plan.tilted, size, plan.few), steps)
        scaled: Floats | Waves = Waves.of(power, size, first, tilt, h)
        depth, folded = 8 * math.log2(size) + 8 * np.arange(plan.few), plan.folded
    else:
        power = _power(rfft(np.bincount(place % size, plan.tilted, size)), steps)
        scaled = _summed(np.roll(irfft(power, size), -(first % size)), tilt, h)
        depth, folded = np.full(len(power), 8 * math.log2(size)), 0.0
    strength = float(np.dot(np.abs(power), depth)) * 2 / size
    rounding = _EPS * (1 + steps) * strength + math.exp(-QUIET)
    error = rounding / (h * tilt * (1 + tilt)) * (1 + h * (1 + tilt)) + _FOLDED
    lost = -math.expm1(steps * math.log1p(-min(lattice.lost, 0.5)))
    return Curve(start, h, size, scaled, error, tilt, steps * plan.log_scale, lost, 1.001 * folded)


def _power(spectrum: Complexes, steps: int) -> Complexes:
    """The T-th power of a transform, zero where it is below e^{-QUIET}."""
    log_square = np.log(np.maximum(spectrum.real**2 + spectrum.imag**2, 1e-300))
    kept = np.flatnonzero(log_square * steps > -2 * QUIET)
    power = np.zeros_like(spectrum)
    power[kept] = np.exp(0.5 * steps * log_square[kept] + 1j * steps * np.angle(spectrum[kept]))
    return power


def _transform(place: Whole, mass: Floats, size: int, few: int) -> Complexes:
    """The first ``few`` values Σ mass·e^{−2πi·k·place/size} of the transform of length ``size``.

    The powers e^{−2πi·k·place/size} are built by doubling, so the k-th is off by less than 8k roundings.
    """
    waves = np.ones((1, len(place)), dtype=complex)
    base = np.exp(-2j * math.pi / size * ((place + size // 2) % size - size // 2))
    while len(waves) < few:
        waves = np.concatenate([waves, waves * base])
        base = base * base
    return np.asarray(waves[:few] @ mass, dtype=complex)


def _silent(index: Whole, mass: Floats, steps: int) -> float:
    """An angle from which on, up to π, the transform's T-th power is at most e^{-QUIET}.

    Let a_j be the lesser of the masses at j and j+d, and Q_d their sum. The law is a mixture that with probability Q_d
    tosses a fair coin between some j and j+d (a_{j−d}/2 + a_j/2 is at most the mass at j), so its transform is at
    angle x at most 1 − Q_d·(1−|cos(xd/2)|). Each d settles the angles where that is small enough; d = 1, 2, 4, … are
    tried while the angles they settle join. π·2 if none does.
    """
    enough = -math.expm1(-QUIET / steps)
    quiet = 2 * math.pi
    for d in (1 << power for power in range(40)):
        where = np.minimum(np.searchsorted(index, index + d), len(index) - 1)
        overlap = float(np.sum(np.minimum(mass, mass[where])[index[where] == index + d]))
        if overlap <= enough:
            break
        angle = math.acos(1 - enough / overlap)
        if (math.pi - angle) * 2 / d < min(quiet, math.pi):
            break
        quiet = min(quiet, 2 * angle / d)
    return quiet


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
    angles = np.geomspace(0.3, 20, 8) / deviation
    bounds = []
    for sign in (1.0, -1.0):
        powers = np.multiply.outer(angles, sign * centred) + log_mass
        top = powers.max(axis=1)
        cumulants = top + np.log(np.exp(powers - top[:, None]).sum(axis=1))
        bounds.append(min(steps * float(np.max(sign * centred)), float(np.min((steps * cumulants + budget) / angles))))
    return steps * mean - bounds[1], steps * mean + bounds[0]


def blur(cells: Cells, steps: int, tilt: float, budget: float) -> float:
    """How far T roundings to the knots may have raised the total loss, except with tilted probability e^{-budget}.

    Rounding moves one loss L in a cell of width w to L̂ = L + D with |D| ≤ w, E[D²|L] ≤ w·E[D₊|L]. By Bernstein's
    inequality under the tilted law, E[e^{τL̂+θD}] ≤ M + θ·E[e^{τL̂}D] + θ²/2·E[e^{τL̂}φ(θw)D²] with φ(x) =
    2(e^x−1−x)/x²; Chernoff's does the rest. So δ(ε) ≥ δ̂(ε + x) − sup_s e^{−τs}(1−e^{−s})·M^T·e^{−τ(ε+x)−budget}: a
    lower bound for laws of any roughness.
    """
    powers, lattice = tilt * cells.knots, above(cells)
    top = float(powers[lattice.mass > 0].max())
    weight = np.exp(np.minimum(powers - top, 0.0))
    total = float(np.dot(lattice.mass, weight))
    lift = cells.lift * weight[1:] / total
    drift = max(0.0, float(np.sum(lift) - np.dot(cells.sink, weight[:-1]) / total))
    squares = cells.widths * lift
    best = math.inf
    for angle in np.geomspace(0.3, 20, 24) / math.sqrt(steps * float(np.sum(squares)) + 1e-300):
        x = np.minimum(angle * cells.widths, 600.0)
        swell = np.where(x > 1e-4, 2 * (np.expm1(x) - x) / np.maximum(x * x, 1e-300), 1 + x / 3)
        raised = angle * drift + angle**2 / 2 * float(np.dot(swell, squares))
        if x.max() < 600 and math.isfinite(raised):
            best = min(best, (steps * math.log1p(raised) + budget) / angle)
    return best
