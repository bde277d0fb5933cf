"""What the paper would print: its ε of a run, the noise for which it prints one, and its δ. None is a guarantee."""

import math
from dataclasses import replace

from scipy.optimize import brentq

from elementdp.errors import ArgumentError, at_least, positive
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.guarantee import Relation, Unit
from elementdp.privacy.renyi import printed_epsilon


def claimed(event: SubsampledGaussian, delta: float) -> float:
    r"""The ε the paper would print for ``event``; **not a guarantee** where users are sampled and have other elements.

    .. math:: \inf_{\alpha>1}\ T\,\varepsilon_\alpha(q,\sigma) + \frac{\log(1/\delta)}{\alpha-1}

    with the printed pair (Corollary 3.1). For a whole user :math:`\sigma/(K\wedge M)` takes the place of σ
    (Corollary 3.2). Elements per user and sampler do not matter to it, and that is what is wrong with it.
    """
    if event.relation is not Relation.REPLACE:
        raise ArgumentError("relation", event.relation, "replace: the paper prints no other")
    size = 1 if event.unit is Unit.ELEMENT else event.elements_per_user
    if size is None:
        return math.inf
    return printed_epsilon(event.q, event.sigma / size, event.steps, delta)


def calibrate_as_printed(event: SubsampledGaussian, epsilon: float, delta: float) -> SubsampledGaussian:
    """``event`` with the σ for which the paper would print ``epsilon``: its own runs leave σ open."""
    positive("epsilon", epsilon)

    def excess(log_sigma: float) -> float:
        return math.log(claimed(replace(event, sigma=math.exp(log_sigma)), delta) / epsilon)

    low, high = math.log(0.05), math.log(0.1)
    while excess(high) > 0:
        low, high = high, high + 1.0
    while excess(low) < 0:
        low -= 1.0
    return replace(event, sigma=math.exp(float(brentq(excess, low, high, xtol=1e-6))))


def paper_delta(users: int) -> float:
    """δ = n^(-1.1), the paper's choice in each of its experiments with n ``users``."""
    return float(at_least("users", users, 1) ** -1.1)
