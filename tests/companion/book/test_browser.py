"""Every page in headless Chromium, on a desktop and on a phone, straight from the file system."""

from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from support.small_books import ROOT

from elementdp.companion.book.build import Built
from elementdp.companion.book.project import Project

pytestmark = [pytest.mark.book, pytest.mark.browser]
AXE = (files("axe_core_python") / "axe.min.js").read_text()
RULES = [
    "aria-allowed-attr", "aria-required-children", "aria-valid-attr-value", "button-name", "color-contrast",
    "definition-list", "document-title", "duplicate-id", "empty-heading", "heading-order", "html-has-lang", "image-alt",
    "label", "link-name", "list", "listitem", "meta-viewport", "nested-interactive", "page-has-heading-one",
    "role-img-alt", "scope-attr-valid", "select-name", "svg-img-alt", "td-headers-attr",
    "th-has-data-cells",
]  # fmt: skip
"""What axe-core is asked: titles, text alternatives, names of controls, headings in order, contrast."""
SMALLEST = 9  # pixels: text in a figure, on a phone
DESKTOP, PHONE, SMALL_PHONE = (
    {"width": 1280, "height": 900},
    {"width": 390, "height": 844},
    {"width": 360, "height": 740},
)
SIDEWAYS = """() => [...document.querySelectorAll('.edp-figure')]
    .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1).map(e => e.id || e.innerText.slice(0, 60))"""
"""The figures that scroll sideways."""

SEEN = """() => {
    const visible = e => e.checkVisibility();
    const all = (selector, root = document) => [...root.querySelectorAll(selector)].filter(visible);
    const drawings = all('figure.edp-figure > svg');
    const size = (text, svg) => {  // matplotlib draws a text of 11 points as glyphs scaled by 0.11
        const scale = text.getAttribute('transform').match(/scale\\(([\\d.]+)/);
        return scale[1] * 100 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    };
    const overlaps = svg => {
        const boxes = all('g[id*="text_"]', svg).map(e => e.getBoundingClientRect()).filter(b => b.width && b.height);
        const shared = (a, b) => Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left))
            * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));
        return boxes.filter((a, i) => boxes.some((b, j) =>
            j > i && shared(a, b) > 0.25 * Math.min(a.width * a.height, b.width * b.height))).length;
    };
    return {
        scroll: document.documentElement.scrollWidth - window.innerWidth,
        untypeset: [...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container')).length,
        errors: document.querySelectorAll('mjx-merror, [data-mjx-error]').length,
        broken: [...document.images].filter(i => i.complete && i.naturalWidth === 0).length,
        empty: drawings.filter(e => e.getBoundingClientRect().height < 20).length,
        captions: all('.edp-table caption')
            .map(e => [(e.lastElementChild ?? e).offsetWidth, e.closest('.edp-table').clientWidth])
            .filter(([words, box]) => words > box + 1).length,
        code: all('.bd-article pre').filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText.slice(0, 60)),
        overlapping: drawings.filter(overlaps).map(e => e.getAttribute('aria-label').slice(0, 60)),
        small: drawings.filter(svg => all('g[id*="text_"] g[transform*="scale("]', svg)
            .some(text => size(text, svg) < SMALLEST - 0.1)).map(e => e.getAttribute('aria-label').slice(0, 60)),
        unnumbered: all('.bd-article figcaption, .bd-article .edp-table caption, .bd-article .edp-caption')
            .filter(e => !e.querySelector('.edp-number')).map(e => e.innerText.slice(0, 60)),
    };
}""".replace("SMALLEST", str(SMALLEST))

Opened = Callable[[str], Page]


@pytest.fixture(params=["desktop", "phone"])
def opened(smoke_book: Built, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Opened]:
    """Open pages, in the light on a desktop and in the dark on a phone; they must load nothing from outside."""
    desktop = request.param == "desktop"
    context = browser.new_context(viewport=DESKTOP if desktop else PHONE, color_scheme="light" if desktop else "dark")
    problems: list[str] = []

    def visit(name: str) -> Page:
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))
        page.on("request", lambda request: _inside(request.url) or problems.append(f"outside: {request.url}"))
        page.goto((smoke_book.index.parent / name.partition("?")[0]).as_uri() + name[len(name.partition("?")[0]) :])
        page.wait_for_load_state("networkidle")
        page.evaluate("() => window.MathJax && MathJax.startup && MathJax.startup.promise")
        assert not problems
        ink = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--edp-ink').trim()")
        assert ink == ("#1b1b1b" if desktop else "#e8e8e8")
        return page

    yield visit
    context.close()


