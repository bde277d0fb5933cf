"""The rules of the house: who may import whom, one name for one thing, and nothing too long to be read."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "elementdp"
BASE = {"_lazy", "errors", "files"}
LIBRARY = {"elements", "privacy", "histogram", "learning", "audit"}
BELOW = {  # each room of the library, and the rooms it may import
    "elements": set(),
    "privacy": set(),
    "histogram": {"elements", "privacy"},
    "learning": {"elements", "privacy"},
    "audit": {"elements", "privacy", "histogram", "learning"},
    "cli": LIBRARY,
    "companion": {*LIBRARY, "cli"},
}
MOST_PARAMETERS, MOST_LINES, MOST_CELL_LINES, MOST_COLUMNS = 10, 60, 20, 80


@cache
def modules() -> dict[str, Path]:
    found = sorted(PACKAGE.rglob("*.py"))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in found}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text())


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@cache
def imports(module: str) -> frozenset[str]:
    """The modules of the package that ``module`` imports, inside functions too; only what types need does not count."""
    typing_only = {
        inner
        for node in ast.walk(tree(module))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree(module)):
        if node in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names} & modules().keys()
            found |= below if len(below) == len(node.names) else {*below, node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return frozenset(found & modules().keys())


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for module in modules():
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield module, node


def cells() -> Iterator[tuple[str, bool, list[str]]]:
    """Page, whether the cell is shown, and its lines of code."""
    for page in sorted((ROOT / "book").rglob("*.md")):
        for body in re.findall(r"```\{code-cell\}[^\n]*\n(.*?)```", page.read_text(), re.DOTALL):
            lines = [line for line in body.splitlines() if line.strip() and not line.startswith(":")]
            yield page.name, re.search(r":tags:.*(hide|remove)", body) is None, lines


def test_only_the_companion_imports_the_companion() -> None:
    # The command line's table names its modules as strings, and loads them when they are called.
    above = {module for module in modules() if room(module) == "companion"}
    assert not {module for module in modules().keys() - above if imports(module) & above}


def test_rooms_import_only_downwards() -> None:
    wrong = {
        (module, other)
        for module in modules()
        if room(module) in BELOW
        for other in imports(module)
        if room(other) and room(other) not in {room(module), *BASE, *BELOW[room(module)]}
    }
    assert not wrong
    assert {room(module) for module in modules()} == {"", *BASE, *BELOW}, "a new room needs its place in the order"


def test_what_all_rooms_use_imports_none_of_them() -> None:
    assert not {module for module in modules() if room(module) in BASE and {room(o) for o in imports(module)} - BASE}


def test_no_two_modules_import_each_other() -> None:
    waiting = {module: set(imports(module)) - {module} for module in modules()}
    while free := {module for module, needed in waiting.items() if not needed & waiting.keys()}:
        for module in free:
            del waiting[module]
    assert not waiting, "these import each other in a circle, or import what does"


def test_no_class_name_is_used_twice() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    assert not {name: found for name, found in homes.items() if len(found) > 1}


def test_public_functions_take_few_parameters() -> None:
    wide = {
        f"{module}.{node.name}"
        for module, node in functions()
        if not node.name.startswith("_")
        and "cli" not in module.split(".")
        and len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) > MOST_PARAMETERS
    }
    assert not wide


def test_functions_are_short() -> None:
    """Their docstrings aside: a public name may have much to say."""
    long = {
        f"{module}.{node.name}"
        for module, node in functions()
        if (node.end_lineno or 0) - node.lineno + 1 - _told(node) > MOST_LINES and "cli" not in module.split(".")
    }
    assert not long


def _told(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the docstring."""
    first = node.body[0]
    return (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) is not None else 0


def test_cells_are_short() -> None:
    long = {(page, lines[0]) for page, _, lines in cells() if len(lines) > MOST_CELL_LINES}
    assert not long


def test_shown_cells_are_narrow() -> None:
    wide = {(page, line) for page, shown, lines in cells() if shown for line in lines if len(line) > MOST_COLUMNS}
    assert not wide


@pytest.mark.parametrize("package", ["elementdp", "elementdp.privacy"])
def test_lazy_names_are_the_public_ones(package: str) -> None:
    home = __import__(package, fromlist=["__all__"])
    typed = {
        alias.name
        for node in ast.walk(tree(package))
        if isinstance(node, ast.If)
        for inner in ast.walk(node)
        if isinstance(inner, ast.ImportFrom)
        for alias in inner.names
    }
    assert typed == set(home.__all__)
    assert not [name for name in home.__all__ if isinstance(getattr(home, name), ModuleType)], "a module hides the name"
    assert set(home.__all__) <= set(dir(home))
    with pytest.raises(AttributeError, match="nothing"):
        home.nothing  # noqa: B018
