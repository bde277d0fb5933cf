"""What the book found, for its first page: each finding is computed here, in one place, when the page is built."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from elementdp.audit.sampled import claimed_odds, identity_odds
from elementdp.companion.experiments.bars import Z_95
from elementdp.companion.experiments.images import advantages, fair_results, recorded_results
from elementdp.companion.report.display import display_html
from elementdp.companion.report.formulas import formula_html
from elementdp.companion.style import LOOKS, PALETTE
from elementdp.companion.theory.paper_settings import PAPER_SETTINGS, PaperSetting
from elementdp.privacy import Band, Sampler, account, calibrate

__all__ = [
    "PAPER_SETTINGS",
    "Card",
    "Gains",
    "OneCoin",
    "PaperSetting",
    "Repair",
    "TrueEpsilons",
    "distinct_settings",
    "gains",
    "one_coin",
    "rates_figure",
    "repair",
    "show_cards",
    "true_epsilons",
]


@dataclass(frozen=True)
class OneCoin:
    """The smallest counterexample: one coin decides whether a user takes part, and the user has two elements."""

    printed: Fraction
    exact: Fraction
    elements: int


def one_coin(elements: int = 2) -> OneCoin:
    """The odds that the paper's amplification allows at q = 1/2 and e^ε = 3, and the odds there are."""
    odds, q = Fraction(3), Fraction(1, 2)
    return OneCoin(claimed_odds(odds, q), identity_odds(odds, elements, q), elements)


@dataclass(frozen=True)
class TrueEpsilons:
    """One setting at several rates, its noise set at each so that the claim is the same."""

    setting: PaperSetting
    claimed: float
    rates: tuple[float, ...]
    bands: tuple[Band, ...]


def distinct_settings() -> list[PaperSetting]:
    """The paper's settings, those the accountant cannot tell apart as one with both names."""
    found: dict[tuple[int, int, int], PaperSetting] = {}
    for one in PAPER_SETTINGS:
        twin = found.get(size := (one.users, one.steps, one.elements))
        found[size] = replace(one, name=f"{twin.name} and {one.name}") if twin else one
    return list(found.values())


def true_epsilons(
    setting: PaperSetting, rates: Sequence[float], epsilon: float, sampler: Sampler = Sampler.POISSON_USERS
) -> TrueEpsilons:
    """The true ε of runs that claim ``epsilon``, one for each rate; with pairs sampled, of the repaired runs."""
    runs = (replace(setting.as_printed(q, epsilon), sampler=sampler) for q in rates)
    return TrueEpsilons(setting, epsilon, tuple(rates), tuple(account(run, setting.delta) for run in runs))


@dataclass(frozen=True)
class Repair:
    """The noise a true ε takes, over the noise at which the paper claims it, with users and with pairs sampled."""

    users: float
    pairs: float


def repair(setting: PaperSetting, q: float, epsilon: float) -> Repair:
    """What it costs to keep the promise in one setting."""
    run = setting.as_printed(q, epsilon)
    pairs = replace(run, sampler=Sampler.POISSON_PAIRS, elements_per_user=None)
    users, pair = (calibrate(one, epsilon, setting.delta).sigma / run.sigma for one in (run, pairs))
    return Repair(users, pair)


@dataclass(frozen=True)
class Gains:
    """What element level gains over user level at the same true ε, over several settings, in points of accuracy."""

    least: float
    most: float
    half_width: float  # of the widest 95 % interval
    settings: int


def gains(epsilon: float, *, own_rates: bool = False) -> Gains:
    """The gains in the recorded photo runs: at one rate for all, or with each level at the rate that suits it best."""
    runs, results = recorded_results("photos")
    tests = runs[0].provenance.parameters["tests"] // 2
    found = advantages(fair_results("photos") if own_rates else results, tests)
    rows = [row for row in found if row.epsilon == epsilon]
    widest = max(Z_95 * row.standard_error for row in rows)
    return Gains(100 * min(row.gain for row in rows), 100 * max(row.gain for row in rows), 100 * widest, len(rows))


def rates_figure(curves: Sequence[TrueEpsilons], repaired: TrueEpsilons, marked: float) -> Figure:
    """True ε against q, a band for each setting, with the rate ``marked``, the claim, and the repaired runs."""
    figure, axes = plt.subplots(figsize=(6.0, 5.6))
    look, printed, pairs = (LOOKS[f"element, {what}"] for what in ("users sampled", "as printed", "pairs sampled"))
    for curve, line, marker in zip(curves, ("-", "--", "-.", ":"), "os^D", strict=False):
        low, up = [band.low for band in curve.bands], [band.up for band in curve.bands]
        axes.fill_between(curve.rates, low, up, color=look.colour, alpha=0.2, lw=0)
        axes.plot(curve.rates, up, line, color=look.colour, marker=marker, label=f"true ε: {curve.setting.words}")
    axes.axhline(curves[0].claimed, color=printed.colour, ls=printed.dash, label="printed for all of them")
    ups = [band.up for band in repaired.bands]
    axes.plot(repaired.rates, ups, pairs.dash, color=pairs.colour, label=f"pairs sampled: {repaired.setting.words}")
    axes.axvline(marked, color=PALETTE["grey"], lw=1, ls=(0, (2, 2)))
    axes.set(xscale="log", yscale="log", xlabel="sampling rate q", ylabel="true ε of the run")
    ticks = [tick for tick in (1, 3, 10, 30, 100, 300, 1000) if min(ups) / 2 < tick]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    figure.legend(loc="outside lower center", ncols=1)
    return figure


@dataclass(frozen=True)
class Card:
    """One finding: a figure in large type, a sentence, and the page that shows it."""

    title: str
    number: str
    text: str
    page: str


def show_cards(cards: Sequence[Card]) -> None:
    """Show cards side by side where there is room; pages are seen from a page beside them."""
    shown = "".join(
        f'<li><a href="{card.page}.html"><span class="edp-card-title">{formula_html(card.title)}</span>'
        f'<span class="edp-card-number">{formula_html(card.number)}</span>'
        f"<span>{formula_html(card.text)}</span></a></li>"
        for card in cards
    )
    plain = "\n".join(f"{card.title}: {card.number}. {card.text}" for card in cards)
    display_html(f'<ul class="edp-cards tex2jax_ignore">{shown}</ul>', plain=plain)
