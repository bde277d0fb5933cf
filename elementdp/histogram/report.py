"""One static page about a release, for people who are not experts; it loads nothing from elsewhere."""

import html
import json
import math
from typing import Any

from elementdp.errors import NoGuaranteeError
from elementdp.privacy.digits import rounded_up

_STYLE = (
    "body{font-family:system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem;line-height:1.5;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.2rem .8rem;border-bottom:1px solid #ccc;text-align:left}"
    "pre{background:#f4f4f4;padding:.8rem;overflow-x:auto}"
)


def right_at_most(before: float, epsilon: float, delta: float) -> float:
    """How often someone is right at most who guesses from the release which of two things is true of one element.

    ``before`` is the probability of the first. A guess says "first" with probability p if it is true and q if the
    second is, and is right with probability before·p + (1 − before)(1 − q). By (ε, δ) p ≤ e^ε q + δ and
    1 − q ≤ e^ε (1 − p) + δ, so the best guess is at a corner of that region.
    """
    ratio = math.exp(min(epsilon, 700.0))
    corners = [(0.0, delta), ((1 - delta) / (1 + ratio), (ratio + delta) / (1 + ratio)), (1 - delta, 1.0)]
    return max(before * p + (1 - before) * (1 - q) for q, p in corners)


def page(promise: dict[str, Any]) -> str:
    """The page for the guarantee of a release.

    Raises:
        NoGuaranteeError: the release was seeded and promises nothing.
    """
    if promise.get("epsilon") is None:
        raise NoGuaranteeError("a seeded release promises nothing: there is nothing to report")
    epsilon, delta = float(promise["epsilon"]), float(promise["delta"])
    guesses = "".join(
        f"<tr><td>{1 - before:.0%} to {before:.0%}</td><td>{max(before, 1 - before):.1%}</td>"
        f"<td>{_percent_up(right_at_most(before, epsilon, delta))}</td></tr>"
        for before in (0.5, 0.25, 0.1, 0.01)
    )
    unit, element = html.escape(promise["unit"]), html.escape(promise["element"])
    clipped, value = promise.get("clipped") or {}, promise.get("value") or {}
    said = [f"The columns {promise.get('intervals', '')}", clipped.get("words"), value and f"Sums: {value['words']}"]
    quality = " ".join(f"{html.escape(sentence)}." for sentence in said if sentence)
    spent = "".join(
        f"<tr><td>{html.escape(one['stage'])}</td><td>{rounded_up(one['mu'], 4)}</td>"
        f"<td>{rounded_up(one['delta'])}</td><td>{one['noise']:.4g}</td></tr>"
        for one in promise["spent"]
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>What this release protects</title>
<style>{_STYLE}</style></head><body>
<h1>What this release protects</h1>
<p>Protected is <b>{unit}</b>, where an element is: <b>{element}</b>. Noise was added to every count, so that
the counts say little about what one person's one element was, and here is how much at most.</p>
<h2>What someone could at most conclude</h2>
<p>Suppose someone knows everything about everyone, except which of two things is true of one person's one element.
With ε = {rounded_up(epsilon, 6)} and δ = {rounded_up(delta, 6)} the counts help to guess it by no more than this:</p>
<table><tr><th>odds before</th><th>right without the counts</th><th>right with them, at most</th></tr>{guesses}</table>
<h2>What is not protected</h2>
<ul>
<li>Related elements together. If k elements of a person tell the same story, ε counts k times for that story. Only
user-level privacy protects all of a person at once.</li>
<li>What is true of people in general. A count that shows a habit of many says something about everyone who has it.</li>
<li>Other releases of the same table. Their costs add up; <code>elementdp compose</code> says to how much.</li>
</ul>
<h2>How good the counts are</h2>
<p>{quality}</p>
<h2>What was spent, and how to repeat it</h2>
<table><tr><th>stage</th><th>μ</th><th>δ</th><th>noise</th></tr>{spent}</table>
<p>Neighbouring tables: {html.escape(promise["relation"])}. Bound ρ = {promise["rho"]:g}.
Items: {html.escape(promise["items"])}. Noise: {html.escape(promise["noise"])}.
Made with elementdp {html.escape(promise["elementdp"])}.</p>
<h2>Entry for a registry of deployments</h2>
<pre>{html.escape(registry_entry(promise))}</pre>
</body></html>
"""


def _percent_up(share: float) -> str:
    """A share in per cent, never below it."""
    return f"{min(math.ceil(1000 * share) / 10, 100.0):.1f}%"


def registry_entry(promise: dict[str, Any]) -> str:
    """The release as an entry (YAML) of the public registry of deployments; what only its owner knows is left open."""
    entry = {
        "deployment_name": "TODO: name of the release",
        "data_curator": "TODO: who holds the data",
        "publication_date": "TODO: date",
        "dp_flavor": "approximate differential privacy",
        "privacy_unit": promise["unit"],
        "privacy_unit_description": f"element: {promise['element']}",
        "neighbouring_relation": promise["relation"],
        "epsilon": promise["epsilon"],
        "delta": promise["delta"],
        "model": "central",
        "mechanisms": promise["noise"],
        "accounting": "Gaussian differential privacy, stages composed exactly",
        "software": f"elementdp {promise['elementdp']}",
    }
    return "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in entry.items())
