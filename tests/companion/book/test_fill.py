"""Numbers, figure numbers and verdicts are put into the text, and what was not computed is refused."""

import nbformat
import pytest
from nbformat import NotebookNode

from elementdp.companion.book.fill import Filling
from elementdp.companion.book.project import BookError


def notebook(*cells: NotebookNode) -> NotebookNode:
    return nbformat.v4.new_notebook(cells=list(cells))


def prose(text: str) -> NotebookNode:
    return nbformat.v4.new_markdown_cell(text)


def showing(*markup: str, **glued: str) -> NotebookNode:
    """A code cell that shows pieces of HTML and glues numbers."""
    outputs = [nbformat.v4.new_output("display_data", {"text/html": one}) for one in markup]
    for name, value in glued.items():
        data = {"application/papermill.record/text/plain": repr(value)}
        outputs.append(nbformat.v4.new_output("display_data", data, metadata={"scrapbook": {"name": name}}))
    return nbformat.v4.new_code_cell("show()", outputs=outputs)


def figure(name: str) -> str:
    return f'<figure class="edp-figure" id="{name}"><svg/><figcaption class="tex2jax_process">Up.</figcaption></figure>'


TABLE = '<div class="edp-table" id="tab-a" role="group"><table><caption><span>Two.</span></caption></table></div>'
CLAIM = '<div class="edp-claim edp-fails tex2jax_process" id="claim-subsampling"></div>'


def test_numbers_are_written_as_they_are_and_leave_the_outputs() -> None:
    page = notebook(
        prose("{glue:text}`n`. It is *{glue:text}`x`*, for {glue:text}`x`."), showing(TABLE, n="3", x="a_b*c")
    )
    Filling({"book/one": page}, {}).fill()
    assert page.cells[0].source == "\u20603. It is *a\\_b\\*c*, for a\\_b\\*c."
    assert len(page.cells[1].outputs) == 1


def test_figures_and_tables_are_counted_by_chapter_and_cited_across_pages() -> None:
    first = notebook(prose("See {numbered}`fig-b` and {numbered}`tab-a`."), showing(figure("fig-a"), TABLE))
    second = notebook(showing(figure("fig-c"), figure("fig-b")), prose("{numbered}`fig-b`"))
    Filling({"book/x/one": first, "book/y/two": second}, {"book/x/one": "1.", "book/y/two": "2."}).fill()
    assert ">Figure 1.1.</span> Up." in first.cells[1].outputs[0]["data"]["text/html"]
    assert ">Table 1.1.</span> Two." in first.cells[1].outputs[1]["data"]["text/html"]
    assert 'href="../y/two.html#fig-b">Figure 2.2</a> and ' in first.cells[0].source
    assert 'href="#tab-a">Table 1.1</a>' in first.cells[0].source
    assert 'href="#fig-b">Figure 2.2</a>' in second.cells[1].source


def test_a_table_of_the_prose_is_numbered_by_its_caption() -> None:
    markup = '<div class="edp-table" id="tab-b">\n<p class="edp-caption">Three.</p>\n\n| a |\n|---|\n| 1 |\n\n</div>'
    page = notebook(showing(TABLE), prose(f"See {{numbered}}`tab-b`.\n\n{markup}"))
    Filling({"book/one": page}, {"book/one": "1."}).fill()
    assert 'href="#tab-b">Table 1.2</a>' in page.cells[1].source
    assert '<p class="edp-caption"><span class="edp-number">Table 1.2.</span> Three.' in page.cells[1].source


def test_a_printed_statement_carries_the_verdict_that_was_computed() -> None:
    page = notebook(prose("```{prf:corollary}\n:class: as-printed-subsampling\n```"), showing(CLAIM))
    Filling({"book/one": page}, {}).fill()
    assert ":class: as-printed edp-fails" in page.cells[0].source


@pytest.mark.parametrize("text", ["{glue:text}`none`", "{numbered}`fig-none`", ":class: as-printed-none"])
def test_what_was_not_computed_is_refused_and_left_open_in_a_preview(text: str) -> None:
    with pytest.raises(BookError, match=r"book/one.md .*none"):
        Filling({"book/one": notebook(prose(text))}, {}).fill()
    page = notebook(prose(text))
    Filling({"book/one": page}, {}, strict=False).fill()
    assert "…" in page.cells[0].source
