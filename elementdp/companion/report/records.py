"""Records a notebook leaves in its own outputs: numbers for the prose, data sources, and rows for sweeps."""

import json

from elementdp.companion.report.display import publish

RESULT_MIME = "application/vnd.elementdp.result+json"
SOURCE_MIME = "application/vnd.elementdp.source+json"
_GLUE_PREFIX = "application/papermill.record/"


def glue(name: str, value: object, fmt: str = "") -> None:
    """Give the prose a number: ``{glue:text}`name` `` prints it. The record is myst-nb's, without Sphinx."""
    text = format(value, fmt) if fmt else str(value)
    publish(
        {_GLUE_PREFIX + "text/plain": repr(text)},
        {"scrapbook": {"name": name, "mime_prefix": _GLUE_PREFIX}},
    )


def record_result(**values: object) -> None:
    """Leave one row of results; ``elementdp book sweep`` collects the rows of every notebook it runs."""
    _publish(RESULT_MIME, values)


def record_source(name: str, *, sha256: str, stand_in: bool = False) -> None:
    """Name a data source this notebook used, for the provenance line under the page."""
    _publish(SOURCE_MIME, {"name": name, "sha256": sha256, "stand_in": stand_in})


def _publish(mime: str, payload: dict[str, object]) -> None:
    # A round trip refuses what JSON cannot hold here, at the cell that wrote it.
    publish({mime: json.loads(json.dumps(payload, default=_plain, allow_nan=True))})


def _plain(value: object) -> object:
    """Numpy scalars and arrays as the numbers they hold."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a result must be made of numbers, strings, lists and dicts, not {type(value).__name__}")
