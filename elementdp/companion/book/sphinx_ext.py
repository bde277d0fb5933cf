"""The book's Sphinx extension: buttons that point at files which exist, and pages that work from ``file://``.

Pages are staged as executed ``.ipynb`` files, which the repository does not hold: it holds text notebooks.
"""

import re
from enum import EnumType
from pathlib import Path
from typing import Any

from pybtex.plugin import register_plugin
from sphinx.application import Sphinx

from elementdp.companion.book.bibliography import AuthorYearStyle
from elementdp.companion.book.docstrings import typeset_docstring
from elementdp.companion.book.excerpts import SCRIPT, write_excerpts
from elementdp.companion.book.symbols import read_glossary, with_symbols


def point_buttons(app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
    """Send edit and Binder to the text notebook, Colab to the published notebook, and offer both downloads."""
    buttons: list[dict[str, Any]] = context.get("header_buttons", [])
    for group in buttons:
        for button in group.get("buttons", []):
            url = button.get("url", "")
            if button.get("text") == "Colab":
                button["url"] = re.sub(r"/blob/[^/]+/", "/blob/gh-pages/notebooks/", url)
            elif url.startswith("http") and url.endswith(".ipynb"):
                button["url"] = url.removesuffix(".ipynb") + ".md"
        if group.get("label") == "download-buttons":
            source = next(button for button in group["buttons"] if button["label"] == "download-source-button")
            text = dict(source, url=source["url"].removesuffix(".ipynb") + ".md", text=".md")
            text["label"] = "download-text-button"
            group["buttons"].insert(1, text)
    if pagename == "search":
        app.add_js_file(SCRIPT)


_UNWANTED = re.compile(
    # Browsers refuse a font *preload* on a page opened from file://; the style sheet loads the fonts anyway.
    r'<link rel="preload" as="font"[^>]*>\s*'
    # Live code is off, yet its scripts come along, declare one constant twice and name a host to load from.
    r"|<script>const THEBE_JS_URL.*?</script>\s*"
    r"|<script[^>]*sphinx-thebe\.js[^>]*></script>\s*"
    r'|<script type="text/x-thebe-config">.*?</script>\s*'
    # Every proof, exercise and solution of a page has the same id; the list of references, a role its entries lack.
    r'|(?<=<section) id="(?:exercise|solution|proof)-content"'
    r'|(?<=-content") id="proof-content"'
    r'|(?<=<div class="proof admonition") id="proof"'
    r'|(?<=<div) role="list"(?= class="citation-list")',
    re.DOTALL,
)


_FORMULA = r'<span class="math notranslate nohighlight">\\\([^<]*\\\)</span>'
_FORMULA_WITH_SIGNS = re.compile(rf"(\(?{_FORMULA}[.,;:!?)\]]+|\({_FORMULA})")


def finish_pages(app: Sphinx, error: Exception | None) -> None:
    """Take out of the built pages what an offline book must not have, and give the search their words."""
    if error is None and app.builder.format == "html":
        html, glossary = Path(app.outdir), Path(app.outdir) / "book" / "glossary.html"
        symbols = read_glossary(glossary.read_text(encoding="utf-8")) if glossary.is_file() else []
        for page in html.rglob("*.html"):
            text = _UNWANTED.sub("", page.read_text(encoding="utf-8"))
            if page.parent.parent == glossary.parent:  # the chapters; the other pages have hardly a formula
                chapter = page.relative_to(glossary.parent).with_suffix("").as_posix()
                text = with_symbols(text, symbols, "../glossary.html", chapter)
            # A browser would begin a line with the full stop after a formula, and end one with the bracket before it.
            whole = _FORMULA_WITH_SIGNS.sub(r'<span class="edp-whole">\1</span>', text)
            page.write_text(whole, encoding="utf-8")
        write_excerpts(html, sorted(app.env.found_docs))


LIVE_SCRIPTS = ("live-accountant.js", "live-figures.js", "live-lessons.js")


def add_live_scripts(app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
    """Load the scripts of the live figures on the pages that have one, after the text."""
    if 'class="edp-live"' in context.get("body", ""):
        app.add_css_file("live.css")
        for script in LIVE_SCRIPTS:
            app.add_js_file(script, loading_method="defer")


def show_signatures(
    _app: Sphinx, _what: str, _name: str, thing: object, _options: object, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """Leave out what says nothing: how enumerations are called, and where in memory a default value lies."""
    if isinstance(thing, EnumType):
        return "", ""
    return (re.sub(r"=<[^>]*>", "=...", signature), returns) if signature else None


def typeset_formulas(_app: Sphinx, _what: str, _name: str, _thing: object, _options: object, lines: list[str]) -> None:
    """The page of public names shows formulas as formulas."""
    typeset_docstring(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect after the theme has made its buttons."""
    register_plugin("pybtex.style.formatting", "author-year", AuthorYearStyle)
    app.connect("autodoc-process-signature", show_signatures)
    app.connect("autodoc-process-docstring", typeset_formulas, priority=900)  # after napoleon has sorted the arguments
    app.connect("html-page-context", point_buttons, priority=900)
    app.connect("html-page-context", add_live_scripts)
    app.connect("build-finished", finish_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
