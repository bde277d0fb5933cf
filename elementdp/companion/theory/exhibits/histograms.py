"""What the page on histograms shows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from numpy.typing import NDArray
from scipy.sparse import csr_array

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.style import INK, LOOKS, PALETTE, PRINTED, REPAIRED, plain_ticks
from elementdp.companion.theory.counting import (
    PAPER_RHOS,
    mean_histogram,
    one_word_errors,
    rho_for,
    two_stage_histogram,
    unit_sigma,
    validate_rho,
)
from elementdp.companion.theory.counting.radius import RadiusGrid
from elementdp.elements import Clusters

DELTA = 1e-6
STAND_IN = "Stand-in data (simulated Zipf words)"
DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class ZipfWords:
    """A stand-in for text: n users with m words each from a Zipf law over d words."""

    n: int
    m: int
    d: int
    seed: int

    @cached_property
    def p(self) -> NDArray[np.float64]:
        """The probability of each word."""
        weights = 1 / (np.arange(self.d) + 10.0)
        return np.asarray(weights / weights.sum())

    def users(self, n: int | None = None, m: int | None = None, *, stream: int = 0) -> csr_array:
        """The counts of n users with m words each, other users in every stream."""
        rng = np.random.default_rng([self.seed, stream])
        return csr_array(rng.multinomial(m or self.m, self.p, size=n or self.n))

    @cached_property
    def validation(self) -> csr_array:
        """As many users again, whose data nothing protects."""
        return self.users(stream=1)

    def partition(self, k: int) -> Clusters:
        """k clusters of words, at random; as many as words are one word each."""
        if k == self.d:
            return Clusters.singletons(self.d)
        return Clusters.from_labels(np.random.default_rng(k).permutation(self.d) % k)

    def grid(self, k: int, epsilon: float) -> RadiusGrid:
        """The expected error of each of the paper's radii for k clusters."""
        return validate_rho(self.validation, self.m * self.p, self.partition(k), self.n, epsilon, DELTA)

    def sampling_error(self, n: int | None = None) -> float:
        """The squared error of the plain average, without privacy."""
        return float((self.m * self.p * (1 - self.p)).sum() / (n or self.n))


def radius_errors(words: ZipfWords, partitions: Sequence[int], repeats: int, epsilon: float = 4.0) -> Exhibit:
    """The squared error against ρ for several partitions: predicted, and measured in releases."""
    rhos, step = np.array(PAPER_RHOS, dtype=float), 4
    train, rng = words.users(), np.random.default_rng([words.seed, 2])
    figure, axes = plt.subplots()
    rows, best, off = [], [], 0.0
    for place, k in enumerate(partitions):  # user level and elements in their colours, finer elements darker
        clusters, shade = words.partition(k), 0.4 + 0.6 * place / max(1, len(partitions) - 1)
        level = LOOKS["user" if k == 1 else "element, pairs sampled"]
        look = {"color": level.colour, "alpha": 1 if k == 1 else shade}
        if k == words.d:
            sigma = unit_sigma(epsilon, DELTA)
            predicted = np.array([sum(one_word_errors(words.p, rho, words.n, words.m, sigma)) for rho in rhos])
        else:
            predicted = words.grid(k, epsilon).errors
        measured = [
            np.mean([
                np.square(mean_histogram(train, clusters, rho, epsilon, DELTA, rng).value - words.m * words.p).sum()
                for _ in range(repeats)
            ])
            for rho in rhos[::step]
        ]  # fmt: skip
        best.append(f"K = {k}: {min(predicted):.3g} at ρ = {rhos[np.argmin(predicted)]:g}")
        off = max(off, float(np.max(np.abs(np.log(np.array(measured) / predicted[::step])))))
        axes.loglog(rhos, predicted, ls=DASHES[place % 4], **look, label=f"K = {k}")
        axes.loglog(rhos[::step], measured, ls="none", marker="os^v"[place % 4], **look)
        rows += [(k, rho, *pair) for rho, *pair in zip(rhos[::step], predicted[::step], measured, strict=True)]
    axes.set(xlabel="radius ρ", ylabel="squared error", title="stand-in: simulated words")
    axes.legend()
    return Exhibit(
        name="fig-histogram-rho",
        figure=figure,
        alt="Squared error against ρ for several K; bias rules at small ρ and noise at large. Least predicted error: "
        f"{'; '.join(best)}. Measured markers are within a factor {math.exp(off):.2f} of the predicted lines.",
        caption="Too small a radius costs bias, and too large a radius costs noise. "
        f"Lines: predicted; markers: measured. {STAND_IN}, n = {words.n}, m = {words.m}, d = {words.d}, "
        f"ε = {epsilon:g}, δ = 10⁻⁶.",
        header=("K", "ρ", "predicted", "measured"),
        rows=[tuple(map(float, row)) for row in rows],
    )


