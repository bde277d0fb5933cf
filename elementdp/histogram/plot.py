"""A picture of a release: its largest items with their intervals, and what is promised."""

import io
import textwrap
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from elementdp.errors import ArgumentError, ElementdpError, at_least
from elementdp.files import require_writable, write_atomic
from elementdp.histogram.release import PrivateHistogram
from elementdp.privacy import rounded_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SUFFIXES = (".svg", ".png")
_LONGEST = 48


def check_plot(output: Path, *, force: bool) -> None:
    """Refuse, before any work, a picture that cannot be drawn or written, or that would replace another file."""
    if output.suffix.lower() not in _SUFFIXES:
        raise ArgumentError("plot", str(output), f"a file named with one of {', '.join(_SUFFIXES)}")
    if output.exists() and not force:
        raise ArgumentError("plot", str(output), "a new file (force replaces an old one)")
    if not output.parent.is_dir():
        raise ArgumentError("plot", str(output), "in a folder that exists")
    require_writable("plot", output)
    require_matplotlib()


def plot_release(result: PrivateHistogram, output: str | Path, *, number: int = 20, force: bool = False) -> Path:
    """Write :func:`release_figure` as SVG or PNG.

    Raises:
        ArgumentError: ``output`` has another ending, lies in no folder, or is there already and ``force`` is not given.
        ElementdpError: matplotlib is not installed; it comes with ``elementdp[plot]``.
    """
    check_plot(Path(output), force=force)
    import matplotlib as mpl

    kind = Path(output).suffix.lower()[1:]
    content = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "elementdp"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # an item may be in any script
        metadata = {"Date": None} if kind == "svg" else None
        release_figure(result, number=number).savefig(content, format=kind, dpi=150, metadata=metadata)
    write_atomic(Path(output), content.getvalue())
    return Path(output)


def release_figure(result: PrivateHistogram, *, number: int = 20) -> "Figure":
    """Draw the items with the largest noisy counts, each with the interval that covers its noise.

    Unit, relation, ε and δ stand above; below stands what the intervals do not cover. If sums of a value were released,
    they are drawn beside the counts. A picture of a release is post-processing and costs no privacy.
    """
    at_least("number", number, 1)
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    table = result.histogram.sort_by([("count", "descending")]).slice(0, number)
    with mpl.rc_context({"text.parse_math": False}):
        figure = Figure(figsize=(8 if result.value is None else 11, 2 + 0.28 * table.num_rows), layout="constrained")
        figure.suptitle(_title(result), fontsize=10)
        figure.supxlabel(_caption(result, table.num_rows), fontsize=8)
        _draw(figure, result, table)
    return figure


def require_matplotlib() -> None:
    """Say which part of the installation is missing."""
    if find_spec("matplotlib") is None:
        raise ElementdpError("a plot needs matplotlib: pip install 'elementdp[plot]'")


def _draw(figure: "Figure", result: PrivateHistogram, table: pa.Table) -> None:
    """A panel of counts, and one of sums if there are such: a bar an item, and a line for its interval."""
    names = zip(*(table.column(name).to_pylist() for name in result.item_columns), strict=True)
    labels = [_short(" · ".join(name)) for name in names]
    places = np.arange(len(labels))[::-1]
    panels = {"count": ""} if result.value is None else {"count": "", "sum": "sum_"}
    words = {"count": "count", "sum": f"sum of {_printable(result.value.column)}" if result.value else ""}
    for axes, (name, prefix) in zip(
        figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels.items(), strict=True
    ):
        axes.barh(places, table.column(name).to_numpy(), color="#7aa6c2")
        low, high = (table.column(f"{prefix}{end}").to_numpy() for end in ("low", "high"))
        axes.hlines(places, low, high, color="#222222", linewidth=1.2)
        axes.set_yticks(places, labels)
        axes.set_xlabel(words[name])
        axes.locator_params(axis="x", nbins=5)  # so that large numbers do not run into each other
        axes.axvline(0, color="#222222", linewidth=0.8)
        axes.grid(axis="x", color="#dddddd")
        axes.set_axisbelow(True)


def _title(result: PrivateHistogram) -> str:
    """What is promised, with unit, relation, ε and δ."""
    element = f"element: {_printable(result.element)}"
    if result.seeded:
        return f"NO privacy: seeded noise, for testing only\n{element}"
    promise = result.guarantee
    ends = f"ε = {rounded_up(promise.epsilon, 6)}, δ = {rounded_up(promise.delta, 6)}"
    return f"{ends} for {promise.unit.words} ({promise.relation.words})\n{element}"


def _caption(result: PrivateHistogram, shown: int) -> str:
    """What a line is and what it does not cover, and what was done to the counts."""
    if not shown:
        return "no item had enough users to be discovered"
    lines = [f"the {shown} largest of {result.histogram.num_rows} items; lines cover the noise in 95 of 100 releases"]
    if result.clipped is not None:
        lines.append(result.clipped.words())
    return "\n".join(textwrap.fill(line, 110) for line in [*lines, *result.processing])


def _short(text: str) -> str:
    """A name that fits beside a bar: the middle of a long one is left out."""
    text = _printable(text)
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[: half - 1]}…{text[-half:]}"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
