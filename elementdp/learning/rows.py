"""Rows of a batch: a tensor whose first dimension counts them, or tuples, lists and dictionaries of such tensors."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn

from elementdp.errors import ArgumentError

Rows = Any
"""A tensor, or any nesting of tuples, lists and dictionaries of tensors, one row of each for every example."""
Pair = tuple[Rows, Rows]
"""Model inputs and targets of some rows."""
ONE_BY_ONE: ContextVar[bool] = ContextVar("one_by_one", default=False)
"""Whether rows are to be loaded in their order: threads draw random numbers in any."""


def each(rows: Rows, change: Callable[[Tensor], Any]) -> Rows:
    """The same nesting with every tensor changed."""
    if isinstance(rows, Tensor):
        return change(rows)
    if isinstance(rows, Mapping):
        return {name: each(value, change) for name, value in rows.items()}
    if isinstance(rows, tuple | list):
        return tuple(each(value, change) for value in rows)
    raise ArgumentError("data", type(rows).__name__, "tensors, or tuples, lists and dictionaries of them")


def tensors(rows: Rows) -> list[Tensor]:
    """All tensors of the nesting, in order."""
    found: list[Tensor] = []
    each(rows, found.append)
    return found


def count(rows: Rows) -> int:
    """How many rows there are."""
    sizes = {len(tensor) if tensor.dim() else 0 for tensor in tensors(rows)}
    if len(sizes) != 1:
        raise ArgumentError("data", sorted(sizes), "tensors with one row for each example, the same number in all")
    return sizes.pop()


def call(model: nn.Module, inputs: Rows) -> Any:
    """The model's outputs: a dictionary is passed by name, a tuple as several arguments."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    if isinstance(inputs, Sequence) and not isinstance(inputs, str):
        return model(*inputs)
    return model(inputs)
