"""What the page on Section 4.1 shows of the recorded runs and of a run made now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.bars import BANDS_SAY
from elementdp.companion.experiments.recorded import Recorded, read
from elementdp.companion.experiments.sentence import sentence_row, tally
from elementdp.companion.experiments.words.drawing import figure_two, partitions_of, radius_figure, slopes_figure
from elementdp.companion.experiments.words.figure import PartitionSummary, WordsPoint, slope
from elementdp.companion.experiments.words.histogram import Sensitivity
from elementdp.companion.experiments.words.prepare import Prepared
from elementdp.companion.experiments.words.sentences import curve, scaling, sentences

CORPORA = ("reddit", "blogs")
CHOICES = {
    "words-blogs": "as above: GloVe in 50 dimensions, listed stop words",
    "words-blogs-100d": "GloVe in 100 dimensions, as in the paper; fewer words, so fewer users have enough",
    "words-reddit": "Reddit users, fewer words each",
    "words-blogs-directions": "clusters of directions, not of vectors",
    "words-blogs-frequent": "the 100 most frequent words of any kind removed",
}


@dataclass(frozen=True, eq=False)
class WordsPage:
    """The recorded runs of Section 4.1, by corpus."""

    runs: Mapping[str, Recorded]

    @classmethod
    def read(cls) -> "WordsPage":
        """The runs that come with the repository."""
        return cls({name: read(f"words-{name}") for name in CORPORA})

    @cached_property
    def points(self) -> dict[str, list[WordsPoint]]:
        """The points of the figure, by corpus."""
        return {name: [WordsPoint(**row) for row in run.rows("points")] for name, run in self.runs.items()}

    @cached_property
    def partitions(self) -> dict[str, list[PartitionSummary]]:
        """What does not depend on ε, by corpus."""
        return {name: [PartitionSummary(**row) for row in run.rows("lines")] for name, run in self.runs.items()}

    def figure_two(self) -> Exhibit:
        """The paper's Figure 2 on Reddit and on blogs."""
        sizes = {name: run.provenance.parameters for name, run in self.runs.items()}
        titles = {name: f"{name.capitalize()}, m = {size['m']:,}" for name, size in sizes.items()}
        rows = [(titles[name], self.points[name], self.partitions[name][0].zero_ratio) for name in self.runs]
        at_one = {name: curve(self.points[name], 1.0, Sensitivity.RIGHT) for name in self.runs}
        numbers: dict[str, object] = {}
        for name, row in at_one.items():
            numbers |= {
                f"words-{name}-user": f"{row[0].ratio:.3g}",
                f"words-{name}-word": f"{row[-1].ratio:.3g}",
                f"words-{name}-zero": f"{self.partitions[name][0].zero_ratio:.3g}",
                f"words-{name}-m": f"{sizes[name]['m']:,}",
            }
        told = " and ".join(
            f"from {row[0].ratio:.3g} to {row[-1].ratio:.3g} ({name.capitalize()})" for name, row in at_one.items()
        )
        return Exhibit(
            name="fig-words-recorded",
            caption=f"The paper's Figure 2: finer elements have less error. At ε = 1 with the right noise it goes "
            f"{told}. Bars: {BANDS_SAY}; n = 2,000. Dotted: answering zero for every word. "
            + "; ".join(f"{titles[name]}: {run.label}" for name, run in self.runs.items())
            + ".",
            figure=figure_two(rows),
            alt="Error ratio against epsilon in four panels: it falls as elements get finer. At epsilon 1 with the "
            f"right sensitivity, from user level to each word an element: {told}.",
            header=("corpus", "K", "ε", "noise", "ρ", "error ratio", f"± ({BANDS_SAY[1:]})"),
            rows=[
                (name, f"{p.clusters:,}", p.epsilon, p.sensitivity, p.rho, p.ratio, p.bar)
                for name in self.runs
                for p in self.points[name]
                if p.choice == "validation"
            ],
            numbers=numbers,
        )

    def sentences(self) -> Exhibit:
        """The section's sentences and ours, on both corpora."""
        both = [sentences(self.points[name], self.partitions[name], self._size(name)["n"]) for name in CORPORA[::-1]]
        return Exhibit(
            name="tab-words-sentences",
            caption=f"{tally(both[0])} Sentences of Section 4.1, and ours, against the recorded runs; counted by blogs",
            header=("who says", "sentence", "blogs", "Reddit", "what the blog run shows"),
            rows=[sentence_row(one, other.verdict) for one, other in zip(*both, strict=True)],
        )

    def _size(self, name: str) -> Mapping[str, Any]:
        return self.runs[name].provenance.parameters

    def elements(self) -> Exhibit:
        """The heaviest elements of the recorded blog run."""
        rows = self.runs["blogs"].rows("elements")
        first = {row["clusters"]: row for row in reversed(rows) if row["clusters"] > 1}
        heaviest = ", ".join(f"{row['mass']:.0%} at K = {count:,}" for count, row in sorted(first.items()))
        return Exhibit(
            name="tab-words-elements",
            caption=f"Of all that bloggers write, one element holds {heaviest}: the elements they write most in",
            header=("K", "words in it", "share P(c)", "most used words"),
            rows=[
                (f"{row['clusters']:,}", f"{row['size']:,}", row["mass"], ", ".join(row["words"]))
                for count in sorted(first)
                for row in [row for row in rows if row["clusters"] == count][:2]
            ],
            numbers={"words-heavy": heaviest},
        )

    def linearity(self, epsilons: Sequence[float] = (0.25, 1.0, 8.0)) -> Exhibit:
        """Whether the error is linear in K on logarithmic scales, and whether it goes as max P(c)²."""
        blogs, partitions = self.points["blogs"], self.partitions["blogs"]
        mass = {one.clusters: one.largest_mass for one in partitions}
        rows, fits = [], []
        for epsilon in epsilons:
            row = curve(blogs, epsilon, Sensitivity.PRINTED)
            fit = slope([p.clusters for p in row], [p.ratio for p in row])
            fits.append((epsilon, row, fit.slope))
            rows.append((epsilon, fit.slope, fit.standard_error, fit.r_squared, scaling(blogs, partitions, epsilon)))
        last = fits[-1][1]
        return Exhibit(
            name="fig-words-slope",
            caption=f"At ε = {fits[-1][0]:g} the error falls {last[0].ratio / last[-1].ratio:.3g} times from K = 1 to "
            f"each word an element; max P(c)² predicts {min(mass.values()) ** -2:,.0f} times (grey). Recorded blog "
            "run, noise as printed. Lines: least squares.",
            figure=slopes_figure(fits, mass, last[0].ratio),
            alt="Error ratio against the number of elements with fitted straight lines, beside the squared largest "
            "cluster probability. Slope and R² of the lines: "
            + "; ".join(f"{row[1]:.2f} and {row[3]:.2f} at epsilon {row[0]:g}" for row in rows)
            + ".",
            header=("ε", "slope", "± SE", "R²", "exponent of max P(c)² (the paper expects 1)"),
            rows=rows,
            numbers={
                "words-gain-predicted": f"{min(mass.values()) ** -2:,.0f}",
                "words-gain-measured": f"{last[0].ratio / last[-1].ratio:.3g}",
            },
        )

    def private_radius(self) -> Exhibit:
        """What it costs to choose ρ privately, as Section 3.2 suggests."""
        free, private = (
            curve(self.points["blogs"], 1.0, Sensitivity.RIGHT, choice) for choice in ("validation", "private")
        )
        pairs = list(zip(free, private, strict=True))
        costs = {a.clusters: b.ratio / a.ratio for a, b in pairs}
        return Exhibit(
            name="fig-words-radius",
            caption=f"A private choice of ρ costs up to {max(costs.values()):.3g} times the error of a free choice; "
            "ε = 1, right sensitivity, recorded blog run.",
            figure=radius_figure(pairs),
            alt="Error ratio against the number of elements with the radius chosen for free and privately. The private "
            "choice costs " + ", ".join(f"{cost:.3g} times at K = {count:,}" for count, cost in costs.items()) + ".",
            header=("K", "ρ, free choice", "error ratio", "ρ, private", "error ratio", "cost of privacy (times)"),
            rows=[(f"{a.clusters:,}", a.rho, a.ratio, b.rho, b.ratio, costs[a.clusters]) for a, b in pairs],
            numbers={"words-private-cost": f"{costs[max(costs)]:.3g}"},
        )

    def readings(self) -> Exhibit:
        """Which words come out right."""
        rows = self.runs["blogs"].rows("readings")
        right = {row["clusters"]: row["count"] for row in rows}
        fewest = min(right, key=right.__getitem__)
        top = len(rows[0]["words"])
        return Exhibit(
            name="tab-words-readings",
            caption=f"User level finds {right[1]} of the {top} most frequent words of blogs, K = {fewest:,} finds "
            f"{right[fewest]}. The {top} largest entries at ε = 1; words in brackets are not among the true {top}",
            header=("K", "ρ", "right", "first words of the private histogram"),
            rows=[(f"{row['clusters']:,}", row["rho"], *_reading(row)) for row in rows],
            numbers={
                "words-top": top,
                "words-right-user": right[1],
                "words-right-word": right[max(right)],
                "words-fewest": f"{fewest:,}",
                "words-right-fewest": right[fewest],
            },
        )

    def _verdicts(self, other: Recorded) -> list[tuple[str, str]]:
        """What the blog run and another run of the same kind say to each sentence."""
        points, partitions = (other.rows(table) for table in ("points", "lines"))
        theirs = sentences(
            [WordsPoint(**row) for row in points],
            [PartitionSummary(**row) for row in partitions],
            other.provenance.parameters["n"],
        )
        ours = sentences(self.points["blogs"], self.partitions["blogs"], self._size("blogs")["n"])
        return [(one.verdict, another.verdict) for one, another in zip(ours, theirs, strict=True)]

    def choices(self, middle: int = 1_000) -> Exhibit:
        """What the choices the paper leaves open change."""
        rows = []
        for name, what in CHOICES.items():
            run = read(name)
            ratio = {p.clusters: p.ratio for p in curve([WordsPoint(**r) for r in run.rows("points")], 8.0, "right")}
            (heavy,) = (row["largest_mass"] for row in run.rows("lines", clusters=middle))
            size = run.provenance.parameters
            rows.append((what, size["n"], size["m"], ratio[1], ratio[middle], ratio[max(ratio)], heavy))
        size, wide = self._size("blogs"), read("words-blogs-100d")
        return Exhibit(
            name="tab-words-choices",
            caption=f"In each of {len(rows)} recorded runs, finer elements have "
            f"{min(row[3] / row[5] for row in rows):.3g} to {max(row[3] / row[5] for row in rows):.3g} times less "
            "error than user level: error ratios at ε = 8, right sensitivity",
            header=("choice", "n", "m", "K = 1", f"K = {middle:,}", "K = d", f"max P(c), K = {middle:,}"),
            rows=rows,
            numbers={
                "words-epsilon-least": f"{min(size['epsilons']):g}",
                "words-epsilon-most": f"{max(size['epsilons']):g}",
                "words-splits": size["splits"],
                "words-wide-n": f"{wide.provenance.parameters['n']:,}",
                "words-wide-d": f"{max(row['clusters'] for row in wide.rows('lines')):,}",
                "words-wide-same": sum(a == b for a, b in self._verdicts(wide)),
                "words-wide-all": len(self._verdicts(wide)),
            },
        )


