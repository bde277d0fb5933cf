"""How wide error bars are, everywhere."""

from statistics import NormalDist

PAPER_BAR = 1.64
"""The paper's bars are ±1.64 standard errors."""

Z_95 = NormalDist().inv_cdf(0.975)
"""Ours cover 95 %: two estimates differ when they are this many standard errors apart."""
