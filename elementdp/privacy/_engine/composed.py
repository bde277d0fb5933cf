"""The curve δ(ε) of T steps, known at the knots of a lattice, and what is read off it."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elementdp.privacy._engine.cells import Whole
from elementdp.privacy.curves import Floats

Complexes = NDArray[np.complex128]


@dataclass(frozen=True)
class Waves:
    """The sum of ``transform._summed`` over the periodic law, from its few Fourier terms: a geometric series for each.

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

    def epsilon(self, target: float, sign: int, guess: float) -> float:
        """The ε where the bound, a chord in e^ε between knots, falls to e^target; −inf or inf if outside the window.

        Any crossing will do: the exact curve falls, and it is on the right side of the bound at each. First looked for
        near ``guess``; then everywhere, and there the last is taken: far left a lower bound may drown in the error.
        """
        found = self._near(target, sign, guess) or self._anywhere(target, sign)
        if isinstance(found, float):
            return found
        left, high, low = found
        share = math.expm1(target - high) / math.expm1(low - high)  # (δ_left − δ)/(δ_left − δ_right)
        return self.start + self.h * left + math.log1p(share * math.expm1(self.h))

    def _near(self, target: float, sign: int, guess: float) -> tuple[int, float, float] | None:
        """A knot after which log δ falls to ``target``, log δ there and at the next: by Newton's method, if it can."""
        knot = (guess - self.start) / self.h
        for _ in range(8):
            if not 0 <= knot < self.size - 1:
                return None
            left = math.floor(knot)
            high, low = self.log_delta(np.array([left, left + 1]), sign).tolist()
            if high > target >= low > -math.inf:
                return left, high, low
            if not 0 < high - low < math.inf:
                return None
            knot = left + (high - target) / (high - low)
        return None

    def _anywhere(self, target: float, sign: int) -> tuple[int, float, float] | float:
        """The same by looking at ever fewer knots more closely; ±inf if there is none."""
        left, right = 0, self.size - 1
        while True:
            knots = np.append(np.arange(left, right, max(1, (right - left) // 48)), right)
            logs = self.log_delta(knots, sign)
            if logs[-1] > target:
                return math.inf
            over = np.flatnonzero(logs > target)
            if not len(over):
                return -math.inf
            last = int(over[-1])
            left, right = int(knots[last]), int(knots[last + 1])
            if right == left + 1:
                return left, float(logs[last]), float(logs[last + 1])

    def delta(self, epsilon: float, sign: int) -> float:
        """The bound at ``epsilon``; above, Chernoff's where that is lower or ``epsilon`` is outside the window."""
        # (1 − e^{ε−L})₊ ≤ e^{tilt·(L−ε)}; without it an ε that T steps can hardly reach would have δ ≤ 1.
        most = min(1.0, math.exp(min(0.0, self.log_scale - self.tilt * epsilon)) + self.lost)
        knot = math.floor((epsilon - self.start) / self.h)
        if not 0 <= knot < self.size - 1:
            return most if sign > 0 else 0.0
        share = math.expm1(epsilon - self.start - self.h * knot) / math.expm1(self.h)
        low, high = (math.exp(min(log, 0.0)) for log in self.log_delta(np.array([knot, knot + 1]), sign))
        found = (1 - share) * low + share * high
        return min(found, most) if sign > 0 else found