def price_of_privacy(words: ZipfWords, counts: Sequence[int], user_counts: Sequence[int]) -> Exhibit:
    """The error at the best ρ over that without privacy, against K and against n."""
    figure, panels = plt.subplots(1, 2, figsize=(6.0, 3.6), sharey=True)
    rows, said = [], []
    for epsilon, dash in ((1.0, "--"), (4.0, "-")):
        ratios = [words.grid(k, epsilon).errors.min() / words.sampling_error() for k in counts]
        panels[0].loglog(counts, ratios, dash, color=INK, marker="o", label=f"ε = {epsilon:g}")
        said.append(
            f"from {ratios[0]:.3g} at K = {counts[0]} to {ratios[-1]:.3g} at K = {counts[-1]} for ε = {epsilon:g}"
        )
        rows += [(k, words.n, epsilon, ratio) for k, ratio in zip(counts, ratios, strict=True)]
    for k, label, look in ((1, "user", LOOKS["user"]), (words.d, "element, K = d", LOOKS["element, pairs sampled"])):
        ratios = [_ratio(words, k, n) for n in user_counts]
        panels[1].loglog(user_counts, ratios, look.dash, color=look.colour, marker=look.marker, label=label)
        said.append(f"from {ratios[0]:.3g} to {ratios[-1]:.3g} at {label} level")
        rows += [(k, n, 4.0, ratio) for n, ratio in zip(user_counts, ratios, strict=True)]
    figure.suptitle("stand-in: simulated words")
    panels[0].set(xlabel="clusters K", ylabel="error / error without privacy", title=f"n = {words.n}")
    panels[1].set(xlabel="users n", title="ε = 4")
    plain_ticks(panels[0].yaxis)
    panels[1].set_xticks(user_counts, labels=[str(n) for n in user_counts], rotation=45)
    panels[1].xaxis.minorticks_off()
    for panel in panels:
        panel.legend()
    gain = words.grid(1, 4.0).errors.min() / words.grid(words.d, 4.0).errors.min()
    return Exhibit(
        name="fig-histogram-k-n",
        figure=figure,
        alt=f"Error ratio. Left, against K: {said[0]}; {said[1]}. Right, against n: {said[2]}; {said[3]}.",
        caption=f"At ε = 4 user level has {gain:.0f} times the squared error of the finest partition. {STAND_IN}, best "
        "ρ of the paper's grid at every point. In the last step on the left the noise also falls from √2·ρ to ρ: "
        "one-word clusters need half the variance.",
        header=("K", "n", "ε", "error over error without privacy"),
        rows=rows,
        numbers={"gain": f"{gain:.0f}"},
    )


def _ratio(words: ZipfWords, k: int, n: int) -> float:
    """The least error of k clusters over that without privacy, for fresh users at ε = 4."""
    fresh = words.users(n, stream=n)
    grid = validate_rho(fresh, words.m * words.p, words.partition(k), n, 4.0, DELTA)
    return float(grid.errors.min() / words.sampling_error(n))


def longer_texts(words: ZipfWords, lengths: Sequence[int]) -> Exhibit:
    """The error of the frequencies at the best radius as users contribute more words."""
    rows = []
    for m in lengths:
        counts = words.users(m=m, stream=m)
        user, element = (
            validate_rho(counts, m * words.p, words.partition(k), words.n, 4.0, DELTA) for k in (1, words.d)
        )
        errors = [float(one.errors.min()) / m**2 for one in (user, element)]  # of frequencies, not of counts
        rows.append((m, user.best, element.best, *errors, errors[0] / errors[1]))
    figure, axes = plt.subplots(figsize=(6.0, 3.4))
    for level, column, look in (("user", 3, LOOKS["user"]), ("element", 4, LOOKS["element, pairs sampled"])):
        found = [row[column] for row in rows]
        axes.loglog(lengths, found, look.dash, color=look.colour, marker=look.marker, label=f"{level} level")
    axes.set(xlabel="words per user m", ylabel="squared error of frequencies", title="stand-in: simulated words")
    axes.set_xticks(lengths, labels=[str(m) for m in lengths])
    axes.xaxis.minorticks_off()
    axes.legend()
    first, last = rows[0], rows[-1]
    return Exhibit(
        name="fig-longer-texts",
        figure=figure,
        alt=f"Squared error of the frequencies against m at both levels. User level has {first[5]:.3g} times the error "
        f"of element level at m = {first[0]} and {last[5]:.3g} times at m = {last[0]}.",
        caption=f"User level has {first[5]:.3g} times the error of element level for {first[0]} words per user, and "
        f"{last[5]:.3g} times for {last[0]}. The best radius goes from {first[1]:g} to {last[1]:g} at user level and "
        f"from {first[2]:g} to {last[2]:g} at element level. {STAND_IN}, ε = 4.",
        header=("m", "best ρ, user", "best ρ, element", "error, user", "error, element", "ratio"),
        rows=rows,
    )


