"""Printing bounds: an upper bound is rounded up and a lower bound down, or what is printed is not true."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


def rounded_up(value: float, digits: int = 3) -> str:
    """``value`` to that many digits, never below it."""
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 3) -> str:
    """``value`` to that many digits, never above it."""
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, way: str) -> str:
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    written = Decimal(repr(float(value)))  # as written, so that 5e-05 stays what it is
    step = Decimal((0, (1,), written.adjusted() - digits + 1))
    return f"{float(written.quantize(step, rounding=way)):.{digits}g}"
