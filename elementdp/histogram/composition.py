"""What several releases of one table promise together, and a budget that they share.

The stages of all releases are Gaussian, so their μ² add up (also if a later release was chosen after seeing an earlier
one). Discovery's δ add up beside them, and so do the shares of ε and δ that each release keeps back for the
discreteness of its noise: 2⁻²⁰ of each, which :meth:`elementdp.histogram.budget.Ledger.check` holds it to.
"""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elementdp.errors import ArgumentError, ElementdpError, NoGuaranteeError, positive, probability
from elementdp.histogram.budget import MARGIN, MOST_WHOLE_NUMBERS, Budget, Ledger
from elementdp.histogram.noise import DRAW_DELTA
from elementdp.privacy.curves import gaussian_epsilon
from elementdp.privacy.digits import rounded_up

_UNNAMED = ("<lambda>", "partition", "labels", "key", "nearest centroid")
"""What a partition is called that was given no name: two of that name may be different."""


@dataclass(frozen=True)
class ReleaseCost:
    """What one release spent: its (ε, δ), the Gaussian μ of all its stages, and the δ of its discovery."""

    epsilon: float
    delta: float
    mu: float
    threshold_delta: float
    unit: str
    element: str
    relation: str
    user_column: str

    @classmethod
    def of(cls, promise: dict[str, Any]) -> "ReleaseCost":
        """The cost that a guarantee file states; a seeded release has none."""
        if promise.get("epsilon") is None:
            raise NoGuaranteeError("a seeded release promises nothing, so it does not combine with others")
        if "user_column" not in promise:
            raise NoGuaranteeError("a guarantee that does not name its user column does not combine with others")
        stages = promise["spent"]
        return cls(
            promise["epsilon"],
            promise["delta"],
            math.sqrt(sum(one["mu"] ** 2 for one in stages)),
            sum(one["delta"] for one in stages),
            promise["unit"],
            promise["element"],
            promise["relation"],
            promise["user_column"],
        )

    @classmethod
    def planned(
        cls, budget: Budget, words: tuple[str, str, str, str], *, discovers: bool, chooses_radius: bool
    ) -> "ReleaseCost":
        """The cost of a release before it is made; ``words`` are its unit, element, relation and user column."""
        ledger = Ledger(budget, discovers=discovers, chooses_radius=chooses_radius)
        return cls(budget.epsilon, budget.delta, ledger.mu, ledger.threshold_delta, *words)


def composed_epsilon(costs: Sequence[ReleaseCost], delta: float | None = None) -> tuple[float, float]:
    """The (ε, δ) of all releases together; δ is the sum of theirs unless given.

    Raises:
        NoGuaranteeError: they protect different things, so that no one statement covers them, or δ is too small.
    """
    if not costs:
        raise ArgumentError("guarantees", costs, "at least one")
    _require_alike(costs)
    total = sum(cost.delta for cost in costs) if delta is None else probability("delta", delta, low_open=True)
    rounding = MARGIN * sum(cost.epsilon for cost in costs)
    mu = math.sqrt(sum(cost.mu**2 for cost in costs))
    epsilon = 0.0
    for _ in range(50):  # the distance of the drawn noise from its law costs δ in proportion to e^ε
        drawn = (1 + math.exp(min(epsilon, 700.0))) * MOST_WHOLE_NUMBERS * DRAW_DELTA * len(costs)
        left = math.exp(-rounding) * (total - sum(cost.threshold_delta for cost in costs)) - drawn
        if left <= 0:
            raise NoGuaranteeError(f"delta {total:g} is too small for these releases together")
        found_epsilon = gaussian_epsilon(min(left, 1 - 1e-12), mu) + rounding
        if found_epsilon <= epsilon:
            break
        epsilon = found_epsilon
    if len(costs) == 1 and costs[0].delta <= total:  # its own promise; the curve may lie a hair above
        epsilon = min(epsilon, costs[0].epsilon)
    return epsilon, total


def _require_alike(costs: Sequence[ReleaseCost]) -> None:
    """Refuse releases that protect different things, or of which the words do not tell."""
    for name in ("unit", "element", "relation", "user_column"):
        found = sorted({getattr(cost, name) for cost in costs})
        if len(found) > 1:
            words = name.replace("_", " ")
            raise NoGuaranteeError(f"the releases differ in their {words} ({'; '.join(found)}): they do not combine")
    element = costs[0].element
    if element.endswith(tuple(f" by {name}" for name in _UNNAMED)):
        raise NoGuaranteeError(
            f"the element ({element}) is a function without a name, so nobody can tell whether two releases have the "
            "same: they do not combine; give the Partition a name, as in Partition.from_key(function, name=...)"
        )


class BudgetFile:
    """An append-only file of releases that share a budget.

    Its first line is ``{"epsilon": …, "delta": …}``, what all releases may cost together; each release adds a line
    before it reads its table. So a release that is killed has spent its share, and none is forgotten.

    A line is whole on the disk before its release goes on, and the file is locked while it is written. So what stands
    behind the last end of a line is either a whole entry (an editor may have taken its end away), which counts, or the
    beginning of one whose writer died before it read anything, which is dropped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def spend(self, cost: ReleaseCost) -> tuple[float, float]:
        """Enter a release, or refuse it; returns the ε of all of them and the ε allowed, at the budget's δ."""
        import fcntl

        try:
            stream = self.path.open("r+b")
        except OSError as error:
            raise ArgumentError(
                "budget", str(self.path), 'a file whose first line is {"epsilon": …, "delta": …}'
            ) from error
        with stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            kept = _whole_entries(stream.read())
            limit, costs = self._read(kept)
            epsilon, _ = composed_epsilon([*costs, cost], limit["delta"])
            if epsilon > limit["epsilon"]:
                raise NoGuaranteeError(
                    f"the budget {self.path} allows epsilon {limit['epsilon']:g} in all, and with this release it "
                    f"would be {rounded_up(epsilon, 8)}; nothing was spent"
                )
            stream.seek(len(kept))
            stream.truncate()
            end = b"" if kept.endswith(b"\n") else b"\n"
            stream.write(end + json.dumps(vars(cost)).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        return epsilon, limit["epsilon"]

    def _read(self, content: bytes) -> tuple[dict[str, float], list[ReleaseCost]]:
        try:
            first, *lines = [json.loads(line) for line in content.splitlines()]
            limit = {name: float(first[name]) for name in ("epsilon", "delta")}
            costs = [ReleaseCost(**line) for line in lines]
        except (ValueError, KeyError, TypeError) as error:
            raise ElementdpError(f"{self.path} is no budget, or a line of it is broken ({error})") from error
        positive("epsilon", limit["epsilon"])
        probability("delta", limit["delta"], low_open=True, high_open=True)
        return limit, costs


def _whole_entries(content: bytes) -> bytes:
    """The content of a budget without the beginning of an entry that was never finished."""
    rest = content.rpartition(b"\n")[2]
    try:
        json.loads(rest)
    except ValueError:
        return content[: len(content) - len(rest)]
    return content
