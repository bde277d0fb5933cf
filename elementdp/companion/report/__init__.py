"""What the book shows: figures, verdict badges, numbers for the prose, and where they came from."""

from elementdp.companion.report.badge import badge
from elementdp.companion.report.bubbles import bubbles, promises
from elementdp.companion.report.commands import run_command
from elementdp.companion.report.exhibits import present
from elementdp.companion.report.figures import in_book_style, show
from elementdp.companion.report.lessons import (
    show_audit_game,
    show_counterexample,
    show_distances,
    show_histogram_error,
)
from elementdp.companion.report.live import show_calculator, show_live
from elementdp.companion.report.records import glue, record_result, record_source
from elementdp.companion.report.tables import table
from elementdp.companion.style import LOOKS, PALETTE, use_style

__all__ = [
    "LOOKS",
    "PALETTE",
    "badge",
    "bubbles",
    "glue",
    "in_book_style",
    "present",
    "promises",
    "record_result",
    "record_source",
    "run_command",
    "show",
    "show_audit_game",
    "show_calculator",
    "show_counterexample",
    "show_distances",
    "show_histogram_error",
    "show_live",
    "table",
    "use_style",
]
