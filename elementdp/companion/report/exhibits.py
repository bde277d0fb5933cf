"""Exhibits on a page: the figure or the table, and the numbers for the prose."""

import html

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.report.display import display_html
from elementdp.companion.report.figures import show
from elementdp.companion.report.records import glue
from elementdp.companion.report.tables import table, table_html, table_text


def present(*exhibits: Exhibit) -> None:
    """Show each exhibit and give its numbers to the prose; a table beside a figure is folded away."""
    for exhibit in exhibits:
        for name, value in exhibit.numbers.items():
            glue(name, value)
        if exhibit.figure is not None:
            show(exhibit.figure, exhibit.alt, exhibit.caption, name=exhibit.name)
            if exhibit.rows:
                inside = table_html(exhibit.header, exhibit.rows)
                markup = f'<details class="edp-fold"><summary>{html.escape(exhibit.fold)}</summary>{inside}</details>'
                display_html(markup, plain=table_text(exhibit.header, exhibit.rows))
        elif exhibit.rows:
            table(exhibit.header, exhibit.rows, exhibit.caption, name=exhibit.name)
