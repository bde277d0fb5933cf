"""The recorded experiments with and without coins, at the same true ε, and the advice that follows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.bars import Z_95
from elementdp.companion.experiments.images import BANDS, Accounting, RunResult, results_of
from elementdp.companion.experiments.logistic import LogisticMethod
from elementdp.companion.experiments.recorded import FOLDER, Recorded, read
from elementdp.companion.style import LOOKS
from elementdp.companion.theory.exhibits.without_coins import (
    ALLOCATED,
    CORRELATED,
    LOOKS_OF_WAYS,
    ORDER,
    PAIRS,
    USERS,
    Work,
    marks,
)
from elementdp.privacy import Unit, paper_delta

EPSILON = 3.0
USER_LEVEL = "user level"
_SHORT = {USERS: "users", ORDER: "order", CORRELATED: "correlated", ALLOCATED: "allocated", PAIRS: "pairs"}
"""The ways in the head of a table."""
WAYS = (*LOOKS_OF_WAYS, USER_LEVEL)
"""Element level in five ways, and user level beside them."""

_LOGISTIC = {
    LogisticMethod.ELEMENT_USERS: USERS,
    LogisticMethod.ELEMENT_ORDER: ORDER,
    LogisticMethod.ELEMENT_CORRELATED: CORRELATED,
    LogisticMethod.ELEMENT_ALLOCATED: ALLOCATED,
    LogisticMethod.ELEMENT_REPAIRED: PAIRS,
    LogisticMethod.USER_TRUE: USER_LEVEL,
}


@dataclass(frozen=True)
class WayResult:
    """How well one way did in one setting: accuracy in percent, or error."""

    setting: str
    way: str
    value: float
    standard_error: float
    tuned: str  # where the search for rate and radius stopped


@dataclass(frozen=True)
class WayDifference:
    """One way against another in one setting: a difference of accuracies, or a ratio of errors."""

    value: float
    bar: float
    ratio: bool

    @classmethod
    def between(cls, one: WayResult, other: WayResult, *, ratio: bool) -> "WayDifference":
        """The first against the second, with its 95 % bar; the two were run on their own."""
        if not ratio:
            return cls(
                one.value - other.value, Z_95 * math.hypot(one.standard_error, other.standard_error), ratio=False
            )
        relative = math.hypot(one.standard_error / one.value, other.standard_error / other.value)
        return cls(one.value / other.value, Z_95 * relative * one.value / other.value, ratio=True)

    @property
    def ahead(self) -> int:
        """1 if the first way is better beyond the bar, −1 if it is worse, else 0."""
        gain = 1 - self.value if self.ratio else self.value
        return 0 if abs(gain) <= self.bar else int(math.copysign(1, gain))

    def __str__(self) -> str:
        star = "*" if self.ahead else ""
        return f"{self.value:.2f} ± {self.bar:.2f}{star}" if self.ratio else f"{self.value:+.1f} ± {self.bar:.1f}{star}"


def _there(names: Sequence[str]) -> list[Recorded]:
    return [read(name) for name in names if (FOLDER / f"{name}.json").is_file()]


def _way(result: RunResult) -> str:
    if result.unit == Unit.USER:
        return USER_LEVEL
    return USERS if result.accounting == Accounting.TRUE else result.accounting


def _images(name: str, title: str) -> list[WayResult]:
    """Every way of one image experiment, each at the rate that suits it best."""
    groups: dict[tuple[str, str], list[RunResult]] = {}
    tests = 1
    for run in _there([f"{name}-rates", f"{name}-without-coins"]):
        tests = run.provenance.parameters["tests"] // 2
        for result in results_of(run):
            if result.epsilon == EPSILON:
                groups.setdefault((f"{title}, {result.k}/{result.clusters}", _way(result)), []).append(result)
    found = []
    for place, runs in groups.items():
        seen = [run.reached for run in runs]
        at = _searched(runs[0].q, runs[0].rho)
        found.append(WayResult(*place, 100 * float(np.mean(seen)), 100 * _error(seen, tests), at))
    return found


def _searched(q: float, rho: float) -> str:
    return f"q = {q:.3g} and ρ = {rho:g}"


def _error(seen: Sequence[float], tests: int) -> float:
    """Over repetitions where there are any, else over test photos."""
    if len(seen) > 1:
        return float(np.std(seen, ddof=1)) / math.sqrt(len(seen))
    return math.sqrt(seen[0] * (1 - seen[0]) / tests)


def _simulated() -> list[WayResult]:
    """Every way of logistic regression, q, α₀ and ρ tuned for each."""
    points = [row for run in _there(["logistic", "logistic-without-coins"]) for row in run.rows("points")]
    return [
        WayResult(
            f"logistic, k = {row['k']}", way, row["error"], row["standard_error"], _searched(row["q"], row["clip"])
        )
        for row in points
        for method, way in _LOGISTIC.items()
        if (row["method"], row["epsilon"], row["estimate"]) == (str(method), EPSILON, "last")
    ]


class CoinsPage:
    """What was recorded at a true ε = 3, in every way."""

    @cached_property
    def accuracies(self) -> list[WayResult]:
        """Photos and CIFAR-10: larger is better."""
        return [*_images("photos", "photos"), *_images("cifar", "CIFAR-10")]

    @cached_property
    def errors(self) -> list[WayResult]:
        """Logistic regression: smaller is better."""
        return _simulated()

    def _value(self, outcomes: Sequence[WayResult], setting: str, way: str) -> WayResult | None:
        return next((one for one in outcomes if (one.setting, one.way) == (setting, way)), None)

    def differences(self, one: str, other: str) -> dict[str, WayDifference]:
        """How far the first way is ahead of the second, in every setting that has both."""
        found = {}
        for outcomes in (self.accuracies, self.errors):
            for setting in dict.fromkeys(outcome.setting for outcome in outcomes):
                mine, theirs = (self._value(outcomes, setting, way) for way in (one, other))
                if mine is not None and theirs is not None:
                    found[setting] = WayDifference.between(mine, theirs, ratio=outcomes is self.errors)
        return found

    def compared(self, one: str, other: str) -> str:
        """In how many settings the first way is clearly better than the second, and clearly worse, in words."""
        found = self.differences(one, other).values()
        better, worse = (sum(difference.ahead == sign for difference in found) for sign in (1, -1))
        return f"clearly better in {better} and clearly worse in {worse} of {len(found)} settings"

    def comparisons(self) -> Exhibit:
        """What each way gains over another, setting by setting."""
        pairs = ((ALLOCATED, PAIRS), (CORRELATED, PAIRS), (CORRELATED, ORDER), (ORDER, USERS), (CORRELATED, USER_LEVEL))
        found = {f"{_SHORT[one]} vs {_SHORT.get(other, other)}": self.differences(one, other) for one, other in pairs}
        settings = list(dict.fromkeys(one.setting for one in (*self.accuracies, *self.errors)))
        return Exhibit(
            name="tab-coins-compared",
            caption="Differences between two ways at a true ε = "
            f"{EPSILON:g}, with 95 % bars: points of accuracy for photos and CIFAR-10 (more is better), and the factor "
            "between the errors for logistic regression (less than 1 is better). Pairs and users are sampled; "
            "correlated is the fixed order with correlated noise. A star marks what is beyond the bars, a dash what "
            "was not recorded.",
            header=("setting", *found),
            rows=[(name, *(str(each.get(name, "–")) for each in found.values())) for name in settings],
        )

    @property
    def places(self) -> str:
        """Where the searches stopped in the settings in which allocated and sampled pairs differ beyond the bars."""
        clear = [name for name, found in self.differences(ALLOCATED, PAIRS).items() if found.ahead]
        every = (*self.accuracies, *self.errors)
        told = []
        for name in clear:
            allocated, sampled = (
                next(one for one in every if (one.setting, one.way) == (name, way)) for way in (ALLOCATED, PAIRS)
            )
            told.append(f"{name}: {allocated.tuned} for allocated, {sampled.tuned} for sampled pairs")
        return "; ".join(told) or "no such difference is there"

    @property
    def missing(self) -> str:
        """Which ways were not recorded where, in a sentence."""
        found = [
            f"{way} ({setting})"
            for outcomes in (self.accuracies, self.errors)
            for setting in dict.fromkeys(one.setting for one in outcomes)
            for way in WAYS
            if self._value(outcomes, setting, way) is None
        ]
        return f"Not recorded: {'; '.join(found)}." if found else "Every way was run in every setting."

    def recorded(self) -> Exhibit:
        """All ways side by side."""
        settings = [dict.fromkeys(one.setting for one in part) for part in (self.accuracies, self.errors)]
        rows = []
        for part, outcomes in zip(settings, (self.accuracies, self.errors), strict=True):
            for setting in part:
                found = [self._value(outcomes, setting, way) for way in WAYS]
                rows.append((setting, *(_told(one, outcomes is self.errors) for one in found)))
        return Exhibit(
            name="fig-coins-recorded",
            caption="At the same true ε, a fixed order with correlated noise against sampled "
            f"pairs is {self.compared(CORRELATED, PAIRS)}. ε = {EPSILON:g} for one element (user level: one "
            "user), data replaced by any other, δ = n^(−1.1), with 95 % bars. Photos: top-5 accuracy (%), CIFAR-10: "
            "top-1 (%), logistic regression: error; rate, radius and step size tuned for each way. The image runs are "
            "shorter than the paper's.",
            figure=self._drawn(settings),
            alt="Dots with bars: " + "; ".join(f"{row[0]}: " + ", ".join(map(_pair, WAYS, row[1:])) for row in rows),
            header=("setting", *WAYS),
            rows=rows,
            numbers=self.said().numbers,
        )

    def said(self) -> Exhibit:
        """The comparisons in words; nothing is drawn."""
        return Exhibit(
            numbers={
                "coins-allocated-pairs": self.compared(ALLOCATED, PAIRS),
                "coins-correlated-pairs": self.compared(CORRELATED, PAIRS),
                "coins-correlated-order": self.compared(CORRELATED, ORDER),
                "coins-order-sampled": self.compared(ORDER, USERS),
                "coins-correlated-user": self.compared(CORRELATED, USER_LEVEL),
                "coins-missing": self.missing,
                "coins-places": self.places,
            }
        )

    def _drawn(self, settings: Sequence[dict[str, None]]) -> Figure:
        heights = [max(1, len(part)) for part in settings]
        drawing, axes = plt.subplots(
            2, 1, figsize=(6.0, 2.2 + 0.9 * sum(heights)), height_ratios=heights, layout="constrained"
        )
        for axis, part, outcomes in zip(axes, settings, (self.accuracies, self.errors), strict=True):
            names = list(part)
            for shift, way in enumerate(WAYS):
                user = {"color": LOOKS["user"].colour, "marker": LOOKS["user"].marker}
                seen = [one for one in outcomes if one.way == way]
                axis.errorbar(
                    [one.value for one in seen],
                    [names.index(one.setting) + 0.13 * (shift - 2.5) for one in seen],
                    xerr=[Z_95 * one.standard_error for one in seen],
                    ls="none",
                    label=way,
                    **(user if way == USER_LEVEL else marks(way, ring=6)),
                    capsize=2,
                )
            axis.set_yticks(range(len(names)), names)
            axis.set_ylim(len(names) - 0.5, -0.5)
        axes[0].set(xlabel="accuracy (%)")
        axes[1].set(xlabel="error", xscale="log")
        axes[1].set_xticks([0.07, 0.08, 0.1, 0.12, 0.15], ["0.07", "0.08", "0.1", "0.12", "0.15"])
        axes[1].minorticks_off()
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
        return drawing


NEEDS = {
    USERS: "a secret coin a user and step",
    ORDER: "nothing but an order that ignores the data",
    CORRELATED: f"the same, and memory for {BANDS - 1} models",
    ALLOCATED: "a secret coin a pair and epoch",
    PAIRS: "a secret coin a pair and step",
}


def noise_by_way(users: int, q: float, steps: int, epsilon: float = EPSILON) -> Exhibit:
    """The noise of each way at one true ε, for users with any number of elements, and what the way needs."""
    batches = round(1 / q)
    work = Work(max(1, round(q * steps)), batches, paper_delta(users))
    noise = {way: work.effective_noise(way, epsilon, BANDS) for way in LOOKS_OF_WAYS}
    return Exhibit(
        name="tab-closing-coins",
        caption=f"σ of independent noise that disturbs sums of all steps so far as much, at ε = {epsilon:g} for one "
        f"element replaced, users with any number of elements; n = {users:,}, δ = n^(−1.1), {work.epochs} passes over "
        f"the data in steps of 1/{batches}; correlated over {BANDS} steps.",
        header=("way", "σ", "over that of pairs sampled", "needs"),
        rows=[(way, f"{noise[way]:.3g}", f"{noise[way] / noise[PAIRS]:.3g}", NEEDS[way]) for way in LOOKS_OF_WAYS],
        numbers={
            "closing-allocated": f"{noise[ALLOCATED] / noise[PAIRS]:.2f}",
            "closing-correlated": f"{noise[CORRELATED] / noise[PAIRS]:.1f}",
            "closing-order": f"{noise[ORDER] / noise[PAIRS]:.1f}",
            "closing-users": f"{noise[USERS] / noise[PAIRS]:.1f}",
        },
    )


def _told(one: WayResult | None, error: bool) -> str:
    if one is None:
        return "not recorded"
    bar = Z_95 * one.standard_error
    return f"{one.value:.3g} ± {bar:.1g}" if error else f"{one.value:.1f} ± {bar:.1f}"


def _pair(way: str, told: object) -> str:
    return f"{way} {told}"
