"""Errors a user can act on, and the argument checks that raise them."""

import math
from collections.abc import Iterable
from numbers import Real


class ElementdpError(Exception):
    """Anything this package refuses to do, said in words a user can act on."""


class ArgumentError(ElementdpError, ValueError):
    """An argument out of range: names the argument, the value given and what would be right."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"{name} must be {expected}, got {value!r}")
        self.name = name


class NoGuaranteeError(ElementdpError):
    """A combination of unit, relation and sampler for which nothing is proved."""


class MissingExtraError(ElementdpError, ImportError):
    """A package is needed that only an extra of this one brings."""


def missing_extra(error: ModuleNotFoundError, extra: str) -> ImportError:
    """What to raise for ``error``: which ``extra`` is not installed, or the error itself if no extra would help."""
    if error.name is None or error.name.partition(".")[0] == "elementdp":
        return error
    return MissingExtraError(f"{error.name} is not installed: pip install 'elementdp[{extra}]'")


def _is_number(value: object) -> bool:
    """Whether a caller without types has passed a real number, numpy's included."""
    return isinstance(value, Real)


def positive(name: str, value: float) -> float:
    """Return ``value`` if it is a finite number above zero."""
    if not (_is_number(value) and math.isfinite(value) and value > 0):
        raise ArgumentError(name, value, "a finite number > 0")
    return value


def nonnegative(name: str, value: float) -> float:
    """Return ``value`` if it is a finite number, zero or above."""
    if not (_is_number(value) and math.isfinite(value) and value >= 0):
        raise ArgumentError(name, value, "a finite number >= 0")
    return value


def probability(name: str, value: float, *, low_open: bool = False, high_open: bool = False) -> float:
    """Return ``value`` if it lies between 0 and 1; ``low_open``/``high_open`` exclude that end."""
    inside = _is_number(value) and (value > 0 if low_open else value >= 0) and (value < 1 if high_open else value <= 1)
    if not inside:
        raise ArgumentError(name, value, f"in {'(' if low_open else '['}0, 1{')' if high_open else ']'}")
    return value


def at_least(name: str, value: int, low: int) -> int:
    """Return ``value`` if it is a whole number, ``low`` or above."""
    whole = _is_number(value) and not isinstance(value, bool) and math.isfinite(value) and int(value) == value
    if not whole or value < low:
        raise ArgumentError(name, value, f"a whole number >= {low}")
    return int(value)


def one_of(name: str, value: str, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``allowed``."""
    choices = list(allowed)
    if value not in choices:
        raise ArgumentError(name, value, "one of " + ", ".join(choices))
    return value
