"""The verdict shown at the section that settles a statement."""

import html

from elementdp.companion.claims import Effort, Entry, Verdict, entry
from elementdp.companion.report.display import display_html

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
    evidence = "".join(f"<li>{html.escape(line)}</li>" for line in found.evidence)
    repair = f"<p><strong>Repaired:</strong> {html.escape(found.repair)}</p>" if found.repair else ""
    return (
        f'<div class="edp-claim edp-{VERDICT_CLASS[found.verdict]} tex2jax_process" id="claim-{found.id}">'
        f'<p><span class="edp-verdict">{found.verdict}</span> <code>{found.id}</code> '
        f"<em>{html.escape(found.where)}</em></p><p>{html.escape(found.statement)}</p>"
        f"<ul>{evidence}</ul>{repair}</div>"
    )