def _inside(url: str) -> bool:
    return url.startswith(("file:", "data:"))


@pytest.mark.parametrize("page_name", Project(ROOT).pages)
def test_page(opened: Opened, page_name: str) -> None:
    page = opened(f"{page_name}.html")
    seen = page.evaluate(SEEN)
    assert seen.pop("scroll") <= 0
    assert not {name: found for name, found in seen.items() if found}
    assert not accessibility(page)
    if page.viewport_size == PHONE:
        page.set_viewport_size(SMALL_PHONE)
        assert not page.evaluate(SIDEWAYS)


def accessibility(page: Page) -> list[dict[str, Any]]:
    """What axe-core finds wrong with the article of a page."""
    page.evaluate(AXE)
    found = page.evaluate(
        "rules => axe.run('#main-content', {runOnly: {type: 'rule', values: rules}, resultTypes: ['violations']})",
        RULES,
    )
    return [
        {"rule": one["id"], "places": [place["html"][:150] for place in one["nodes"][:3]], "count": len(one["nodes"])}
        for one in found["violations"]
    ]


def test_the_ledger_filters_and_opens_rows(opened: Opened) -> None:
    page = opened("book/ledger.html")
    rows = page.locator(".edp-columns > ul > li")
    total = rows.count()
    page.get_by_role("combobox", name="Verdict").select_option("fails")
    shown = page.locator(".edp-columns > ul > li:visible")
    assert 0 < shown.count() < total
    assert {row.get_attribute("data-verdict") for row in shown.all()} == {"fails"}
    assert page.locator(".edp-ledger output").inner_text() == f"{shown.count()} of {total} statements"
    page.get_by_label("Chapter").select_option("accounting/subsampling")
    page.get_by_label("Severity").select_option("privacy broken")
    assert 0 < shown.count() < total
    shown.first.locator("summary").click()
    assert shown.first.locator("details li").first.is_visible()
    page.get_by_role("combobox", name="Verdict").select_option("holds")
    assert shown.count() == 0


def test_the_ledger_fits_one_screen(opened: Opened) -> None:
    page = opened("book/ledger.html")
    desktop = page.viewport_size is not None and page.viewport_size["width"] == DESKTOP["width"]
    seen = page.evaluate("""() => {
        const lines = [...document.querySelectorAll('.edp-columns summary > *')];
        return {
            bottom: document.querySelector('.edp-ledger').getBoundingClientRect().bottom + window.scrollY,
            cut: lines.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText),
            smallest: Math.min(...lines.map(e => parseFloat(getComputedStyle(e).fontSize))),
        };
    }""")
    assert not desktop or seen["bottom"] <= DESKTOP["height"]
    assert not seen["cut"]
    assert seen["smallest"] >= SMALLEST


def test_symbols_of_equations_and_cells_lead_to_the_glossary(opened: Opened) -> None:
    page = opened("book/accounting/subsampling.html")
    page.wait_for_function("document.querySelectorAll('.edp-symbol').length > 0")
    symbol = page.locator('mjx-container[display="true"] .edp-symbol:has(title)').first
    assert symbol.locator("title").first.text_content() in page.locator(".edp-symbols dd").evaluate_all(
        "all => all.map(one => one.dataset.words)"
    )
    symbol.dispatch_event("click")
    page.wait_for_url("**/glossary.html#term-*")


def test_the_index_of_a_letter_chooses_its_entry(opened: Opened) -> None:
    page = opened("book/learning/asymptotics.html")
    page.wait_for_function("document.querySelectorAll('.edp-symbol').length > 0")
    # The page has L for a risk, and L_0, here with an exponent, for a constant.
    shown = page.locator('mjx-container[display="true"] .edp-symbol').evaluate_all("""all => all.map(one => [
        [...(one.closest('g[data-mml-node^="msub"]') ?? one).querySelectorAll('[data-c]')]
            .map(drawn => String.fromCodePoint(parseInt(drawn.dataset.c, 16)).normalize('NFKC')).join(''),
        one.querySelector('title').textContent,
    ])""")
    meanings = [words for symbol, words in shown if symbol.startswith("L")]
    assert meanings
    assert all(words.startswith("A Lipschitz constant") for words in meanings)


def test_a_search_shows_excerpts(opened: Opened) -> None:
    page = opened("search.html?q=amplification")
    page.locator("#search-results li p.context").first.wait_for(timeout=10_000)
    excerpts = page.locator("#search-results li p.context").all_inner_texts()
    assert any("amplification" in text.lower() for text in excerpts)
    assert not any("{glue" in text or "\\eps" in text for text in excerpts)
