"""Users' data in elements: rows of tensors or of a Dataset, each with a user and an element."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset, default_collate

from elementdp.errors import ArgumentError, at_least
from elementdp.learning._fast.general import Loss
from elementdp.learning.batch import Batch
from elementdp.learning.clipping import GroupClipper
from elementdp.learning.plan import Plan
from elementdp.learning.rows import Pair
from elementdp.privacy import Unit

Indices = NDArray[np.int64]
SAMPLED_ROWS = 256
"""How many rows of a Dataset a checkpoint compares."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows in groups: ``order`` lists them group by group, group g from ``start[g]``; ``user`` owns the group."""

    user: Indices
    element: Indices
    start: Indices
    order: Indices

    def __len__(self) -> int:
        return len(self.user)

    @cached_property
    def sizes(self) -> Indices:
        """Rows in each group."""
        return np.diff(self.start)

    def rows(self, chosen: Indices) -> tuple[Indices, Indices]:
        """The rows of the chosen groups and the groups' sizes, small groups first (which is the fast order)."""
        chosen = chosen[np.argsort(self.sizes[chosen], kind="stable")]
        sizes = self.sizes[chosen]
        ends = np.cumsum(sizes)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        return self.order[np.repeat(self.start[:-1][chosen], sizes) + within], sizes


class UserData:
    """A sample {x^(u)}: ``fetch`` loads rows, and every row has a user and an element.

    ``n_users`` has to be given and counts users without data too: n is public, the private iteration divides by qn,
    and a count of the users with rows would change with the data it is to protect.

    ``content`` names the rows' values for checkpoints: a resumed run repeats its noise, which must not meet other data.
    Tensors are hashed whole. What is loaded piece by piece is hashed at up to ``SAMPLED_ROWS`` rows, and not at all if
    loading is random: give ``content`` (a hash of the files, say) to have every change noticed.
    """

    def __init__(
        self,
        fetch: Callable[[Tensor], Pair],
        users: ArrayLike,
        elements: ArrayLike,
        n_users: int | None = None,
        *,
        content: str | None = None,
    ) -> None:
        if n_users is None:
            raise ArgumentError(
                "n_users", n_users, "given: n is public, and must not be read off the rows, whose loss would show in it"
            )
        who, what = np.asarray(users), np.asarray(elements)
        if who.ndim != 1 or who.shape != what.shape:
            raise ArgumentError("elements", what.shape, f"one for each of the {who.shape} users' rows")
        names, self.users = np.unique(who, return_inverse=True)
        self.elements: Indices = np.unique(what, return_inverse=True)[1].astype(np.int64)
        self.n_users = at_least("n_users", n_users, max(1, len(names)))
        self.fetch, self.content = fetch, content
        self.groups = cache(self._groups)

    @classmethod
    def of(
        cls, inputs: Tensor, targets: Tensor, users: ArrayLike, elements: ArrayLike, n_users: int | None = None
    ) -> "UserData":
        """Data in memory: row i of ``inputs`` and ``targets`` belongs to ``users[i]`` and ``elements[i]``."""
        if not len(inputs) == len(targets) == len(np.asarray(users)):
            raise ArgumentError("users", len(np.asarray(users)), f"one for each of the {len(inputs)} rows")
        content = _hashed([inputs, targets])
        return cls(lambda rows: (inputs[rows], targets[rows]), users, elements, n_users, content=content)

    @classmethod
    def of_dataset(
        cls,
        dataset: Dataset[Any],
        users: ArrayLike,
        elements: ArrayLike,
        n_users: int | None = None,
        *,
        content: str | None = None,
    ) -> "UserData":
        """A torch Dataset of (input, target) pairs, loaded as they are needed; a checkpoint knows a sample of them."""

        def fetch(rows: Tensor) -> Pair:
            inputs, targets = default_collate([dataset[int(row)] for row in rows])
            return inputs, torch.as_tensor(targets)

        if content is None and isinstance(dataset, TensorDataset):
            content = _hashed(dataset.tensors)
        return cls(fetch, users, elements, n_users, content=content)

    def _groups(self, unit: Unit) -> Groups:
        parts = self.elements if unit is Unit.ELEMENT else np.zeros_like(self.elements)
        order = np.lexsort((parts, self.users))
        user, part = self.users[order], parts[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (user[1:] != user[:-1]) | (part[1:] != part[:-1])
        start = np.append(np.flatnonzero(first), len(order))
        return Groups(user[first], part[first], start, order)

    @property
    def most_elements(self) -> int:
        """The largest number of elements any user has."""
        return int(np.bincount(self.groups(Unit.ELEMENT).user).max(initial=0))

    def batch(self, unit: Unit, chosen: Indices) -> Batch:
        """The chosen groups as a batch whose rows are loaded when needed."""
        rows, sizes = self.groups(unit).rows(chosen)
        index = torch.from_numpy(rows)
        return Batch(tuple(sizes.tolist()), lambda part: self.fetch(index[part]))

    def clipper(self, model: nn.Module, loss: Loss, plan: Plan) -> GroupClipper:
        """What finds the clipped sums of a run; data that know more about their rows may have a faster one."""
        return GroupClipper(model, loss, plan.rho, domain=plan.domain, method=plan.method, precision=plan.precision)

    def _sampled(self) -> str:
        """The values of some rows, evenly spread, where loading a row twice gives the same."""
        count = len(self.users)
        rows = np.unique(np.linspace(0, count - 1, min(count, SAMPLED_ROWS)).round().astype(np.int64))
        found = []
        for _ in range(2):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                found.append(_hashed([t for row in rows.tolist() for t in self.fetch(torch.tensor([row]))]))
        return found[0] if found[0] == found[1] else "random"

    @cached_property
    def fingerprint(self) -> str:
        """Tells two samples apart: by ids, and by ``content`` or else a sample of the rows."""
        content = self._sampled() if self.content is None else self.content
        digest = hashlib.sha256(f"{self.n_users} {content}".encode())
        for ids in (self.users, self.elements):
            digest.update(np.ascontiguousarray(ids, dtype=np.int64).tobytes())
        return digest.hexdigest()


def _hashed(tensors: Sequence[Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(str((tensor.dtype, tuple(tensor.shape))).encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
