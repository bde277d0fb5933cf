"""Where the numbers on a page come from: one line under it, and the same as data."""

import html
from dataclasses import asdict, dataclass
from typing import Any

from nbformat import NotebookNode

from elementdp.companion.report.records import RESULT_MIME, SOURCE_MIME


@dataclass(frozen=True)
class PageProvenance:
    """What made a page. ``seconds`` is None for a page without code."""

    commit: str
    profile: str
    parameters: dict[str, Any]
    sources: list[dict[str, Any]]
    versions: dict[str, str]
    seconds: float | None

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def as_html(self) -> str:
        """The line under a page."""
        values = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items() if name != "seed") or "none"
        sources = (
            "; ".join(
                f"{source['name']}{' (stand-in)' if source['stand_in'] else ''}, SHA-256 {source['sha256'][:12]}"
                for source in self.sources
            )
            or "none read"
        )
        parts = {
            "Commit": self.commit,
            "profile": self.profile,
            "parameters": values,
            "seed": self.parameters.get("seed", "none"),
            "data": sources,
            "versions": ", ".join(f"{name} {number}" for name, number in self.versions.items()),
            "run time": "no code" if self.seconds is None else f"{self.seconds:.1f} s",
        }
        text = " · ".join(f"<b>{name}</b> {html.escape(str(value))}" for name, value in parts.items())
        return f'<p class="edp-provenance">{text}</p>'


def records(notebook: NotebookNode, mime: str) -> list[dict[str, Any]]:
    """The records of one kind that an executed notebook left in its outputs."""
    return [
        output["data"][mime]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if mime in output.get("data", {})
    ]


def sources(notebook: NotebookNode) -> list[dict[str, Any]]:
    """The data sources an executed notebook named, each once."""
    unique = {source["sha256"]: source for source in records(notebook, SOURCE_MIME)}
    return list(unique.values())


def results(notebook: NotebookNode) -> list[dict[str, Any]]:
    """The result rows an executed notebook left."""
    return records(notebook, RESULT_MIME)
