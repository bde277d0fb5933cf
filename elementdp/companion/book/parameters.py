"""What can be turned in a notebook: the typed, commented lines of its ``parameters`` cell."""

import ast
import io
import math
import re
import tokenize
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from nbformat import NotebookNode
from pydantic import TypeAdapter, ValidationError

from elementdp.companion.book.project import BookError
from elementdp.errors import ArgumentError

_TYPES = {"int": int, "float": float, "str": str, "bool": bool, "list": list}

_RANGES: Mapping[str, Callable[[float], bool]] = {"> 0": lambda x: x > 0, "in (0, 1]": lambda x: 0 < x <= 1}


@dataclass(frozen=True)
class Parameter:
    """One line ``name: type = default  # meaning``."""

    name: str
    type: str
    default: Any
    meaning: str

    @property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(eval(self.type, {"__builtins__": {}}, _TYPES))

    def check(self, value: object) -> Any:
        """The value as this parameter's type, or an error that names the parameter and the type."""
        try:
            checked = self._adapter.validate_python(value, strict=True)
        except ValidationError:
            raise ArgumentError(f"parameter {self.name}", value, f"of type {self.type}") from None
        for item in checked if isinstance(checked, list) else [checked]:
            if isinstance(item, float) and not math.isfinite(item):
                raise ArgumentError(f"parameter {self.name}", value, "finite")
            if self.choices and item not in self.choices:
                raise ArgumentError(f"parameter {self.name}", value, "one of " + ", ".join(self.choices))
            if self.range and not _RANGES[self.range](item):
                each = " for each entry" if isinstance(checked, list) else ""
                raise ArgumentError(f"parameter {self.name}", value, self.range + each)
        if self.name == "seed" and checked < 0:
            raise ArgumentError("parameter seed", value, ">= 0")
        return checked

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts a parameter, or each entry, can be: its meaning ends in a closed list, ``…: a, b 1 or c``."""
        one = r"[\w-]+(?: \d+)?"
        listed = re.fullmatch(rf".*: ((?:{one}, )*{one} or {one})", self.meaning)
        return tuple(re.split(r", | or ", listed[1])) if listed and "str" in self.type else ()

    @property
    def range(self) -> str:
        """Where a number (or each entry of a list) has to lie, if its meaning ends in ``(> 0)`` or ``(in (0, 1])``."""
        return next((words for words in _RANGES if self.meaning.endswith(f"({words})")), "")

    def parse(self, text: str) -> Any:
        """A value as typed on the command line: YAML, or for a list also ``1,2,3``."""
        if self.type == "str":
            return self.check(text if self.choices else _from_here(text))
        if self.type.startswith("list") and not text.lstrip().startswith("["):
            text = f"[{text}]"
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise ArgumentError(f"parameter {self.name}", text, f"of type {self.type}") from None
        if isinstance(value, str):  # YAML 1.1 leaves 1e-5 a string: it wants a dot and a signed exponent
            value = _number(value)
        elif isinstance(value, list):
            value = [_number(item) if isinstance(item, str) and "float" in self.type else item for item in value]
        return self.check(value)


def _from_here(text: str) -> str:
    """A file or folder below the caller's own folder by its whole path: notebooks run in the folder of the book."""
    if not text or not Path(text).exists():
        return text
    from elementdp.companion.data import SOURCES

    return text if text in SOURCES else str(Path(text).absolute())  # a source's name stays one, whatever lies here


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def read_parameters(notebook: NotebookNode, where: str) -> dict[str, Parameter]:
    """The parameters of a notebook by name, in the order of their cell; empty where it has no such cell."""
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if not cells:
        return {}
    if len(cells) > 1:
        raise BookError(f"{where} has {len(cells)} cells tagged parameters; papermill fills only the first")
    source = cells[0].source
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    found = {}
    for line in ast.parse(source).body:
        if not (isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None):
            raise BookError(
                f"{where}, parameters cell, line {line.lineno}: write 'name: type = value  # meaning', "
                f"got {ast.unparse(line)!r}"
            )
        name = line.target.id
        parameter = Parameter(
            name, ast.unparse(line.annotation), ast.literal_eval(line.value), comments.get(line.end_lineno or 0, "")
        )
        parameter.check(parameter.default)
        found[name] = parameter
    return found


def known(parameters: Mapping[str, Parameter], name: str, notebook: str) -> Parameter:
    """The parameter of that name, or an error that lists the ones there are."""
    if name not in parameters:
        have = ", ".join(parameters) or "none"
        raise ArgumentError(f"parameter of {notebook}", name, f"one of its parameters ({have})")
    return parameters[name]


def resolve(
    parameters: Mapping[str, Parameter],
    notebook: str,
    given: Mapping[str, object],
    typed: Iterable[tuple[str, str]] = (),
) -> dict[str, Any]:
    """Values to inject: ``given`` (from a profile) overridden by ``typed`` (from the command line), all checked."""
    values = {name: known(parameters, name, notebook).check(value) for name, value in given.items()}
    return values | {name: known(parameters, name, notebook).parse(text) for name, text in typed}
