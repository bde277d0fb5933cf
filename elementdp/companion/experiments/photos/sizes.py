"""What both image experiments decide before they run."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from elementdp.companion.experiments.photos.lines import Line, Schedule
from elementdp.companion.experiments.photos.tuning import Ladder, ladders
from elementdp.errors import ArgumentError, at_least, positive


@dataclass(frozen=True, kw_only=True)
class Sizes(ABC):
    """What is run. The defaults are the paper's where it says; q, ρ, α and what is tuned are our choice."""

    legend: tuple[tuple[str, float, int, int], ...]
    rhos: tuple[float, ...]
    step_sizes: tuple[float, ...]  # α for updates of length 1
    tuning_steps: int
    images: int = 100  # m
    steps: int = 40_000  # T
    evaluations: int = 40
    repetitions: int = 1
    rate_factors: tuple[float, ...] = (1.0,)  # multiples of q tried for every line, for equal work

    def __post_init__(self) -> None:
        for name in ("images", "steps", "tuning_steps", "evaluations", "repetitions"):
            at_least(name, getattr(self, name), 1)
        for name in ("rhos", "step_sizes", "rate_factors"):
            for value in self._some(name):
                positive(name, value)
        self._some("legend")

    def _some(self, name: str) -> tuple[float, ...]:
        values: tuple[float, ...] = getattr(self, name)
        if not values:
            raise ArgumentError(name, (), "at least one value")
        return values

    @abstractmethod
    def schedule(self, line: Line) -> Schedule:
        """What decides the accounting, before rates are tuned."""

    @abstractmethod
    def lines(self) -> list[Line]:
        """Every line of the legend in every way it is told."""

    def choices(self, line: Line) -> list[Ladder]:
        """What is tried for a line."""
        return ladders(line, self.rhos, self.step_sizes)
