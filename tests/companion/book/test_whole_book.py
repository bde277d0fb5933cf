"""The real book: executed in its smallest size, built strictly, complete, self-contained."""

import json
import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from support.small_books import ROOT

from elementdp.companion.book.build import Built
from elementdp.companion.book.notebooks import read_all
from elementdp.companion.book.project import Project
from elementdp.companion.book.symbols import in_chapter, read_glossary
from elementdp.companion.claims import CATALOGUE

pytestmark = pytest.mark.book


class Loads(HTMLParser):
    """Collects what a page loads by itself, and what it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.images_without_alt = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in ("canonical", "index", "search", "next", "prev"):
            self.loads.append(values.get("href", ""))
        elif values.get("src"):
            self.loads.append(values["src"])
        if tag == "img" and not values.get("alt"):
            self.images_without_alt += 1


@cache
def read(page: Path) -> Loads:
    parser = Loads()
    parser.feed(page.read_text())
    return parser


def test_every_page_is_there_and_signed(smoke_book: Built) -> None:
    html = smoke_book.index.parent
    for page in Project(ROOT).pages:
        text = (html / f"{page}.html").read_text()
        assert text.count('class="edp-provenance"') == 1, page
        assert "<b>Commit</b>" in text
        assert "<b>profile</b> smoke" in text
    for notebook in read_all(Project(ROOT)):
        text = (html / f"{notebook.page}.html").read_text()
        rerun = f"<code>elementdp book run {notebook.name} -p "
        assert text.count(rerun) == (1 if notebook.code else 0), notebook.name


def test_no_page_loads_from_another_host(smoke_book: Built) -> None:
    html = smoke_book.index.parent
    for page in html.rglob("*.html"):
        outside = [load for load in read(page).loads if re.match(r"(https?:)?//", load)]
        assert not outside, (page, outside)
    for sheet in html.rglob("*.css"):
        found = re.findall(r"(?:@import|url\()\s*['\"]?(?:https?:)?//[^)'\"]*", sheet.read_text(errors="replace"))
        assert not found, (sheet, found)


def test_local_links_and_loads_exist(smoke_book: Built) -> None:
    html = smoke_book.index.parent
    for page in Project(ROOT).pages:
        path = html / f"{page}.html"
        parsed = read(path)
        for target in parsed.loads + parsed.links:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)) if parts.path else path
            assert there.exists(), (page, target)
            if parts.fragment and there.suffix == ".html":
                assert unquote(parts.fragment) in read(there).ids | {"main-content"}, (page, target)


NOT_ALWAYS_THERE = {"fig-cifar-live"}  # drawn only if the page is asked to train, as in this smallest size


def test_every_captioned_figure_and_table_is_cited(smoke_book: Built) -> None:
    html = smoke_book.index.parent
    for page in Project(ROOT).pages:
        text = (html / f"{page}.html").read_text()
        shown = re.findall(
            r'<(?:figure|div) class="edp-(?:figure|table)\b([^>]*)>(?:(?!</figure>|</table>).)*?'
            r'<(?:(?:fig)?caption|p class="edp-caption")',
            text,
            flags=re.DOTALL,
        )
        names = {re.sub(r'.*id="([^"]+)".*', r"\1", attributes, flags=re.DOTALL) for attributes in shown}
        cited = {link.removeprefix("#") for link in read(html / f"{page}.html").links}
        assert names <= cited | NOT_ALWAYS_THERE, page


def test_every_table_of_the_prose_has_a_caption() -> None:
    for notebook in read_all(Project(ROOT)):
        tables = re.findall(r"(.*)\n\n\|[^\n]*\n\|-", project_text(notebook.page))
        assert all(before.startswith('<p class="edp-caption">') for before in tables), notebook.page


def test_every_chapter_explains_its_symbols(smoke_book: Built) -> None:
    html = smoke_book.index.parent
    for page in ("foundations/definitions", "accounting/subsampling", "learning/training"):
        text = (html / "book" / f"{page}.html").read_text()
        fold = text.partition('<details class="edp-fold edp-symbols">')[2].partition("</details>")[0]
        assert 'href="../glossary.html#term-eps-delta"' in fold, page
        assert 'href="../glossary.html#term-n"' in fold, page


def test_a_letter_has_one_meaning_in_a_chapter(smoke_book: Built) -> None:
    glossary = read_glossary((smoke_book.index.parent / "book" / "glossary.html").read_text())
    chapters = [page.removeprefix("book/") for page in Project(ROOT).pages if page.count("/") == 2]
    assert {chapter for symbol in glossary for chapter in symbol.chapters} < set(chapters)
    for chapter in chapters:
        heads = Counter(head for symbol in in_chapter(glossary, chapter) for head in symbol.heads)
        assert not [head for head, entries in heads.items() if entries > 1], chapter


def test_pictures_have_text_alternatives(smoke_book: Built) -> None:
    html = smoke_book.index.parent
    for page in Project(ROOT).pages:
        path = html / f"{page}.html"
        text = path.read_text()
        for svg in re.findall(r'<figure class="edp-figure"[^>]*><svg[^>]*>', text):
            assert re.search(r'role="img"[^>]* aria-label="[^"]{20,}"', svg), (page, svg)
        content = text.split('<article class="bd-article"')[-1].split("</article>")[0]
        parser = Loads()
        parser.feed(content)
        assert parser.images_without_alt == 0, page


def test_a_search_without_a_server_has_the_words_of_every_page(smoke_book: Built) -> None:
    html = smoke_book.index.parent
    script = (html / "_static" / "search-excerpts.js").read_text()
    texts = json.loads(script.partition("= ")[2].partition(";\n")[0])
    assert set(texts) >= set(Project(ROOT).pages)
    assert "search-excerpts.js" in (html / "search.html").read_text()
    assert "<svg" not in "".join(texts.values())


def test_references_have_links_and_the_style_of_the_citations(smoke_book: Built) -> None:
    text = (smoke_book.index.parent / "book" / "references.html").read_text()
    entries = re.findall(r'<div class="citation".*?</div>', text, flags=re.DOTALL)
    assert len(entries) > 20
    for entry in entries:
        assert 'class="reference external"' in entry, entry
        assert re.search(r", \d{4}[a-z]?<span", entry), entry


def test_no_number_was_left_out_and_no_cell_complains(smoke_book: Built) -> None:
    for notebook in read_all(Project(ROOT)):
        text = (smoke_book.index.parent / f"{notebook.page}.html").read_text()
        assert "glue:text" not in text, notebook.page
        assert 'class="output stderr' not in text, notebook.page
        # A docstring on the library's page may show an error as an example.
        assert "Traceback" not in text or not notebook.code, notebook.page


def test_every_notebook_has_a_seed_and_says_what_its_parameters_mean() -> None:
    for notebook in read_all(Project(ROOT)):
        if not notebook.code:
            continue
        assert "seed" in notebook.parameters, notebook.name
        for parameter in notebook.parameters.values():
            assert parameter.meaning, (notebook.name, parameter.name)


def test_every_chapter_has_objectives_and_exercises_with_hidden_answers() -> None:
    for notebook in read_all(Project(ROOT)):
        text = "\n".join(cell.source for cell in notebook.content.cells if cell.cell_type == "markdown")
        if notebook.page.split("/")[1] not in ("foundations", "mechanisms", "accounting", "learning", "experiments"):
            continue  # the first page, the how-tos and the reference are no chapters
        assert "What you will learn" in text, notebook.name
        exercises, solutions = (
            text.count("```{exercise}"),
            len(re.findall(r"```\{solution\}[^\n]*\n:class: dropdown", text)),
        )
        assert exercises >= 2, notebook.name
        assert exercises == solutions, notebook.name


def test_a_statement_whose_page_exists_has_its_badge_there(smoke_book: Built) -> None:
    pages = set(Project(ROOT).pages)
    for claim in CATALOGUE.values():
        page = f"book/{claim.section}"
        if page in pages:
            text = (smoke_book.index.parent / f"{page}.html").read_text()
            assert f'id="claim-{claim.id}"' in text, (claim.id, page)


def test_a_printed_statement_that_fails_stands_in_a_box_that_says_so(smoke_book: Built) -> None:
    html = smoke_book.index.parent / "book"
    lines = re.findall(r'id="ledger-([\w-]+)" data-verdict="([^"]+)"', (html / "ledger.html").read_text())
    failing = {claim for claim, verdict in lines if verdict == "fails"}
    assert failing
    for notebook in read_all(Project(ROOT)):
        boxes = re.findall(r"```\{prf:(\w+)\} ([^\n]*)\n:label: [^\n]*\n([^\n]*)", project_text(notebook.page))
        for kind, title, after in boxes:  # definitions are the paper's, and none of them fails
            assert kind == "definition" or ("of the paper" in title) == ("as-printed-" in after), (notebook.name, title)
        failing -= {after.removeprefix(":class: as-printed-") for *_, after in boxes}
        built = (html.parent / f"{notebook.page}.html").read_text()
        assert built.count("as-printed edp-") == sum("as-printed-" in after for *_, after in boxes), notebook.name
    # The experiments are sentences of the paper, each beside ours in a table.
    assert all(CATALOGUE[claim].section.startswith("experiments/") for claim in failing), failing


def project_text(page: str) -> str:
    return (ROOT / f"{page}.md").read_text()
