"""All steps of an LSTM with the backward pass by hand: autograd would keep and fetch a dozen tensors for every step.

With gates i, f, g, o, memory c and state h,

    c_k = f_k c_{k-1} + i_k g_k,   h_k = o_k tanh c_k,

and what goes into the gates is V x_k + b + W h_{k-1}, whose gradient is all that the rules need.
"""

from typing import Any

import torch
from torch import Tensor

from elementdp.learning._fast.products import times

_sigmoid_backward, _tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward


class LSTMSteps(torch.autograd.Function):
    """From the inputs (rows, steps, width) to all states, the zero before them included, and the last memory.

    ``added`` is what else goes into the gates: nothing, but its gradient is theirs. V, b and W are constants here. In
    the forward pass the steps come first, so that each of them is one piece of memory.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, added: Tensor, v: Tensor, bias: Tensor | None, w: Tensor) -> tuple[Tensor, Tensor]:
        rows, steps, width = *x.shape[:2], w.shape[1]
        gates = times(x.transpose(0, 1).flatten(0, 1), v.mT).view(steps, rows, -1)
        if bias is not None:
            gates += bias
        states, memories = (x.new_zeros(steps + 1, rows, width) for _ in range(2))
        shown = x.new_empty(steps, rows, width)  # tanh c
        for k in range(steps):
            if k:
                gates[k] += times(states[k], w.mT)
            enter, forget, new, leave = gates[k].chunk(4, 1)
            gates[k, :, : 2 * width].sigmoid_()
            new.tanh_()
            leave.sigmoid_()
            torch.mul(forget, memories[k], out=memories[k + 1]).addcmul_(enter, new)
            torch.tanh(memories[k + 1], out=shown[k])
            torch.mul(leave, shown[k], out=states[k + 1])
        ctx.save_for_backward(gates, memories, shown, v, w)
        return states.transpose(0, 1), memories[-1].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        gates, memories, shown, v, w = ctx.saved_tensors
        steps, rows, width = shown.shape
        found = gates.new_empty(rows, steps, 4 * width)
        state, memory = grads[0][:, steps], grads[1].clone()
        for k in reversed(range(steps)):
            enter, forget, new, leave = gates[k].chunk(4, 1)
            parts = found[:, k].chunk(4, 1)
            memory += _tanh_backward(state * leave, shown[k])
            _sigmoid_backward(memory * new, enter, grad_input=parts[0])
            _sigmoid_backward(memory * memories[k], forget, grad_input=parts[1])
            _tanh_backward(memory * enter, new, grad_input=parts[2])
            _sigmoid_backward(state * shown[k], leave, grad_input=parts[3])
            memory *= forget
            state = grads[0][:, k] + times(found[:, k], w) if k else state
        return times(found.flatten(0, 1), v).view(rows, steps, -1), found, None, None, None
