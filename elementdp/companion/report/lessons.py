"""The static figures of the chapters' live ones: what readers without JavaScript see, computed by the package."""

import math
from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from elementdp.audit.guessing import epsilon_from_guesses
from elementdp.audit.sampled import claimed_odds, identity_odds
from elementdp.companion.exhibit import Exhibit
from elementdp.companion.report.live import show_live
from elementdp.companion.style import ERROR_PARTS, INK, LOOKS, PALETTE
from elementdp.companion.theory.counting import one_word_errors, unit_sigma
from elementdp.elements import Partition, user_distance

WORDS = 2000
"""Words of the Zipf vocabulary whose histogram's error is shown; each is its own element."""
DELTA = 1e-6
PARTITIONS: dict[str, Partition] = {
    "each word": Partition.identity(),
    "all words with one first letter": Partition.from_key(lambda word: word[0]),
    "everything": Partition.single(),
}


def show_counterexample(odds: Fraction, q: Fraction, *, depth: int = 12) -> None:
    """One coin, K bits: the likelihood ratio of sampled users against the printed one, up to K = ``depth``."""
    sizes = range(1, depth + 1)
    ratios = [float(identity_odds(odds, size, q)) for size in sizes]
    printed = float(claimed_odds(odds, q))
    figure, axes = plt.subplots(figsize=(6.0, 3.2))
    users, paper = LOOKS["element, users sampled"], LOOKS["element, as printed"]
    axes.plot(sizes, ratios, color=users.colour, ls=users.dash, marker=users.marker, label="users sampled")
    axes.axhline(printed, color=paper.colour, ls=paper.dash, label="the paper prints")
    axes.axhline(float(odds), color=PALETTE["grey"], label="no sampling at all")
    axes.set(xlabel="elements K", ylabel="largest likelihood ratio")
    axes.legend()
    exhibit = Exhibit(
        name="live-counterexample",
        figure=figure,
        alt=f"The largest likelihood ratio rises from {ratios[0]:.3g} at K = 1, which is printed, to {ratios[-1]:.3g} "
        f"at K = {depth}, towards {float(odds):g}.",
        caption="When one coin decides for all K elements, the likelihood ratio grows with K, from what the paper "
        f"prints towards what there is without sampling. It begins with q = {q} and odds {odds} to 1.",
    )
    show_live("counterexample", exhibit, {"q": q, "odds": odds, "K": 2})


def show_distances(one: str, other: str, epsilon: float) -> None:
    """Two texts: in how many elements they differ, for three partitions of the words."""
    names = list(PARTITIONS)
    found = [user_distance(one.split(), other.split(), PARTITIONS[name]) for name in names]
    figure, axes = plt.subplots(figsize=(6.0, 2.2))
    axes.barh(names, found, color=INK)
    axes.invert_yaxis()
    axes.set(xlabel="distance")
    said = "; ".join(f"{distance} if an element is {name}" for name, distance in zip(names, found, strict=True))
    exhibit = Exhibit(
        name="live-distances",
        figure=figure,
        alt=f"How far apart “{one}” and “{other}” are: {said}.",
        caption="The coarser the elements, the closer the two users. The figure begins with users who say "
        f"“{one}” and “{other}”.",
    )
    show_live("distances", exhibit, {"one": one, "other": other, "epsilon": f"{epsilon:g}"})


def zipf_errors(rho: float, n: int, m: int, epsilon: float) -> tuple[float, float, float]:
    """Sampling, bias and noise of the mean histogram of ``WORDS`` Zipf words, each its own element, at δ = 1e-6."""
    weights = 1 / (np.arange(WORDS) + 10.0)
    return one_word_errors(weights / weights.sum(), rho, n, m, unit_sigma(epsilon, DELTA))


