"""Draws that cannot be guessed: the cipher, the laws, and what a checkpoint keeps."""

import random
import secrets
import stat

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from learning.running import trained
from scipy import stats
from torch import nn

from elementdp.learning import UserData
from elementdp.learning.checkpoint import unpack
from elementdp.learning.draws import same_draws
from elementdp.learning.noise import FloatArithmetic
from elementdp.learning.randomness import Purpose, Randomness


def test_words_are_the_blocks_of_aes_256_in_counter_mode():
    random = Randomness.seeded(1)
    block = Cipher(algorithms.AES256(random.key), modes.ECB()).encryptor()
    counters = b"".join(((2 << 120) + (5 << 64) + i).to_bytes(16, "big") for i in range(3))
    assert random.stream(Purpose.NOISE, 5).words(6).tobytes() == block.update(counters)


def test_every_bit_of_the_key_matters():
    """Of a torch generator's seed only 32 bits do: they can all be tried."""
    key = Randomness.secret().key
    assert len(key) == 32
    seen = {Randomness(key).stream(Purpose.NOISE, 1).normal(2).numpy().tobytes()}
    for bit in range(256):
        other = (int.from_bytes(key, "big") ^ (1 << bit)).to_bytes(32, "big")
        seen.add(Randomness(other).stream(Purpose.NOISE, 1).normal(2).numpy().tobytes())
    assert len(seen) == 257


def test_purposes_and_steps_have_streams_of_their_own():
    random = Randomness.seeded(0)
    seen = [random.stream(purpose, step).words(4).tobytes() for purpose in Purpose for step in range(50)]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize(("draw", "law"), [("uniform", stats.uniform), ("normal", stats.norm)])
def test_draws_have_their_law(draw, law):
    found = np.asarray(getattr(Randomness.seeded(2).stream(Purpose.NOISE), draw)(200_001))
    assert len(found) == 200_001
    assert stats.kstest(found, law.cdf).pvalue > 1e-3
    halves = found[:100_000], found[100_000:200_000]
    assert abs(np.corrcoef(*halves)[0, 1]) < 5 / 100_000**0.5


@pytest.mark.parametrize("count", [1, 7, 65_536, 65_539, 400_001])
def test_normal_numbers_are_box_and_mullers_of_the_words(count):
    """In pieces of 2¹⁵ pairs: words for the radii first, then words for the angles."""
    random, expected, left = Randomness.seeded(4), np.empty(0), count + count % 2
    words = random.stream(Purpose.NOISE).words(left)
    while left:
        pairs = min(left, 65_536) // 2
        first, second, words = words[:pairs], words[pairs : 2 * pairs].astype(np.int64), words[2 * pairs :]
        radius = np.sqrt(-2 * np.log(((first & np.uint64(2**63 - 1)).astype(float) + 1) * 2.0**-63))
        angle = second * (np.pi * 2.0**-63)
        expected = np.concatenate([expected, radius * np.cos(angle), radius * np.sin(angle)])
        left -= 2 * pairs
    assert np.allclose(random.stream(Purpose.NOISE).normal(count), expected[:count], rtol=1e-12, atol=1e-15)


def test_the_noise_of_a_step_depends_neither_on_threads_nor_on_how_parameters_lie():
    """One vector for all parameters, each rounded to its precision."""
    shapes, random, threads = [(300, 400), (1,), (7,), (50, 3)], Randomness.seeded(6), torch.get_num_threads()
    whole = 1.5 * random.stream(Purpose.NOISE, 3).normal(120_158)
    arithmetic = FloatArithmetic(0.5)
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            total = [torch.zeros(shape) for shape in shapes]
            total[0] = torch.zeros(400, 300).mT
            arithmetic.add_noise(total, 3.0, random, 3)
            assert torch.equal(torch.cat([t.flatten() for t in total]), whole.float())
    finally:
        torch.set_num_threads(threads)


def test_tails_of_the_normal_law_are_there():
    found = Randomness.seeded(3).stream(Purpose.NOISE).normal(4_000_000).abs()
    for at in (3.0, 4.0):
        expected = 4_000_000 * 2 * stats.norm.sf(at)
        assert abs(int((found > at).sum()) - expected) < 5 * expected**0.5


def problem():
    data = UserData.of(torch.randint(5, (20,)), torch.randint(3, (20,)), torch.arange(20) % 6, torch.arange(20) % 3, 6)
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(5, 8, padding_idx=0), nn.Linear(8, 3)), data


def run(path=None, seed=None):
    model, data = problem()
    options = {"rho": 1.0, "steps": 4, "q": 0.5, "sigma": 1.0, "delta": 1e-3}
    return trained(model, data, nn.CrossEntropyLoss(reduction="none"), seed=seed, checkpoint=path, **options)


def test_a_checkpoint_keeps_the_key_for_its_owner_only(tmp_path):
    path = tmp_path / "run.ckpt"
    run(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(bytes.fromhex(unpack(path.read_bytes(), "run")["key"])) == 32


def test_a_seeded_run_says_that_it_protects_no_one():
    assert "protects no one" in str(run(seed=3))
    assert "protects no one" not in str(run())
    assert str(run()).startswith("(")


def test_the_passes_of_a_step_draw_from_more_than_32_bits():
    """A dropout mask depends on the rows before its own: by trying all masks one would see that an element changed."""

    class Spy(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.seen = inner, []

        def forward(self, x):
            self.seen.append((torch.initial_seed(), torch.rand(4), np.random.rand(4), random.random()))  # noqa: NPY002
            return self.inner(x)

    model, data = problem()
    spy = Spy(model)
    options = {"rho": 1.0, "steps": 1, "q": 0.5, "sigma": 1.0, "delta": 1e-3, "method": "loop"}
    trained(spy, data, nn.CrossEntropyLoss(reduction="none"), **options)
    seed, drawn, by_numpy, _ = spy.seen[-1]
    torch.manual_seed(seed)
    assert not torch.isin(drawn, torch.rand(1000)).any()
    assert not np.isin(by_numpy, np.random.RandomState(seed & 0xFFFFFFFF).rand(1000)).any()


def test_every_bit_of_a_long_seed_matters():
    seen = set()
    for bit in [None, *range(256)]:
        with same_draws((1 << 255) ^ (0 if bit is None else 1 << bit)):
            seen.add((*torch.rand(3).tolist(), *np.random.rand(3).tolist(), random.random()))  # noqa: NPY002
            torch_first = torch.rand(1000, dtype=torch.float64)
            assert not np.isin(np.random.rand(1000), torch_first.numpy()).any()  # noqa: NPY002
    assert len({numbers[:3] for numbers in seen}) == 257
    assert len({numbers[3:6] for numbers in seen}) == 257
    assert len({numbers[6] for numbers in seen}) == 257


def test_torch_with_a_long_seed_is_still_a_uniform_generator():
    with same_draws(secrets.randbits(256) | 1 << 255):
        assert stats.kstest(torch.rand(100_000).numpy(), stats.uniform.cdf).pvalue > 1e-4
        assert stats.kstest(torch.randn(100_000).numpy(), stats.norm.cdf).pvalue > 1e-4
