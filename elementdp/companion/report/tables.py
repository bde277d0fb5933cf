"""Small tables that scroll inside their own box on a phone, or, with folded evidence, stand there cell below cell."""

import html
import re
from collections.abc import Iterable, Sequence

from elementdp.companion.exhibit import Folded
from elementdp.companion.report.display import display_html
from elementdp.companion.report.formulas import formula_html

Rows = Iterable[Sequence[object]]
_NUMBERS = re.compile(r"[−+-]?[\d.,]+(?:e[+-]?\d+)?(?: to [−+-]?[\d.,]+(?:e[+-]?\d+)?)?(?: [×%])?")
"""A number or a range of them."""


def table(header: Sequence[str], rows: Rows, caption: str = "", *, name: str = "") -> None:
    """Show rows under a header; floats get four significant digits, cells may hold TeX in ``\\( \\)``.

    A table with a caption is numbered when the book is built; prose cites it by ``{numbered}`name` ``.
    """
    body = list(rows)
    display_html(table_html(header, body, caption, name=name), plain=table_text(header, body))


def table_html(header: Sequence[str], rows: Rows, caption: str = "", *, name: str = "") -> str:
    """The table as markup."""
    body = [list(row) for row in rows]
    if any(isinstance(cell, Folded) for row in body for cell in row):
        return _table_html(_stacked(header, body), caption, name, " edp-stacked", ' role="table"')
    head = "".join(f'<th scope="col">{formula_html(title)}</th>' for title in header)
    lines = "".join("<tr>" + "".join(_cell_html(cell) for cell in row) + "</tr>" for row in body)
    return _table_html(f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody>", caption, name)


def _table_html(inside: str, caption: str, name: str, kind: str = "", role: str = "") -> str:
    title = f"<caption><span>{formula_html(caption)}</span></caption>" if caption else ""
    anchor = f' id="{html.escape(name, quote=True)}"' if name else ""
    return (
        f'<div class="edp-table{kind} tex2jax_process"{anchor} tabindex="0" role="group">'
        f"<table{role}>{title}{inside}</table></div>"
    )


def _stacked(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows whose cells say what they are: a phone shows them below each other, where cells lose their roles."""
    head = "".join(f'<th scope="col" role="columnheader">{formula_html(title)}</th>' for title in header)
    lines = "".join(
        '<tr role="row">' + "".join(_labelled_cell_html(*pair) for pair in zip(row, header, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<thead role="rowgroup"><tr role="row">{head}</tr></thead><tbody role="rowgroup">{lines}</tbody>'


def table_text(header: Sequence[str], rows: Rows) -> str:
    """The table for readers that take no HTML."""
    return "\n".join("\t".join(row) for row in [list(header), *([_cell(cell) for cell in row] for row in rows)])


def _cell_html(value: object) -> str:
    """A cell; what reads as one number or range stays on one line."""
    text = _cell(value)
    kept = ' class="edp-whole"' if " " in text and _NUMBERS.fullmatch(text) else ""
    return f"<td{kept}>{formula_html(text)}</td>"


def _labelled_cell_html(value: object, title: str) -> str:
    label = f'data-label="{html.escape(title, quote=True)}"'
    if not isinstance(value, Folded):
        return f'<td role="cell" {label}>{formula_html(_cell(value))}</td>'
    short, more = formula_html(value.short), formula_html(value.more)
    return f'<td role="cell"><details><summary {label}>{short}</summary>{more}</details></td>'


def _cell(value: object) -> str:
    if isinstance(value, Folded):
        return f"{value.short} ({value.more})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
