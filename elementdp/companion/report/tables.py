"""Small tables that scroll inside their own box on a phone."""

import html
from collections.abc import Iterable, Sequence

from elementdp.companion.exhibit import Folded
from elementdp.companion.report.display import display_html
from elementdp.companion.report.formulas import formula_html

Rows = Iterable[Sequence[object]]


def table(header: Sequence[str], rows: Rows, caption: str = "", *, name: str = "") -> None:
    """Show rows under a header; floats get four significant digits, cells may hold TeX in ``\\( \\)``.

    A table with a caption is numbered when the book is built; prose cites it by ``{numbered}`name` ``.
    """
    body = list(rows)
    display_html(table_html(header, body, caption, name=name), plain=table_text(header, body))


def table_html(header: Sequence[str], rows: Rows, caption: str = "", *, name: str = "") -> str:
    """The table as markup."""
    head = "".join(f'<th scope="col">{formula_html(title)}</th>' for title in header)
    lines = "".join("<tr>" + "".join(f"<td>{_cell_html(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    title = f"<caption><span>{formula_html(caption)}</span></caption>" if caption else ""
    anchor = f' id="{html.escape(name, quote=True)}"' if name else ""
    return (
        f'<div class="edp-table tex2jax_process"{anchor} tabindex="0" role="group">'
        f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def table_text(header: Sequence[str], rows: Rows) -> str:
    """The table for readers that take no HTML."""
    return "\n".join("\t".join(row) for row in [list(header), *([_cell(cell) for cell in row] for row in rows)])


def _cell_html(value: object) -> str:
    if not isinstance(value, Folded):
        return formula_html(_cell(value))
    return f"<details><summary>{formula_html(value.short)}</summary>{formula_html(value.more)}</details>"


def _cell(value: object) -> str:
    if isinstance(value, Folded):
        return f"{value.short} ({value.more})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
