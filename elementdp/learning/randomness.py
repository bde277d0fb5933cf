"""Random numbers that cannot be guessed: AES-256 in counter mode, with a key from the operating system.

torch's generator on the CPU keeps 32 bits of its seed. The noise of a run can then be found by trying them all, from
any parameter whose released value is noise alone, and subtracted. Here the key has 256 bits, and every draw is a
function of the key, its purpose and its step: a resumed run needs the key and the step, draws do not depend on the
number of processes, and the noise of an earlier step can be drawn again.
"""

import hashlib
import math
import secrets
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray
from torch import Tensor

_PIECE = 1 << 15
"""So many words are radii of normal numbers, and as many after them their angles: part of what a stream is."""
_TOGETHER = 4
"""So many pieces are made at a time: enough for torch's threads to share, and few enough for the cache."""


class Purpose(IntEnum):
    """What draws are for; each has a stream of its own for every step."""

    SAMPLING = 1
    NOISE = 2
    PASSES = 3  # the seeds of dropout and of rows that are drawn
    BOUNDING = 4  # which elements of a user are kept, once before the first step


class Stream:
    """The draws of one purpose in one step, in order."""

    def __init__(self, key: bytes, purpose: Purpose, step: int) -> None:
        start = purpose.to_bytes(1, "big") + step.to_bytes(7, "big") + bytes(8)
        self._cipher = Cipher(algorithms.AES256(key), modes.CTR(start)).encryptor()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Independent whole numbers, uniform below 2⁶⁴."""
        return np.frombuffer(self._cipher.update(bytes(8 * count)), dtype="<u8")

    def uniform(self, count: int) -> NDArray[np.float64]:
        """Uniform multiples of 2⁻⁵³ in [0, 1)."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def normal(self, count: int) -> Tensor:
        """N(0, 1) in float64 by Box and Muller's transform: two words for two numbers.

        The radius comes from 63 bits, so that tails are cut only where 2⁻⁶³ of the mass is left, beyond 9.3.
        """
        result = torch.empty(count, dtype=torch.float64)
        self.fill_normal(result, 1.0, Room())
        return result

    def fill_normal(self, values: Tensor, scale: float, room: "Room") -> None:
        """Put ``scale`` times the numbers of :meth:`normal` into a vector, rounded to its precision."""
        whole = len(values) // (2 * _PIECE) * 2 * _PIECE
        for start in range(0, whole, 2 * _PIECE * _TOGETHER):
            part = values[start : min(whole, start + 2 * _PIECE * _TOGETHER)]
            room.fill(part.view(-1, 2, _PIECE), scale, self._cipher)
        if rest := len(values) - whole:
            even = values.new_empty(1, 2, (rest + 1) // 2)
            room.fill(even, scale, self._cipher)
            values[whole:] = even.view(-1)[:rest]


class Room:
    """Memory in which normal numbers are made. A run keeps it: the system is slow to hand out new memory."""

    def __init__(self) -> None:
        pairs = _PIECE * _TOGETHER
        self._zeros = memoryview(bytes(16 * pairs))
        self._words = np.empty(2 * pairs + 2, dtype=np.int64)  # the cipher asks for two more than it fills
        self._numbers = torch.empty(3 * pairs, dtype=torch.float64)

    def fill(self, pieces: Tensor, scale: float, cipher: CipherContext) -> None:
        """Fill (pieces, 2, pairs): from a piece's first half of words come radii, from the second angles."""
        count = pieces.numel()
        cipher.update_into(self._zeros[: 8 * count], self._words.data.cast("B"))
        words = torch.from_numpy(self._words)[:count].view_as(pieces)
        radius, angle, cosine = self._numbers[: 3 * count // 2].view(3, len(pieces), -1)
        radius.copy_(words[:, 0].bitwise_and_(2**63 - 1)).add_(1).mul_(2.0**-63).log_().mul_(-2).sqrt_()
        angle.copy_(words[:, 1]).mul_(math.pi * 2.0**-63)
        torch.cos(angle, out=cosine)
        pieces[:, 0] = cosine.mul_(radius).mul_(scale)
        pieces[:, 1] = angle.sin_().mul_(radius).mul_(scale)


@dataclass(frozen=True)
class Randomness:
    """All random numbers of a run. Whoever has the key can subtract the noise: it is as secret as the data."""

    key: bytes = field(repr=False)

    @classmethod
    def secret(cls) -> "Randomness":
        """A key that nobody knows, from the operating system."""
        return cls(secrets.token_bytes(32))

    @classmethod
    def seeded(cls, seed: int) -> "Randomness":
        """A key that everybody can compute: for runs that have to repeat, and that protect no one."""
        return cls(hashlib.sha256(f"elementdp seed {seed}".encode()).digest())

    def stream(self, purpose: Purpose, step: int = 0) -> Stream:
        """The draws for one purpose in one step, from their beginning."""
        return Stream(self.key, purpose, step)
