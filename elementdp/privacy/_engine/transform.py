"""The T-fold composition of a law on a lattice, by its Fourier transform.

The lattice law is tilted by e^{τx} with τ near the saddle point of the answer, so that the answer sits in the bulk of
the tilted law and the Fourier transform's absolute error is a small relative one even for δ = 1e-12. With many steps
the transform's T-th power vanishes at all but a few frequencies, provably (``_silent``), and only these are computed.
What the window of the transform folds back is bounded by Chernoff's inequality, rounding by the length of the sums.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from elementdp.privacy._engine.cells import Whole
from elementdp.privacy._engine.composed import Complexes, Curve, Waves
from elementdp.privacy._engine.lattice import Lattice
from elementdp.privacy.curves import Floats

_EPS = float(np.finfo(float).eps)
_MOST_TERMS = 1 << 21  # of Fourier terms times knots held at a time
_LONGEST = 1 << 22  # knots of a full transform
QUIET = 50.0  # minus log of a Fourier term that may be left out
_FOLDED = 1e-14  # tilted mass allowed outside the window of the transform
_SIGNS = np.array([[-1.0], [1.0]])
_ANGLES = np.geomspace(0.3, 20, 8)  # of Chernoff's inequality, over the deviation of T losses
_FLAT_ANGLES = np.geomspace(1.0, 64, 7)  # the same over the furthest loss: rare large losses allow no other


@dataclass(frozen=True)
class TransformPlan:
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
    room: int

    @classmethod
    def of(cls, lattice: Lattice, steps: int, tilt: float, room: int = 1) -> "TransformPlan":
        """For ``steps`` copies of ``lattice`` tilted by ``tilt``; lower bounds get more ``room`` than upper ones."""
        log_scale, tilted = lattice.tilted(tilt)
        losses = lattice.losses
        low, high = _window(losses, tilted, steps, lattice.h)
        size = next_fast_len(max(64, int((high - low) / lattice.h) + 3), real=True)
        few = math.ceil(_silent(lattice.index, tilted, steps) * size / (2 * math.pi)) + 1
        return cls(lattice, steps, tilt, log_scale, tilted, low, size, few, room)

    @property
    def folded(self) -> float:
        """How much of δ the periods to the right add when Fourier terms are summed."""
        return math.exp(-self.tilt * self.lattice.h * self.size)

    @property
    def waves(self) -> bool:
        """Whether to sum Fourier terms one by one rather than make a full transform."""
        work = self.few * len(self.tilted)
        return 16 * self.few < self.size and work < self.room * min(self.size, _MOST_TERMS) and self.folded < 1e-16

    @property
    def feasible(self) -> bool:
        """Whether it gets by without a very long transform."""
        return self.waves or self.size <= self.room * _LONGEST


def compose(plan: TransformPlan) -> Curve:
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
    quiet, d, longest = 2 * math.pi, 1, int(index[-1] - index[0])
    while d <= longest:
        where = index.searchsorted(index + d)
        where[where == len(index)] = 0
        overlap = float(np.minimum(mass, mass[where])[index[where] == index + d].sum())
        if overlap <= enough:
            break
        angle = math.acos(1 - enough / overlap)
        if (math.pi - angle) * 2 / d < min(quiet, math.pi):
            break
        quiet, d = min(quiet, 2 * angle / d), 2 * d
    return quiet


def _summed(density: Floats, tilt: float, h: float) -> Floats:
    """Σ_{j>k} w_j e^{−τu}(1−e^{−u}), u = (j−k)h, at every k, by a recursion of positive terms from the right."""
    from scipy.signal import lfilter  # slow to import, and most runs need no full transform

    decay, drop = math.exp(-tilt * h), math.exp(-h)
    right = np.concatenate([[0.0], density[:0:-1]])
    weighted = lfilter([decay * drop], [1.0, -decay * drop], right)  # Σ w e^{−(1+τ)u}
    source = np.concatenate([[0.0], density[:0:-1] + weighted[:-1]]) * (-math.expm1(-h) * decay)
    return np.asarray(lfilter([1.0], [1.0, -decay], source)[::-1], dtype=float)


def _window(losses: Floats, tilted: Floats, steps: int, h: float) -> tuple[float, float]:
    """An interval that holds all but ``_FOLDED`` of the T-fold tilted law (Chernoff's inequality)."""
    mean = float(np.dot(tilted, losses))
    centred = losses - mean
    deviation = max(math.sqrt(steps * float(np.dot(tilted, centred * centred))), h)
    budget = -math.log(_FOLDED / 2)
    furthest = max(float(np.abs(centred[[0, -1]]).max()), h)
    angles = (_SIGNS * np.concatenate([_ANGLES / deviation, _FLAT_ANGLES / furthest])).ravel()
    powers = np.multiply.outer(angles, centred)
    some = tilted > 0
    if not some.all():
        powers[:, ~some] = -np.inf
    top = powers.max(axis=1)
    powers -= top[:, None]
    far = (steps * (top + np.log(np.exp(powers, out=powers) @ tilted)) + budget) / np.abs(angles)
    # Nor can T losses be further out than T times the furthest one.
    down, up = steps * float(centred[some][0]), steps * float(centred[some][-1])
    half = len(angles) // 2
    return steps * mean + max(down, -float(far[:half].min())), steps * mean + min(up, float(far[half:].min()))
