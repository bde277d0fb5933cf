"""Every page in headless Chromium, on a desktop and on a phone, straight from the file system."""

import pytest
from playwright.sync_api import Browser
from support.small_books import ROOT

from elementdp.companion.book.build import Built
from elementdp.companion.book.project import Project

pytestmark = [pytest.mark.book, pytest.mark.browser, pytest.mark.xdist_group("the whole book")]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page_name", Project(ROOT).pages)
def test_page(smoke_book: Built, browser: Browser, page_name: str, theme: str) -> None:
    width = 1280 if theme == "light" else 390
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=theme)  # type: ignore[arg-type]
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(("file:", "data:")) else problems.append(f"outside: {request.url}")
        ),
    )
    page.goto((smoke_book.index.parent / f"{page_name}.html").as_uri())
    page.wait_for_load_state("networkidle")
    page.evaluate("() => window.MathJax && MathJax.startup && MathJax.startup.promise")
    assert not problems
    seen = page.evaluate(
        """() => ({
            scroll: document.documentElement.scrollWidth - window.innerWidth,
            maths: document.querySelectorAll('.math').length,
            untypeset: [...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container')).length,
            errors: document.querySelectorAll('mjx-merror, [data-mjx-error]').length,
            broken: [...document.images].filter(i => i.complete && i.naturalWidth === 0).length,
            empty: [...document.querySelectorAll('figure.edp-figure:not(.edp-live-on > *) > svg')]
                .filter(e => e.getBoundingClientRect().height < 20).length,
            cut: [...document.querySelectorAll('.edp-table caption')]
                .map(e => [(e.lastElementChild ?? e).offsetWidth, e.closest('.edp-table').clientWidth])
                .filter(([words, box]) => words > box + 1).length,
            ink: getComputedStyle(document.documentElement).getPropertyValue('--edp-ink').trim(),
        })"""
    )
    context.close()
    assert seen["scroll"] <= 0, seen
    assert seen["untypeset"] == seen["errors"] == seen["broken"] == seen["empty"] == seen["cut"] == 0, seen
    assert seen["ink"] == ("#1b1b1b" if theme == "light" else "#e8e8e8")