def _reading(row: Mapping[str, Any], show: int = 12) -> tuple[str, str]:
    marked = [word if right else f"({word})" for word, right in zip(row["words"], row["right"], strict=True)]
    return f"{row['count']} of {len(marked)}", ", ".join(marked[:show])


def live_run(
    data: Prepared, points: Sequence[WordsPoint], partitions: Sequence[PartitionSummary], read: Sequence[dict[str, Any]]
) -> list[Exhibit]:
    """A run made for a page: its figure, and the words it reads."""
    most = max(p.epsilon for p in points)
    last = curve(points, most, Sensitivity.RIGHT)
    zero = partitions[0].zero_ratio
    name = "stand-in, not real texts" if data.stand_in else "live"
    drawn = Exhibit(
        name="fig-words-live",
        caption=f"Made for this page: {data.label}, n = {data.corpus.n}, m = {data.corpus.m}, {last[0].splits} splits. "
        f"Dotted: answering zero for every word ({zero:.3g}).",
        figure=figure_two([(name, points, zero)]),
        alt=f"Error ratio against epsilon. At epsilon {most:g} with the right sensitivity it is {last[0].ratio:.3g} "
        f"for user level and {last[-1].ratio:.3g} with each word an element.",
        numbers={
            "words-data": data.label,
            "words-n": data.corpus.n,
            "words-m": data.corpus.m,
            "words-d": f"{data.corpus.vocabulary:,}",
            "words-occurring": f"{len(data.corpus.column):,}",
            "words-partitions": ", ".join(f"{count:,}" for count in partitions_of(points)),
        },
    )
    header = ("K", "right", "first words")
    rows = [(f"{row['clusters']:,}", *_reading(row)) for row in read]
    return [drawn, Exhibit(name="tab-words-live", caption=f"Words read: {data.label}", header=header, rows=rows)]
