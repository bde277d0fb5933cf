"""torchvision beside a CPU-only torch: its wheel is a CUDA build and asks for two operators that are not there."""

import importlib
import sys
from types import ModuleType

import torch

_MISSING = "operator torchvision::nms does not exist"
_SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
_kept: list[torch.library.Library] = []  # schemas vanish with the object that declared them


def torchvision() -> ModuleType:
    """The package ``torchvision`` with ``torchvision.models`` loaded; only its box operators stay unusable."""
    try:
        module = importlib.import_module("torchvision")
    except RuntimeError as error:
        if str(error) != _MISSING:
            raise
        library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        for schema in _SCHEMAS.values():
            library.define(schema)  # type: ignore[no-untyped-call]
        _kept.append(library)
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        module = importlib.import_module("torchvision")
    importlib.import_module("torchvision.models")
    return module
