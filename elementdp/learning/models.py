"""Which models can be trained privately: what is refused by name, and which parameters have a fast rule."""

from collections import Counter

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.parameter import UninitializedParameter

from elementdp.errors import ArgumentError, ElementdpError
from elementdp.learning._fast.recurrent import can_unroll, has_own_forward
from elementdp.learning._fast.rules import RULES, Rule, by_itself, recurrent


class ModelError(ElementdpError):
    """A model that cannot be trained with a guarantee: names the layer and what to use instead."""


def refuse(model: nn.Module) -> None:
    """Raise for a layer that mixes examples or stores what it saw without noise, and for too few digits."""
    for name, module in model.named_modules():
        where = f"layer {name or '(the model)'} ({type(module).__name__})"
        if isinstance(module, _BatchNorm) and (module.training or not module.track_running_stats):
            raise ModelError(
                f"{where} mixes the examples of a batch and keeps their statistics without noise: "
                f"use torch.nn.GroupNorm(1, {module.num_features}) or LayerNorm instead, or keep the statistics it has "
                "with eval()"
            )
        if isinstance(module, _InstanceNorm) and module.track_running_stats and module.training:
            raise ModelError(
                f"{where} keeps running statistics of the data without noise: set track_running_stats=False"
            )
        if isinstance(module, nn.Embedding | nn.EmbeddingBag):
            if module.max_norm is not None:
                raise ModelError(f"{where} rescales its weights by what it looks up, without noise: set max_norm=None")
            if module.scale_grad_by_freq:
                raise ModelError(f"{where} scales gradients by counts over the batch: set scale_grad_by_freq=False")
    for name, parameter in model.named_parameters():
        if isinstance(parameter, UninitializedParameter):
            raise ModelError(f"parameter {name} has no shape yet: run the model once on an example first")
        if parameter.requires_grad and parameter.is_complex():
            raise ModelError(f"parameter {name} is complex: norms and noise are those of real numbers. Keep its parts")
        if parameter.requires_grad and parameter.dtype not in (torch.float32, torch.float64):
            raise ModelError(
                f"parameter {name} is {str(parameter.dtype).removeprefix('torch.')}: clipped sums would be "
                "rounded by more than ρ before the noise. Keep parameters in float32 (model.float()), and use "
                "precision=torch.bfloat16 for passes in half precision"
            )
    if torch.is_inference_mode_enabled() or any(parameter.is_inference() for parameter in model.parameters()):
        raise ModelError("the model is made or trained within torch.inference_mode(), where nothing has a gradient")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ModelError("the model has no parameter with requires_grad=True: nothing to train")


def set_training(model: nn.Module) -> None:
    """Training mode for all layers but those that were put into evaluation mode to keep their statistics."""
    fixed = [m for m in model.modules() if isinstance(m, _BatchNorm | _InstanceNorm) and not m.training]
    model.train()
    for module in fixed:
        module.eval()


def present(device: str | torch.device) -> torch.device:
    """The device, if this machine has it."""
    here = ["cpu:0", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    here += ["mps:0"] if torch.backends.mps.is_available() else []
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        found = torch.device("meta")
    if f"{found.type}:{found.index or 0}" not in here:  # without a number, torch takes the first
        raise ArgumentError("device", str(device), f"one that torch finds on this machine ({', '.join(here)})")
    return found


def layer_rules(model: nn.Module) -> dict[nn.Module, Rule]:
    """The layers that own trainable parameters, each one alone, and the rule of each.

    A layer without a rule of its own is taken by itself if it has no parts. A recurrent layer that cannot be unrolled
    is left out: one more pass through it costs more than all else. So are layers that share a parameter, and those that
    torch's attention never calls: it takes their weights by name.
    """
    by_name = {module.out_proj for module in model.modules() if isinstance(module, nn.MultiheadAttention)}
    uses = Counter(id(p) for module in model.modules() for p in module._parameters.values())
    rules: dict[nn.Module, Rule] = {}
    for module in model.modules():
        own = list(module.parameters(recurse=False))
        if any(p.requires_grad for p in own) and all(uses[id(p)] == 1 for p in own) and module not in by_name:
            rule = None if has_own_forward(module) else RULES.get(type(module))  # a subclass may compute something else
            if rule is None and can_unroll(module):
                rule = recurrent
            closed = isinstance(module, nn.RNNBase | torch.jit.ScriptModule) or any(module.children())
            if rule is not None or not closed:
                rules[module] = rule or by_itself
    return rules


def tied_layers(model: nn.Module) -> list[nn.Linear | nn.Embedding]:
    """Linear layers and embeddings whose trainable weight no other kind of layer shares, and whose bias nobody."""
    owners: dict[int, list[nn.Module]] = {}
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            owners.setdefault(id(parameter), []).append(module)
    found = []
    for module in model.modules():
        if _looks_up_or_multiplies(module) and isinstance(module, nn.Linear | nn.Embedding):
            own = [p for p in module.parameters(recurse=False) if p is not module.weight]
            alone = all(len(owners[id(p)]) == 1 for p in own)
            same = owners.get(id(module.weight), [])
            kinds = all(_looks_up_or_multiplies(other) and other.weight is module.weight for other in same)
            if len(same) > 1 and alone and kinds and module.weight.requires_grad:
                found.append(module)
    return found


def _looks_up_or_multiplies(module: nn.Module) -> bool:
    return type(module) in (nn.Linear, nn.Embedding) and not has_own_forward(module)
