"""Pools of photos from every kind of source: by name, packed or not, one's own photos, ready-made features."""

import io
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from elementdp.companion.data import SOURCES, DataError, digest, store
from elementdp.companion.data.backbones import Backbone
from elementdp.companion.experiments.images import last_layer, load_cifar, load_photos, photo_set, reduced
from elementdp.companion.experiments.images.pools import PHOTOS_SIDE
from elementdp.errors import ArgumentError

LABELS = {f"n{number:03d}": 3 for number in range(120)}


def jpeg(number):
    values = np.random.default_rng(number).integers(0, 256, size=(4, 4, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(values).resize((64, 64), Image.Resampling.NEAREST).save(buffer, "JPEG")
    return buffer.getvalue()


def layout(top="tiny-imagenet-200"):
    """More labels than are kept, all equally frequent, as in the whole Tiny-ImageNet."""
    files = {"wnids.txt": "\n".join(reversed(LABELS)), "words.txt": "n000\tgoldfish, Carassius auratus\n"}
    photos = {}
    for position, (label, count) in enumerate(LABELS.items()):
        for number in range(count):
            photos[f"train/{label}/images/{label}_{number}.JPEG"] = jpeg(10 * position + number)
    notes = []
    for number in range(30):
        photos[f"val/images/val_{number}.JPEG"] = jpeg(10_000 + number)
        notes.append(f"val_{number}.JPEG\tn{4 * number:03d}\t0\t0\t9\t9")
    files["val/val_annotations.txt"] = "\n".join(notes)
    return {f"{top}/{name}": content for name, content in ({k: v.encode() for k, v in files.items()} | photos).items()}


def write(kind, folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "zip":
        with zipfile.ZipFile(folder / "tiny-imagenet-200.zip", "w") as package:
            for name, content in files.items():
                package.writestr(name, content)
        return folder / "tiny-imagenet-200.zip"
    if kind == "tar":
        with tarfile.open(folder / "tiny-imagenet-200.tar", "w") as package:
            for name, content in reversed(files.items()):
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                package.addfile(entry, io.BytesIO(content))
        return folder / "tiny-imagenet-200.tar"
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder / "tiny-imagenet-200"


class Coarse(nn.Module):
    """Colours on a coarse grid as features: quick, and different for different photos."""

    def forward(self, pictures):
        return nn.functional.adaptive_avg_pool2d(pictures, 4).flatten(1)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty data directory, no network, and a backbone that costs nothing."""
    home = tmp_path / "data"
    home.mkdir()
    monkeypatch.setenv("ELEMENTDP_DATA", str(home))
    monkeypatch.setenv("ELEMENTDP_OFFLINE", "1")
    monkeypatch.setattr(store.platformdirs, "user_cache_path", lambda *args, **kwargs: tmp_path / "cache")
    cheap = Backbone(
        "mobilenet-v2", SOURCES["mobilenet-v2"].sha256, Coarse(), nn.Identity(), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    )
    monkeypatch.setattr(photo_set, "load", lambda name: cheap)
    return home


@pytest.mark.parametrize("kind", ["zip", "tar", "directory"])
def test_the_whole_tiny_imagenet_works_end_to_end(home, monkeypatch, kind):
    path = write(kind, home, layout())
    if kind == "zip":
        monkeypatch.setitem(SOURCES, "tiny-imagenet", replace(SOURCES["tiny-imagenet"], sha256=digest(path)))
    assert load_photos("tiny-imagenet", photos=300, tests=30).stand_in, "features are not there yet"
    lines = []
    pool = load_photos("tiny-imagenet", photos=300, tests=30, dimension=0, compute=True, report=lines.append)
    assert not pool.stand_in
    assert "300 of 300" in lines[1]
    assert pool.inputs.shape == (300, 48)
    assert len(pool.names) == 101
    assert (pool.names[0], pool.names[99], pool.names[100]) == ("goldfish", "n099", "unknown")
    # 20 of 120 labels of three photos each are too rare; 5 of the 30 annotated ones.
    assert 60 - (360 - 300) <= (pool.labels == 100).sum() <= 60
    assert (pool.test_labels == 100).sum() == 5
    again = load_photos("tiny-imagenet", photos=300, tests=30, dimension=0)
    assert again.fingerprint == pool.fingerprint
    shown = pool.pictures(np.arange(3))
    assert shown.shape == (3, 64, 64, 3)
    with torch.inference_mode():
        pixels = torch.from_numpy(shown).permute(0, 3, 1, 2).float() / 255
        colours = Coarse()(nn.functional.interpolate(pixels, size=(PHOTOS_SIDE, PHOTOS_SIDE), mode="bilinear")).numpy()
    assert np.allclose(reduced(colours, 0), pool.inputs[:3], atol=2e-3), "pictures are those of the rows"


def test_the_packing_changes_neither_features_nor_provenance(home, tmp_path):
    pools = [
        load_photos(str(write(kind, tmp_path / kind, layout())), photos=200, tests=20, compute=True)
        for kind in ("zip", "tar", "directory")
    ]
    assert len({pool.fingerprint for pool in pools}) == 1
    assert len({next(iter(pool.data.values())) for pool in pools}) == 1
    assert [next(iter(pool.data)) for pool in pools] == [
        "tiny-imagenet-200.zip",
        "tiny-imagenet-200.tar",
        "tiny-imagenet-200",
    ]


def test_an_official_archive_with_other_content_is_refused(home):
    write("zip", home, layout())
    pool = load_photos("tiny-imagenet", photos=10, tests=10, compute=True)
    assert pool.stand_in
    assert "is not tiny-imagenet" in pool.reason


def test_photos_of_ones_own_are_used_or_refused_but_never_replaced(home, tmp_path):
    mine = write("directory", tmp_path / "mine", layout("tiny-imagenet-200"))
    with pytest.raises(DataError, match="not in the cache"):
        load_photos(str(mine), photos=50, tests=10)
    pool = load_photos(str(mine), photos=50, tests=10, compute=True)
    assert not pool.stand_in
    (mine / "words.txt").unlink()
    with pytest.raises(DataError, match="Tiny-ImageNet's layout"):
        load_photos(str(mine), photos=50, tests=10)
    with pytest.raises(ArgumentError, match="tiny-imagenet-101, tiny-imagenet, stand-in, or a path that exists"):
        load_photos("tiny-imagnet")


@pytest.fixture
def ready_made(tmp_path):
    """Features of 500 photos in three bunches, tagged by bunch, as YFCC100M's would be."""
    rng = np.random.default_rng(0)
    bunch = rng.integers(3, size=500)
    folder = tmp_path / "flickr"
    folder.mkdir()
    np.save(folder / "features.npy", 3 * np.eye(3, 40)[bunch] + 0.3 * rng.normal(size=(500, 40)))
    words = ("sea,holiday", "cat", "")
    (folder / "tags.txt").write_text("".join(f"{words[number]}\n" for number in bunch))
    return folder, bunch


def test_features_of_ones_own_are_split_once_and_for_all(home, ready_made):
    folder, bunch = ready_made
    pool = load_photos(str(folder), photos=300, tests=80, dimension=0)
    assert (pool.inputs.shape, pool.test_inputs.shape) == ((300, 40), (80, 40))
    assert set(pool.names) == {"cat", "sea", "holiday", "unknown"}
    raw = reduced(np.load(folder / "features.npy").astype(np.float32), 0)
    where = [np.flatnonzero((raw == row).all(1)) for row in np.concatenate([pool.inputs, pool.test_inputs])]
    rows = np.array([found.item() for found in where])
    assert len(set(rows)) == 380, "no photo is both trained on and tested"
    expected = [{"cat"} if bunch[row] == 1 else {"sea", "holiday"} if bunch[row] == 0 else {"unknown"} for row in rows]
    told = np.concatenate([pool.labels, pool.test_labels])
    assert all(pool.names[label] in names for label, names in zip(told, expected, strict=True))
    smaller = load_photos(str(folder), photos=100, tests=80, dimension=0)
    assert (smaller.inputs == pool.inputs[:100]).all()
    assert (smaller.test_inputs == pool.test_inputs).all()
    everything = load_photos(str(folder), dimension=16)
    assert (len(everything.inputs), len(everything.test_inputs)) == (400, 100)
    assert everything.inputs.shape[1] == 16


def test_features_without_pictures_say_so_and_are_drawn_as_tiles(home, ready_made):
    pool = load_photos(str(ready_made[0]), photos=300, tests=80)
    assert pool.label == "flickr (features without pictures)"
    assert not pool.stand_in
    tiles = pool.pictures(np.array([0, 1, 0]))
    assert tiles.shape == (3, 32, 32, 3)
    assert (tiles[0] == tiles[2]).all()
    assert (tiles[0] != tiles[1]).any()
    # The experiment itself takes them as any other pool.
    elements = pool.elements(3)
    assert len(set(zip(elements.tolist(), pool.labels.tolist(), strict=True))) == 3, "bunches, elements and tags agree"
    assert last_layer(pool, images=10).make()(torch.from_numpy(pool.inputs)).shape == (300, 4)


def test_ready_made_features_that_do_not_fit_are_refused(home, ready_made):
    folder, _ = ready_made
    values = np.load(folder / "features.npy")
    np.save(folder / "features.npy", values[:-1])
    with pytest.raises(DataError, match="500 lines"):
        load_photos(str(folder))
    values[7, 3] = np.nan
    np.save(folder / "features.npy", values)
    with pytest.raises(DataError, match="not finite"):
        load_photos(str(folder))
    np.save(folder / "features.npy", values.astype(str))
    with pytest.raises(DataError, match="row of numbers"):
        load_photos(str(folder))
    (folder / "tags.txt").unlink()
    with pytest.raises(DataError, match=r"tags\.txt cannot be read"):
        load_photos(str(folder))
    (folder / "features.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(DataError, match=r"features\.npy is no array"):
        load_photos(str(folder))


@pytest.mark.parametrize("loader", [load_photos, load_cifar])
def test_bad_arguments_are_refused_before_anything_is_read(home, loader):
    for wrong in ({"backbone": "resnet51"}, {"photos": 0}, {"tests": 0}, {"dimension": -1}):
        (name,) = wrong
        with pytest.raises(ArgumentError, match=name):
            loader(**wrong)
