"""The words of every page as a script: from ``file://`` a browser may not fetch the pages that a search found."""

import json
import re
from collections.abc import Iterable
from html import escape
from html.parser import HTMLParser
from pathlib import Path

SCRIPT = "search-excerpts.js"

_ANSWER = """
if (location.protocol === "file:") {
  const fetched = window.fetch;
  window.fetch = (url, ...rest) => {
    const page = Object.keys(EDP_PAGES).find((name) => String(url).endsWith(name + ".html"));
    return page ? Promise.resolve(new Response(EDP_PAGES[page])) : fetched(url, ...rest);
  };
}
"""


def write_excerpts(html: Path, pages: Iterable[str]) -> None:
    """Write the script that lets Sphinx's search show excerpts of ``pages`` without a server."""
    texts = {page: _words((html / f"{page}.html").read_text(encoding="utf-8")) for page in pages}
    script = f"const EDP_PAGES = {json.dumps(texts, ensure_ascii=False)};\n{_ANSWER}"
    (html / "_static" / SCRIPT).write_text(script, encoding="utf-8")


def _words(page: str) -> str:
    reader = _Words()
    reader.feed(page)
    return f'<div role="main">{"".join(reader.parts)}</div>'


class _Words(HTMLParser):
    """Keeps the text of a page's article and the sections it is in; figures, scripts and formulas' sources go."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._inside = False
        self._skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "article":
            self._inside = True
        elif tag in ("svg", "script", "style"):
            self._skipped += 1
        elif tag == "section" and self._inside:
            self.parts.append(f'<section id="{escape(dict(attrs).get("id") or "", quote=True)}">')

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._inside = False
        elif tag in ("svg", "script", "style"):
            self._skipped -= 1
        elif tag == "section" and self._inside:
            self.parts.append("</section>")

    def handle_data(self, data: str) -> None:
        if self._inside and not self._skipped:
            self.parts.append(escape(in_words(data)))


def in_words(text: str) -> str:
    """A text without TeX: its formulas in plain characters, as far as there are any."""
    return _TEX.sub(_plain, text)


_LETTERS = {
    "eps": "ε",
    "varepsilon": "ε",
    "delta": "δ",
    "sigma": "σ",
    "rho": "ρ",
    "alpha": "α",
    "theta": "θ",
    "Theta": "Θ",
    "beta": "β",
    "gamma": "γ",
    "mu": "μ",
    "le": "≤",
    "wedge": "∧",
    "Phi": "Φ",
    "Sigma": "Σ",
    "ell": "ℓ",
    "duser": "d_user",
    "delement": "d_element",
    "mech": "M",
    "dots": "…",
    "mathsf": "",
    "star": "*",
    "Vert": "‖",
    "widehat": "",
}
_TEX = re.compile(r"\\([()\[\]{},;]|[A-Za-z]+ ?)")


def _plain(command: "re.Match[str]") -> str:
    """A TeX command as an excerpt shows it: a Greek letter, its name, or nothing for brackets of a formula."""
    name = command[1].strip()
    return _LETTERS.get(name, name if name.isalpha() else "")
