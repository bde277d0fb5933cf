"""What right guesses prove about ε: a lower bound that may be looked at after every guess."""

import math

from scipy.optimize import brentq
from scipy.special import betaincc, betaln, xlog1py, xlogy

from elementdp.errors import ArgumentError, at_least, probability


def epsilon_from_guesses(right: int, guesses: int, confidence: float = 0.95) -> float:
    """The ε that ``right`` out of ``guesses`` right guesses of fair secrets refute, for all times at once.

    If every run is ε-private (δ = 0), a guess of its secret is right with chance at most s = e^ε/(1 + e^ε), whatever
    was seen before and whichever runs were passed over. So the mean over p in (s, 1) of
    (p/s)^right·((1−p)/(1−s))^wrong is a supermartingale, and by Ville's inequality the chance that it ever reaches
    1/(1 − confidence) is at most 1 − confidence. The largest ε at which it does is refuted.
    """
    at_least("guesses", guesses, 0)
    if not 0 <= right <= guesses:
        raise ArgumentError("right", right, f"between 0 and guesses ({guesses})")
    enough = -math.log1p(-probability("confidence", confidence, low_open=True, high_open=True))
    wrong = guesses - right

    def excess(s: float) -> float:
        """log of the mean, less what is enough."""
        above = float(betaln(right + 1, wrong + 1)) + math.log(max(float(betaincc(right + 1, wrong + 1, s)), 1e-300))
        return above - float(xlogy(right, s) + xlog1py(wrong + 1, -s)) - enough

    highest = max(0.5, right / max(guesses, 1))
    if excess(0.5) < 0:
        return 0.0
    top = min(highest, 1 - 1e-12)
    share = top if excess(top) > 0 else float(brentq(excess, 0.5, top, xtol=1e-14))
    return math.log(share / (1 - share))
