"""From executed notebooks to the folder Jupyter Book reads."""

import html
import shlex
import shutil
from collections.abc import Mapping
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from elementdp.companion.book.cache import Executed
from elementdp.companion.book.notebooks import Notebook
from elementdp.companion.book.project import BookError, Project
from elementdp.companion.report.records import RESULT_MIME, SOURCE_MIME

MATHJAX = "tex-svg-full.js"
"""One file with every TeX extension and its glyphs as paths: no font to fetch, so it works from ``file://``."""


def with_outputs(notebook: Notebook, executed: Executed) -> NotebookNode:
    """Today's prose with the outputs of the run: code cells are matched in order, the injected cell comes along."""
    page = deepcopy(notebook.content)
    ran = [cell for cell in executed.notebook.cells if cell.cell_type == "code"]
    injected = [cell for cell in ran if "injected-parameters" in cell.metadata.get("tags", [])]
    outputs = iter(cell for cell in ran if cell not in injected)
    cells: list[NotebookNode] = []
    for cell in page.cells:
        cells.append(cell)
        if cell.cell_type != "code":
            continue
        source = next(outputs)
        if source.source != cell.source:
            raise BookError(f"notebook {notebook.name}: the executed code is not the code of the page")
        cell.outputs = [output for output in source.outputs if not _is_record(output)]
        cell.execution_count = source.execution_count
        cell.metadata["mystnb"] = {
            f"code_prompt_{word}": f"{word.capitalize()} {_what(cell)}" for word in ("show", "hide")
        }
        if "parameters" in cell.metadata.get("tags", []):
            for values in injected:  # the foot of the page says them
                values.metadata["tags"] = [*values.metadata.get("tags", []), "remove-input"]
            cells += injected
    page.cells = cells
    return page


def _what(cell: NotebookNode) -> str:
    """What a reader finds behind the fold of a cell."""
    if "parameters" in cell.metadata.get("tags", []):
        return "the parameters of this page"
    if "hide-output" in cell.metadata.get("tags", []):
        return "the {type}"  # two folds: the source, and the outputs
    return (
        "the imports" if cell.source.startswith(("import ", "from ")) and "use_style()" in cell.source else "the code"
    )


def _is_record(output: NotebookNode) -> bool:
    return bool({RESULT_MIME, SOURCE_MIME} & set(output.get("data", {})))


def signed(content: NotebookNode, *lines: str) -> NotebookNode:
    """The notebook with lines of HTML at its end: how to run it again, and where its numbers come from."""
    text = "\n".join(lines)
    content.cells.append(nbformat.v4.new_markdown_cell(f"```{{raw}} html\n{text}\n```"))
    return content


def rerun_line(notebook: Notebook) -> str:
    """How a reader runs a page again with other parameters, and where its notebook is."""
    turned = next((one for one in notebook.parameters.values() if one.name != "seed"), None)
    option = f" -p {turned.name} {shlex.quote(turned.shown)}" if turned else " -p seed 1"
    command = html.escape(f"elementdp book run {notebook.name}{option}")
    up = "../" * notebook.page.count("/")
    return (
        f'<p class="edp-rerun">Run this page again: <code>{command}</code>. '
        f'Download it: <a href="{up}_sources/{notebook.page}.ipynb" download>notebook with these numbers</a>, '
        f'<a href="{up}_sources/{notebook.page}.md" download>source text</a>.</p>'
    )


def stage(project: Project, pages: Mapping[str, tuple[Notebook, NotebookNode]], folder: Path) -> None:
    """Write a complete Jupyter Book source tree into ``folder``: every page, assets, configuration, MathJax."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy2(project.root / name, folder / name)
    sources = {project.source(page) for page in pages}
    for path in (project.root / "book").rglob("*"):
        if path.is_file() and path not in sources and path.suffix != ".md":
            target = folder / path.relative_to(project.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
    for page, (_, content) in pages.items():
        target = folder / f"{page}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        # Cell ids are random in nbformat; fixed ones make equal pages equal files.
        for number, cell in enumerate(content.cells):
            cell["id"] = f"cell-{number}"
        content.nbformat, content.nbformat_minor = 4, 5
        nbformat.write(content, target)
    shutil.copy2(mathjax(), folder / "book" / "_static" / MATHJAX)


def mathjax() -> Path:
    """MathJax as one file, from the package that carries it."""
    spec = find_spec("sphinx-mathjax-offline")  # the package's folder really has dashes in its name
    if spec is None or spec.origin is None:
        raise BookError("MathJax is missing: pip install -c constraints.txt -e '.[companion]'")
    return Path(spec.origin).parent / "static" / "mathjax" / MATHJAX


def write_sources(project: Project, notebooks: Mapping[str, Notebook], target: Path, repository: str) -> None:
    """What the download and Colab buttons point at: each text notebook, and an unexecuted one that installs first."""
    for page, notebook in notebooks.items():
        text = target / "_sources" / f"{page}.md"
        text.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(project.source(page), text)
        fresh = deepcopy(notebook.content)
        # From a clone and not straight from git: the recorded runs lie beside the package.
        install = (
            f"!git clone -q --depth 1 {repository} elementdp-source\n"
            "%pip install -q './elementdp-source[companion]'\n"
            "import sys; sys.path.insert(0, 'elementdp-source')"
        )
        fresh.cells.insert(0, nbformat.v4.new_code_cell(install))
        published = target / "notebooks" / f"{page}.ipynb"
        published.parent.mkdir(parents=True, exist_ok=True)
        published.write_text(jupytext.writes(fresh, fmt="ipynb"))
