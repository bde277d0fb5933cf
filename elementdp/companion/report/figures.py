"""Figures as inline SVG whose colours follow the reader's light or dark theme."""

import base64
import hashlib
import html
import io
import math
import re
import textwrap

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.text import Text

from elementdp.companion.report.display import display_html
from elementdp.companion.report.formulas import typeset
from elementdp.companion.style import INK, PALETTE, RULE
from elementdp.errors import ArgumentError

SVG_LIMIT = 300_000
"""A figure with more markup than this becomes a picture: a phone should not parse a scatter of 10⁵ points."""

LEAST_TEXT = 9
"""Pixels: a figure that would need smaller text on a phone scrolls in its own box instead."""


def svg(figure: Figure, salt: str) -> str:
    """The figure as an ``<svg>`` element with its palette as CSS variables (light by default)."""
    buffer = io.StringIO()
    # Ids inside one page must differ between figures and agree between runs.
    with mpl.rc_context({"svg.hashsalt": salt}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    markup = buffer.getvalue()
    markup = markup[markup.index("<svg") :]
    prefix = "f" + hashlib.sha256(salt.encode()).hexdigest()[:8] + "-"
    markup = re.sub(r'\bid="', f'id="{prefix}', markup)
    markup = re.sub(r'((?:xlink:)?href="#|url\(#)', rf"\g<1>{prefix}", markup)
    markup = re.sub(r"<metadata>.*?</metadata>", "", markup, flags=re.DOTALL)
    for name, colour in {**PALETTE, "ink": INK, "rule": RULE}.items():
        markup = re.sub(re.escape(colour) + r"(?![0-9a-f])", f"var(--edp-{name}, {colour})", markup)
    return markup


def least_width(figure: Figure) -> int:
    """The width in pixels below which some text of the figure would be smaller than :data:`LEAST_TEXT`."""
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_visible() and text.get_text()]
    smallest = min((float(text.get_fontsize()) for text in texts), default=math.inf)
    return math.ceil(figure.get_figwidth() * 72 * LEAST_TEXT / smallest)


def in_book_style(figure: Figure, columns: int = 66) -> Figure:
    """A figure that the library drew, in the width, the colours and the size of text of the book's own figures."""
    size, width = float(mpl.rcParams["font.size"]), float(mpl.rcParams["figure.figsize"][0])
    more = 0
    for words, write in ((figure.get_suptitle(), figure.suptitle), (figure.get_supxlabel(), figure.supxlabel)):
        lines = [part for line in words.splitlines() for part in textwrap.wrap(line, columns)]
        more += len(lines) - len(words.splitlines())
        write("\n".join(lines), fontsize=size, color=INK)
    figure.set_size_inches(width, figure.get_figheight() + more * size / 50)
    for axes in figure.axes:
        axes.locator_params(axis="x", nbins=3)
        axes.grid(axis="x", color=RULE)
        for bar in axes.patches:
            bar.set(facecolor=PALETTE["sky"], alpha=0.55)  # in the dark, a line over it has to show
        for intervals in axes.collections:
            intervals.set_color(INK)
        for zero in axes.lines:
            zero.set_color(INK)
    return figure


def figure_html(figure: Figure, alt: str, caption: str = "", *, name: str = "") -> str:
    """The figure, its text alternative and its caption as one ``<figure>`` element."""
    if not alt.strip():
        raise ArgumentError("alt", alt, "a sentence that says what the figure shows")
    label = html.escape(alt, quote=True)
    drawing = svg(figure, name or alt)
    least = f'style="min-width:{least_width(figure)}px"'
    if len(drawing) <= SVG_LIMIT:
        picture = drawing.replace("<svg", f'<svg role="img" {least} aria-label="{label}"', 1)
    else:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=160, transparent=False, facecolor="white")
        data = base64.b64encode(buffer.getvalue()).decode()
        picture = f'<img alt="{label}" {least} src="data:image/png;base64,{data}"/>'
    anchor = f' id="{html.escape(name, quote=True)}"' if name else ""
    below = f'<figcaption class="tex2jax_process">{typeset(caption)}</figcaption>' if caption else ""
    return f'<figure class="edp-figure"{anchor}>{picture}{below}</figure>'


def show(figure: Figure, alt: str, caption: str = "", *, name: str = "") -> None:
    """Show a figure. ``alt`` says what is to be seen; ``caption`` may hold HTML and TeX in ``\\( \\)``.

    A figure with a caption is numbered when the book is built; prose cites it by ``{numbered}`name` ``.
    """
    import matplotlib.pyplot as plt

    display_html(figure_html(figure, alt, caption, name=name), plain=alt)
    plt.close(figure)
