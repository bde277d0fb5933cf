"""The sizes of the paper's three training experiments (Sections 4.2 to 4.4), which leave the rate q open."""

from dataclasses import dataclass

from elementdp.privacy import Sampler, SubsampledGaussian, calibrate_as_printed, paper_delta


@dataclass(frozen=True)
class PaperSetting:
    """n users with m points each in K clusters, and T steps."""

    name: str
    users: int
    steps: int
    clusters: int
    points: int

    @property
    def elements(self) -> int:
        """M = K∧m, the most elements a user can have: public, and enforced by the design."""
        return min(self.clusters, self.points)

    @property
    def delta(self) -> float:
        """The δ of every ε of this experiment."""
        return paper_delta(self.users)

    @property
    def words(self) -> str:
        """The setting in a figure's key."""
        return f"{self.name}, n = {self.users:,}, T = {self.steps:,}, M = {self.elements}"

    def as_printed(self, q: float, epsilon: float) -> SubsampledGaussian:
        """The run at rate q whose noise makes the paper claim ``epsilon``, at δ = n^-1.1."""
        run = SubsampledGaussian(
            Sampler.POISSON_USERS, sigma=1.0, q=q, steps=self.steps, elements_per_user=self.elements
        )
        return calibrate_as_printed(run, epsilon, self.delta)


PAPER_SETTINGS = (
    PaperSetting("Flickr", 8_000, 40_000, 500, 100),
    PaperSetting("CIFAR-10", 8_000, 40_000, 100, 100),
    PaperSetting("CIFAR-10", 2_000, 40_000, 100, 100),
    PaperSetting("logistic", 1_000, 200, 10, 50),
)
"""The training experiments of Section 4."""
