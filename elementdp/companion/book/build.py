"""``elementdp book build``: execute what changed, stage, build strictly, and never call a partial book done."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from nbformat import NotebookNode

from elementdp.companion.book.console import Board
from elementdp.companion.book.execute import Workers
from elementdp.companion.book.fill import Filling
from elementdp.companion.book.notebooks import Notebook, profile_values, read_all
from elementdp.companion.book.project import BookError, Project, keep
from elementdp.companion.book.provenance import PageProvenance
from elementdp.companion.book.run import Outcome, Runner
from elementdp.companion.book.stage import rerun_line, signed, stage, with_outputs, write_sources
from elementdp.companion.provenance import checkout, versions
from elementdp.files import sha256_file


@dataclass(frozen=True)
class Built:
    """A finished book."""

    index: Path
    outcomes: list[Outcome]
    rebuilt: bool


def build(
    project: Project, profile: str = "quick", only: str | None = None, jobs: int = 1, board: Board | None = None
) -> Built:
    """Build the whole book; with ``only``, no other notebook is run, and pages without a run make the build fail."""
    board = board or Board()
    notebooks = read_all(project)
    values = profile_values(project, profile)
    chosen = project.page(only) if only else None
    runner = Runner(project, Workers(project, jobs), profile)
    outcomes = _execute(runner, notebooks, values, chosen, board)
    missing = [book.name for book in notebooks if book.code and book.page not in outcomes]
    pages = {book.page: (book, _page(project, book, outcomes.get(book.page), profile)) for book in notebooks}
    contents = {page: content for page, (_, content) in pages.items()}
    Filling(contents, project.chapters, strict=not missing).fill()
    if missing:
        preview = project.build / "preview"
        stage(project, pages, preview / "stage")
        _jupyter_book(project, pages, preview, strict=False)
        raise BookError(
            f"a partial book: {', '.join(missing)} have not been run with profile {profile}. "
            f"A preview without them: {preview / 'html' / 'index.html'}; the whole book: elementdp book build"
        )
    rebuilt = _rebuild(project, pages, board)
    return Built(project.build / "html" / "index.html", list(outcomes.values()), rebuilt)


def _execute(
    runner: Runner, notebooks: list[Notebook], values: Mapping[str, Any], chosen: str | None, board: Board
) -> dict[str, Outcome]:
    """Run what has code and changed; with ``chosen``, only that page, the others from the cache if they are there."""
    outcomes: dict[str, Outcome] = {}

    def task(notebook: Notebook) -> None:
        parameters = values.get(notebook.name, {})
        if chosen not in (None, notebook.page):
            found, _ = runner.cached(notebook, parameters)
            if found:
                outcomes[notebook.page] = Outcome(notebook, found, cached=True)
            return
        with board.notebook(notebook.name) as progress:
            outcomes[notebook.page] = runner.run(notebook, parameters, progress)
        board.done(outcomes[notebook.page])

    with board:
        runner.workers.all([lambda book=book: task(book) for book in notebooks if book.code])  # type: ignore[misc]
    return {book.page: outcomes[book.page] for book in notebooks if book.page in outcomes}


def _page(project: Project, notebook: Notebook, outcome: Outcome | None, profile: str) -> NotebookNode:
    """The page to stage: outputs and provenance of its run, or its prose alone where it has no code."""
    if outcome:
        provenance = outcome.executed.provenance.as_html()
        return signed(with_outputs(notebook, outcome.executed), rerun_line(notebook), provenance)
    prose = PageProvenance(checkout(project.root), profile, {}, [], versions(), None)
    line = prose.as_html() if not notebook.code else '<p class="edp-provenance">Not run in this preview.</p>'
    return signed(notebook.content, line)


def _rebuild(project: Project, pages: Mapping[str, tuple[Notebook, NotebookNode]], board: Board) -> bool:
    """Build the HTML unless the very same pages were built before and are all still there, unaltered."""
    folder, html = project.build / "stage", project.build / "html"
    stage(project, pages, folder)
    sphinx = [
        _hash_of(f"{module}.py") for module in ("bibliography", "docstrings", "excerpts", "sphinx_ext", "symbols")
    ]
    inputs = _tree(folder) | {"versions": json.dumps(versions()), "sphinx": " ".join(sphinx)}
    manifest = project.build / "html.json"
    if manifest.is_file():
        try:
            last = json.loads(manifest.read_text())
        except ValueError:
            last = {}
        if last.get("inputs") == inputs and html.is_dir() and last.get("outputs") == _tree(html):
            board.say("pages unchanged")
            return False
    _jupyter_book(project, pages, project.build, strict=True)
    keep(manifest, json.dumps({"inputs": inputs, "outputs": _tree(html)}))
    return True


def _hash_of(module: str) -> str:
    return sha256_file(Path(__file__).parent / module)


def _tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with its hash."""
    return {
        str(path.relative_to(folder)): sha256_file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "_build" not in path.relative_to(folder).parts
    }


def _jupyter_book(
    project: Project, pages: Mapping[str, tuple[Notebook, NotebookNode]], target: Path, *, strict: bool
) -> None:
    """Build the pages staged in ``target/stage`` into ``target/html``, replaced only by a book that is complete."""
    folder = target / "stage"
    command = [
        sys.executable,
        "-c",
        "from jupyter_book.cli.main import main; main()",
        "build",
        str(folder),
        "--all",
        "--quiet",
    ]
    command += ["-W", "-n", "--keep-going"] if strict else []
    done = subprocess.run(
        command, text=True, capture_output=True, check=False, env=dict(os.environ, PYTHONWARNINGS="ignore")
    )
    fresh = folder / "_build" / "html"
    if done.returncode != 0:
        raise BookError(f"Jupyter Book refused the pages:\n{(done.stdout + done.stderr).strip()}")
    absent = [page for page in pages if not (fresh / f"{page}.html").is_file()]
    if absent or not (fresh / "index.html").is_file():
        raise BookError(f"Jupyter Book left pages out: {', '.join(absent) or 'index.html'}")
    config = yaml.safe_load((project.root / "_config.yml").read_text())
    write_sources(project, {page: book for page, (book, _) in pages.items()}, fresh, config["repository"]["url"])
    final = target / "html"
    shutil.rmtree(final, ignore_errors=True)
    shutil.move(fresh, final)
