"""An answer that says how well it is known."""

from dataclasses import dataclass

from elementdp.errors import ArgumentError


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
        """The band from ``low`` to ``up``; both ends infinite is allowed."""
        low = min(low, up)
        return cls(low, low + (up - low) / 2 if up > low else up, up)

    @property
    def gap(self) -> float:
        """Width of the band relative to ``up``: how much is not known."""
        return 0.0 if self.up == self.low else (self.up - self.low) / self.up
