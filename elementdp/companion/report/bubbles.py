"""Messages drawn as bubbles: conversations as in the paper's Figure 1, and what each promise hides of one person's."""

from collections.abc import Collection, Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from elementdp.companion.style import INK, LOOKS, PALETTE, RULE


def bubbles(conversations: Mapping[str, Sequence[str]], below: Mapping[str, Sequence[str]]) -> Figure:
    """A column of bubbles for each conversation, messages on alternating sides, and lines of text below each."""
    longest = max(map(len, conversations.values()))
    figure, axes = plt.subplots(1, len(conversations), figsize=(6.0, 1.3 + 0.48 * longest), squeeze=False)
    for axis, (name, messages) in zip(axes[0], conversations.items(), strict=True):
        _column(axis, messages, longest)
        axis.set_title(name, loc="center")
        axis.set_xlabel("\n".join(below[name]))
    return figure


def _column(axis: Axes, messages: Sequence[str], longest: int) -> None:
    for place, message in enumerate(messages):
        left = place % 2 == 0
        width = min(0.97, 0.16 + 0.064 * len(message))
        corner = (0.02 if left else 0.98 - width, place + 0.16)
        axis.add_patch(
            FancyBboxPatch(
                corner,
                width,
                0.64,
                boxstyle="round,pad=0,rounding_size=0.14",
                mutation_aspect=2.4,
                facecolor=PALETTE["blue" if left else "grey"],
                alpha=0.22,
                linewidth=0,
            )
        )
        axis.text(corner[0] + width / 2, place + 0.48, message, ha="center", va="center")
    axis.set(xlim=(0, 1), ylim=(longest, 0), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    axis.grid(False)


def promises(messages: Sequence[str], hidden: Mapping[str, Collection[int]]) -> Figure:
    """The same messages in a row for each promise, with those filled, by their place, that one unit of it hides."""
    figure, axis = plt.subplots(figsize=(6.0, 0.95 * len(hidden)))
    looks = (PALETTE["grey"], LOOKS["element, pairs sampled"].colour, LOOKS["user"].colour)
    for row, ((title, places), colour) in enumerate(zip(hidden.items(), looks, strict=True)):
        axis.text(0, row + 0.28, title, fontweight="bold", va="center")
        for place, message in enumerate(messages):
            inside = place in places
            ink = INK if inside else PALETTE["grey"]
            box = FancyBboxPatch(
                (place + 0.04, row + 0.48), 0.92, 0.36, boxstyle="round,pad=0,rounding_size=0.1", mutation_aspect=1.1,
                facecolor=to_rgba(colour, 0.35) if inside else "none", edgecolor=colour if inside else RULE,
            )  # fmt: skip
            axis.add_patch(box)
            axis.text(place + 0.5, row + 0.66, message, ha="center", va="center", color=ink)
    axis.set(xlim=(0, len(messages)), ylim=(len(hidden), 0), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    axis.grid(False)
    return figure
