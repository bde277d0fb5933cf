"""The laws that dominate a run, and explicit data that come close: one step each (proofs in ``domination``)."""

import math
from dataclasses import dataclass, replace

import numpy as np

from elementdp.privacy._engine.domination import Knowledge, WorstCase
from elementdp.privacy._engine.pairs import LEAST_CHANCE, Pair, UnitMixture, binomial, shown, two_point
from elementdp.privacy.curves import Floats
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.guarantee import Relation

_MOST_COUNTS = 64  # numbers of shown coins that are told apart
_ROUNDED_UP = 1 + 1e-11  # the chances of counts have relative errors of a tenth of this
_FARTHEST = 60.0  # standard deviations between being there and not that the sideways adversary uses


@dataclass(frozen=True)
class Law:
    """One step: one of ``parts`` is drawn with its weight and shown; ``symmetric`` asks for the symmetrised pair.

    ``lost`` bounds the chance that what was left out would show.
    """

    parts: tuple[tuple[float, Pair], ...]
    symmetric: bool = False
    lost: float = 0.0

    @property
    def apart(self) -> float:
        """A bound on the chance that the two laws differ at all: what is not at zero."""
        return sum(weight * pair.apart for weight, pair in self.parts) + self.lost

    def exchanged(self) -> "Law":
        """The same with the two samples exchanged."""
        return replace(self, parts=tuple((weight, pair.exchanged()) for weight, pair in self.parts))


def dominating(event: SubsampledGaussian, worst: WorstCase) -> list[Law]:
    """Laws of which the worse one dominates every step of ``event``."""
    pair = two_point(event.q, worst.swing, worst.change, event.sigma)
    if worst.knowledge is Knowledge.SYMMETRISED:
        return [Law(((1.0, pair),), symmetric=True)]
    law = Law(((1.0, pair),)) if worst.knowledge is not Knowledge.COUNTED else _counted(event)
    return [law] if event.relation is Relation.REPLACE else [law, law.exchanged()]


def adversaries(event: SubsampledGaussian, worst: WorstCase) -> list[Law]:
    """Laws of explicit data sets: what they show is a lower bound of what ``event`` can. None if all take too long."""
    if worst.knowledge is Knowledge.COUNTED:
        if len(shown(event.q, event.elements_per_user or 1)[0]) > _MOST_COUNTS:
            return []  # a mixture of so many normals takes too long
        replaced = event.relation is Relation.REPLACE
        law = Law(((1.0, binomial(event.q, event.elements_per_user or 1, event.sigma, replaced=replaced)),))
        return [law] if replaced else [law, law.exchanged()]
    swings = sorted({worst.swing, max(worst.change / 2, (worst.swing + worst.change / 2) / 2)})
    along = [Law(((1.0, two_point(event.q, swing, worst.change, event.sigma)),)) for swing in swings]
    found = [*along, *(law.exchanged() for law in along)]
    return [*found, _sideways(event, worst)] if event.relation is Relation.REPLACE else found


def _counted(event: SubsampledGaussian) -> Law:
    """A whole user under pair sampling, the count of the shown coins given away.

    Many counts are rounded up to few: vectors that are shorter than they may be show no more (the lemma). Weights are
    rounded up by more than they may be off. Taking what they lack to one for lost would count it once a step.
    """
    size = event.elements_per_user or 1
    count, weights = shown(event.q, size)
    some = count > 0
    count, weights = _coarser(count[some], weights[some])
    stay = math.exp(size * math.log1p(-event.q))
    rate = -math.expm1(size * math.log1p(-event.q))
    change = 2.0 if event.relation is Relation.REPLACE else 1.0
    return Law(
        tuple(
            (weight / rate * _ROUNDED_UP, two_point(rate, j, change * j, event.sigma, stay=stay))
            for weight, j in zip(weights.tolist(), count.tolist(), strict=True)
        ),
        lost=(size + 1) * LEAST_CHANCE,
    )


def _coarser(count: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """At most ``_MOST_COUNTS`` counts, each with the weight of those it stands for."""
    if len(count) <= _MOST_COUNTS:
        return count, weights
    kept = np.unique(np.linspace(0, len(count) - 1, _MOST_COUNTS).astype(int))
    return count[kept], np.add.reduceat(weights, np.concatenate([[0], kept[:-1] + 1]))


def _sideways(event: SubsampledGaussian, worst: WorstCase, bins: int = 24) -> Law:
    """The user's other vectors at right angles to the changed one, which is at ±change/2.

    For replacement only. The output's part along them hints at participation. Only the bin it falls in is used
    (processing the output can only lower δ): given the bin, this is the printed pair at the rate it then has.
    """
    # No further than that the chance of absence stays a number: a rate rounded to one would show too much.
    distance = min((worst.swing - worst.change / 2) / event.sigma, _FARTHEST)
    edges = np.concatenate([[-np.inf], distance / 2 + np.linspace(-5, 5, bins - 1), [np.inf]])
    zero, there = (UnitMixture(np.ones(1), np.array([mean])) for mean in (0.0, distance))
    absent, present = (1 - event.q) * zero.mass(edges[:-1], edges[1:]), event.q * there.mass(edges[:-1], edges[1:])
    weights = absent + present
    keep = weights > 1e-15  # the rest is not used either
    return Law(
        tuple(
            (weight, two_point(go / weight, worst.change / 2, worst.change, event.sigma, stay=stay / weight))
            for weight, stay, go in np.column_stack([weights, absent, present])[keep].tolist()
        ),
        lost=float(weights[~keep].sum()),
    )
