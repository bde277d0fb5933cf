"""What the book shows: figures, verdict badges, numbers for the prose, and where they came from."""

from elementdp.companion.report.badge import badge
from elementdp.companion.report.figures import PALETTE, show, use_style
from elementdp.companion.report.records import glue, record_result, record_source
from elementdp.companion.report.tables import table

__all__ = ["PALETTE", "badge", "glue", "record_result", "record_source", "show", "table", "use_style"]
