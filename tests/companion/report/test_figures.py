"""Figures follow the theme, speak, and stay small."""

import re
import xml.etree.ElementTree as ET

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from elementdp.companion.report.figures import LEAST_TEXT, SVG_LIMIT, figure_html, in_book_style, least_width, svg
from elementdp.companion.style import INK, PALETTE, use_style
from elementdp.errors import ArgumentError
from elementdp.histogram import BoundedValue, Budget, private_histogram, release_figure

ALT = "A line that rises from zero to one."


@pytest.fixture
def figure() -> plt.Figure:
    with plt.rc_context():
        use_style()
        made, axes = plt.subplots()
        axes.plot([0, 1], [0, 1], color=PALETTE["blue"])
        axes.set(xlabel="x", ylabel="y")
        yield made
        plt.close(made)


def luminance(colour: str) -> float:
    """Relative luminance by the web accessibility guidelines."""
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_readable_in_both_themes(theme: str) -> None:
    from support.small_books import ROOT

    sheet = (ROOT / "book" / "_static" / "elementdp.css").read_text()
    block = re.search(rf'html\[data-theme="{theme}"\] {{(.*?)}}', sheet, flags=re.DOTALL)
    assert block
    colours = dict(re.findall(r"--edp-(\w+): (#\w{6})", block[1]))
    assert set(colours) == {*PALETTE, "ink", "rule"}
    background = {"light": "#ffffff", "dark": "#121212"}[theme]
    for name in PALETTE:
        assert contrast(colours[name], background) >= 3, name
    assert contrast(colours["ink"], background) >= 7
    if theme == "light":
        assert {name: colours[name] for name in PALETTE} == PALETTE


def test_svg_names_its_colours_and_is_well_formed(figure: plt.Figure) -> None:
    markup = svg(figure, "a")
    ET.fromstring(markup)
    assert f"var(--edp-blue, {PALETTE['blue']})" in markup
    assert f"var(--edp-ink, {INK})" in markup
    assert "background" not in markup


def test_ids_differ_between_figures_agree_between_runs_and_resolve(figure: plt.Figure) -> None:
    one, other = svg(figure, "one"), svg(figure, "other")
    ids = set(re.findall(r'\bid="([^"]*)"', one))
    assert not ids & set(re.findall(r'\bid="([^"]*)"', other))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]*)', one)) <= ids
    assert one == svg(figure, "one")


def test_a_figure_speaks(figure: plt.Figure) -> None:
    markup = figure_html(figure, 'He said "up".', "A caption.", name="fig-x")
    assert 'aria-label="He said &quot;up&quot;."' in markup
    assert "<figcaption" in markup
    with pytest.raises(ArgumentError, match="alt"):
        figure_html(figure, "  ")


def test_a_figure_is_never_so_narrow_that_its_text_is_too_small(figure: plt.Figure) -> None:
    figure.set_size_inches(6, 3)
    figure.axes[0].text(0.5, 0.5, "small", fontsize=8)
    assert least_width(figure) == pytest.approx(6 * 72 * LEAST_TEXT / 8, abs=1)
    assert f"min-width:{least_width(figure)}px" in figure_html(figure, ALT)


def test_a_heavy_figure_becomes_a_picture(figure: plt.Figure) -> None:
    rng = np.random.default_rng(0)
    figure.axes[0].scatter(*rng.random((2, 20_000)), c=rng.random(20_000))
    markup = figure_html(figure, ALT)
    assert "<svg" not in markup
    assert f'<img alt="{ALT}" ' in markup
    assert 'src="data:image/png;base64,' in markup
    assert len(svg(figure, "x")) > SVG_LIMIT


def test_a_figure_of_the_library_follows_the_theme_and_fits_a_phone() -> None:
    rows = [(str(user), item, 1.0) for item in ("tea", "milk") for user in range(50)]
    columns = zip(*rows, strict=True)
    table = pa.table(dict(zip(("user", "item", "price"), map(list, columns), strict=True)))
    result = private_histogram(
        table,
        user="user",
        item="item",
        element="item",
        privacy=Budget(1, 1e-6),
        items=["tea", "milk"],
        count=BoundedValue("price", 0, 2),
    )
    with plt.rc_context():
        use_style()
        markup = svg(in_book_style(release_figure(result)), "release")
        drawn = in_book_style(release_figure(result))
        canvas = FigureCanvasAgg(drawn)
        canvas.draw()
        words = [text for text in drawn.findobj(Text) if isinstance(text, Text) and len(text.get_text()) > 40]
        ends = [text.get_window_extent(canvas.get_renderer()) for text in words]
    colours = set(re.findall(r"(?:fill|stroke): (#\w{6}|white|black)", markup))
    assert not colours, "a colour that no theme changes"
    assert "var(--edp-sky" in markup
    assert "var(--edp-ink" in markup
    assert least_width(drawn) <= 342, "sideways scrolling on a phone"
    assert len(ends) == 2, "what is promised, and what the lines do not cover"
    assert all(end.x0 >= 0 and end.x1 <= drawn.bbox.width for end in ends), "a line that is cut"
