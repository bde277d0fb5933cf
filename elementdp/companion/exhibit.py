"""One thing a page shows, with all that belongs to it. A leaf: experiments make exhibits, the report presents them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Folded:
    """A cell of a table that says the least one has to read; ``more`` opens on demand."""

    short: str
    more: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Exhibit:
    """A figure, a table or both, with their caption, and the numbers the page's prose cites from them.

    A table beside a figure holds the numbers that were drawn; it is folded away under ``fold``.
    """

    name: str = ""  # the anchor by which prose cites it
    caption: str = ""
    figure: Figure | None = None
    alt: str = ""  # what is to be seen in the figure
    header: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    fold: str = "The numbers behind this figure"
    numbers: Mapping[str, object] = field(default_factory=dict)
