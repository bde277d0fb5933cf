"""Recurrent layers step by step, so that the gradients of their gates can be seen.

torch's own recurrent layers keep what happens within them to themselves. Here the same steps are done one by one: what
goes into a gate is an affine function of the input and of the last state, and its gradient is all a rule needs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from elementdp.learning._fast.lstm import LSTMSteps

GATES = (nn.LSTM, nn.GRU)


@dataclass(frozen=True, eq=False)
class RecurrentCell:
    """One layer of a recurrent module in one direction, with the module's own parameters."""

    kind: type[nn.Module]
    weight_ih: nn.Parameter
    weight_hh: nn.Parameter
    bias_ih: nn.Parameter | None
    bias_hh: nn.Parameter | None

    def parameters(self) -> list[Tensor]:
        """Those it has."""
        found = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return [parameter for parameter in found if parameter is not None]


class Watch(Protocol):
    """What looks on while a recurrent layer runs; ``vectorizes`` if within `torch.func`, which wants plain steps."""

    vectorizes: bool

    def leaf(self, parameter: nn.Parameter | None) -> Tensor | None:
        """What stands for a parameter."""

    def tap(self, gates: Tensor) -> Tensor:
        """What the input brings to the gates, of which the gradient is wanted."""

    def record(self, cell: RecurrentCell, x: Tensor, gates: Tensor, states: Tensor, resets: Tensor | None) -> None:
        """Takes a cell's input, what it brings to the gates, the states before all steps, and a GRU's reset gates."""


def has_own_forward(module: nn.Module) -> bool:
    """Whether a module was given a forward pass of its own, which may compute something else, as a subclass may."""
    return "forward" in vars(module)


def can_unroll(module: nn.Module) -> bool:
    """Whether the steps below are the module's own."""
    if type(module) not in GATES or not isinstance(module, nn.RNNBase) or has_own_forward(module):
        return False
    return module.proj_size == 0 and (module.dropout == 0 or module.num_layers == 1)


def cells(module: nn.RNNBase) -> list[list[RecurrentCell]]:
    """The cells of each layer, one for each direction."""

    def cell(layer: int, end: str) -> RecurrentCell:
        names = ["weight_ih", "weight_hh"] + (["bias_ih", "bias_hh"] if module.bias else [])
        found = [getattr(module, f"{name}_l{layer}{end}") for name in names]
        return RecurrentCell(type(module), *(found if module.bias else [*found, None, None]))

    ends = ["", "_reverse"] if module.bidirectional else [""]
    return [[cell(layer, end) for end in ends] for layer in range(module.num_layers)]


def unrolled(module: nn.RNNBase, watch: Watch) -> Callable[..., object]:
    """A forward pass that does what the module's own does, and records what its cells see."""
    layers = cells(module)

    def forward(x: Tensor, state: object = None) -> object:
        if state is not None or not isinstance(x, Tensor) or x.dim() != 3:
            raise NotImplementedError("a recurrent layer is called with a state of its own or a packed sequence")
        x = x if module.batch_first else x.transpose(0, 1)
        last: list[tuple[Tensor, Tensor]] = []
        for directions in layers:
            outputs = []
            for cell, backwards in zip(directions, (False, True), strict=False):
                output, *ends = _steps(cell, x.flip(1) if backwards else x, watch)
                outputs.append(output.flip(1) if backwards else output)
                last.append((ends[0], ends[1]))
            x = torch.cat(outputs, 2) if len(outputs) > 1 else outputs[0]
        hidden, memory = (torch.stack([pair[i] for pair in last]) for i in (0, 1))
        output = x if module.batch_first else x.transpose(0, 1)
        return output, (hidden, memory) if isinstance(module, nn.LSTM) else hidden

    return forward


def _steps(cell: RecurrentCell, x: Tensor, watch: Watch) -> tuple[Tensor, Tensor, Tensor]:
    """All outputs, and the last state and memory, of one cell from left to right."""
    weight_hh, bias_hh = watch.leaf(cell.weight_hh), watch.leaf(cell.bias_hh)
    weight_ih, bias_ih = watch.leaf(cell.weight_ih), watch.leaf(cell.bias_ih)
    assert weight_hh is not None and weight_ih is not None
    if cell.kind is nn.LSTM and bias_ih is not None and bias_hh is not None:  # all of it is added to the gates
        bias_ih, bias_hh = bias_ih + bias_hh, None
    if cell.kind is nn.LSTM and not watch.vectorizes and not torch.is_autocast_enabled(x.device.type):
        added = x.new_zeros(1).expand(*x.shape[:2], len(weight_hh)).requires_grad_()
        fixed = [t if t is None else t.detach() for t in (weight_ih, bias_ih, weight_hh)]
        states, before, memory = LSTMSteps.apply(x, added, *fixed)  # type: ignore[no-untyped-call]
        watch.record(cell, x, added, before, None)
        return states, states[:, -1], memory
    gates = watch.tap(functional.linear(x, weight_ih, bias_ih))
    hidden = memory = gates.new_zeros(len(x), weight_hh.shape[1])
    before, outputs, resets = [], [], []
    for now in gates.unbind(1):
        before.append(hidden.detach())
        if cell.kind is nn.LSTM:
            enter, forget, new, leave = torch.addmm(now, hidden, weight_hh.mT).chunk(4, 1)
            memory = forget.sigmoid() * memory + enter.sigmoid() * new.tanh()
            hidden = leave.sigmoid() * memory.tanh()
        else:
            recurrent = functional.linear(hidden, weight_hh, bias_hh)
            width = weight_hh.shape[1]
            reset, update = (now[:, : 2 * width] + recurrent[:, : 2 * width]).sigmoid().chunk(2, 1)
            new = (now[:, 2 * width :] + reset * recurrent[:, 2 * width :]).tanh()
            hidden = new + update * (hidden - new)
            resets.append(reset.detach())
        outputs.append(hidden)
    watch.record(cell, x, gates, torch.stack(before, 1), torch.stack(resets, 1) if resets else None)
    return torch.stack(outputs, 1), hidden, memory
