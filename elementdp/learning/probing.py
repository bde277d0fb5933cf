"""What has to hold of a model for its clipped sums to mean anything: examples do not meet, nothing is remembered."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from elementdp.learning.models import ModelError
from elementdp.learning.rows import Pair, each

FACTORS = (30.0, 1e4, 1e8)
"""By how much a row is moved away in a probe: a loss that saturates shows the small one, a faint mixture the large."""
MIXES = (
    "the loss of an example depends on the other examples of its batch: "
    "a layer or the loss mixes examples, which no clipping by groups can make private"
)


@contextmanager
def same_draws(seed: int = 1) -> Iterator[None]:
    """The same random numbers each time, from torch, numpy and Python; the caller's own are untouched."""
    states: tuple[Any, ...] = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 -- what a model may draw from
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002


def refuse_mixing(losses: Callable[[Pair], Tensor], pair: Pair, rows: int) -> bool:
    """Raise if the loss of an example changes with another example; False if no loss is finite to show it.

    One row is moved far away, in the mode that trains and with the same random numbers. Nothing but that row's own loss
    may change by more than rounding: what is computed from equal numbers is equal.
    """
    if rows == 1:
        pair, rows = _twice(pair), 2
    before = _drawn(losses, pair)
    places = before.isfinite().nonzero().flatten().tolist()
    if not places:
        if any(_drawn(losses, _row(pair, row)).isfinite().all() for row in range(min(rows, 8))):
            raise ModelError(MIXES)
        return False
    if not equal_up_to_rounding(before, _drawn(losses, pair)):
        raise ModelError(
            "the losses differ from one pass to the next with the same random numbers: the model draws numbers that no "
            "seed decides or remembers earlier passes, and nothing shows that examples are not mixed"
        )
    for place, factor in zip((places[0], places[len(places) // 2], places[-1]), FACTORS, strict=True):
        after = _drawn(losses, moved(pair, place, (place + 1) % rows, factor))
        others = torch.arange(rows, device=before.device) != place
        if not equal_up_to_rounding(before[others], after[others]):
            raise ModelError(MIXES)
    return True


def _drawn(losses: Callable[[Pair], Tensor], pair: Pair) -> Tensor:
    with same_draws():
        return losses(pair).detach()


def equal_up_to_rounding(left: Tensor, right: Tensor) -> bool:
    """Finite in the same places, and equal there up to the last digits."""
    finite = left.isfinite()
    if not torch.equal(finite, right.isfinite()):
        return False
    a, b = left[finite].double(), right[finite].double()
    scale = a.abs() + a.abs().median() if len(a) else a
    return bool(((a - b).abs() <= 64 * torch.finfo(left.dtype).eps * scale).all())


def moved(pair: Pair, place: int, other: int, factor: float) -> Pair:
    """The rows with one of them far away: numbers are multiplied, tokens and labels taken from another row."""

    def change(tensor: Tensor) -> Tensor:
        result = tensor.clone()
        if tensor.is_floating_point():
            finite = tensor[tensor.isfinite()]
            result[place] = factor * (tensor[place] + (finite.abs().mean() if len(finite) else 1))
        else:
            result[place] = tensor[other]
        return result

    return each(pair[0], change), each(pair[1], change)


def _row(pair: Pair, row: int) -> Pair:
    return each(pair[0], lambda t: t[row : row + 1]), each(pair[1], lambda t: t[row : row + 1])


def _twice(pair: Pair) -> Pair:
    return each(pair[0], lambda t: torch.cat([t, t])), each(pair[1], lambda t: torch.cat([t, t]))


class Held:
    """What a model holds: buffers and parameters, each by name, identity, place and version; buffers by value too.

    A version does not count what is written through ``.data`` or numpy. With ``values`` all values are compared.
    """

    def __init__(self, model: nn.Module, *, values: bool = False) -> None:
        self._model, self._values = model, values
        self._before, self._copies = self._held(), {name: t.detach().clone() for name, t in self._by_value().items()}

    def _held(self) -> dict[str, tuple[int, int, int]]:
        held = [*self._model.named_buffers(), *self._model.named_parameters()]
        return {name: (id(tensor), tensor.data_ptr(), tensor._version) for name, tensor in held}

    def _by_value(self) -> dict[str, Tensor]:
        return dict(self._model.named_buffers()) | (dict(self._model.named_parameters()) if self._values else {})

    def refuse_changes(self) -> None:
        """Raise if the passes since have left something behind: it would be released without noise."""
        after, values = self._held(), self._by_value()
        for name in sorted(self._before.keys() | after.keys()):
            same = self._before.get(name) == after.get(name)
            if not same or (name in self._copies and not _equal(self._copies[name], values[name])):
                raise ModelError(
                    f"{name} is written while the model runs: whatever it takes from the data would be released "
                    "without noise. Compute it before training, or put the layer that writes it into eval()"
                )


def _equal(left: Tensor, right: Tensor) -> bool:
    """The same numbers in the same places; missing ones are alike."""
    return bool(((left == right) | ((left != left) & (right != right))).all())


@contextmanager
def quiet(model: nn.Module, losses: Callable[[], Tensor]) -> Iterator[None]:
    """Dropout off and an untouched random state, so that passes over other batches can be compared.

    Only if the model then still draws random numbers is all of it put into evaluation mode.
    """
    modes = {module: module.training for module in model.modules()}
    with torch.random.fork_rng():
        try:
            for module in modes:
                module.training = module.training and not isinstance(module, _DropoutNd)
            with same_draws(1):
                first = losses().detach()
            with same_draws(2):
                second = losses().detach()
            if not torch.equal(first.nan_to_num(), second.nan_to_num()):
                model.eval()
            yield
        finally:
            for module, mode in modes.items():
                module.training = mode


@contextmanager
def stirred(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Parameters near zero, for their fan-in, are moved by seeded noise of the usual size, and put back at the end.

    A gate that starts closed would hide a branch that mixes examples.
    """
    generator = torch.Generator().manual_seed(0)
    before = [p.detach().clone() for p in parameters]
    try:
        with torch.no_grad():
            for p in parameters:
                size = 0.5 / max(1, p[0].numel() if p.dim() > 1 else 1) ** 0.5
                noise = torch.randn(p.shape, generator=generator, dtype=p.dtype).to(p.device)
                p.add_(torch.where(p.abs() < size / 25, size * noise, 0))
        yield
    finally:
        with torch.no_grad():
            for p, value in zip(parameters, before, strict=True):
                p.copy_(value)
