"""The random numbers that models, losses and rows may draw from, whoever made them: torch's, numpy's and Python's."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

_HEAD, _WORDS = 3, 624
"""Where the words of the Mersenne twister are in the state of torch's generator, in numbers of 64 bits."""


@contextmanager
def same_draws(seed: int = 1, devices: Sequence[torch.device] | None = None) -> Iterator[None]:
    """The same random numbers each time, from torch, numpy and Python; the caller's own are untouched.

    All bits of a seed of more than 63 count, on the CPU: a dropout mask depends on how many rows come before its own,
    so a changed element moves the masks of others, and only masks that nobody can try one by one hide that.
    """
    states: tuple[Any, ...] = random.getstate(), np.random.get_state()  # noqa: NPY002
    words = [seed & 0xFFFFFFFF, *(seed >> place & 0xFFFFFFFF for place in range(32, max(64, seed.bit_length()), 32))]
    with torch.random.fork_rng(devices):
        _seed(seed & (2**63 - 1))
        if seed >> 63:
            _fill(words)
        random.seed(seed)
        np.random.seed(words)  # noqa: NPY002 -- what a model may draw from
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002


def _seed(seed: int) -> None:
    """Seed torch's generators: where there is none but the processor's, not by the way that waits for others."""
    elsewhere = torch.cuda.is_initialized() or torch.backends.mps.is_available()  # type: ignore[no-untyped-call]
    if elsewhere:
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def _fill(words: Sequence[int]) -> None:
    """Seed torch's generator with all of these words: by itself it takes 32 bits of a seed, which can all be tried.

    numpy's own generator, which is seeded after this, is lent for it: a new one takes ten times as long.
    """
    state = torch.get_rng_state()
    numbers = state.numpy().view(np.uint64)
    np.random.seed([*words, 1])  # noqa: NPY002 -- one more word: numpy's draws differ
    twister: Any = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    numbers[_HEAD : _HEAD + _WORDS] = np.asarray(twister["key"], dtype=np.uint64)
    torch.set_rng_state(state)


def random_state() -> tuple[object, ...]:
    """Where the random numbers of torch, numpy and Python stand."""
    on_cuda = [state.tolist() for state in torch.cuda.get_rng_state_all()] if torch.cuda.is_available() else []
    return *host_random_state(), torch.get_rng_state().numpy().tobytes(), on_cuda


def host_random_state() -> tuple[object, ...]:
    """Where Python's and numpy's random numbers stand."""
    _, words, *rest = np.random.get_state()  # noqa: NPY002
    return random.getstate(), np.asarray(words).tobytes(), *rest
