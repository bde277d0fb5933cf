"""How it is counted: ε and δ as (low, estimate, up), what the paper would print, and the noise for a target."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from elementdp.errors import ArgumentError, nonnegative, positive, probability
from elementdp.privacy.band import Band
from elementdp.privacy.curves import gaussian_delta, gaussian_epsilon
from elementdp.privacy.domination import Knowledge, WorstCase, worst_case
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.fourier import Law, delta_bounds, epsilon_bounds
from elementdp.privacy.guarantee import Guarantee, Relation, Unit
from elementdp.privacy.pairs import Pair, binomial, two_point
from elementdp.privacy.participation import revealed_delta, revealed_epsilon
from elementdp.privacy.renyi import printed_epsilon

_Bounds = Callable[[Law], tuple[float, float]]


def account(event: SubsampledGaussian, delta: float) -> Band:
    """The ε of ``event`` at ``delta``, as (low, estimate, up). Only ``up`` may be promised to anyone."""
    probability("delta", delta, low_open=True, high_open=True)
    worst = worst_case(event)
    if worst.knowledge is Knowledge.GAUSSIAN:
        return _rounded(gaussian_epsilon(delta, worst.change * math.sqrt(event.steps) / event.sigma))
    if worst.knowledge is Knowledge.REVEALED:
        return revealed_epsilon(delta, event.q, event.sigma, event.steps, worst.change)
    return _bracket(event, worst, lambda law: epsilon_bounds(law, event.steps, delta))


def delta_at(event: SubsampledGaussian, epsilon: float) -> Band:
    """The δ of ``event`` at ``epsilon``, as (low, estimate, up)."""
    nonnegative("epsilon", epsilon)
    worst = worst_case(event)
    if worst.knowledge is Knowledge.GAUSSIAN:
        return _rounded(gaussian_delta(epsilon, worst.change * math.sqrt(event.steps) / event.sigma))
    if worst.knowledge is Knowledge.REVEALED:
        return revealed_delta(epsilon, event.q, event.sigma, event.steps, worst.change)
    return _bracket(event, worst, lambda law: delta_bounds(law, event.steps, epsilon))


def guarantee(event: SubsampledGaussian, delta: float) -> Guarantee:
    """What may be promised of ``event`` at ``delta``: the upper end of the band, for its unit and relation."""
    return Guarantee(account(event, delta).up, delta, event.unit, event.relation, event.sampler)


def claimed(event: SubsampledGaussian, delta: float) -> float:
    """The ε the paper would print for ``event``; **not a guarantee** where users are sampled and have other elements.

    inf over α > 1 of T·ε_α(q, σ) + log(1/δ)/(α−1) with the printed pair (corollary:all-thetas-are-pretty-private); for
    a whole user σ is σ_std = σ/(K ∧ M) (corollary:all-thetas-user-level). Elements per user and sampler do not matter
    to it, and that is what is wrong with it.
    """
    if event.relation is not Relation.REPLACE:
        raise ArgumentError("relation", event.relation, "replace: the paper prints no other")
    size = 1 if event.unit is Unit.ELEMENT else event.elements_per_user
    if size is None:
        return math.inf
    return printed_epsilon(event.q, event.sigma / size, event.steps, delta)


def calibrate(event: SubsampledGaussian, epsilon: float, delta: float) -> SubsampledGaussian:
    """``event`` with the smallest σ (to 1e-4, rounded up) whose ``account(…).up`` is at most ``epsilon``."""
    positive("epsilon", epsilon)
    probability("delta", delta, low_open=True, high_open=True)
    worst_case(event)  # refuse before any work

    def excess(log_sigma: float) -> float:
        up = account(replace(event, sigma=math.exp(log_sigma)), delta).up
        return math.log(max(up, 1e-12)) - math.log(epsilon)

    low = high = math.log(event.sigma)
    step = 1.0
    while excess(high) > 0:
        low, high, step = high, high + step, 2 * step
        if high > 60:
            raise ArgumentError("epsilon", epsilon, "reachable with some finite noise")
    step = 1.0
    while low == high or excess(low) <= 0:
        low, step = min(low, high) - step, 2 * step
        if low < -40:
            raise ArgumentError("epsilon", epsilon, "small enough to need any noise at all")
    root = float(brentq(excess, low, high, xtol=2e-5))
    while excess(root) > 0:
        root += 4e-5
    return replace(event, sigma=math.exp(root))


def _rounded(value: float) -> Band:
    """A closed form in floating point."""
    return Band.between(value * (1 - 1e-9), value * (1 + 1e-9))


def _bracket(event: SubsampledGaussian, worst: WorstCase, bounds: _Bounds) -> Band:
    """Bounds of the dominating law, and of adversaries that exist."""
    q, sigma, swing, change = event.q, event.sigma, worst.swing, worst.change
    pair = two_point(q, swing, change, sigma)
    if worst.knowledge is Knowledge.PAIR:
        return Band.between(*bounds(_law(pair)))
    if worst.knowledge is Knowledge.DIRECTED:
        ends = [bounds(_law(pair)), bounds(_law(pair.exchanged()))]
        return Band.between(max(low for low, _ in ends), max(up for _, up in ends))
    if worst.knowledge is Knowledge.COUNTED:
        return _counted(event, bounds)
    up = bounds(Law(((1.0, pair),), symmetric=True))[1]
    return Band.between(max(bounds(_law(way))[0] for way in _adversaries(event, worst)), up)


def _law(pair: Pair) -> Law:
    return Law(((1.0, pair),))


def _adversaries(event: SubsampledGaussian, worst: WorstCase) -> list[Pair]:
    """Explicit data: the changed user's other vectors sum to r, the changed one is ±1 along them; either way round."""
    swings = {worst.swing, *np.round(np.geomspace(max(1.0, worst.change / 2), worst.swing, 4)).tolist()}
    pairs = [two_point(event.q, swing, worst.change, event.sigma) for swing in sorted(swings, reverse=True)]
    return [way for pair in pairs for way in (pair, pair.exchanged())]


def _counted(event: SubsampledGaussian, bounds: _Bounds) -> Band:
    """A whole user under pair sampling: the count of shown coins given away for ``up``, kept for ``low``."""
    size = event.elements_per_user or 1
    replaced = event.relation is Relation.REPLACE
    count = np.arange(1, size + 1)
    rate = -math.expm1(size * math.log1p(-event.q))
    weights = binom.pmf(count, size, event.q) / rate
    keep = weights > 1e-30
    parts = [
        (float(weight), two_point(rate, float(j), float(2 * j if replaced else j), event.sigma))
        for weight, j in zip(weights[keep], count[keep], strict=True)
    ]
    pair = binomial(event.q, size, event.sigma, replaced=replaced)
    laws = [Law(tuple(parts))]
    pairs = [pair]
    if not replaced:
        laws.append(Law(tuple((weight, part.exchanged()) for weight, part in parts)))
        pairs.append(pair.exchanged())
    return Band.between(max(bounds(_law(way))[0] for way in pairs), max(bounds(law)[1] for law in laws))
