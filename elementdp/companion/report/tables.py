"""Small tables that scroll inside their own box on a phone."""

import html
from collections.abc import Iterable, Sequence

from elementdp.companion.report.display import display_html


def table(header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "", *, name: str = "") -> None:
    """Show rows under a header; floats get four significant digits, cells may hold TeX in ``\\( \\)``.

    A table with a caption is numbered when the book is built; prose cites it by ``{numbered}`name` ``.
    """
    body = [[_cell(value) for value in row] for row in rows]
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in header)
    lines = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    title = f"<caption><span>{html.escape(caption)}</span></caption>" if caption else ""
    anchor = f' id="{html.escape(name, quote=True)}"' if name else ""
    markup = (
        f'<div class="edp-table tex2jax_process"{anchor} tabindex="0" role="group">'
        f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
    )
    display_html(markup, plain="\n".join("\t".join(row) for row in [list(header), *body]))


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
