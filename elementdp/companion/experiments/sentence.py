"""A sentence about an experiment, what we found, and whether it is so."""

from collections.abc import Sequence
from dataclasses import dataclass

from elementdp.companion.exhibit import Folded


@dataclass(frozen=True)
class Sentence:
    """One row of a "paper said, we found" table; ``repaired`` marks our own sentence instead of the paper's.

    ``found`` is the one number that decides, with its spread; ``more`` is what else it rests on.

    ``holds`` is None where the run does not decide: too close, a curve missing, or the other way round in a far
    shorter run than the paper's.
    """

    said: str
    found: str
    holds: bool | None
    repaired: bool = False
    more: str = ""

    @property
    def verdict(self) -> str:
        """The row's last column."""
        return "undecided" if self.holds is None else "yes" if self.holds else "no"

    @property
    def evidence(self) -> str | Folded:
        """The number that decides, and behind a fold what else there is to know."""
        return Folded(self.found, self.more) if self.more else self.found


def tally(sentences: Sequence[Sentence]) -> str:
    """How many of the paper's sentences are so, for a caption."""
    papers = [one.verdict for one in sentences if not one.repaired]
    counts = ", ".join(f"{papers.count(word)} {word}" for word in ("yes", "no", "undecided"))
    return f"Are the paper's {len(papers)} sentences so? {counts}."


def sentence_row(one: Sentence, *verdicts: str) -> Sequence[object]:
    """A row of a table of sentences, with the verdicts of other runs after its own."""
    return ("we" if one.repaired else "the paper", one.said, one.verdict, *verdicts, one.evidence)
