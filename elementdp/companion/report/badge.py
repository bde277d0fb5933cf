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
    """A ledger entry as a box: verdict, statement, evidence, repair."""
    return (
        f'<div class="edp-claim edp-{VERDICT_CLASS[found.verdict]} tex2jax_ignore" id="claim-{found.id}">'
        f"<p>{verdict_html(found)} <strong>{formula_html(f'{found.number}: {found.title}')}</strong></p>"
        f"<p>{formula_html(found.statement)}</p>{evidence_html(found.evidence, found.repair)}</div>"
    )


def verdict_html(found: Entry) -> str:
    """The verdict of an entry and, where something is wrong, how bad that is."""
    worse = f' <span class="edp-severity">{found.severity}</span>' if found.severity != "none" else ""
    return f'<span class="edp-verdict">{found.verdict}</span>{worse}'


def evidence_html(evidence: Iterable[str], repair: str) -> str:
    """What a check computed, and the repaired statement where there is one."""
    lines = "".join(f"<li>{formula_html(line)}</li>" for line in evidence)
    shown = f"<ul>{lines}</ul>" if lines else "<p>No check has run.</p>"
    return shown + (f"<p><strong>Repaired:</strong> {formula_html(repair)}</p>" if repair else "")
