"""Formulas in the words of a check, as HTML: the same text is read on a terminal, so it is written without TeX."""

import html
import re

_BRACED = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
_BRACKETED = r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"
_RAISED = re.compile(rf"\^(?:{_BRACED}|{_BRACKETED}|([-−+]?\w+(?:\.\w+)*|∞|\*))")
_LOWERED = re.compile(rf"((?:[α-ωΑ-Ω]|(?<![\w`])m?[A-Za-zÀ-ſ])[²³⁻¹⁺]*)_(?:{_BRACED}|([^\W²³¹]+))")
_ROOT = re.compile(rf"√(?:{_BRACKETED}|(\w))")
_MINUS = re.compile(r"(?<=[^\s-]) - (?=[^\s-])")
# A hyphen before a number, or between a letter or bracket and a letter, is a minus; in words and dates it stays.
_HYPHEN = re.compile(
    r"(?<![^\s(,])-(?=\.?\d)"
    r"|(?:(?<=[α-ω)}])|(?<=\b[A-Za-z])|(?<=_[a-z]))-(?=\d|[α-ωA-Za-z](?:\b|_))|(?<=\b\d)-(?=[α-ωA-Za-z](?:\b|_))"
)
_SCIENTIFIC = re.compile(r"(?<![\w.])(\d(?:\.\d+)?)e([-+]?)0*(\d+)(?!\w)")
_AS_IT_IS = re.compile(r"(\\\(.*?\\\)|<code>.*?</code>|<[^>]*>)", re.DOTALL)


def formula_html(text: str) -> str:
    """The text, escaped, with ``x^{…}``, ``x^(…)``, ``x^2`` raised, ``x_i`` lowered, roots and powers of ten."""
    return typeset(html.escape(text, quote=False))


def typeset(markup: str) -> str:
    """The same for a text that is markup already: tags, code and TeX in ``\\( \\)`` stay as they are."""
    parts = _AS_IT_IS.split(markup)
    return "".join(part if place % 2 else _typeset(part) for place, part in enumerate(parts))


def _typeset(text: str) -> str:
    powers = _SCIENTIFIC.sub(_power, _HYPHEN.sub("−", _MINUS.sub(" − ", text)))
    raised = _RAISED.sub(lambda found: f"<sup>{_signed(next(filter(None, found.groups())))}</sup>", powers)
    rooted = _ROOT.sub(lambda found: f'√<span class="edp-root">{found[1] or found[2]}</span>', raised)
    return _LOWERED.sub(lambda found: f"{found[1]}<sub>{found[2] or found[3]}</sub>", rooted)


def _signed(exponent: str) -> str:
    return "−" + exponent[1:] if exponent.startswith("-") else exponent


def _power(found: "re.Match[str]") -> str:
    factor = "" if found[1] == "1" else f"{found[1]} · "
    return f"{factor}10^{{{'−' if found[2] == '-' else ''}{found[3]}}}"
