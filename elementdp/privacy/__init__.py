"""What a mechanism promises, and how the promise is counted."""

from elementdp.privacy.guarantee import Guarantee, Relation, RenyiGuarantee, Sampler, Unit

__all__ = ["Guarantee", "Relation", "RenyiGuarantee", "Sampler", "Unit"]
