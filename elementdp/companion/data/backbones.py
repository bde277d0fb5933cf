"""ImageNet-trained networks as feature extractors: MobileNetV2 (light) and ResNet50 (the paper's)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from elementdp.companion.data.ladder import file_of
from elementdp.companion.data.sources import SOURCES
from elementdp.companion.data.store import read_arrays
from elementdp.companion.data.vision import torchvision
from elementdp.errors import one_of

WIDTHS = {"mobilenet-v2": 1_280, "resnet50": 2_048, "resnet50-torchvision": 2_048}
"""Numbers the second-to-last layer gives, by backbone."""

_TORCHVISION = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_KERAS = ((123.68 / 255, 116.779 / 255, 103.939 / 255), (1 / 255, 1 / 255, 1 / 255))


@dataclass(frozen=True, eq=False)
class Backbone:
    """A network in evaluation mode: ``body`` gives features, ``head`` ImageNet's 1,000 scores from them."""

    name: str
    sha256: str
    body: nn.Module
    head: nn.Module
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]

    def inputs(self, images: NDArray[np.uint8], side: int) -> Tensor:
        """Photos (N × H × W × 3, RGB bytes) upsampled to ``side`` and normalised as the network was trained."""
        pixels = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float() / 255
        if pixels.shape[-1] != side:
            pixels = functional.interpolate(pixels, size=(side, side), mode="bilinear", align_corners=False)
        mean, deviation = (torch.tensor(values)[:, None, None] for values in (self.mean, self.deviation))
        return ((pixels - mean) / deviation).contiguous(memory_format=torch.channels_last)

    def features(self, images: NDArray[np.uint8], side: int) -> NDArray[np.float32]:
        """The outputs of the second-to-last layer, one row a photo."""
        with torch.inference_mode():
            return np.asarray(self.body(self.inputs(images, side)).numpy(), dtype=np.float32)

    def top(self, images: NDArray[np.uint8], side: int) -> NDArray[np.int64]:
        """The number of ImageNet's best-scoring label for each photo."""
        with torch.inference_mode():
            return np.asarray(self.head(self.body(self.inputs(images, side))).argmax(1).numpy(), dtype=np.int64)


def _keras_resnet(weights: None) -> nn.Module:
    model: nn.Module = torchvision().models.resnet50(weights=weights)
    for name, module in model.named_modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps = 1e-3
        if name.endswith((".0.conv1", ".0.conv2")) and not name.startswith("layer1"):
            assert isinstance(module, nn.Conv2d)
            module.stride = (2, 2) if name.endswith("conv1") else (1, 1)  # Keras strides on the first 1×1 kernel
    return model


def _state(path: Path) -> dict[str, Tensor]:
    if path.suffix == ".npz":
        return {key: torch.from_numpy(np.asarray(value)) for key, value in read_arrays(path).items()}
    state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def load(name: str = "mobilenet-v2") -> Backbone:
    """A backbone with its verified weights; :class:`DataError` where they cannot be had."""
    one_of("backbone", name, WIDTHS)
    state = _state(file_of(name))
    models = torchvision().models
    make = {"resnet50": _keras_resnet, "resnet50-torchvision": models.resnet50, "mobilenet-v2": models.mobilenet_v2}
    model: nn.Module = make[name](weights=None)
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or any(not key.endswith("num_batches_tracked") for key in missing):
        raise ValueError(f"{name}: weights do not fit the network: {[*missing, *unexpected][:3]}")
    model.eval().requires_grad_(False)
    last = "classifier" if name == "mobilenet-v2" else "fc"
    head = model.get_submodule(last)
    setattr(model, last, nn.Identity())
    # One kernel a layer instead of two: convolution and normalisation are both linear in evaluation mode.
    from torch.fx.experimental.optimization import fuse

    body = fuse(model).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    mean, deviation = _KERAS if name == "resnet50" else _TORCHVISION
    return Backbone(name, SOURCES[name].sha256, body, head, mean, deviation)
