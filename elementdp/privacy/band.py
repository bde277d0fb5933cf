"""An answer that says how well it is known."""

from dataclasses import dataclass

from elementdp.errors import ArgumentError
from elementdp.privacy.digits import rounded_down, rounded_up


@dataclass(frozen=True)
class Band:
    """``low <= exact <= up``, both proved; ``estimate`` is the middle. Only ``up`` is a guarantee."""

    low: float
    estimate: float
    up: float

    def __post_init__(self) -> None:
        if not self.low <= self.estimate <= self.up:
            raise ArgumentError("band", (self.low, self.estimate, self.up), "ordered low <= estimate <= up")

    @classmethod
    def between(cls, low: float, up: float) -> "Band":
        """The band from ``low`` to ``up``; both ends infinite is allowed.

        Where both are the exact value up to rounding they may cross; two proofs that contradict each other may not.
        """
        if low > up + 1e-6 * abs(up) + 1e-12:
            raise ArithmeticError(
                f"a lower bound of {low!r} lies above an upper bound of {up!r}: one of the two is wrong"
            )
        low = min(low, up)
        return cls(low, low + (up - low) / 2 if up > low else up, up)

    def __format__(self, spec: str) -> str:
        """``f"{band:.3g}"``: both ends to 3 digits, rounded outwards."""
        if not spec:
            return str(self)
        digits = int(spec.removeprefix(".").removesuffix("g"))
        return f"{rounded_down(self.low, digits)} to {rounded_up(self.up, digits)}"

    @property
    def gap(self) -> float:
        """Width of the band relative to ``up``: how much is not known."""
        return 0.0 if self.up == self.low else (self.up - self.low) / self.up
