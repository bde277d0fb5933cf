"""What is trained: the last layer on photos' features (Section 4.3), a whole network on pixels (Section 4.4)."""

import hashlib
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elementdp.companion.data.pseudo_users import PseudoUsers, pseudo_users
from elementdp.companion.experiments.images.network import tutorial_network
from elementdp.companion.experiments.images.photo_set import PhotoSet
from elementdp.companion.experiments.images.running import ImageTask
from elementdp.companion.experiments.images.shared_photos import PhotoData
from elementdp.companion.experiments.images.variants import Variant
from elementdp.learning import UserData

Holdings = Callable[[Variant, int], PseudoUsers]
"""Who holds which photos, for a variant and a repetition."""


def holdings(photos: PhotoSet, images: int, seed: int = 0, *, by: Literal["clusters", "users"]) -> Holdings:
    """Pseudo-users with ``images`` photos each. ``by`` is the size beside k that a figure varies: it seeds the draw."""
    elements = cache(lambda count: photos.elements(count, seed))

    @cache
    def held(k: int, clusters: int, users: int, repetition: int) -> PseudoUsers:
        size = clusters if by == "clusters" else users
        return pseudo_users(elements(clusters), users, images, k, np.random.default_rng([seed, k, size, repetition]))

    return lambda variant, repetition: held(variant.k, variant.clusters, variant.users, repetition)


def last_layer(photos: PhotoSet, images: int, seed: int = 0) -> ImageTask:
    """Multiclass logistic regression on the photos' features: the last layer of the network, starting from zero."""

    def make() -> nn.Module:
        layer = nn.Linear(photos.inputs.shape[1], len(photos.names))
        for parameter in layer.parameters():
            nn.init.zeros_(parameter)
        return layer

    held = holdings(photos, images, seed, by="clusters")
    return _task(photos, torch.from_numpy, make, held, 5, f"last layer {photos.fingerprint} {seed}")


def whole_network(photos: PhotoSet, images: int, seed: int = 0) -> ImageTask:
    """The tutorial's network trained from scratch, judged by top-1 accuracy."""
    held = holdings(photos, images, seed, by="users")
    return _task(photos, pixels, tutorial_network, held, 1, f"tutorial network {photos.fingerprint} {seed}")


def _task(
    photos: PhotoSet,
    tensor: Callable[[NDArray[Any]], Tensor],
    make: Callable[[], nn.Module],
    held: Holdings,
    best: int,
    content: str,
) -> ImageTask:
    """A model on these photos; an answer counts if the label is among the ``best`` scores."""
    inputs, labels = tensor(photos.inputs), torch.from_numpy(photos.labels)
    tests, answers = tensor(photos.test_inputs), torch.from_numpy(photos.test_labels)
    halves = [(tests[start::2].contiguous(), answers[start::2]) for start in (0, 1)]  # for tuning, and for reporting

    @lru_cache(maxsize=2)  # tuning asks for the same users again and again, and what they share is found once
    def shared(who: PseudoUsers) -> PhotoData:
        return PhotoData(inputs, labels, who, f"{content} {hashlib.sha256(who.image.tobytes()).hexdigest()}")

    def data(variant: Variant, repetition: int) -> UserData:
        return shared(held(variant, repetition))

    def score(model: nn.Module, part: int) -> float:
        device = next(model.parameters()).device
        rows, right = (half.to(device) for half in halves[part])
        with torch.no_grad():
            return top(model(rows), right, best)

    return ImageTask(make, data, score, content)


def top(scores: Tensor, labels: Tensor, k: int) -> float:
    """The share of rows whose label is among the k best scores."""
    best = scores.topk(min(k, scores.shape[1]), dim=1).indices
    return float((best == labels[:, None]).any(1).double().mean())


def pixels(images: NDArray[np.uint8]) -> Tensor:
    """Bytes to numbers between -1 and 1, channels first, as in the tutorial."""
    return torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float().div_(127.5).sub_(1).contiguous()
