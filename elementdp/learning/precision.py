"""Products of float32 numbers in float32, whatever the caller or torch's defaults allow instead."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.backends import cuda

_EXACT = "ieee"
_cudnn: Any = torch.backends.cudnn  # torch's types do not say what these hold
_mkldnn: Any = torch.backends.mkldnn
_Setting = tuple[Callable[[], str], Callable[[str], object]]


def _of(holder: Any) -> _Setting:
    return lambda: str(holder.fp32_precision), lambda value: setattr(holder, "fp32_precision", value)


_PARENTS: tuple[_Setting, ...] = (
    _of(torch.backends),
    _of(_cudnn),  # of everything on CUDA
    (lambda: str(_mkldnn.fp32_precision), lambda value: _mkldnn.set_flags(_fp32_precision=value)),
)
_MATMULS: tuple[_Setting, ...] = (_of(cuda.matmul), _of(_mkldnn.matmul))
_CONVOLUTIONS: tuple[_Setting, ...] = (_of(_cudnn.conv), _of(_mkldnn.conv))


@contextmanager
def exact() -> Iterator[None]:
    """No TF32 and no bfloat16 within float32 products; every setting is afterwards what it was.

    A norm is compared with ρ, and the sum it bounds is formed by other products. TF32, torch's default for convolutions
    on CUDA, rounds each to eleven bits: the sum could then move by 1e-3 more than the sensitivity that noise is
    calibrated to. From the top down, since a setting that is not its own follows its parent: what still differs once
    the parent is exact has a value of its own, and that is put back. ``set_float32_matmul_precision`` is a further
    setting, which torch wants to agree with them.
    """
    with ExitStack() as undo:
        for get, put in _PARENTS:
            if (found := get()) != _EXACT:
                undo.callback(put, found)
                put(_EXACT)
        own = [(put, get()) for get, put in (*_MATMULS, *_CONVOLUTIONS)]
        for put, found in own:
            if found != _EXACT:
                undo.callback(put, found)
                put(_EXACT)
        if (older := torch.get_float32_matmul_precision()) != "highest":
            for put, found in own[: len(_MATMULS)]:  # putting the older setting back sets these
                undo.callback(put, found)
            undo.callback(torch.set_float32_matmul_precision, older)
            torch.set_float32_matmul_precision("highest")
        yield