def chosen_radii(words: ZipfWords, partitions: Sequence[int]) -> Exhibit:
    """Four ways to choose ρ and their errors: the grid, the theory with the true masses, and two private rules."""
    train, rng = words.users(), np.random.default_rng([words.seed, 3])
    rows, promise = [], None
    for k in partitions:
        clusters, grid = words.partition(k), words.grid(k, 4.0)
        oracle = rho_for(float(np.bincount(clusters.labels, words.p).max()), words.m, math.log(words.n))
        row = [float(k), grid.best, float(grid.errors.min()), oracle]
        for cap in (None, 50.0):
            staged = two_stage_histogram(train, clusters, words.m, 4.0, DELTA, rng, cap=cap).histogram
            row += [staged.rho, float(np.square(staged.value - words.m * words.p).sum())]
            promise = staged.guarantee
        rows.append(row)
    over = {name: [row[column] / row[2] for row in rows] for name, column in (("shares", 5), ("norms", 7))}
    figure, axes = plt.subplots(figsize=(6.0, 3.2))
    points = {
        "K": [str(k) for k in partitions] * 2,
        "over": [*over["shares"], *over["norms"]],
        "ρ chosen by": ["shares (the paper's rule)"] * len(rows) + ["norms"] * len(rows),
    }
    sns.pointplot(
        points, x="K", y="over", hue="ρ chosen by", palette=[PRINTED.colour, REPAIRED.colour], linestyle="none",
        markers=[PRINTED.marker, REPAIRED.marker], errorbar=None, log_scale=(False, True), ax=axes,
    )  # fmt: skip
    axes.axhline(1, color=PALETTE["grey"], lw=1, ls=(0, (1, 1)))
    axes.set(xlabel="clusters K", ylabel="error / error of the grid", title="stand-in: simulated words")
    plain_ticks(axes.yaxis)
    said = {name: f"{min(found):.3g} to {max(found):.3g}" for name, found in over.items()}
    return Exhibit(
        name="fig-chosen-radii",
        figure=figure,
        alt="Squared error when ρ is chosen privately, over the error at the best ρ of the grid, for each K: "
        f"{said['shares']} by shares, {said['norms']} by norms.",
        caption=f"A private choice of ρ costs {said['norms']} times the error of the best ρ by norms, and "
        f"{said['shares']} times by shares, its budget included. On the dotted line ρ is the best of the grid, which "
        f"looks at users without protection. {STAND_IN}, ε = 4, n = {words.n}, m = {words.m}.",
        header=(
            "K",
            "ρ by grid",
            "its error",
            "ρ by theory, true P(c)",
            "ρ by shares",
            "its error",
            "ρ by norms",
            "its error",
        ),
        rows=rows,
        numbers={
            "guarantee": promise,
            **{f"over-{name}": span for name, span in said.items()},
        },
    )


def coordinate_variance(radii: NDArray[np.float64], ratio: NDArray[np.float64]) -> Exhibit:
    """The variance of one projected count over that of the count itself."""
    figure, axes = plt.subplots(figsize=(6.0, 3.2))
    axes.plot(radii, ratio, color=INK)
    axes.axhline(1, color=PALETTE["grey"], lw=1, ls=(0, (1, 1)))
    axes.set(xlabel="radius ρ", ylabel="var π(X)₁ / var X₁")
    return Exhibit(
        name="fig-projection-variance",
        figure=figure,
        alt="Ratio of the variance of the projected first count to that of the count itself against ρ: below 1 for "
        f"small ρ, above 1 with a maximum of {ratio.max():.3f} near ρ = {radii[ratio.argmax()]:.2f}, and 1 when "
        "nothing is projected.",
        caption=f"A projection can add variance to a coordinate: here up to {100 * (ratio.max() - 1):.2g} %. Exact "
        "enumeration of Multinomial(10, (0.3, 0.7)) with both words in one cluster.",
    )
