"""The ledger page: a count for each verdict and one row a statement, all from checks that just ran."""

import html
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

from elementdp.companion.claims import Effort, Entry, Verdict, ledger
from elementdp.companion.report.badge import VERDICT_CLASS
from elementdp.companion.report.display import display_html


def show_ledger(effort: Effort | str = Effort.QUICK, seed: int = 0) -> list[Entry]:
    """Run every check now, show the ledger, and return its entries."""
    entries = ledger(effort, seed)
    plain = "\n".join(f"{entry.id}\t{entry.verdict}\t{entry.where}" for entry in entries)
    display_html(ledger_html(entries, book_pages()), plain=plain)
    return entries


def tally(entries: Iterable[Entry]) -> dict[Verdict, int]:
    """How many statements got each verdict, in the order of the verdicts; zeros included."""
    counts = Counter(entry.verdict for entry in entries)
    return {verdict: counts[verdict] for verdict in Verdict}


def ledger_html(entries: Iterable[Entry], pages: Collection[str] = ()) -> str:
    """The ledger as markup; statements link to their section where ``pages`` has it, seen from a page beside them."""
    entries = list(entries)
    counts = "".join(
        f'<li class="edp-{VERDICT_CLASS[verdict]}"><strong>{count}</strong> '
        f'<span class="edp-verdict">{verdict}</span></li>'
        for verdict, count in tally(entries).items()
    )
    rows = "".join(_row(entry, entry.section in pages) for entry in entries)
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Statement", "Verdict", "Evidence just computed"))
    return (
        f'<ul class="edp-tally">{counts}</ul>'
        '<div class="edp-table edp-ledger tex2jax_ignore" tabindex="0" role="group" aria-label="The ledger">'
        f"<table><caption>{len(entries)} statements</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(entry: Entry, linked: bool) -> str:
    name = f"<code>{entry.id}</code>"
    if linked:
        name = f'<a href="{html.escape(entry.section, quote=True)}.html#claim-{entry.id}">{name}</a>'
    evidence = "".join(f"<li>{html.escape(line)}</li>" for line in entry.evidence)
    repair = f"<p><strong>Repaired:</strong> {html.escape(entry.repair)}</p>" if entry.repair else ""
    shown = f"<ul>{evidence}</ul>" if entry.evidence else "<p>No check has run.</p>"
    return (
        f'<tr class="edp-{VERDICT_CLASS[entry.verdict]}" id="ledger-{entry.id}">'
        f"<td>{name}<br/><em>{html.escape(entry.where)}</em><br/>{html.escape(entry.statement)}</td>"
        f'<td><span class="edp-verdict">{entry.verdict}</span></td>'
        f"<td>{shown}{repair}</td></tr>"
    )


def book_pages(start: Path | None = None) -> frozenset[str]:
    """The pages of the book around ``start`` (the working directory) or this package, as paths without extension."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[3]):
        book = folder / "book"
        if (book / "ledger.md").is_file():
            return frozenset(page.relative_to(book).with_suffix("").as_posix() for page in book.rglob("*.md"))
    return frozenset()
