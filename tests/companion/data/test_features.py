"""Feature shards: named by content, made once, made again when damaged; weights of another library moved over."""

import numpy as np
import pytest
import torch
from torch import nn

from elementdp.companion.data import DataError, find
from elementdp.companion.data import backbones as all_backbones
from elementdp.companion.data.backbones import Backbone, load
from elementdp.companion.data.features import SHARD, cached_features, features, read_tagged, shard_key
from elementdp.companion.data.weights import torchvision_names


class Mean(nn.Module):
    """Colour means as features; counts photos, and gives up when told to."""

    def __init__(self, patience=10**9):
        super().__init__()
        self.seen, self.patience = 0, patience

    def forward(self, pictures):
        self.seen += len(pictures)
        if self.seen > self.patience:
            raise KeyboardInterrupt
        return pictures.mean((2, 3))


def backbone(patience=10**9):
    return Backbone("mean", "sha of mean", Mean(patience), nn.Identity(), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.setenv("ELEMENTDP_DATA", str(tmp_path))
    return np.random.default_rng(0).integers(0, 256, size=(2 * SHARD + 10, 8, 8, 3), dtype=np.uint8)


def test_features_are_computed_once_and_in_order(photos):
    rows = np.arange(len(photos))[::-1].copy()
    first = backbone()
    found, speed = features(lambda chosen: photos[chosen], rows, first, 8)
    assert (speed.computed, speed.cached, first.body.seen) == (len(rows), 0, len(rows))
    assert np.allclose(found, photos[rows].mean((1, 2)) / 255, atol=2**-11)
    second = backbone()
    again, speed = features(lambda chosen: photos[chosen], rows, second, 8)
    assert (speed.computed, second.body.seen) == (0, 0)
    assert (again == found).all()
    assert (cached_features(lambda chosen: photos[chosen], rows, "sha of mean", 8) == found).all()
    assert cached_features(lambda chosen: photos[chosen], rows, "sha of mean", 16) is None


def test_an_interrupted_extraction_goes_on_where_it_stopped(photos, tmp_path):
    rows = np.arange(len(photos))
    with pytest.raises(KeyboardInterrupt):
        features(lambda chosen: photos[chosen], rows, backbone(patience=SHARD + 40), 8)
    lines = []
    _, speed = features(lambda chosen: photos[chosen], rows, backbone(), 8, lines.append)
    assert (speed.computed, speed.cached) == (len(rows) - SHARD, SHARD)
    assert "photos/s" in lines[-1]
    assert f"{len(rows)} of {len(rows)}" in lines[-1]
    damaged = next((tmp_path / "features").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:100])
    again, speed = features(lambda chosen: photos[chosen], rows, backbone(), 8)
    assert 0 < speed.computed <= SHARD
    assert np.allclose(again, photos.mean((1, 2)) / 255, atol=2**-11)


def test_a_shard_is_named_by_weights_size_and_content(photos):
    other = photos[:4].copy()
    other[3, 7, 7, 2] ^= 1
    keys = {shard_key("a", 8, photos[:4]), shard_key("b", 8, photos[:4]), shard_key("a", 9, photos[:4])}
    assert len(keys | {shard_key("a", 8, other), shard_key("a", 8, photos[:3])}) == 5


def test_ready_made_features_get_the_most_common_of_their_tags(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(4, 3, dtype=np.float32))
    (tmp_path / "tags.txt").write_text("cat,sea\nsea\n\nsea,cat,rare\n")
    found = read_tagged(tmp_path / "x.npy", tmp_path / "tags.txt", frequent=2)
    assert found.names == ("sea", "cat", "unknown")
    assert found.labels.tolist() == [0, 0, 2, 0]
    (tmp_path / "tags.txt").write_text("cat\n")
    with pytest.raises(DataError, match="one line a row"):
        read_tagged(tmp_path / "x.npy", tmp_path / "tags.txt")


def test_keras_weights_compute_the_same_under_other_names():
    """Convolution with bias, then normalisation with ε = 10⁻³, on BGR in HWIO: by numpy, at one place."""
    rng = np.random.default_rng(0)
    keras = {"fc1000/kernel": torch.zeros(2, 3), "fc1000/bias": torch.zeros(3)}
    names = [("conv1", "bn_conv1", (7, 7, 3, 4))]
    for stage, blocks in zip("2345", (3, 4, 6, 3), strict=True):
        for letter in "abcdef"[:blocks]:
            parts = ["branch2a", "branch2b", "branch2c"] + (["branch1"] if letter == "a" else [])
            names += [(f"res{stage}{letter}_{p}", f"bn{stage}{letter}_{p}", (1, 1, 2, 2)) for p in parts]
    for conv, norm, shape in names:
        keras[f"{conv}/kernel"] = torch.from_numpy(rng.normal(size=shape).astype(np.float32))
        for key in (f"{conv}/bias", f"{norm}/gamma", f"{norm}/beta", f"{norm}/moving_mean"):
            keras[key] = torch.from_numpy(rng.normal(size=shape[-1]).astype(np.float32))
        keras[f"{norm}/moving_variance"] = torch.from_numpy(rng.uniform(0.5, 2, size=shape[-1]).astype(np.float32))
    state = torchvision_names(keras)
    rgb = rng.normal(size=(7, 7, 3)).astype(np.float32)
    plain = np.einsum("hwi,hwio->o", rgb[..., ::-1], keras["conv1/kernel"].numpy()) + keras["conv1/bias"].numpy()
    mean, variance = keras["bn_conv1/moving_mean"].numpy(), keras["bn_conv1/moving_variance"].numpy()
    expected = keras["bn_conv1/gamma"].numpy() * (plain - mean) / np.sqrt(variance + 1e-3)
    expected += keras["bn_conv1/beta"].numpy()
    out = nn.functional.conv2d(torch.from_numpy(rgb.transpose(2, 0, 1).copy())[None], state["conv1.weight"])
    out = nn.functional.batch_norm(
        out, state["bn1.running_mean"], state["bn1.running_var"], state["bn1.weight"], state["bn1.bias"], eps=1e-3
    )
    assert np.allclose(out.flatten().numpy(), expected, atol=1e-3)
    assert len(state) == 5 * 53 + 2


@pytest.mark.parametrize("name", sorted(all_backbones.WIDTHS))
def test_a_real_backbone_gives_its_width(name):
    file = all_backbones.SOURCES[name].file
    if find(file) is None:
        pytest.skip(f"{file} is in no data directory")
    found = load(name).features(np.zeros((1, 32, 32, 3), dtype=np.uint8), 64)
    assert found.shape == (1, all_backbones.WIDTHS[name])
    assert np.isfinite(found).all()
