"""Checkpoints: written whole or not at all, refused when damaged or from another run.

A checkpoint holds the key of the noise: whoever has it can subtract the noise of the steps to come, so it
is as secret as the data. A run resumed from it repeats the very same draws; a step that was lost and is done again
releases the same numbers a second time, which costs nothing: the steps counted are the steps released. That needs the
same sums: with another loss, a changed forward pass or arithmetic that is not deterministic (some CUDA kernels), the
same noise would be laid over other numbers. Settings that can be compared are, and so is the code of this package;
that of the model and the loss cannot be.
"""

import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elementdp import __version__
from elementdp.errors import ArgumentError, ElementdpError, at_least
from elementdp.files import require_writable, sha256_bytes, source_hash, write_atomic

_MAGIC = b"elementdp checkpoint 1\n"


class CheckpointError(ElementdpError):
    """A checkpoint that cannot be used, and why."""


@cache
def written_by() -> str:
    """The version of this package and a hash of its code for training: another one may round a sum differently."""
    here = Path(__file__).parent
    return f"{__version__}, code {source_hash(here, here.rglob('*.py'))[:16]}"


def pack(state: Mapping[str, Any]) -> bytes:
    """The state as bytes that know whether they are complete."""
    buffer = io.BytesIO()
    torch.save(_plain(dict(state)), buffer)
    body = buffer.getvalue()
    return _MAGIC + sha256_bytes(body).encode() + b"\n" + body


def _plain(value: Any) -> Any:
    """The same without numpy's numbers, which learning rates often are and which would not be loaded again."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return {k: _plain(v) for k, v in value.items()} if type(value) is dict else value


def _named(settings: object) -> bool:
    return isinstance(settings, dict) and all(isinstance(name, str) for name in settings)


def unpack(data: bytes, name: str, wanted: Sequence[str] = ()) -> dict[str, Any]:
    """The state, if the bytes are complete. Only tensors and plain values are ever loaded, never code."""
    head = len(_MAGIC) + 65
    if not data.startswith(_MAGIC):
        raise CheckpointError(f"{name} is not a checkpoint of this package")
    body = data[head:]
    if sha256_bytes(body).encode() + b"\n" != data[len(_MAGIC) : head]:
        raise CheckpointError(f"{name} is damaged or incomplete: remove it to start again")
    try:
        state = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
    except Exception as error:
        raise CheckpointError(
            f"{name} holds what cannot be loaded again, tensors and plain values apart: an optimizer or a scheduler "
            f"of your own may keep such things ({error})"
        ) from error
    missing = [key for key in wanted if key not in state] if isinstance(state, dict) else ["everything"]
    missing += ["settings by name"] if not missing and not _named(state.get("settings", {})) else []
    if missing:
        raise CheckpointError(f"{name} is not complete ({', '.join(missing)} missing): remove it to start again")
    return dict(state)


@dataclass(frozen=True)
class Checkpoint:
    """A file from which a stopped run goes on, written before the first step, every ``every`` steps and at the end."""

    path: Path
    every: int = 50

    def __init__(self, path: str | Path, every: int = 50) -> None:
        if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
            raise ArgumentError("checkpoint", path, "the name of a file, or a Checkpoint")
        object.__setattr__(self, "path", Path(path))
        object.__setattr__(self, "every", at_least("every", every, 1))

    def writable(self) -> None:
        """Raise if no checkpoint can be written there, before there is anything to lose."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArgumentError(
                "checkpoint", str(self.path), f"a file in a folder that can be made ({error.strerror})"
            ) from error
        require_writable("checkpoint", self.path)


def save(path: Path, state: Mapping[str, Any], *, first: bool = False) -> None:
    """Write the file for its owner's eyes only: a crash leaves the old checkpoint or the new one.

    The ``first`` one of a run replaces none: two runs that begin at once would each go on with the other's key.
    """
    try:
        packed = pack(state)
        if first:
            unpack(packed, str(path))  # what cannot be loaded again is better known now than after a stop
        write_atomic(path, packed, secret=True, new=first)
    except FileExistsError as error:
        raise CheckpointError(
            f"another run has just begun to keep its checkpoint in {path}: give every run a file of its own"
        ) from error


def refuse_forged(name: str, state: Mapping[str, Any], model: Mapping[str, Any], average: Sequence[Tensor]) -> None:
    """Raise if the parts of a state do not fit each other, the ``model`` or its ``average``.

    The hash says that the bytes are complete, and not that a run has written them.
    """
    step, history, losses = state["step"], state["history"], state["losses"]
    found, mean = state["model"], state["average"]
    steps = step if type(step) is int else -1
    fits = {
        f"step {step!r}": steps >= 0,
        "a key that is not 64 hexadecimal digits": re.fullmatch("[0-9a-f]{64}", str(state["key"])) is not None,
        f"a history that is not one of {steps} steps": isinstance(history, dict)
        and history.keys() == {"losses", "groups", "skipped"}
        and all(_numbers(values) and len(values) == steps for values in history.values()),
        "probe losses that are no numbers": _numbers(losses),
        "parameters of other names, shapes or types than the model's": isinstance(found, dict)
        and list(map(kind, found.items())) == list(map(kind, model.items())),
        f"an average that is not one of {steps} steps of this model": isinstance(mean, tuple | list)
        and len(mean) == 2
        and mean[0] == steps
        and isinstance(mean[1], list)
        and list(map(kind, enumerate(mean[1]))) == list(map(kind, enumerate(average))),
    }
    if odd := [words for words, right in fits.items() if not right]:
        raise CheckpointError(f"{name} holds {odd[0]}: no run has written this; remove it to start again")


def _numbers(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, int | float) for value in values)


def kind(part: tuple[Any, Any]) -> tuple[Any, ...]:
    """What can be compared of a named part of a model's state: an extra state need not be a tensor."""
    name, value = part
    return (name, tuple(value.shape), str(value.dtype)) if isinstance(value, Tensor) else (name, type(value).__name__)


def same_settings(name: str, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise if a run with other settings wrote this checkpoint, and say which."""
    keys = sorted(set(stored) | set(wanted))
    other = [
        f"{key}: {stored.get(key)!r}, now {wanted.get(key)!r}" for key in keys if stored.get(key) != wanted.get(key)
    ]
    if other:
        raise CheckpointError(f"{name} is from a run with other settings ({'; '.join(other)}): use another file")
