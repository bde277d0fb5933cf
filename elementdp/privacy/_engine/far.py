"""Runs in which every participation shows for itself: bounds in closed form, where a lattice would be endless.

Notation as in :mod:`elementdp.privacy._engine.domination`, in units of σ: swing s, change c.

**One element.** *Up*: participation revealed (:mod:`elementdp.privacy._engine.participation`). *Low*: let the user's
other vectors be at right angles to the changed one, s − c/2 long. A threshold half-way guesses each step's
participation, wrongly with probability η = Φ(−(s−c/2)/2), so the outputs give all that revealing gives, up to Tη in
total variation under either sample: δ(ε) ≥ δ_revealed(ε) − (1 + e^ε)·Tη.

**A whole user.** *Up*: Q ≥ (1−q)·N(0) in every step, so ε is at most T·log(1/(1−q)) more than that of P against N(0),
which is at most that of revealed participation with change s instead of c. *Low*: any test of the T outputs gives ε ≥
log((P(S) − δ)/Q(S)). Tests are: at least j outputs exceed s − a, where Q(S) ≤ (T choose j)·r^j with r the chance of one
under Q; and: the sum of all outputs exceeds t, with the number of participations bounded by Chernoff's inequality.

**A whole user under pair sampling.** *Up*: tell all coins; with probability 1 − δ/2 no step shows more than some number
of them, and the rest is a Gaussian release. *Low*: the second test, with all vectors at ±1.
"""

import math

import numpy as np
from scipy.special import betainc, gammaln, log_ndtr, ndtr, xlog1py, xlogy

from elementdp.privacy._engine.domination import Knowledge, WorstCase
from elementdp.privacy._engine.participation import revealed_delta, revealed_epsilon
from elementdp.privacy.curves import Floats, gaussian_delta, gaussian_epsilon
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.guarantee import Unit

FAR = 40.0  # standard deviations from which on a lattice is not tried
_SURE = 25.0  # minus log of what is left out, relative to δ
_RARE = np.geomspace(1e-30, 1e-2, 29).tolist()
_SLACK = 1e-9  # relative rounding of logarithms of large binomials


def shows(event: SubsampledGaussian, worst: WorstCase, epsilon: float, delta: float) -> bool:
    """Whether revealed participation is the exact answer for an element, up to e^{-25}, around (ε, δ)."""
    if event.unit is not Unit.ELEMENT or worst.knowledge is not Knowledge.SYMMETRISED or delta <= 0:
        return False
    missed = math.log(event.steps) + float(log_ndtr(-(worst.swing - worst.change / 2) / event.sigma / 2))
    return missed + epsilon + math.log(2) < math.log(delta) - _SURE


def is_far(event: SubsampledGaussian, worst: WorstCase) -> bool:
    """Whether a whole user's participation shows so clearly that no lattice is tried."""
    if event.unit is not Unit.USER:
        return False
    most = _most_shown(event, 1e-12) if worst.knowledge is Knowledge.COUNTED else worst.swing
    return most / event.sigma > FAR


def far_epsilon(event: SubsampledGaussian, worst: WorstCase, delta: float) -> tuple[float, float]:
    """Bounds on the ε of a whole user."""
    if worst.knowledge is Knowledge.COUNTED:
        return refuted_epsilon(event, worst, delta), gaussian_epsilon(delta / 2, _shown_mu(event, worst, delta / 2))
    run = delta, event.q, event.sigma, event.steps
    extra = -event.steps * math.log1p(-event.q)
    up = min(revealed_epsilon(*run, worst.change).up, revealed_epsilon(*run, worst.swing).up + extra)
    return refuted_epsilon(event, worst, delta), up


def refuted_epsilon(event: SubsampledGaussian, worst: WorstCase, delta: float) -> float:
    """The largest ε that a test refutes at ``delta``."""
    best = 0.0
    for p, log_q in _tests(event, worst):
        kept = p > delta
        best = max(best, float((np.log(p[kept] - delta) - log_q[kept]).max(initial=0.0)))
    return max(0.0, best - _SLACK * abs(best))


def far_delta(event: SubsampledGaussian, worst: WorstCase, epsilon: float) -> tuple[float, float]:
    """Bounds on the δ of a whole user."""
    low = refuted_delta(event, worst, epsilon)
    if worst.knowledge is Knowledge.COUNTED:
        return low, min(gaussian_delta(epsilon, _shown_mu(event, worst, rare)) + rare for rare in _RARE)
    run = event.q, event.sigma, event.steps
    extra = -event.steps * math.log1p(-event.q)
    up = revealed_delta(epsilon, *run, worst.change).up
    if epsilon > extra:
        up = min(up, revealed_delta(epsilon - extra, *run, worst.swing).up)
    return low, up


