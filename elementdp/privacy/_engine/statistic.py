"""What a statistic of one epoch of random allocation shows: a lower bound of the epoch's curve.

Whoever sees only a function of the outputs sees less. Here it is the sum over an epoch's steps of a function of each
output, in whole multiples of a unit, so that its law under either sample is a Fourier transform: exact, but for
rounding. The function is the log likelihood ratio of a step that were sampled at rate 1/B, which is close to best.
"""

import math

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from elementdp.privacy._engine.epochs import Epoch, normal
from elementdp.privacy._engine.lattice import Lattice
from elementdp.privacy.curves import Floats

_CELLS = 1 << 14  # cells of outcomes
_UNITS = 64.0  # units to a deviation of the function
_REACH = 12.0  # deviations between which cells lie
_LONGEST = 1 << 21
_EPS = float(np.finfo(float).eps)


def lowers(epoch: Epoch, epochs: int) -> list[Lattice]:
    """Laws on a lattice whose curves lie below that of ``epoch``; none if they take too long."""
    first, second, error = _laws(epoch)
    if not len(first):
        return []
    h = epoch.spread / min(max(200 * math.sqrt(epochs), 400), 4000)
    pairs = [(first, second)] if epoch.replaced else [(first, second), (second, first)]
    return [_rounded_down(one - error, other + error, h) for one, other in pairs]


def _rounded_down(first: Floats, second: Floats, h: float) -> Lattice:
    """The loss of the first law, where there is any, rounded down to multiples of ``h``; the rest is left out."""
    some = first > 0
    loss = np.log(first[some] / second[some])
    index, where = np.unique(np.floor(loss / h).astype(np.int64), return_inverse=True)
    return Lattice(0.0, h, index, np.bincount(where, first[some]).astype(float), 0.0)


def _laws(epoch: Epoch) -> tuple[Floats, Floats, float]:
    """The laws of the statistic if the element is +1, and if it is −1 (or not there); and their error."""
    a, size, made = epoch.a, epoch.batches, epoch.made
    nothing = np.zeros(0), np.zeros(0), 0.0
    if not math.isfinite(epoch.spread):
        return nothing
    edges = np.linspace(-a - _REACH, a + _REACH, _CELLS + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    edges[[0, -1]] = -math.inf, math.inf
    score = np.log1p(np.expm1(a * middle - a * a / 2) / size)
    if epoch.replaced:
        score -= score[::-1]
    there, absent, away = (normal(edges, mean) for mean in (a, 0.0, -a))
    mean = float(absent @ score)
    unit = math.sqrt(float(absent @ (score - mean) ** 2)) / _UNITS
    index = np.round((score - mean) / unit).astype(np.int64)
    if made * float(np.abs(index).max()) > 2**60:
        return nothing
    reach = int(np.abs(index).max() * 2 + 12 * _UNITS * math.sqrt(made))
    length = next_fast_len(2 * min(reach, int(made * np.abs(index).max())) + 1, real=True)
    if length > _LONGEST:
        return nothing
    spectra = [rfft(np.bincount(index % length, mass, length)) for mass in (there, absent, away)]
    others = spectra[1] ** (made - 1)
    share = made / size
    second = spectra[2] if epoch.replaced else spectra[1]
    laws = [irfft(others * (share * one + (1 - share) * spectra[1]), length) for one in (spectra[0], second)]
    error = _EPS * (1 + made) * float(np.abs(others).sum()) * 2 / length * 8 * math.log2(length)
    return laws[0], laws[1], error
