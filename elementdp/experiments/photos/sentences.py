"""The sentences of Section 4.3 against lines that were run; what a run of this size does not decide stays open."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elementdp.errors import ElementdpError
from elementdp.experiments.photos.curves import Told, from_row
from elementdp.experiments.photos.lines import Way
from elementdp.experiments.recorded import FOLDER, Recorded, read
from elementdp.experiments.settled import Settled
from elementdp.privacy import Unit

Z_95 = 1.96
"""Two accuracies on the same number of test photos differ when they are this many standard errors apart."""


RUNS = ("photos", "photos-clusters")
"""Recorded runs of this section; the second adds lines to the first and is of the same size."""


def recorded_lines(folder: Path = FOLDER) -> tuple[list[Recorded], list[Told]]:
    """The recorded runs that are there, and all their lines together."""
    runs = [read(name, folder) for name in RUNS if (folder / f"{name}.json").is_file()]
    sizes = {tuple(run.provenance.parameters[name] for name in ("users", "steps", "q", "tests")) for run in runs}
    if len(sizes) > 1:
        raise ElementdpError(f"recorded runs of different sizes cannot be compared line by line: {sorted(sizes)}")
    return runs, [from_row(row) for run in runs for row in run.rows("lines")]


@dataclass(frozen=True)
class Open:
    """A sentence this run does not decide: too close, a line missing, or the other way round in a far shorter run."""

    said: str
    found: str

    @property
    def verdict(self) -> str:
        """The row's last column."""
        return "not decided at this size"


Row = Settled | Open


def error(accuracy: float, tests: int) -> float:
    """Standard error of an accuracy measured on ``tests`` photos."""
    return math.sqrt(max(accuracy * (1 - accuracy), 0.25 / tests) / tests)


def above(a: Told, b: Told, tests: int) -> bool:
    """Whether a's best accuracy is above b's by more than chance in the test photos explains."""
    return a.reached - b.reached > Z_95 * math.hypot(error(a.reached, tests), error(b.reached, tests))


def find(told: Sequence[Told], way: Way, unit: Unit, epsilon: float, k: int = 0, clusters: int = 0) -> Told | None:
    """The first line told so; k or K of 0 matches any."""
    for line in told:
        same = (line.way, line.unit, line.epsilon) == (str(way), str(unit), epsilon)
        if same and k in (0, line.k) and clusters in (0, line.clusters):
            return line
    return None


def compare(said: str, better: Told | None, worse: Told | None, tests: int, *, repaired: bool = False) -> Row:
    """ "``better`` is above ``worse``": settled if so beyond chance, else open. A run this short refutes nothing."""
    if better is None or worse is None:
        return Open(said, "a line it needs was not run")
    found = (
        f"{name(better)} reaches {100 * better.reached:.1f} %, {name(worse)} {100 * worse.reached:.1f} % "
        f"after {better.steps:,} steps"
    )
    return Settled(said, found, True, repaired) if above(better, worse, tests) else Open(said, found)


def name(line: Told) -> str:
    """A line in words."""
    if line.way == Way.NONE:
        return f"non-private {line.k}/{line.clusters}"
    return f"{line.unit}-level {line.way}, ε = {line.epsilon:g}, {line.k}/{line.clusters}"


def sentences(told: Sequence[Told], tests: int) -> list[Row]:
    """The section's sentences, then ours about equal true ε; ``tests`` photos measured each accuracy."""
    element, user = Unit.ELEMENT, Unit.USER
    printed = [line for line in told if line.way in (Way.PRINTED, Way.NONE)]
    worst = find(told, Way.PRINTED, user, 1.0)
    others = sorted((line for line in printed if line is not worst), key=lambda line: line.reached)
    rows = [
        compare(
            "User-level privacy with ε = 1 is substantially worse than any other method.",
            others[0] if others else None,
            worst,
            tests,
        )
    ]
    ks = sorted({line.k for line in told if line.way == Way.PRINTED and line.unit == element})
    diverse = find(told, Way.PRINTED, element, 3.0, ks[-1]) if ks else None
    rows.append(
        compare(
            "Element-level accuracy rises with the diversity of a user's images.",
            diverse,
            find(told, Way.PRINTED, element, 3.0, ks[0], diverse.clusters) if diverse and len(ks) > 1 else None,
            tests,
        )
    )
    fine = max((line.clusters for line in told), default=0)
    coarse = min((line for line in told if line.clusters < fine), key=lambda line: line.clusters, default=None)
    rows.append(
        compare(
            "Element-level accuracy rises with the number of clusters.",
            find(told, Way.PRINTED, element, 3.0, coarse.k, fine) if coarse else None,
            find(told, Way.PRINTED, element, 3.0, coarse.k, coarse.clusters) if coarse else None,
            tests,
        )
    )
    rows.append(axis(told))
    for epsilon in sorted({line.epsilon for line in told if math.isfinite(line.epsilon)}):
        pairs = find(told, Way.PAIRS, element, epsilon, ks[-1] if ks else 0)
        said = f"At the same true ε = {epsilon:g}, element level with pairs sampled beats user level."
        rows.append(compare(said, pairs, find(told, Way.TRUE, user, epsilon), tests, repaired=True))
        said = f"At the same true ε = {epsilon:g}, sampling pairs beats sampling users."
        users = find(told, Way.TRUE, element, epsilon, ks[-1] if ks else 0)
        rows.append(compare(said, pairs, users, tests, repaired=True))
    return rows


def axis(told: Sequence[Told]) -> Row:
    """Whether the legend's ε is the ε the printed element-level lines have. Accounting, so no run is too short."""
    said = "The legend's ε is the element-level ε of the run."
    lines = [line for line in told if line.way == Way.PRINTED and line.unit == Unit.ELEMENT]
    if not lines:
        return Open(said, "a line it needs was not run")
    broken = [line for line in lines if line.true_low > line.epsilon]
    worst = max(lines, key=lambda line: line.true_low / line.epsilon)
    found = (
        f"{len(broken)} of {len(lines)} printed element-level lines have a larger ε; "
        f"the legend says {worst.epsilon:g}, the run has at least {worst.true_low:.3g}"
    )
    return Settled(said, found, not broken)
