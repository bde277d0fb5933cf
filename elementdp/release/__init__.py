"""Private releases of real tables: the element-level histogram of a file of events."""

from elementdp.release.budget import Spent, Split
from elementdp.release.errors import TableError
from elementdp.release.histogram import PrivateHistogram, private_histogram
from elementdp.release.output import write_release

__all__ = ["PrivateHistogram", "Spent", "Split", "TableError", "private_histogram", "write_release"]