def refuted_delta(event: SubsampledGaussian, worst: WorstCase, epsilon: float) -> float:
    """The largest δ that a test refutes at ``epsilon``."""
    tests = _tests(event, worst)
    best = max(float((p - np.exp(np.minimum(epsilon * (1 + _SLACK) + log_q, 0.0))).max()) for p, log_q in tests)
    return max(0.0, best * (1 - _SLACK))


def _at_most(coins: int, q: float, log: float) -> float:
    """A number that no more of so many coins show than, except with probability e^{-log}.

    By Bernstein's inequality; where few show, by P(J ≥ j) ≤ (coins choose j)·q^j ≤ (e·coins·q/j)^j.
    """
    found = min(float(coins), coins * q + math.sqrt(2 * log * coins * q * (1 - q) + log * log / 9) + log / 3)
    j = np.arange(1.0, min(found, 1000.0) + 1)
    enough = np.flatnonzero(j * (math.log(coins * q) + 1 - np.log(j)) < -log)
    return min(found, float(j[enough[0]])) if len(enough) else found


def _most_shown(event: SubsampledGaussian, rare: float) -> float:
    """A number of a user's coins that no step shows more of, except with probability ``rare`` in all."""
    return _at_most(event.elements_per_user or 1, event.q, math.log(event.steps / rare))


def _shown_mu(event: SubsampledGaussian, worst: WorstCase, rare: float) -> float:
    """The μ of the run with all coins told, except with probability ``rare``: they do not depend on the data.

    If j_t coins show in step t, Σ j_t² ≤ max j_t · Σ j_t.
    """
    size = event.elements_per_user or 1
    most = _most_shown(event, rare / 2)
    squares = most * min(most * event.steps, _at_most(size * event.steps, event.q, math.log(2 / rare)))
    return worst.change / size * math.sqrt(squares) / event.sigma


def _tests(event: SubsampledGaussian, worst: WorstCase) -> list[tuple[Floats, Floats]]:
    """P(S), from below, and log Q(S), from above, of some tests."""
    if worst.knowledge is Knowledge.COUNTED:  # every vector at ±1: only their number counts
        size = event.elements_per_user or 1
        return [_summed(event, size * event.steps, 1 / event.sigma, worst.change / size / event.sigma)]
    s, c = worst.swing / event.sigma, worst.change / event.sigma
    return [_counted(event, s, c), *([_summed(event, event.steps, s, c)] if c >= s else [])]


def _counted(event: SubsampledGaussian, s: float, c: float) -> tuple[Floats, Floats]:
    """At least j of the outputs exceed s − a."""
    steps, q = float(event.steps), event.q
    j = np.unique(np.geomspace(1, steps, 600).round())[:, None]
    a = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
    single = np.logaddexp(math.log1p(-q) + log_ndtr(-(s - a)), math.log(q) + log_ndtr(-(c - a)))
    ways = gammaln(steps + 1) - gammaln(j + 1) - gammaln(steps - j + 1)
    return betainc(j, steps - j + 1, q * ndtr(a)), np.minimum(ways + j * np.minimum(single, 0.0), 0.0)


def _summed(event: SubsampledGaussian, coins: int, s: float, c: float) -> tuple[Floats, Floats]:
    """The sum of all outputs exceeds t: its mean is s under P, and s − c ≤ 0 under Q, for each coin that shows."""
    n, q, wide = float(coins), event.q, math.sqrt(event.steps)
    spread = math.sqrt(n * q * (1 - q)) + 1
    j = np.unique(np.clip(np.round(n * q + spread * np.linspace(-8, 8, 33)), 0, n))[:, None, None]
    z = np.linspace(-8, 8, 33)[:, None]
    few = np.round(n * q * np.linspace(0, 1, 101))
    p = np.where(j > 0, betainc(np.maximum(j, 1), n - np.maximum(j, 1) + 1, q), 1.0) * ndtr(z)
    t = s * j - wide * z
    with np.errstate(divide="ignore", invalid="ignore"):
        share = few / n
        rare = n * (xlogy(share, q / share) + xlog1py(1 - share, (share - q) / (1 - share)))
    rare = np.where(few > 0, np.minimum(np.nan_to_num(rare), 0.0), -np.inf)  # P(J < few), by Chernoff
    log_q = np.logaddexp(rare, log_ndtr(-(t + (c - s) * few) / wide)).min(axis=2)
    return p[:, :, 0], np.minimum(log_q, 0.0)
