"""The book's one figure style: its colours, and matplotlib's settings. A leaf: whoever draws may import it."""

from dataclasses import dataclass

import matplotlib as mpl
from cycler import cycler
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullLocator

PALETTE = {
    "blue": "#0072b2",
    "vermillion": "#d55e00",
    "green": "#009e73",
    "purple": "#a8487f",
    "orange": "#b87800",
    "sky": "#3288bd",
    "brown": "#7f4f24",
    "grey": "#767676",
    "violet": "#6a3fb5",
}
"""Colour-blind safe hues (after Okabe and Ito), darkened until each reaches contrast 3 on white."""

INK = "#1b1b1b"
RULE = "#c9c9c9"


@dataclass(frozen=True)
class Look:
    """How one meaning is drawn wherever it appears: colour, dash and marker."""

    colour: str
    dash: str
    marker: str


LOOKS = {
    "non-private": Look(PALETTE["grey"], "-", ""),
    "element, as printed": Look(PALETTE["vermillion"], "--", "o"),
    "element, users sampled": Look(PALETTE["orange"], ":", "s"),
    "element, pairs sampled": Look(PALETTE["blue"], "-", "D"),
    "element, pairs allocated": Look(PALETTE["violet"], ":", "o"),
    "element, fixed order": Look(PALETTE["brown"], "-.", "^"),
    "element, correlated noise": Look(INK, "--", "X"),
    "user, as printed": Look(PALETTE["purple"], "--", "^"),
    "user": Look(PALETTE["green"], "-.", "v"),
}
"""One look for one meaning in the whole book. Where nothing is said of printing, the ε is the true one."""

PRINTED, REPAIRED = LOOKS["element, as printed"], LOOKS["element, pairs sampled"]
"""A statement as the paper prints it, and as it is true: the looks of the ε that follow from them."""
NEIGHBOURS = (Look(INK, "-", "o"), Look(PALETTE["grey"], "--", "s"))
"""What two neighbouring inputs give. They have no colour, since colours say what is promised, and by whom."""
ERROR_PARTS = {"sampling": RULE, "bias": PALETTE["grey"], "noise": INK}
"""The parts of a squared error, as shades of one grey for the same reason."""

_STYLE: dict[str, object] = {
    "figure.figsize": (6.0, 3.7),
    "figure.constrained_layout.use": True,
    "savefig.transparent": True,
    "svg.fonttype": "path",
    "font.size": 11.4,
    "axes.titlesize": 11.4,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 11.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 11.4,  # 9 px where 6 inches are 342 px wide: a phone
    "lines.linewidth": 1.9,
    "lines.markersize": 5,
    "axes.prop_cycle": cycler(color=list(PALETTE.values())[:8])
    + cycler(linestyle=["-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (3, 1)), (0, (5, 2)), (0, (1, 1))]),
}


def use_style() -> None:
    """Make the book's style the default of every figure that follows: for notebooks, never called by the package."""
    mpl.use("agg")
    mpl.rcParams.update(_STYLE)  # type: ignore[arg-type]


def plain_ticks(axis: Axis) -> None:
    """Label a logarithmic axis with numbers people say, 1, 2, 5, 10, …: for one that spans a decade or two."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")


def power_of_ten(value: float) -> str:
    """A small number as a label says it: 1e-06 is ``$10^{-6}$``."""
    digits, _, exponent = f"{value:e}".partition("e")
    factor = "" if float(digits) == 1 else rf"{float(digits):g} \cdot "
    return f"${factor}10^{{{int(exponent)}}}$"
