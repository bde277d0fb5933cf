"""What a build shows while it runs: live on a terminal, plain lines elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from elementdp.companion.book.execute import Progress as CellProgress
from elementdp.companion.book.run import Outcome


class Board:
    """Progress of several notebooks at once."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=self._console, transient=True)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    @contextmanager
    def notebook(self, name: str) -> Iterator[CellProgress]:
        """A bar for one notebook; a line when it starts, for logs."""
        task = self._progress.add_task(name, total=None)
        if not self._console.is_terminal:
            self.say(f"{name}: started")

        def progress(done: int, cells: int) -> None:
            self._progress.update(task, completed=done, total=cells)

        try:
            yield progress
        finally:
            self._progress.remove_task(task)

    def done(self, outcome: Outcome) -> None:
        """One notebook is finished."""
        if outcome.damaged:
            self.say(f"{outcome.notebook.name}: its cached run was damaged (hash mismatch) and was redone")
        seconds = outcome.executed.provenance.seconds or 0.0
        self.say(f"{outcome.notebook.name}: " + ("cached" if outcome.cached else f"ran in {seconds:.1f} s"))

    def say(self, text: str) -> None:
        """A line that stays."""
        self._console.print(text, markup=False)


def summary(outcomes: list[Outcome]) -> Table:
    """The table a build ends with."""
    table = Table("notebook", "run", "seconds")
    for outcome in outcomes:
        seconds = outcome.executed.provenance.seconds or 0.0
        table.add_row(outcome.notebook.name, "cached" if outcome.cached else "run", f"{seconds:.1f}")
    return table
