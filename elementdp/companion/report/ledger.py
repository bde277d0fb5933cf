"""The ledger page: one line a statement with filters over them, and the bar that sums them up."""

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from elementdp.companion.claims import Effort, Entry, Severity, Verdict, ledger
from elementdp.companion.report.badge import VERDICT_CLASS, evidence_html, repair_html, verdict_html
from elementdp.companion.report.display import display_html
from elementdp.companion.report.formulas import formula_html


def show_ledger(effort: Effort | str = Effort.QUICK, seed: int = 0) -> list[Entry]:
    """Run every check now, show the ledger, and return its entries."""
    entries = ledger(effort, seed)
    plain = "\n".join(f"{entry.number}\t{entry.verdict}\t{entry.severity}\t{entry.id}" for entry in entries)
    display_html(ledger_html(entries, book_titles()), plain=plain)
    return entries


def show_bar(entries: Iterable[Entry]) -> None:
    """Show how many statements got each verdict, and how bad what is wrong with them is."""
    entries = list(entries)
    plain = ", ".join(f"{count} {verdict}" for verdict, count in tally(entries).items() if count)
    display_html(bar_html(entries), plain=plain)


def tally(entries: Iterable[Entry]) -> dict[Verdict, int]:
    """How many statements got each verdict, in the order of the verdicts; zeros included."""
    counts = Counter(entry.verdict for entry in entries)
    return {verdict: counts[verdict] for verdict in Verdict}


def severities(entries: Iterable[Entry]) -> dict[Severity, int]:
    """How many statements have each severity, the worst first; those with nothing wrong are left out."""
    counts = Counter(entry.severity for entry in entries)
    return {one: counts[one] for one in reversed(Severity) if one is not Severity.NONE and counts[one]}


def bar_html(entries: list[Entry]) -> str:
    """The verdicts as one bar, each part as long as it has statements, and the severities in words below it."""
    parts = "".join(
        f'<li class="edp-{VERDICT_CLASS[verdict]}" style="flex-grow:{count}"><strong>{count}</strong> {verdict}</li>'
        for verdict, count in tally(entries).items()
        if count
    )
    found = severities(entries)
    words = ", ".join(f"{name} in {count}" for name, count in found.items())
    return (
        f'<div class="edp-bar"><ul aria-label="Verdicts on {len(entries)} statements">{parts}</ul>'
        f"<p>Of the {sum(found.values())} that do not hold as printed: {words}.</p></div>"
    )


def ledger_html(entries: Iterable[Entry], titles: Mapping[str, str]) -> str:
    """The ledger as markup; ``titles`` are those of the pages that statements can link to, by path."""
    entries = list(entries)
    chapters = {entry.section: titles.get(entry.section, entry.section) for entry in entries}
    filters = "".join(
        _filter(name, choices)
        for name, choices in (
            ("verdict", {str(verdict): str(verdict) for verdict, count in tally(entries).items() if count}),
            ("severity", {str(one): str(one) for one in severities(entries)}),
            ("chapter", chapters),
        )
    )
    rows = [_row(entry, titles.get(entry.section)) for entry in entries]
    half = (len(rows) + 1) // 2
    columns = "".join(f"<ul>{''.join(part)}</ul>" for part in (rows[:half], rows[half:]))
    return (
        f'<div class="edp-ledger tex2jax_ignore"><p class="edp-filters">{filters}'
        f"<output>{len(entries)} of {len(entries)} statements</output></p>"
        f'<div class="edp-columns">{columns}</div></div>'
    )


def _filter(name: str, choices: Mapping[str, str]) -> str:
    options = "".join(
        f'<option value="{html.escape(value, quote=True)}">{html.escape(shown)}</option>'
        for value, shown in choices.items()
    )
    select = f'<select data-filter="{name}"><option value="">all</option>{options}</select>'
    return f"<label>{name.capitalize()} {select}</label> "


def _row(entry: Entry, title: str | None) -> str:
    """One line: number, title, verdict and severity, a link to the chapter; it opens to statement and evidence."""
    severity = f" · {str(entry.severity).split()[0]}" if entry.severity is not Severity.NONE else ""
    data = {"verdict": str(entry.verdict), "severity": str(entry.severity), "chapter": entry.section}
    values = " ".join(f'data-{name}="{html.escape(value, quote=True)}"' for name, value in data.items())
    chapter = html.escape(title or "", quote=True)
    link = f'<a href="{entry.section}.html#claim-{entry.id}" title="{chapter}" aria-label="{chapter}">→</a>'
    return (
        f'<li class="edp-{VERDICT_CLASS[entry.verdict]}" id="ledger-{entry.id}" {values}><details><summary>'
        f"<b>{formula_html(_short(entry.number))}</b><span>{formula_html(entry.title)}</span>"
        f"<em>{VERDICT_CLASS[entry.verdict]}{severity}</em></summary>"
        f"<p>{verdict_html(entry)} <strong>{formula_html(entry.number)}.</strong> {formula_html(entry.statement)}</p>"
        f"{evidence_html(entry.evidence)}{repair_html(entry.repair)}"
        f"<p><code>elementdp claims {entry.id}</code></p></details>"
        f"{link if title else ''}</li>"
    )


_SHORTER = {"Section ": "§ ", "Definition": "Def.", "Corollary": "Cor.", "Proposition": "Prop.", "Equation": "Eq."}


def _short(number: str) -> str:
    """The paper's number as a line of the ledger has room for it."""
    for word, short in _SHORTER.items():
        number = number.replace(word, short)
    return number.replace("Eq.s", "Eqs.")


def book_titles(start: Path | None = None) -> dict[str, str]:
    """The titles of the pages of the book around ``start`` (the working directory) or this package, by path."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[3]):
        book = folder / "book"
        if (book / "ledger.md").is_file():
            found = {page: re.search(r"^# (.+)$", page.read_text(), flags=re.MULTILINE) for page in book.rglob("*.md")}
            return {
                page.relative_to(book).with_suffix("").as_posix(): title[1].strip()
                for page, title in found.items()
                if title
            }
    return {}
