"""How wide error bars are, everywhere."""

from statistics import NormalDist

PAPER_BAR = 1.64
"""The paper's bars are ±1.64 standard errors."""

Z_95 = NormalDist().inv_cdf(0.975)
"""Ours cover 95 %: two estimates differ when they are this many standard errors apart."""

BANDS_SAY, BARS_SAY = (f"±{reach:.2f} standard errors" for reach in (PAPER_BAR, Z_95))
"""How a caption says what the paper's bars and ours cover."""
