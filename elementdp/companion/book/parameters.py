"""What can be turned in a notebook: the typed, commented lines of its ``parameters`` cell."""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from nbformat import NotebookNode
from papermill.translators import PythonTranslator
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from elementdp.companion.book.project import BookError
from elementdp.errors import ArgumentError

_TYPES: Mapping[str, Any] = {"int": int, "float": FiniteFloat, "str": str, "bool": bool}

_RANGES: Mapping[str, Any] = {"> 0": Field(gt=0), "in (0, 1]": Field(gt=0, le=1), "0 or more": Field(ge=0)}


@dataclass(frozen=True)
class Parameter:
    """One line ``name: type = default  # meaning``."""

    name: str
    type: str
    default: Any
    meaning: str

    @property
    def shown(self) -> str:
        """The default as it is typed on the command line."""
        return ",".join(map(str, self.default)) if self.is_list else str(self.default)

    @property
    def is_list(self) -> bool:
        """Whether the value is a list of entries."""
        return self.type.startswith("list[")

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        """The type as pydantic checks it: what the cell says, with the choices and the range its meaning ends in."""
        name = self.type.removeprefix("list[").removesuffix("]")
        if name not in _TYPES:
            raise BookError(f"parameter {self.name}: {self.type} is none of {', '.join(_TYPES)} and their lists")
        entry: Any = Literal[self.choices] if self.choices else _TYPES[name]
        if self.range:
            entry = Annotated[entry, _RANGES[self.range]]
        return TypeAdapter(list[entry] if self.is_list else entry)

    def check(self, value: object, *, strict: bool = True) -> Any:
        """The value as this parameter's type, or an error that names the parameter and says what would be right."""
        try:
            return self._adapter.validate_python(value, strict=strict)
        except ValidationError as error:
            first = error.errors()[0]
            where = f"entry {first['loc'][0] + 1} of " if first["loc"] and isinstance(first["loc"][0], int) else ""
            expected = first["msg"].removeprefix("Input should be ")
            raise ArgumentError(f"{where}parameter {self.name}", first["input"], expected) from None

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts a parameter, or each entry, can be: its meaning ends in a closed list, ``…: a, b 1 or c``."""
        one = r"[\w-]+(?: \d+)?"
        listed = re.fullmatch(rf".*: ((?:{one}, )*{one} or {one})", self.meaning)
        return tuple(re.split(r", | or ", listed[1])) if listed and "str" in self.type else ()

    @property
    def range(self) -> str:
        """Where a number (or each entry of a list) has to lie: its meaning ends in one of the ranges, in brackets."""
        stated = next((words for words in _RANGES if self.meaning.endswith(f"({words})")), "")
        return "0 or more" if self.name == "seed" else stated

    def parse(self, text: str) -> Any:
        """A value as typed on the command line; a list is ``1,2,3``, in brackets or not."""
        if self.is_list:
            entries = text.strip().removeprefix("[").removesuffix("]").split(",")
            return self.check([entry.strip() for entry in entries], strict=False)
        return self.check(_from_here(text) if self.type == "str" and not self.choices else text, strict=False)


def _from_here(text: str) -> str:
    """A file or folder below the caller's own folder by its whole path: notebooks run in the folder of the book."""
    if not text or not Path(text).exists():
        return text
    from elementdp.companion.data import SOURCES

    return text if text in SOURCES else str(Path(text).absolute())  # a source's name stays one, whatever lies here


def read_parameters(notebook: NotebookNode, where: str) -> dict[str, Parameter]:
    """The parameters of a notebook by name, in the order of their cell; empty where it has no such cell.

    papermill reads the lines; that each one was read, has a type and a default of that type is checked here, because
    papermill passes silently over what it cannot read.
    """
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if not cells:
        return {}
    if len(cells) > 1:
        raise BookError(f"{where} has {len(cells)} cells tagged parameters; papermill fills only the first")
    read = PythonTranslator.inspect(cells[0])
    found = {}
    for line in ast.parse(cells[0].source).body:
        name = line.target.id if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) else ""
        inferred = next((one for one in read if one.name == name), None)
        if inferred is None:
            raise BookError(
                f"{where}, parameters cell, line {line.lineno}: write 'name: type = value  # meaning', "
                f"got {ast.unparse(line)!r}"
            )
        default = ast.literal_eval(inferred.default)
        found[name] = Parameter(name, inferred.inferred_type_name, default, inferred.help)
        found[name].check(default)
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