def show_histogram_error(n: int, m: int, epsilon: float) -> None:
    """The histogram's error against ρ, in its three parts."""
    radii = np.unique(np.round(np.geomspace(1, 100, 30)))
    parts = np.array([zipf_errors(float(rho), n, m, epsilon) for rho in radii]).T
    total = parts.sum(axis=0)
    best = int(np.argmin(total))
    figure, axes = plt.subplots()
    axes.stackplot(radii, parts, labels=list(ERROR_PARTS), colors=list(ERROR_PARTS.values()), alpha=0.55)
    axes.plot(radii[best], total[best], "o", color=INK, mfc="none", mew=2, label="best ρ")
    axes.set(xscale="log", xlabel="radius ρ", ylabel="squared error", ylim=(0, 4 * total[best]))
    axes.legend()
    exhibit = Exhibit(
        name="live-histogram",
        figure=figure,
        alt=f"Squared error against ρ, as sampling, bias and noise. It is least near ρ = "
        f"{radii[best]:g}: {total[best]:.3g}.",
        caption="A small radius costs bias, and a large one costs noise. The figure adds up the parts of the error "
        f"for {WORDS} Zipf words, each an element; δ = {DELTA:g}. It begins with n = {n} users of m = {m} words and "
        f"ε = {epsilon:g}.",
    )
    show_live("histogram", exhibit, {"rho": int(radii[best]), "n": n, "m": m, "epsilon": f"{epsilon:g}"})


def show_audit_game(q: float, odds: float, elements: int, *, guesses: int, seed: int) -> None:
    """An audit to play: what right guesses of a secret prove about ε, when the best rule guesses ``guesses`` times."""
    true = float(identity_odds(Fraction(odds), elements, Fraction(q)))
    printed = math.log(float(claimed_odds(Fraction(odds), Fraction(q))))
    right = np.cumsum(_best_guesses(q, odds, elements, 0.8 * math.log(true), guesses, np.random.default_rng(seed)))
    proved = np.maximum.accumulate([epsilon_from_guesses(int(r), k + 1) for k, r in enumerate(right)])
    figure, axes = plt.subplots()
    axes.step(range(1, guesses + 1), proved, color=INK, label="proved so far", where="post")
    paper, users = LOOKS["element, as printed"], LOOKS["element, users sampled"]
    axes.axhline(printed, color=paper.colour, ls=paper.dash, label="the paper prints")
    axes.axhline(math.log(true), color=users.colour, ls=users.dash, label="true")
    axes.set(xlabel="guesses", ylabel="ε")
    axes.legend()
    crossed = np.flatnonzero(proved > printed)
    when = f"after {crossed[0] + 1} guesses it passes" if len(crossed) else f"after {guesses} guesses it is below"
    exhibit = Exhibit(
        name="live-audit",
        figure=figure,
        alt=f"The ε that right guesses prove: {when} the printed {printed:.3g}. True is {math.log(true):.3g}.",
        caption="One user, sampled by one coin, answers for each element; all but one are known to be yes. What right "
        "guesses of the last one prove about ε holds with 95 % confidence, at all times at once.",
    )
    show_live("audit", exhibit, {"q": f"{q:g}", "odds": f"{odds:g}", "K": elements})


def _best_guesses(
    q: float, odds: float, elements: int, clear: float, guesses: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Whether guessing the likelier secret was right, in runs with a log likelihood ratio of at least ``clear``."""
    truth = odds / (1 + odds)
    right: list[bool] = []
    while len(right) < guesses:
        secret, drawn = rng.random() < 0.5, rng.random() < q
        bits = np.array([secret, *[True] * (elements - 1)]) & drawn
        answers = np.where(rng.random(elements) < truth, bits, ~bits)
        ratio = math.log(_chance(answers, q, truth, True) / _chance(answers, q, truth, False))
        if abs(ratio) >= clear:
            right.append((ratio > 0) == secret)
    return np.array(right)


def _chance(answers: NDArray[np.bool_], q: float, truth: float, secret: bool) -> float:
    """The chance of these answers when the secret element is ``secret`` and the others are yes."""
    there = np.array([secret, *[True] * (len(answers) - 1)])
    absent = np.where(answers, 1 - truth, truth).prod()
    present = np.where(answers == there, truth, 1 - truth).prod()
    return float((1 - q) * absent + q * present)
