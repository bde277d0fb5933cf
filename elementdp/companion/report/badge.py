"""The verdict shown at the section that settles a statement."""

from collections.abc import Iterable

from elementdp.companion.claims import Effort, Entry, Verdict, entry
from elementdp.companion.report.display import display_html
from elementdp.companion.report.formulas import formula_html

VERDICT_CLASS = {
    Verdict.HOLDS: "holds",
    Verdict.HOLDS_LOOSELY: "loosely",
    Verdict.NEEDS_REPAIR: "repair",
    Verdict.FAILS: "fails",
    Verdict.UNCHECKED: "unchecked",
}
"""The style class of each verdict."""


def badge(claim: str, effort: Effort | str = Effort.QUICK, seed: int = 0) -> None:
    """Run the check of a statement now and show its verdict, its evidence and its repair."""
    found = entry(claim, effort, seed)
    plain = f"{found.id}: {found.verdict}\n" + "\n".join(found.evidence)
    display_html(badge_html(found), plain=plain)


def badge_html(found: Entry) -> str:
    """A ledger entry as a box: verdict, statement, repair, and the evidence behind a fold."""
    count = len(found.evidence)
    return (
        f'<div class="edp-claim edp-{VERDICT_CLASS[found.verdict]} tex2jax_ignore" id="claim-{found.id}">'
        f"<p>{verdict_html(found)} <strong>{formula_html(f'{found.number}: {found.title}')}</strong></p>"
        f"<p>{formula_html(found.statement)}</p>{repair_html(found.repair)}"
        f'<details class="edp-fold"><summary>What was computed ({count} {"fact" if count == 1 else "facts"})</summary>'
        f"{evidence_html(found.evidence)}</details></div>"
    )


def verdict_html(found: Entry) -> str:
    """The verdict of an entry and, where something is wrong, how bad that is."""
    worse = f": {found.severity}" if found.severity != "none" else ""
    return f'<span class="edp-verdict">{found.verdict}{worse}</span>'


def evidence_html(evidence: Iterable[str]) -> str:
    """What a check computed, a line each."""
    lines = "".join(f"<li>{formula_html(line)}</li>" for line in evidence)
    return f"<ul>{lines}</ul>" if lines else "<p>No check has run.</p>"


def repair_html(repair: str) -> str:
    """The repaired statement, where there is one."""
    return f"<p><strong>Repaired:</strong> {formula_html(repair)}</p>" if repair else ""
