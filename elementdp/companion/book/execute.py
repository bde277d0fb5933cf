"""The one way to execute a notebook: a worker process, watched while it runs."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from elementdp.companion.book.notebooks import Notebook
from elementdp.companion.book.project import BookError, Project

Progress = Callable[[int, int], None]
"""Called with the number of cells done and the number there are."""


class CellError(BookError):
    """A cell failed: says which notebook, which cell and which error, and where the partial notebook is."""

    def __init__(self, notebook: str, failed: Mapping[str, Any], partial: Path) -> None:
        first = next((line for line in str(failed["source"]).splitlines() if line.strip()), "")
        super().__init__(
            f"notebook {notebook}, cell {failed['cell']} ({first!r}): {failed['error']}\n"
            f"the notebook up to there: {partial}"
        )


@dataclass
class Workers:
    """The worker processes under way, so that all of them can be stopped together."""

    project: Project
    jobs: int = 1
    _running: set[subprocess.Popen[str]] = field(default_factory=set)

    def execute(
        self, notebook: Notebook, parameters: Mapping[str, Any], progress: Progress = lambda done, cells: None
    ) -> tuple[NotebookNode, float]:
        """Run a notebook with these parameters; the executed notebook and the seconds it took."""
        environment = dict(os.environ, PYDEVD_DISABLE_FILE_VALIDATION="1", PYTHONHASHSEED="0")
        if self.jobs > 1:  # two kernels with two BLAS threads each are slower than two with one
            environment.setdefault("OMP_NUM_THREADS", "1")
        failures = self.project.build / "failed"
        failures.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "out.ipynb"
            source = self.project.source(notebook.page)
            worker = subprocess.Popen(
                [sys.executable, "-m", "elementdp.companion.book.worker", str(source), str(output)],
                cwd=self.project.root, env=environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            self._running.add(worker)
            try:
                last = self._follow(worker, dict(parameters), progress)
            finally:
                self._running.discard(worker)
            if "seconds" in last:
                return nbformat.read(output, as_version=4), float(last["seconds"])
            partial = failures / f"{notebook.name}.ipynb"
            if output.is_file():
                shutil.copyfile(output, partial)
            if "failed" in last:
                raise CellError(notebook.name, last["failed"], partial)
            raise BookError(f"notebook {notebook.name}: its process ended early: {last.get('stderr', '')}".rstrip())

    @staticmethod
    def _follow(worker: "subprocess.Popen[str]", parameters: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Feed the parameters, pass progress on, return the worker's last word (or what it left on stderr)."""
        assert worker.stdin and worker.stdout and worker.stderr
        with worker, ThreadPoolExecutor(1) as drain:
            stderr = drain.submit(worker.stderr.read)
            worker.stdin.write(json.dumps(parameters))
            worker.stdin.close()
            last: dict[str, Any] = {}
            for line in worker.stdout:
                message = json.loads(line)
                if "cell" in message:
                    progress(message["cell"], message["cells"])
                else:
                    last = message
            worker.wait()
            return last or {"stderr": stderr.result()[-2000:]}

    def stop(self) -> None:
        """End every worker; their kernels notice and end too."""
        for worker in list(self._running):
            worker.terminate()

    def all(self, tasks: list[Callable[[], None]]) -> None:
        """Do all tasks, ``jobs`` at a time; the first failure stops the rest and is raised."""
        pool = ThreadPoolExecutor(self.jobs)
        try:
            futures = [pool.submit(task) for task in tasks]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self.stop()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
