"""Counting: the mechanisms of Section 3 (projection, radius, noise, heavy hitters) for a table of events."""

from typing import TYPE_CHECKING

from elementdp._lazy import lazy

if TYPE_CHECKING:
    from elementdp.histogram.bad_rows import RowPolicy
    from elementdp.histogram.budget import Budget, Spent, Split
    from elementdp.histogram.engine import Engine
    from elementdp.histogram.errors import TableError
    from elementdp.histogram.items import Discovery
    from elementdp.histogram.local import LocalEngine
    from elementdp.histogram.output import write_release
    from elementdp.histogram.plot import plot_release, release_figure
    from elementdp.histogram.release import PrivateHistogram, heavy_hitters, private_histogram
    from elementdp.histogram.spark import SparkEngine
    from elementdp.histogram.values import BoundedValue

__all__ = [
    "BoundedValue",
    "Budget",
    "Discovery",
    "Engine",
    "LocalEngine",
    "PrivateHistogram",
    "RowPolicy",
    "SparkEngine",
    "Spent",
    "Split",
    "TableError",
    "heavy_hitters",
    "plot_release",
    "private_histogram",
    "release_figure",
    "write_release",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        ".bad_rows": "RowPolicy",
        ".budget": "Budget Spent Split",
        ".engine": "Engine",
        ".errors": "TableError",
        ".items": "Discovery",
        ".local": "LocalEngine",
        ".output": "write_release",
        ".plot": "plot_release release_figure",
        ".release": "PrivateHistogram heavy_hitters private_histogram",
        ".spark": "SparkEngine",
        ".values": "BoundedValue",
    },
)
