"""Formulas in the words of a check, as HTML: the same text is read on a terminal, so it is written without TeX."""

import html
import re

_BRACED = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
_BRACKETED = r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"
_RAISED = re.compile(rf"\^(?:{_BRACED}|{_BRACKETED}|([-−+]?[\w.∞]+|\*))")
_LOWERED = re.compile(rf"((?:[α-ωΑ-Ω]|(?<![\w`])[A-Za-z])[²³⁻¹]*)_(?:{_BRACED}|(\w+))")


def formula_html(text: str) -> str:
    """The text with ``x^{…}``, ``x^(…)``, ``x^2`` raised and ``x_i`` lowered, everything else escaped."""
    escaped = html.escape(text, quote=False)
    raised = _RAISED.sub(lambda found: f"<sup>{next(filter(None, found.groups()))}</sup>", escaped)
    return _LOWERED.sub(lambda found: f"{found[1]}<sub>{found[2] or found[3]}</sub>", raised)
