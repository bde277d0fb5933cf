"""A sentence of the paper about an experiment, what we found, and whether it is so."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settled:
    """One row of a "paper said / we found" table; ``repaired`` marks our own sentence instead of the paper's."""

    said: str
    found: str
    holds: bool
    repaired: bool = False

    @property
    def verdict(self) -> str:
        """The row's last column."""
        return "yes" if self.holds else "no"
