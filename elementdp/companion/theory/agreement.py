"""Does a simulated sample agree with a normal law? Tests whose level is known."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from elementdp.companion.theory.losses import FloatArray
from elementdp.errors import ArgumentError


@dataclass(frozen=True)
class CovarianceAgreement:
    """How far a simulated covariance is from a predicted one, in units of the simulation's own error."""

    ratio_low: float  # smallest and largest ratio of simulated to predicted variance over all directions
    ratio_high: float
    pvalue: float  # of the likelihood ratio test of the predicted covariance, for normal data


def covariance_agreement(sample: FloatArray, predicted: FloatArray) -> CovarianceAgreement:
    """Likelihood ratio test that rows of ``sample`` have this covariance: R(tr W - log det W - d) ~ χ²."""
    rows, d = sample.shape
    if rows <= d:
        raise ArgumentError("sample", sample.shape, "more rows than columns")
    whitened = np.linalg.solve(predicted, np.cov(sample.T, bias=True).reshape(d, d))
    ratios = np.sort(np.linalg.eigvals(whitened).real)
    statistic = rows * (ratios.sum() - np.log(ratios).sum() - d)
    return CovarianceAgreement(float(ratios[0]), float(ratios[-1]), float(stats.chi2.sf(statistic, d * (d + 1) // 2)))


def simulation_error(rows: int, level: float = 0.01) -> float:
    """Half width, relative to the truth, of a (1 - level) interval for one simulated variance of normal data."""
    return float(stats.norm.isf(level / 2) * np.sqrt(2 / rows))


def projections(sample: FloatArray, count: int = 8) -> FloatArray:
    """The sample along ``count`` directions evenly spread over the half circle of its first two coordinates."""
    angles = np.pi * np.arange(count) / count
    return np.asarray(sample[:, :2] @ np.stack([np.cos(angles), np.sin(angles)]))


def normality_pvalue(sample: FloatArray, count: int = 8) -> float:
    """Bonferroni-corrected p-value of D'Agostino and Pearson's test (skewness, kurtosis) over the projections.

    Rejecting when this is at most p has level at most p, whatever the dependence between the projections.
    """
    tested = stats.normaltest(projections(sample, count), axis=0).pvalue
    return float(min(1.0, count * tested.min()))
