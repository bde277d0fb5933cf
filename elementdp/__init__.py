"""Element-level differential privacy: a library, and the executable companion to Asi, Duchi and Javidbakht's paper."""

from typing import TYPE_CHECKING

from elementdp._lazy import lazy

if TYPE_CHECKING:
    from elementdp.elements import Partition
    from elementdp.histogram import private_histogram
    from elementdp.learning import Target, UserData, train
    from elementdp.privacy import Guarantee, Sampler, SubsampledGaussian, Unit, account, calibrate

__version__ = "0.1.0"
__all__ = [
    "Guarantee",
    "Partition",
    "Sampler",
    "SubsampledGaussian",
    "Target",
    "Unit",
    "UserData",
    "account",
    "calibrate",
    "private_histogram",
    "train",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        ".elements": "Partition",
        ".histogram": "private_histogram",
        ".learning": "Target UserData train",
        ".privacy": "Guarantee Sampler SubsampledGaussian Unit account calibrate",
    },
)
