"""What can be turned in a notebook: the typed, commented lines of its ``parameters`` cell."""

import ast
import io
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from nbformat import NotebookNode
from pydantic import TypeAdapter, ValidationError

from elementdp.book.project import BookError
from elementdp.errors import ArgumentError

_TYPES = {"int": int, "float": float, "str": str, "bool": bool, "list": list}


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
            return self._adapter.validate_python(value, strict=True)
        except ValidationError:
            raise ArgumentError(f"parameter {self.name}", value, f"of type {self.type}") from None

    def parse(self, text: str) -> Any:
        """A value as typed on the command line: YAML, or for a list also ``1,2,3``."""
        if self.type == "str":
            return text
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
