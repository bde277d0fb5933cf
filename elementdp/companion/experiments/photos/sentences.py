"""The sentences of Section 4.3 against lines that were run; what a run of this size does not decide stays open."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from elementdp.companion.experiments.photos.curves import Told, from_row
from elementdp.companion.experiments.photos.lines import Way
from elementdp.companion.experiments.recorded import FOLDER, Recorded, read
from elementdp.companion.experiments.settled import Settled
from elementdp.errors import ElementdpError, one_of
from elementdp.privacy import Unit
from elementdp.privacy.digits import rounded_down

Z_95 = 1.96
"""Two accuracies on the same number of test photos differ when they are this many standard errors apart."""


RUNS = {"photos": ("photos", "photos-few"), "cifar": ("cifar", "cifar-more", "cifar-rest")}
"""Recorded runs by section: the first, and others of the same size that add lines to it."""


def recorded_lines(section: str = "photos", folder: Path = FOLDER) -> tuple[list[Recorded], list[Told]]:
    """The recorded runs that are there, and all their lines together; a line that two runs have told counts once."""
    names = RUNS[one_of("section", section, RUNS)]
    runs = [read(name, folder) for name in names if (folder / f"{name}.json").is_file()]
    sizes = {tuple(run.provenance.parameters.get(name) for name in _SIZES) for run in runs}
    if len(sizes) > 1:
        raise ElementdpError(f"recorded runs of different sizes cannot be compared line by line: {sizes}")
    lines: dict[tuple[object, ...], Told] = {}
    for line in (from_row(row) for run in runs for row in run.rows("lines")):
        lines.setdefault((line.way, line.unit, line.epsilon, line.k, line.clusters, line.users, line.repetition), line)
    return runs, list(lines.values())


def fair_lines(section: str = "photos", folder: Path = FOLDER) -> list[Told]:
    """Lines of the section that were told at the rate that suited each best; none if they were not recorded."""
    path = folder / f"{one_of('section', section, RUNS)}-rates.json"
    return [from_row(row) for row in read(path.stem, folder).rows("lines")] if path.is_file() else []


_SIZES = ("photos", "tests", "backbone", "steps", "users", "q", "users_a_step")


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
    return chain(said, [better, worse], tests, repaired=repaired)


def chain(said: str, lines: Sequence[Told | None], tests: int, *, repaired: bool = False) -> Row:
    """Each line is above the next, all of them beyond chance."""
    ran = [line for line in lines if line is not None]
    if len(ran) < max(2, len(lines)):
        return Open(said, "a line it needs was not run")
    found = ", ".join(f"{name(line)} reaches {100 * line.reached:.1f} %" for line in ran)
    found += f" after {lengths(ran)}"
    settled = all(above(a, b, tests) for a, b in pairwise(ran))
    return Settled(said, found, True, repaired) if settled else Open(said, found)


def lengths(lines: Sequence[Told]) -> str:
    """How long lines are, for equal work: lines with rates of their own have different numbers of steps."""
    return " and ".join(f"{count:,}" for count in dict.fromkeys(line.steps for line in lines)) + " steps"


def name(line: Told) -> str:
    """A line in words."""
    if line.way == Way.NONE:
        return f"non-private {line.k}/{line.clusters}"
    return f"{line.unit}-level {line.way}, ε = {line.epsilon:g}, {line.k}/{line.clusters}"


def sentences(told: Sequence[Told], tests: int, fair: Sequence[Told] = ()) -> list[Row]:
    """The section's sentences, then ours about equal true ε; ``tests`` photos measured each accuracy.

    Ours compare units, so they go by ``fair`` lines, each at its own rate, at every ε that has them.
    """
    element, user = Unit.ELEMENT, Unit.USER
    shown = sorted((line for line in told if line.way in (Way.PRINTED, Way.NONE)), key=lambda line: line.reached)
    lowest = [line for line in shown if line.unit == user and line.epsilon == 1.0]
    others = [line for line in shown if line not in lowest]
    printed = [line for line in shown if line.unit == element and line.epsilon == 3.0]
    fine = max((line.clusters for line in printed), default=0)
    coarse = min((line.clusters for line in printed), default=0)
    diverse = sorted((line for line in printed if line.clusters == fine), key=lambda line: -line.k)
    both = sorted({line.k for line in printed if line.clusters == coarse} & {line.k for line in diverse})
    k = both[-1] if both and coarse < fine else 0
    rows = [
        compare(
            "User-level privacy with ε = 1 is substantially worse than any other method.",
            others[0] if others else None,
            lowest[-1] if lowest else None,
            tests,
        ),
        chain("Element-level accuracy rises with the diversity of a user's images.", diverse, tests),
        compare(
            "Element-level accuracy rises with the number of clusters.",
            find(told, Way.PRINTED, element, 3.0, k, fine) if k else None,
            find(told, Way.PRINTED, element, 3.0, k, coarse) if k else None,
            tests,
        ),
        axis(told),
    ]
    for epsilon in sorted({line.epsilon for line in told if math.isfinite(line.epsilon)}):
        lines = [line for line in fair if line.epsilon == epsilon] or told
        most = max((line.k for line in lines if line.way == Way.PAIRS and line.epsilon == epsilon), default=0)
        pairs = find(lines, Way.PAIRS, element, epsilon, most)
        same = (most, pairs.clusters) if pairs else (0, 0)
        whole, sampled = (find(lines, Way.TRUE, unit, epsilon, *same) for unit in (user, element))
        ours = f"At the same true ε = {epsilon:g}" + (
            ", all at one rate, " if lines is told else ", each at its own rate, "
        )
        rows += [
            compare(ours + "element level with pairs sampled beats user level.", pairs, whole, tests, repaired=True),
            compare(ours + "sampling pairs beats sampling users.", pairs, sampled, tests, repaired=True),
            compare(ours + "user level beats element level with users sampled.", whole, sampled, tests, repaired=True),
        ]
    return rows


def axis(told: Sequence[Told]) -> Row:
    """Whether the legend's ε is the ε the printed element-level lines have. Accounting, so no run is too short."""
    said = "The legend's ε is the element-level ε of the run."
    printed = [line for line in told if line.way == Way.PRINTED and line.unit == Unit.ELEMENT]
    lines = list({(line.epsilon, line.k, line.clusters, line.users): line for line in printed}.values())
    if not lines:
        return Open(said, "a line it needs was not run")
    broken = [line for line in lines if line.true_low > line.epsilon]
    worst = max(lines, key=lambda line: line.true_low / line.epsilon)
    found = (
        f"{len(broken)} of {len(lines)} printed element-level lines have a larger ε; "
        f"the legend says {worst.epsilon:g}, the run has at least {rounded_down(worst.true_low)}"
    )
    return Settled(said, found, not broken)
