"""Backbones against their own libraries' networks, and against each other on real photos."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from elementdp.companion.data import SOURCES, DataError, digest, find
from elementdp.companion.data import tiny_imagenet as tiny
from elementdp.companion.data.backbones import load
from elementdp.companion.data.vision import torchvision

NAME = "resnet50-torchvision"


@pytest.fixture
def own_weights(tmp_path, monkeypatch):
    """A ResNet50 of torchvision's with random weights, and its file in the place of the published one."""
    torch.manual_seed(0)
    model = torchvision().models.resnet50(weights=None)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            # As after training, and so small that another ε would show.
            torch.nn.init.normal_(module.running_mean, std=0.02)
            torch.nn.init.uniform_(module.running_var, 1e-3, 1e-2)
            torch.nn.init.uniform_(module.weight, 0.01, 0.05)
    path = tmp_path / SOURCES[NAME].file
    torch.save(model.state_dict(), path)
    monkeypatch.setenv("ELEMENTDP_DATA", str(tmp_path))
    monkeypatch.setitem(SOURCES, NAME, replace(SOURCES[NAME], sha256=digest(path)[:8]))
    return model.eval()


def test_torchvisions_weights_give_what_torchvisions_network_gives(own_weights):
    """Photos go through torchvision's own preparation and network; ours fuses layers, hence the rounding."""
    images = np.random.default_rng(0).integers(0, 256, size=(3, 96, 96, 3), dtype=np.uint8)
    published = torchvision().models.ResNet50_Weights.IMAGENET1K_V1
    prepared = published.transforms(crop_size=96, resize_size=96)(torch.from_numpy(images).permute(0, 3, 1, 2))
    features = []
    own_weights.fc.register_forward_pre_hook(lambda module, inputs: features.append(inputs[0]))
    with torch.inference_mode():
        scores = own_weights(prepared)
    backbone = load(NAME)
    found = backbone.features(images, 96)
    assert found.shape == (3, 2_048)
    assert np.ptp(features[0].numpy()) > 0.1
    assert np.allclose(found, features[0].numpy(), rtol=1e-3, atol=1e-4 * np.abs(features[0].numpy()).max())
    assert backbone.top(images, 96).tolist() == scores.argmax(1).tolist()


def test_the_published_file_is_the_one_torchvision_names():
    published = torchvision().models.ResNet50_Weights.IMAGENET1K_V1.url
    (way,) = SOURCES[NAME].ways
    assert way.ask == published
    assert published.endswith(f"resnet50-{SOURCES[NAME].sha256}.pth")


def test_a_file_with_another_hash_is_refused(own_weights, tmp_path):
    path = tmp_path / SOURCES[NAME].file
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(DataError, match="is not resnet50-torchvision"):
        load(NAME)


def chances(name, photos, side=224):
    """What a backbone gives each of ImageNet's 1,000 labels, a row a photo."""
    backbone = load(name)
    with torch.inference_mode():
        parts = [backbone.inputs(photos[start : start + 10], side) for start in range(0, len(photos), 10)]
        return np.concatenate([backbone.head(backbone.body(part)).softmax(1).numpy() for part in parts])


def test_both_architectures_give_the_same_photo_the_same_top_label():
    """ResNet50 (moved over from Keras) and MobileNetV2 (torchvision's own) on real photos of five kinds.

    Photos of 64 × 64 pixels leave much to guess, and there two networks differ: over ten photos of each of the 100
    kinds, 45 % have the same top label, but 81 of 1,000 are such that both are more than 90 % sure, and 80 of these
    have the same. The names have to be right as well, so that two wrongs do not pass as agreement.
    """
    files = [SOURCES[name].file for name in ("tiny-imagenet-101", "mobilenet-v2", "resnet50")]
    places = [find(file) for file in files]
    if places[0] is None or None in places:
        pytest.skip(f"{files[places.index(None)]} is in no data directory")
    data = tiny.read(places[0])
    labels = torchvision().models.MobileNet_V2_Weights.IMAGENET1K_V1.meta["categories"]
    kinds = np.arange(0, len(data.ids), 20)
    rows = np.concatenate([np.flatnonzero(data.validation.labels == kind)[:10] for kind in kinds])
    right = np.array([labels.index(data.names[kind]) for kind in data.validation.labels[rows]])
    photos = data.validation.images(rows)
    heavy, light = chances("resnet50", photos), chances("mobilenet-v2", photos)
    same = heavy.argmax(1) == light.argmax(1)
    sure = np.minimum(heavy.max(1), light.max(1)) > 0.7
    assert sure.sum() >= 5
    assert same[sure].mean() >= 0.9
    assert same.mean() >= 0.4
    assert (heavy.argmax(1) == right).mean() >= 0.3
    assert (light.argmax(1) == right).mean() >= 0.3
    kind = [np.log(found).reshape(len(kinds), 10, -1).mean(1).argmax(1) for found in (heavy, light)]
    assert (kind[0] == kind[1]).sum() >= len(kinds) - 1, "ten photos together leave little to guess"
    assert (kind[0] == right[::10]).sum() >= len(kinds) - 1
