"""What happened: T adaptive steps of the subsampled Gaussian sum (Equation (4)), apart from how it is counted."""

from dataclasses import dataclass

from elementdp.errors import ArgumentError, at_least, positive, probability
from elementdp.privacy.guarantee import Relation, Sampler, Unit

SIGMAS = (1e-2, 1e7)
LEAST_Q = 1e-8
MOST_STEPS = 10**9
MOST_ELEMENTS = 10**6


@dataclass(frozen=True)
class SubsampledGaussian:
    r"""``steps`` adaptive releases of a sum of vectors, each of norm at most ρ, with Gaussian noise (Equation (4)).

    .. math:: \sum_{u,k} B_{u,k}\,x_{u,k} + \rho\sigma W

    Here B is the coin that decides whether user u, or the pair (u, k), takes part. This is the one description of such
    a run: the accountants, training and the audits take it.

    Args:
        sampler: what a step's coins decide on.
        sigma: the noise in units of ρ, so replacing one element moves a sum it takes part in by at most 2.
        q: the chance of a user (of a pair, for ``POISSON_PAIRS``) to take part in one step; for ``FIXED_USERS`` m/n.
        steps: the number T of steps.
        unit: what is protected, an element of a user or a user.
        elements_per_user: a bound on K ∧ M, the vectors any one user adds to a sum; ``None`` means no bound.
        relation: how neighbouring samples differ in the unit.

    Raises:
        ArgumentError: a value is out of the range for which the accountants are tested.

    >>> SubsampledGaussian(Sampler.POISSON_USERS, sigma=8.0, q=0.01, steps=40_000, elements_per_user=30).unit.words
    'one element of one user'
    >>> SubsampledGaussian(Sampler.POISSON_USERS, sigma=8.0, q=1.5)
    Traceback (most recent call last):
        ...
    elementdp.errors.ArgumentError: q must be in (0, 1], got 1.5
    """

    sampler: Sampler
    sigma: float
    q: float = 1.0
    steps: int = 1
    unit: Unit = Unit.ELEMENT
    elements_per_user: int | None = None
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        for name, kind in (("sampler", Sampler), ("unit", Unit), ("relation", Relation)):
            value = getattr(self, name)
            if value not in list(kind):
                raise ArgumentError(name, value, "one of " + ", ".join(kind))
            object.__setattr__(self, name, kind(value))
        positive("sigma", self.sigma)
        probability("q", self.q, low_open=True)
        at_least("steps", self.steps, 1)
        if self.elements_per_user is not None:
            at_least("elements_per_user", self.elements_per_user, 1)
        # numpy's narrow numbers would carry their rounding, and their overflow, into every result.
        for name, number in (("sigma", float), ("q", float), ("steps", int)):
            object.__setattr__(self, name, number(getattr(self, name)))
        if self.elements_per_user is not None:
            object.__setattr__(self, "elements_per_user", int(self.elements_per_user))
        # Beyond these the accountants' floating point is not tested: refuse rather than print a wrong number.
        if not SIGMAS[0] <= self.sigma <= SIGMAS[1]:
            raise ArgumentError("sigma", self.sigma, f"between {SIGMAS[0]:g} and {SIGMAS[1]:g}")
        if self.q < LEAST_Q:
            raise ArgumentError("q", self.q, f"at least {LEAST_Q:g}")
        for name, value, most in (
            ("steps", self.steps, MOST_STEPS),
            ("elements_per_user", self.elements_per_user or 1, MOST_ELEMENTS),
        ):
            if value > most:
                raise ArgumentError(name, value, f"at most {most:,}")
        if self.sampler in (Sampler.FIXED_ORDER, Sampler.ALLOCATED_PAIRS):
            raise ArgumentError("sampler", str(self.sampler), "one with a rate; see FixedOrder and RandomAllocation")
        if self.sampler is Sampler.NONE and self.q != 1:
            raise ArgumentError("q", self.q, "1 when the sampler is none")
