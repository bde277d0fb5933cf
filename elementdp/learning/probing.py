"""What has to hold of a model for its clipped sums to mean anything: examples do not meet, nothing is remembered."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from elementdp.errors import ElementdpError
from elementdp.learning.draws import random_state, same_draws
from elementdp.learning.models import ModelError
from elementdp.learning.rows import Pair, each, tensors

FACTORS = (1e8, 30.0, -30.0, -1e4)
"""By how much a row is moved away in a probe, up and down: a loss that saturates shows the small ones, a faint mixture
the large."""
MIXES = (
    "the loss of an example depends on the other examples of its batch: "
    "a layer or the loss mixes examples, which no clipping by groups can make private"
)


def refuse_mixing(losses: Callable[[Pair], Tensor], pair: Pair, rows: int, draws: range) -> bool:
    """Raise if the loss of an example changes with another example; False if no loss is finite to show it.

    One row is moved far away, in the mode that trains and with the same random numbers. Nothing but that row's own loss
    may change by more than rounding: what is computed from equal numbers is equal. A model that draws random numbers
    may mix examples in some passes only: it is looked at with each of these ``draws``.
    """
    if rows == 1:
        pair, rows = _twice(pair), 2
    with same_draws(draws[0]):
        start = random_state()
        before = losses(pair).detach()
        random_passes = random_state() != start
    places = before.isfinite().nonzero().flatten().tolist()
    if not places:
        if any(_drawn(losses, _row(pair, row)).isfinite().all() for row in range(min(rows, 8))):
            raise ModelError(MIXES)
        return False
    if not equal_up_to_rounding(before, _drawn(losses, pair, draws[0])):
        raise ModelError(
            "the losses differ from one pass to the next with the same random numbers: the model draws numbers that no "
            "seed decides or remembers earlier passes, and nothing shows that examples are not mixed"
        )
    for turn in range(max(len(FACTORS), len(draws) if random_passes else 0)):
        seed = draws[turn % len(draws)] if random_passes else draws[0]
        before = _drawn(losses, pair, seed) if random_passes and turn else before
        place = places[-1 - turn * (len(places) - 1) // 3 % len(places)]
        after = _moved_losses(losses, pair, place, FACTORS[turn % len(FACTORS)], seed)
        others = torch.arange(rows, device=before.device) != place
        if not equal_up_to_rounding(before[others], after[others]):
            raise ModelError(MIXES)
    _refuse_crowds(losses, pair, places[len(places) // 2], draws[0])
    return True


def _refuse_crowds(losses: Callable[[Pair], Tensor], pair: Pair, place: int, seed: int) -> None:
    """Raise if a row's loss is another one where all others are one row: a majority is not moved by one of many."""
    before = _drawn(losses, pair, seed)
    for row in (place, _most_different(pair, place)):
        after = before.clone()
        try:
            after[place] = _drawn(losses, _crowded(pair, place, row), seed)[place]
        except ElementdpError:
            raise
        except Exception:  # the model does not take equal rows
            continue
        if not equal_up_to_rounding(before, after):
            raise ModelError(MIXES)


def _moved_losses(losses: Callable[[Pair], Tensor], pair: Pair, place: int, factor: float, seed: int) -> Tensor:
    """The losses with one row far away, or exchanged if the model does not take such numbers."""
    try:
        return _drawn(losses, moved(pair, place, factor), seed)
    except ElementdpError:
        raise
    except Exception:
        return _drawn(losses, exchanged(pair, place), seed)


def _drawn(losses: Callable[[Pair], Tensor], pair: Pair, seed: int = 1) -> Tensor:
    with same_draws(seed):
        return losses(pair).detach()


def equal_up_to_rounding(left: Tensor, right: Tensor) -> bool:
    """Finite in the same places, and equal there up to the last digits."""
    finite = left.isfinite()
    if not torch.equal(finite, right.isfinite()):
        return False
    a, b = (side[finite].cpu().double() for side in (left, right))  # not every device has float64
    scale = a.abs() + a.abs().median() if len(a) else a
    return bool(((a - b).abs() <= 64 * torch.finfo(left.dtype).eps * scale).all())


def moved(pair: Pair, place: int, factor: float) -> Pair:
    """The rows with one of them far away: numbers are multiplied, tokens and labels taken from a row with others."""

    def change(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return _exchanged(tensor, place)
        result = tensor.clone()
        finite = tensor[tensor.isfinite()]
        result[place] = factor * (tensor[place] + (finite.abs().mean() if len(finite) else 1))
        return result

    return each(pair[0], change), each(pair[1], change)


def exchanged(pair: Pair, place: int) -> Pair:
    """The rows with one of them exchanged for another one."""
    return each(pair[0], lambda t: _exchanged(t, place)), each(pair[1], lambda t: _exchanged(t, place))


def _exchanged(tensor: Tensor, place: int) -> Tensor:
    """The row replaced by the one that differs from it in the most places: neighbours are often alike."""
    result = tensor.clone()
    result[place] = tensor[(tensor != tensor[place]).reshape(len(tensor), -1).sum(1).argmax()]
    return result


def _most_different(pair: Pair, place: int) -> int:
    """The row that differs from this one in the largest share of its numbers, added up over the tensors."""
    shares = [
        (t != t[place]).reshape(len(t), -1).double().mean(1).cpu() for side in pair for t in tensors(side) if t.numel()
    ]
    return int(torch.stack(shares).sum(0).argmax()) if shares else place


def _crowded(pair: Pair, place: int, row: int) -> Pair:
    """The rows, all but one exchanged for one of them."""

    def change(tensor: Tensor) -> Tensor:
        result = tensor[row : row + 1].repeat(len(tensor), *[1] * (tensor.dim() - 1))
        result[place] = tensor[place]
        return result

    return each(pair[0], change), each(pair[1], change)


def _row(pair: Pair, row: int) -> Pair:
    return each(pair[0], lambda t: t[row : row + 1]), each(pair[1], lambda t: t[row : row + 1])


def _twice(pair: Pair) -> Pair:
    return each(pair[0], lambda t: torch.cat([t, t])), each(pair[1], lambda t: torch.cat([t, t]))


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
                size = 0.5 / max(1, p.numel() // max(1, len(p)) if p.dim() > 1 else 1) ** 0.5
                noise = torch.randn(p.shape, generator=generator, dtype=p.dtype).to(p.device)
                p.add_(torch.where(p.abs() < size / 25, size * noise, 0))
        yield
    finally:
        with torch.no_grad():
            for p, value in zip(parameters, before, strict=True):
                p.copy_(value)
