"""What can be said of the pages without running them: a name that moved is found in seconds, not by the next build."""

import ast
from importlib import import_module
from importlib.util import find_spec

import pytest
from support.small_books import ROOT

from elementdp.companion.book.notebooks import Notebook, read_all
from elementdp.companion.book.project import Project

PAGES = [notebook for notebook in read_all(Project(ROOT)) if notebook.code]


def imported(notebook: Notebook) -> list[tuple[str, str]]:
    """The names of this package that a page imports, with their modules."""
    code = "\n".join(notebook.code)
    return [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "elementdp"
        for alias in node.names
    ]


@pytest.mark.parametrize("notebook", PAGES, ids=lambda notebook: notebook.name)
def test_pages_import_public_names_that_exist(notebook: Notebook) -> None:
    for module, name in imported(notebook):
        assert not name.startswith("_"), (module, name)
        assert hasattr(import_module(module), name) or find_spec(f"{module}.{name}"), (module, name)
