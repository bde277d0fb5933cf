"""Executes one notebook in a process of its own; speaks JSON lines on standard output while it runs.

``python -m elementdp.companion.book.worker NOTEBOOK OUTPUT`` with the parameters as JSON on standard input.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import jupytext
import papermill
from nbclient.exceptions import DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

_STARTS = 4


def _say(**message: object) -> None:
    print(json.dumps(message), flush=True)


class _Reporting(NBClientEngine):  # type: ignore[misc]
    """papermill's own engine, telling after each cell how far it is."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **kwargs: Any) -> Any:
        complete, total = nb_man.cell_complete, len(nb_man.nb.cells)

        def report(cell: Any, cell_index: int | None = None, **rest: Any) -> Any:
            _say(cell=(cell_index or 0) + 1, cells=total)
            return complete(cell, cell_index, **rest)

        nb_man.cell_complete = report
        return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)


def _execute(notebook: Any, output: str, parameters: dict[str, Any]) -> None:
    """Run the notebook; a kernel that does not come up is started again.

    Kernels choose free ports before they take them, so two that start at once can choose the same, and one ends. No
    cell has run by then. A kernel that ends later is not started again.
    """
    for left in reversed(range(_STARTS)):
        try:
            papermill.execute_notebook(
                notebook, output, parameters=parameters, engine_name="reporting", kernel_name="python3",
                progress_bar=False,
            )  # fmt: skip
            return
        except RuntimeError as error:
            if isinstance(error, DeadKernelError) or not left:
                raise


def main(source: str, output: str) -> int:
    """Run the notebook; 0 when every cell ran, 1 when one failed (the partial notebook is in ``output``)."""
    papermill_engines.register("reporting", _Reporting)
    notebook = jupytext.read(Path(source))
    parameters = json.load(sys.stdin)
    start = time.perf_counter()
    try:
        _execute(notebook, output, parameters)
    except PapermillExecutionError as error:
        _say(failed={"cell": error.cell_index, "source": error.source, "error": f"{error.ename}: {error.evalue}"})
        return 1
    _say(seconds=time.perf_counter() - start)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
