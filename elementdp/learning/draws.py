"""The random numbers that models, losses and rows may draw from, whoever made them: torch's, numpy's and Python's."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


@contextmanager
def same_draws(seed: int = 1, devices: Sequence[torch.device] | None = None) -> Iterator[None]:
    """The same random numbers each time, from torch, numpy and Python; the caller's own are untouched."""
    states: tuple[Any, ...] = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed([seed & 0xFFFFFFFF, seed >> 32])  # noqa: NPY002 -- what a model may draw from
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002


def random_state() -> tuple[object, ...]:
    """Where the random numbers of torch, numpy and Python stand."""
    on_cuda = [state.tolist() for state in torch.cuda.get_rng_state_all()] if torch.cuda.is_available() else []
    return *host_random_state(), torch.get_rng_state().numpy().tobytes(), on_cuda


def host_random_state() -> tuple[object, ...]:
    """Where Python's and numpy's random numbers stand."""
    _, words, *rest = np.random.get_state()  # noqa: NPY002
    return random.getstate(), np.asarray(words).tobytes(), *rest
