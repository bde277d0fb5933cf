"""Parameters that a model uses by name and not through a layer of their own: positions that are added, attention."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from elementdp.learning._fast.forms import affine_of

_ADDITIONS = (torch.add, Tensor.add)
_ATTENTION = inspect.signature(functional.multi_head_attention_forward)
_LEFT_OUT = (
    "bias_k",
    "bias_v",
    "key_padding_mask",
    "q_proj_weight",
    "k_proj_weight",
    "v_proj_weight",
    "static_k",
    "static_v",
)
"""Arguments of torch's attention that have to be None for the form below."""
_BASIC = (int, slice, type(None), type(...))


@dataclass(frozen=True, eq=False)
class AffineByName:
    """Wx + b of a weight and a bias that are handed to torch's attention."""

    weight: nn.Parameter
    bias: nn.Parameter | None

    def parameters(self) -> list[Tensor]:
        """Those it has."""
        return [p for p in (self.weight, self.bias) if p is not None]


@dataclass(frozen=True, eq=False)
class Added:
    """A parameter that is added to every row alike, or the part of it that ``index`` takes."""

    parameter: nn.Parameter
    index: object = ...

    def parameters(self) -> list[Tensor]:
        """The one it has."""
        return [self.parameter]


Record = Callable[[AffineByName | Added, Tensor, Tensor], None]
"""Takes down who used a parameter, what went in, and what came out."""


class ByName(TorchFunctionMode):
    """Watches additions of parameters to rows, and torch's attention of rows to themselves.

    There the parameters are constants. Whatever else a model does with them is left as it is, so that a gradient still
    arrives at them and shows that not all of it was seen.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], record: Record) -> None:
        super().__init__()
        self._parameters = {id(p): p for p in parameters}
        self._record = record
        self._parts: dict[int, tuple[Tensor, Added]] = {}  # parts of parameters, held so that no other has their id
        self._added: dict[int, Added] = {}
        self._affine: dict[int, AffineByName] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """torch's hook for every function that is called with tensors."""
        named = kwargs or {}
        found: Any = None
        if func in _ADDITIONS and len(args) == 2 and not named:
            found = self._sum(*args)
            found = self._sum(*reversed(args)) if found is None else found
        elif func is functional.multi_head_attention_forward:
            found = self._attention(_ATTENTION.bind(*args, **named))
        if found is not None:
            return found
        result = func(*args, **named)
        if func is Tensor.__getitem__ and id(args[0]) in self._parameters and torch.is_grad_enabled():
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            if all(isinstance(place, _BASIC) for place in index):
                self._parts[id(result)] = result, Added(self._parameters[id(args[0])], index)
        return result

    def _sum(self, rows: object, other: object) -> Tensor | None:
        """rows + other, if the other is a parameter or a part of one that has no dimension for the rows."""
        if id(other) in self._parameters:
            use = Added(self._parameters[id(other)])
        elif id(other) in self._parts:
            use = self._parts[id(other)][1]
        else:
            return None
        if not isinstance(rows, Tensor) or not isinstance(other, Tensor) or not rows.is_floating_point():
            return None
        alike = rows.dim() > other.dim() or (rows.dim() == other.dim() > 0 and len(other) == 1)
        if not alike or not all(b in (1, a) for a, b in zip(rows.shape[::-1], other.shape[::-1], strict=False)):
            return None
        known = self._added.setdefault(id(use.parameter), use)
        if known.index != use.index:  # two parts of one parameter may overlap
            return None
        result = _followed(rows + other.detach())
        self._record(known, rows.new_empty(len(rows), 0), result)
        return result

    def _affine_of(self, x: Tensor, weight: nn.Parameter, bias: nn.Parameter | None) -> Tensor:
        layer = self._affine.setdefault(id(weight), AffineByName(weight, bias))
        result = _followed(affine_of(x, weight.detach(), None if bias is None else bias.detach()))
        self._record(layer, x, result)
        return result

    def _knows(self, weight: nn.Parameter, bias: Tensor | None) -> bool:
        """Whether a bias that has a gradient is one of the parameters, and the weight had the same bias before."""
        followed = bias is not None and bias.requires_grad
        known = self._affine.get(id(weight))
        return (not followed or id(bias) in self._parameters) and (known is None or known.bias is bias)

    def _attention(self, call: inspect.BoundArguments) -> tuple[Tensor, Tensor | None] | None:
        """What ``nn.MultiheadAttention`` computes of rows that attend to themselves, examples first."""
        call.apply_defaults()
        named: Mapping[str, Any] = call.arguments
        query, weights = named["query"], [named["in_proj_weight"], named["out_proj_weight"]]
        plain = all(named[name] is None for name in _LEFT_OUT) and not named["add_zero_attn"] and query.dim() == 3
        itself = query is named["key"] and query is named["value"]
        masked = named["attn_mask"] is not None and (named["need_weights"] or not named["is_causal"])
        if not plain or not itself or masked or not all(id(weight) in self._parameters for weight in weights):
            return None
        biases = [named["in_proj_bias"], named["out_proj_bias"]]
        if not all(self._knows(weight, bias) for weight, bias in zip(weights, biases, strict=True)):
            return None
        x = query.transpose(0, 1)
        inside = self._affine_of(x, weights[0], biases[0])
        asks, keys, values = inside.view(*x.shape[:2], 3, named["num_heads"], -1).permute(2, 0, 3, 1, 4)
        dropped = named["dropout_p"] if named["training"] else 0.0
        seen: Tensor | None = None
        if named["need_weights"]:
            scaled = asks * math.sqrt(1 / asks.shape[-1])
            seen = functional.dropout((scaled @ keys.mT).softmax(-1), dropped)
            mixed = seen @ values
            seen = seen.mean(1) if named["average_attn_weights"] else seen
        else:
            causal = named["is_causal"]
            mixed = functional.scaled_dot_product_attention(asks, keys, values, dropout_p=dropped, is_causal=causal)
        result = self._affine_of(mixed.transpose(1, 2).flatten(2), weights[1], biases[1])
        return result.transpose(0, 1), seen


def _followed(result: Tensor) -> Tensor:
    """The result with a gradient of its own, also of data that have none."""
    return result if result.requires_grad or not torch.is_grad_enabled() else result.requires_grad_()
