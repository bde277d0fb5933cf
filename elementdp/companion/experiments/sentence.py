"""A sentence about an experiment, what we found, and whether it is so."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sentence:
    """One row of a "paper said, we found" table; ``repaired`` marks our own sentence instead of the paper's.

    ``holds`` is None where the run does not decide: too close, a curve missing, or the other way round in a far
    shorter run than the paper's.
    """

    said: str
    found: str
    holds: bool | None
    repaired: bool = False

    @property
    def verdict(self) -> str:
        """The row's last column."""
        return "not decided at this size" if self.holds is None else "yes" if self.holds else "no"
