"""One static page about a release, for people who are not experts; it loads nothing from elsewhere."""

import html
import json
import math
from typing import Any

from elementdp.errors import NoGuaranteeError
from elementdp.privacy.digits import rounded_down, rounded_up

_STYLE = (
    "body{font-family:system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem;line-height:1.5;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.2rem .8rem;border-bottom:1px solid #ccc;text-align:left}"
    "pre{background:#f4f4f4;padding:.8rem;overflow-x:auto}"
)


def odds_grow(epsilon: float, delta: float) -> tuple[float, float]:
    """The factor by which a release multiplies anyone's odds on a fact about one element, and the chance of more.

    Let L be the logarithm of that factor and P the law of the release if the fact is true. By (ε, δ) the mean of
    (1 − e^(ε − L))₊ under P is at most δ, and it is at least s where e^L > e^ε/(1 − s). So this has a chance of at
    most δ/s, for each s in (0, 1). It is rarer still if the fact is not true.
    """
    part = max(0.01, math.sqrt(delta))
    return math.exp(min(epsilon, 700.0)) / (1 - part), delta / part


def page(promise: dict[str, Any]) -> str:
    """The page for the guarantee of a release.

    Raises:
        NoGuaranteeError: the release was seeded and promises nothing.
    """
    if promise.get("epsilon") is None:
        raise NoGuaranteeError("a seeded release promises nothing: there is nothing to report")
    epsilon, delta = float(promise["epsilon"]), float(promise["delta"])
    factor, chance = odds_grow(epsilon, delta)
    conclusions = "".join(
        f"<tr><td>{_odds(before)}</td><td>{before / (1 + before):.0%}</td>"
        f"<td>{_odds(factor * before)}</td><td>{_percent_up(factor * before / (1 + factor * before))}</td></tr>"
        for before in (3.0, 1.0, 1 / 9, 1 / 99)
    )
    unit, element = html.escape(promise["unit"]), html.escape(promise["element"])
    clipped, value = promise.get("clipped") or {}, promise.get("value") or {}
    said = [f"The columns {promise.get('intervals', '')}", clipped.get("words"), value and f"Sums: {value['words']}"]
    quality = " ".join(f"{html.escape(sentence[0].upper() + sentence[1:])}." for sentence in said if sentence)
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
<p>Suppose someone knows everything about everyone else, and everything about you but one thing about {unit}: whether
you went to a certain place, say. They hold it for more or less likely before they see the counts. The counts multiply
their odds by at most {rounded_up(factor)}, and divide them by no more. So they can at most conclude:</p>
<table><tr><th colspan="2">before the counts</th><th colspan="2">with the counts, at most</th></tr>
<tr><th>odds</th><th>chance</th><th>odds</th><th>chance</th></tr>{conclusions}</table>
<p>This follows from ε = {rounded_up(epsilon, 6)} and δ = {rounded_up(delta, 6)}. The noise can fail to hide that much,
with a chance of at most 1 in {math.floor(1 / chance):,}.</p>
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


def _odds(odds: float) -> str:
    """Odds as people say them, never below what they are."""
    if odds < 1:
        return f"1 to {rounded_down(1 / odds)}"
    return f"{rounded_up(odds)} to 1" if odds < 1000 else f"{math.ceil(odds):,} to 1"


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
