"""What a model holds, and whether it has changed: whatever passes leave behind would be released without noise."""

import io

import torch
from torch import Tensor, nn

from elementdp.learning.models import ModelError

Seen = tuple[int, ...]


class Held:
    """Buffers and parameters, each by name, identity, place and version; buffers by value too; extra state by value.

    A version does not count what is written through ``.data`` or numpy. With ``values`` all values are compared.
    """

    def __init__(self, model: nn.Module, *, values: bool = False) -> None:
        self._model, self._values = model, values
        buffers, parameters = self._tensors()
        self._before = _seen(buffers | parameters)
        self._copies = {name: t.detach().clone() for name, t in self._by_value(buffers, parameters).items()}
        self._extra, self._gradients = self._extra_states(), _own_gradients(parameters)

    def _tensors(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return dict(self._model.named_buffers()), dict(self._model.named_parameters())

    def _by_value(self, buffers: dict[str, Tensor], parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        return buffers | parameters if self._values else buffers

    def _extra_states(self) -> dict[str, bytes]:
        """What layers add to ``state_dict()`` besides tensors."""
        own = {
            f"{name}.extra_state": module.get_extra_state()
            for name, module in self._model.named_modules()
            if type(module).get_extra_state is not nn.Module.get_extra_state
        }
        return {name: _saved(value) for name, value in own.items()}

    def changed(self) -> str | None:
        """The name of something that is no longer what it was."""
        buffers, parameters = self._tensors()
        after, values, extra = _seen(buffers | parameters), self._by_value(buffers, parameters), self._extra_states()
        for name in sorted(self._before.keys() | after.keys()):
            same = self._before.get(name) == after.get(name)
            if not same or (name in self._copies and not _equal(self._copies[name], values[name])):
                return name
        return next((name for name in extra if extra[name] != self._extra.get(name)), None)

    def new_gradient(self) -> str | None:
        """The name of a parameter in whose ``.grad`` a backward pass has left something."""
        after = _own_gradients(dict(self._model.named_parameters()))
        return next((name for name, seen in after.items() if self._gradients.get(name) != seen), None)

    def refuse_changes(self) -> None:
        """Raise if the passes since have left something behind."""
        if name := self.changed():
            raise ModelError(
                f"{name} is written while the model runs: whatever it takes from the data would be released "
                "without noise. Compute it before training, or put the layer that writes it into eval()"
            )
        if self.new_gradient():
            raise ModelError(
                "the model runs a backward pass of its own, which leaves gradients without noise in .grad: use "
                "torch.autograd.grad within it"
            )


def _seen(tensors: dict[str, Tensor]) -> dict[str, Seen]:
    return {name: (id(t), t.data_ptr(), t._version, t.requires_grad) for name, t in tensors.items()}


def _own_gradients(parameters: dict[str, Tensor]) -> dict[str, Seen]:
    """What stands in the parameters' ``.grad``."""
    gradients = {name: p.grad for name, p in parameters.items()}
    return {name: (id(g), g._version) for name, g in gradients.items() if g is not None}


def _saved(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _equal(left: Tensor, right: Tensor) -> bool:
    """The same numbers in the same places; missing ones are alike."""
    return bool(((left == right) | ((left != left) & (right != right))).all())
