"""A page's own glossary: the symbols of its equations and cells, each with what it means and a link to its entry."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from elementdp.companion.book.excerpts import in_words

_MATH = re.compile(r'<(?:span|div) class="math notranslate nohighlight"[^>]*>(.*?)</(?:span|div)>', re.DOTALL)
_ENTRY = re.compile(
    r'<dt id="(term-[^"]+)">(.*?)<a class="headerlink".*?</dt><dd><p>(.*?)</p>(?:\s*<p>(.*?)</p>)?', re.DOTALL
)
_CHAPTER = re.compile(r'href="([^"#]+)\.html"')
_WORDS = re.compile(r"\\(?:text|math(?:sf|rm|bf|bb|cal)|operatorname\*?|begin|end|tag|label)\{[^{}]*\}")
_ACCENT = re.compile(r"\\(?:widehat|hat|bar|tilde)\b")
_TOKEN = re.compile(r"(\\[A-Za-z]+|[A-Za-z])(?:\s*\}?\s*(?:\^(?:\{[^{}]*\}|.))?(_)(?:\{?(0)(?![0-9]))?)?")
_SECTION = re.compile(r"<section\b")
_TAG_OR_BRACE = re.compile(r"<[^>]*>|[{}]")


@dataclass(frozen=True)
class Symbol:
    """One entry of the glossary, as HTML.

    ``heads`` are the TeX tokens that stand for it: a letter with an index is another one than the letter alone.
    ``chapters`` are those in which they do, where others mean something else by them.
    """

    anchor: str
    shown: str
    meaning: str
    heads: frozenset[str]
    chapters: frozenset[str] = frozenset()


def read_glossary(page: str) -> list[Symbol]:
    """The entries of a built glossary whose terms are formulas."""
    entries = []
    for anchor, shown, meaning, chapters in _ENTRY.findall(page):
        heads = frozenset(next(_tokens(formula), "") for formula in _MATH.findall(shown))
        if heads:
            entries.append(Symbol(anchor, shown, meaning, heads, frozenset(_CHAPTER.findall(chapters))))
    return entries


def in_chapter(glossary: Sequence[Symbol], chapter: str) -> list[Symbol]:
    """What the symbols mean in this chapter: an entry that names it goes before those that name none."""
    own = frozenset[str]().union(*(symbol.heads for symbol in glossary if chapter in symbol.chapters))
    return [s for s in glossary if chapter in s.chapters or (not s.chapters and not s.heads & own)]


def with_symbols(page: str, glossary: Sequence[Symbol], address: str, chapter: str) -> str:
    """The built page with a fold before its first section that explains its symbols; ``address`` is the glossary's."""
    used = {token for formula in _MATH.findall(page) for token in _tokens(formula)}
    found = [symbol for symbol in in_chapter(glossary, chapter) if symbol.heads & used]
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
    """The letters and commands of a formula; words inside it are none.

    A low line says that an index follows, whichever it is; index 0 is named, as it is seldom one among many.
    """
    bare = _ACCENT.sub(" ", _WORDS.sub(" ", html.unescape(formula)))
    return ("".join(part or "" for part in token.groups()) for token in _TOKEN.finditer(bare))
