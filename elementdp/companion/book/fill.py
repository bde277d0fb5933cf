"""What a page can say only after every page has run: its numbers, the numbers of figures and tables, and verdicts."""

import ast
import html
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nbformat import NotebookNode

from elementdp.companion.book.project import BookError

_GLUED = re.compile(r"\{glue:text\}`([^`]+)`")
_CITED = re.compile(r"\{numbered\}`([^`]+)`")
_PRINTED = re.compile(r"as-printed-([\w-]+)")
_VERDICT = re.compile(r'class="edp-claim (edp-\w+)[^"]*" id="claim-([\w-]+)"')
_CAPTIONED = re.compile(
    r'<(?P<tag>figure|div) class="edp-(?P<kind>figure|table)\b[^>]*>.*?'
    r'(?P<caption><figcaption[^>]*>|<caption><span>|<caption>|<p class="edp-caption">)',
    re.DOTALL,
)
_ID = re.compile(r'\bid="([^"]+)"')
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>$|])")


@dataclass
class Filling:
    """Fills the pages of one book. ``strict`` refuses what nothing was computed for; a preview shows … instead."""

    pages: Mapping[str, NotebookNode]
    chapters: Mapping[str, str]
    strict: bool = True
    _anchors: dict[str, tuple[str, str]] = field(default_factory=dict)
    _verdicts: dict[str, str] = field(default_factory=dict)

    def fill(self) -> None:
        """Number every caption of the book first, since a page may cite a later one; then fill each page's text."""
        for page, notebook in self.pages.items():
            self._number(page, notebook)
        for page, notebook in self.pages.items():
            values = _glued(notebook)
            for cell in notebook.cells:
                if cell.cell_type == "markdown":
                    cell.source = self._text(page, cell.source, values)

    def _number(self, page: str, notebook: NotebookNode) -> None:
        """Give each captioned figure and table of a page its number, and remember where it can be found."""
        counts: Counter[str] = Counter()

        def numbered(match: "re.Match[str]") -> str:
            kind = match["kind"].capitalize()
            counts[kind] += 1
            label = f"{kind} {self.chapters.get(page, '')}{counts[kind]}"
            anchor = _ID.search(match[0].split(">", 1)[0])
            if anchor:
                self._anchors[anchor[1]] = page, label
            return f'{match[0]}<span class="edp-number">{label}.</span> '

        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = _CAPTIONED.sub(numbered, cell.source)
            for data in _displayed(cell):
                data["text/html"] = _CAPTIONED.sub(numbered, data["text/html"])
                self._verdicts |= {claim: verdict for verdict, claim in _VERDICT.findall(data["text/html"])}

    def _text(self, page: str, source: str, values: Mapping[str, str]) -> str:
        """One cell of prose with its numbers, its citations of figures and the verdicts of printed statements."""

        def value(match: "re.Match[str]") -> str:
            if match[1] not in values:
                return self._absent(page, f"the number {match[1]!r}, which no cell glues")
            # At the start of a line "3." would begin a list: an invisible joiner keeps it a number.
            starts = match.start() == 0 or source[match.start() - 1] == "\n"
            return ("\u2060" if starts else "") + _SPECIAL.sub(r"\\\1", values[match[1]])

        def cited(match: "re.Match[str]") -> str:
            if match[1] not in self._anchors:
                return self._absent(page, f"the figure or table {match[1]!r}, which no cell shows")
            there, label = self._anchors[match[1]]
            where = "" if there == page else posixpath.relpath(there, posixpath.dirname(page)) + ".html"
            return f'<a class="reference internal" href="{where}#{html.escape(match[1])}">{label}</a>'

        def verdict(match: "re.Match[str]") -> str:
            if match[1] not in self._verdicts:
                return self._absent(page, f"the verdict of {match[1]!r}, which no cell shows")
            return f"as-printed {self._verdicts[match[1]]}"

        source = _GLUED.sub(value, source)
        return _PRINTED.sub(verdict, _CITED.sub(cited, source))

    def _absent(self, page: str, what: str) -> str:
        if self.strict:
            raise BookError(f"{page}.md asks for {what}")
        return "…"


def _displayed(cell: NotebookNode) -> Iterator[NotebookNode]:
    """The bundles of HTML among a cell's outputs."""
    return (output["data"] for output in cell.get("outputs", []) if "text/html" in output.get("data", {}))


def _glued(notebook: NotebookNode) -> dict[str, str]:
    """The numbers a page's cells give to its prose; they are taken out of the outputs, where they have no more use."""
    values: dict[str, str] = {}
    for cell in notebook.cells:
        others = []
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            if name is None:
                others.append(output)
            else:
                (text,) = output["data"].values()
                values[name] = str(ast.literal_eval(text))
        if cell.cell_type == "code":
            cell.outputs = others
    return values
