"""What a mechanism promises, and how the promise is counted."""

from typing import TYPE_CHECKING

from elementdp._lazy import lazy

if TYPE_CHECKING:
    from elementdp.privacy._engine.domination import Knowledge, WorstCase, worst_case
    from elementdp.privacy._engine.participation import revealed_delta, revealed_epsilon
    from elementdp.privacy.accountant import account, delta_at, promise
    from elementdp.privacy.allocation import RandomAllocation
    from elementdp.privacy.band import Band
    from elementdp.privacy.calibration import LeastNoiseWarning, calibrate
    from elementdp.privacy.composition import (
        compose_advanced,
        compose_advanced_as_printed,
        compose_basic,
        compose_optimal,
        compose_optimal_epsilon,
        group,
    )
    from elementdp.privacy.correlation import Correlation
    from elementdp.privacy.curves import (
        gaussian_delta,
        gaussian_epsilon,
        gaussian_mu,
    )
    from elementdp.privacy.digits import rounded_down, rounded_up
    from elementdp.privacy.events import SubsampledGaussian
    from elementdp.privacy.fixed_order import FixedOrder
    from elementdp.privacy.guarantee import Guarantee, Relation, RenyiGuarantee, Sampler, Unit
    from elementdp.privacy.order_or_coins import proved_better, turning_point
    from elementdp.privacy.printed import calibrate_as_printed, claimed, paper_delta
    from elementdp.privacy.renyi import mironov, printed_epsilon, printed_renyi, tightest

__all__ = [
    "Band",
    "Correlation",
    "FixedOrder",
    "Guarantee",
    "Knowledge",
    "LeastNoiseWarning",
    "RandomAllocation",
    "Relation",
    "RenyiGuarantee",
    "Sampler",
    "SubsampledGaussian",
    "Unit",
    "WorstCase",
    "account",
    "calibrate",
    "calibrate_as_printed",
    "claimed",
    "compose_advanced",
    "compose_advanced_as_printed",
    "compose_basic",
    "compose_optimal",
    "compose_optimal_epsilon",
    "delta_at",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "group",
    "mironov",
    "paper_delta",
    "printed_epsilon",
    "printed_renyi",
    "promise",
    "proved_better",
    "revealed_delta",
    "revealed_epsilon",
    "rounded_down",
    "rounded_up",
    "tightest",
    "turning_point",
    "worst_case",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "._engine.domination": "Knowledge WorstCase worst_case",
        "._engine.participation": "revealed_delta revealed_epsilon",
        ".accountant": "account delta_at promise",
        ".allocation": "RandomAllocation",
        ".band": "Band",
        ".calibration": "LeastNoiseWarning calibrate",
        ".composition": "compose_advanced compose_advanced_as_printed compose_basic "
        "compose_optimal compose_optimal_epsilon group",
        ".correlation": "Correlation",
        ".curves": "gaussian_delta gaussian_epsilon gaussian_mu",
        ".digits": "rounded_down rounded_up",
        ".events": "SubsampledGaussian",
        ".fixed_order": "FixedOrder",
        ".guarantee": "Guarantee Relation RenyiGuarantee Sampler Unit",
        ".order_or_coins": "proved_better turning_point",
        ".printed": "calibrate_as_printed claimed paper_delta",
        ".renyi": "mironov printed_epsilon printed_renyi tightest",
    },
)
