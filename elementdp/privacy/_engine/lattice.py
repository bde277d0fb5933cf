"""Loss distributions on a lattice that provably lie above or below the exact one.

**Order.** Write v(γ) = ∫ (x−γ)₊ dμ(x) for a finite measure μ of likelihood ratios x (the second law's measure). If v₁
≤ w₁ and v₂ ≤ w₂ for all γ > 0, the composed curves are ordered too: ∬(xy−γ)₊ dμ₁dμ₂ = ∫ y·v₁(γ/y) dμ₂(y) ≤ ∫
y·w₁(γ/y) dμ₂(y), and the same again for the second factor. So it is enough to bracket one step's curve H.

**Above.** Join the values of H at the knots e^{x_k} by chords ("connect the dots", Doroshenko et al. 2022): each
cell's mass goes to its two knots, keeping both laws' mass. **Below.** In a cell H lies above its two tangents at the
knots; lower the knots' values by the largest distance g between chord and tangents of the neighbouring cells, and
join. The masses are second differences of these values; where one would be negative (where the law is rougher than
the lattice) the two neighbouring cells are rounded down instead. Both errors are of second order in the cells'
widths, whatever T. The knots are multiples of h, but not all of them: cells are wide where little mass is.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elementdp.privacy._engine.cells import Cells, Whole
from elementdp.privacy.curves import Floats


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

    def tilted(self, tilt: float) -> tuple[float, Floats]:
        """log Σ mass·e^{tilt·loss}, and the masses tilted so and scaled to one."""
        powers = tilt * self.losses
        top = float(powers[self.mass > 0].max())
        grown = self.mass * np.exp(np.minimum(powers - top, 0.0))
        total = float(grown.sum())
        return top + math.log(total), grown / total


def above(cells: Cells) -> Lattice:
    """The chords: an upper bound of the curve."""
    mass = to_ends(cells.down, cells.rise)
    if cells.atom:
        mass[cells.zero] += cells.atom
    return Lattice(cells.origin, cells.h, cells.index, mass, cells.outside)


def to_ends(lower: Floats, upper: Floats) -> Floats:
    """What cells give to their lower and to their upper ends, at the ends."""
    mass = np.zeros(len(lower) + 1)
    mass[:-1] = lower
    mass[1:] += upper
    return mass


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
    return max(candidates, key=lambda lattice: lattice.tilted(tilt)[0])


def _lowered(cells: Cells, block: NDArray[np.bool_]) -> tuple[Lattice, bool]:
    """Lower bound with the cells of ``block`` merged into knot 0, and whether the law is smooth."""
    floored, whole, widths = block.copy(), cells.down + cells.rise, cells.widths
    floored[[0, -1]] = True
    merged = float(whole[block].sum())
    with np.errstate(over="ignore"):  # dividing by an infinite growth is the right limit
        fall, growth = -np.expm1(-widths), np.expm1(widths)
    while True:
        upper = np.where(floored, 0.0, cells.rise)
        lower = whole - upper
        lower[block] = 0.0
        total = lower + upper * (1 - fall)
        gap = np.divide(lower * upper * fall, total, out=np.zeros_like(total), where=total > 0)
        mass = to_ends(lower, upper)
        mass[cells.zero] += cells.atom + merged
        drop = np.zeros_like(mass)
        drop[:-1] = gap
        np.maximum(drop[1:], gap, out=drop[1:])
        rises = drop[1:] - drop[:-1]
        mass[:-1] -= rises / growth
        mass[1:] += rises / fall
        wrong = np.flatnonzero(mass < 0)
        if not len(wrong):
            return Lattice(cells.origin, cells.h, cells.index, mass, 0.0), float(whole[floored].sum()) < 1e-5
        for shift in (-2, -1, 0, 1):  # the cells whose gaps bend the curve at a knot; without gaps nothing is negative
            floored[np.minimum(np.maximum(wrong + shift, 0), len(gap) - 1)] = True


def blur(cells: Cells, steps: int, tilt: float, budget: float) -> float:
    """How far T roundings to the knots may have raised the total loss, except with tilted probability e^{-budget}.

    Rounding moves one loss L in a cell of width w to L̂ = L + D with |D| ≤ w, E[D²|L] ≤ w·E[D₊|L]. By Bernstein's
    inequality under the tilted law, E[e^{τL̂+θD}] ≤ M + θ·E[e^{τL̂}D] + θ²/2·E[e^{τL̂}φ(θw)D²] with φ(x) =
    2(e^x−1−x)/x²; Chernoff's does the rest. So δ(ε) ≥ δ̂(ε + x) − sup_s e^{−τs}(1−e^{−s})·M^T·e^{−τ(ε+x)−budget}: a
    lower bound for laws of any roughness.
    """
    if not np.isfinite(cells.lift).all():
        return math.inf
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
