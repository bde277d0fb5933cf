"""A page's own glossary: the symbols of its equations and cells, each with what it means and a link to its entry."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from elementdp.companion.book.excerpts import in_words

_MATH = re.compile(r'<(?:span|div) class="math notranslate nohighlight"[^>]*>(.*?)</(?:span|div)>', re.DOTALL)
_ENTRY = re.compile(r'<dt id="(term-[^"]+)">(.*?)<a class="headerlink".*?</dt><dd><p>(.*?)</p>', re.DOTALL)
_WORDS = re.compile(r"\\(?:text|mathsf|mathrm|mathbf|operatorname\*?|begin|end|tag|label)\{[^{}]*\}")
_TOKEN = re.compile(r"\\[A-Za-z]+|[A-Za-z]")
_SECTION = re.compile(r"<section\b")
_TAG_OR_BRACE = re.compile(r"<[^>]*>|[{}]")


@dataclass(frozen=True)
class Symbol:
    """One entry of the glossary, as HTML; ``heads`` are the TeX tokens that stand for it."""

    anchor: str
    shown: str
    meaning: str
    heads: frozenset[str]


def read_glossary(page: str) -> list[Symbol]:
    """The entries of a built glossary whose terms are formulas."""
    entries = []
    for anchor, shown, meaning in _ENTRY.findall(page):
        heads = frozenset(next(_tokens(formula), "") for formula in _MATH.findall(shown))
        if heads:
            entries.append(Symbol(anchor, shown, meaning, heads))
    return entries


def with_symbols(page: str, glossary: Sequence[Symbol], address: str) -> str:
    """The built page with a fold before its first section that explains its symbols; ``address`` is the glossary's."""
    used = {token for formula in _MATH.findall(page) for token in _tokens(formula)}
    found = [symbol for symbol in glossary if symbol.heads & used]
    sections = list(_SECTION.finditer(page))
    if not found or len(sections) < 2:
        return page
    lines = "".join(
        f'<dt><a class="reference internal" href="{address}#{one.anchor}" aria-label="{_plain(one.shown)}">'
        f'{one.shown}</a></dt><dd data-words="{_plain(one.meaning)}">{one.meaning}</dd>'
        for one in found
    )
    fold = (
        '<details class="edp-fold edp-symbols"><summary>Symbols in the equations and cells of this page</summary>'
        f"<dl>{lines}</dl></details>\n"
    )
    place = sections[1].start()
    return page[:place] + fold + page[place:]


def _plain(markup: str) -> str:
    """The words of a piece of HTML, for an attribute."""
    return html.escape(_TAG_OR_BRACE.sub("", html.unescape(in_words(markup))), quote=True)


def _tokens(formula: str) -> Iterator[str]:
    """The letters and commands of a formula; words inside it are none."""
    return (token[0] for token in _TOKEN.finditer(_WORDS.sub(" ", formula)))
