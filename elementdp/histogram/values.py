"""Sums of a bounded column beside counts, in one Gaussian query with the counts.

The value of each event is moved into a public range [low, high] and written as u = (value − middle)/half, a number
from −1 to 1. A group's counts v and its sums s of u satisfy |sᵢ| ≤ vᵢ for each item i. The projection onto the ball of
radius ρ scales both by the same factor, so a group's averages stay what they are, and no further bound is needed. On
the grid they become whole numbers z and t with ‖z‖ ≤ R and |tᵢ| ≤ zᵢ, both checked as whole numbers.

**Sensitivity.** Neighbours differ in one group, from (z, t) to (z', t') say (either may be 0). Let p = ⟨z, z'⟩, which
lies between 0 and R². As ‖t‖ ≤ ‖z‖ and −⟨t, t'⟩ ≤ Σ |tᵢ||t'ᵢ| ≤ p,

    ‖z − z'‖² + ‖t − t'‖² ≤ (2R² − 2p) + (2R² + 2p) = 4R².

If an element holds a single item, (z, t) lies in the triangle with corners (0, 0), (R, R) and (R, −R). A distance is
largest between corners, so 3(z − z')² + (t − t')² ≤ 4R². Noise of scale 2R/μ on sums and on counts, or 2R/√3μ on the
count of an item that is alone in its element, therefore costs μ in all.

The sum of the values of an item is middle × count + half × (sum of u), so its noise is that of both. Centring is what
makes this cheap: counts have 2/√3 = 1.15 (or √2) times the noise that they would have alone, and sums of values from 0
to b have at most b times the noise of the counts.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elementdp.errors import ArgumentError

VALUE_UNITS = 1 << 30
"""u = 1 as a whole number: a pair of group and item holds 2³³ events before 64 bits are full."""

_LARGEST = 2.0**100


@dataclass(frozen=True)
class BoundedValue:
    """The column of numbers to add up, and the public range that each event's number is moved into.

    >>> BoundedValue("price", 0, 50).units(np.array([-1.0, 25.0, 80.0])) / VALUE_UNITS
    array([-1.,  0.,  1.])
    """

    column: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not -_LARGEST <= self.low < self.high <= _LARGEST:
            raise ArgumentError("value", (self.low, self.high), "a range with low < high, both within 2^100")

    @property
    def middle(self) -> float:
        """The middle of the range."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        """Half of the width of the range."""
        return (self.high - self.low) / 2

    def units(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """u of each value in steps of 2⁻³⁰, as whole numbers: their sums do not depend on an order."""
        u = (np.clip(values, self.low, self.high) - self.middle) / self.half
        return np.clip(np.rint(u * VALUE_UNITS), -VALUE_UNITS, VALUE_UNITS).astype(np.int64)

    def sums(
        self,
        counts: NDArray[np.float64],
        count_noise: NDArray[np.float64],
        units: NDArray[np.float64],
        unit_noise: float,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The sums of the values and their noise, from noisy counts and noisy sums of u."""
        noise = np.hypot(self.middle * count_noise, self.half * unit_noise)
        return self.middle * counts + self.half * units, noise

    def words(self) -> str:
        """What a sum is, for those who read it."""
        return (
            f"each event's {self.column} is moved into [{self.low:g}, {self.high:g}] and added up; "
            "the bound rho scales sums as it scales counts"
        )


def value_sensitivity(radius: int, *, one_item: bool) -> float:
    """What the noise of a count is scaled to where sums of values come with it: 2R, or 2R/√3, rounded up."""
    return math.nextafter(2 * radius / math.sqrt(3), math.inf) if one_item else 2.0 * radius
