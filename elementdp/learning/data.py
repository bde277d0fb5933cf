"""Users' data in elements: rows of tensors or of a Dataset, each with a user and an element."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from elementdp.errors import ArgumentError, at_least
from elementdp.learning.groups import Batch, Pair
from elementdp.privacy import Unit

Indices = NDArray[np.int64]


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

    ``n_users`` counts users without data too: n is public, and the private iteration divides by qn.
    """

    def __init__(
        self,
        fetch: Callable[[Tensor], Pair],
        users: ArrayLike,
        elements: ArrayLike,
        n_users: int | None = None,
        *,
        content: str = "",
    ) -> None:
        who, what = np.asarray(users), np.asarray(elements)
        if who.ndim != 1 or who.shape != what.shape:
            raise ArgumentError("elements", what.shape, f"one for each of the {who.shape} users' rows")
        names, self.users = np.unique(who, return_inverse=True)
        self.elements: Indices = np.unique(what, return_inverse=True)[1].astype(np.int64)
        self.n_users = at_least("n_users", len(names) if n_users is None else n_users, max(1, len(names)))
        self.fetch, self.content = fetch, content
        self.groups = cache(self._groups)

    @classmethod
    def of(
        cls, inputs: Tensor, targets: Tensor, users: ArrayLike, elements: ArrayLike, n_users: int | None = None
    ) -> "UserData":
        """Data in memory: row i of ``inputs`` and ``targets`` belongs to ``users[i]`` and ``elements[i]``."""
        if not len(inputs) == len(targets) == len(np.asarray(users)):
            raise ArgumentError("users", len(np.asarray(users)), f"one for each of the {len(inputs)} rows")
        content = hashlib.sha256()
        for tensor in (inputs, targets):
            content.update(str((tensor.dtype, tuple(tensor.shape))).encode())
            content.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        return cls(lambda rows: (inputs[rows], targets[rows]), users, elements, n_users, content=content.hexdigest())

    @classmethod
    def of_dataset(
        cls, dataset: Dataset[Any], users: ArrayLike, elements: ArrayLike, n_users: int | None = None
    ) -> "UserData":
        """A torch Dataset of (input, target) pairs, loaded as they are needed."""

        def fetch(rows: Tensor) -> Pair:
            inputs, targets = default_collate([dataset[int(row)] for row in rows])
            return inputs, torch.as_tensor(targets)

        return cls(fetch, users, elements, n_users)

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

    @property
    def fingerprint(self) -> str:
        """Tells two samples apart: ids always, the tensors too where they are in memory."""
        digest = hashlib.sha256(f"{self.n_users} {self.content}".encode())
        for ids in (self.users, self.elements):
            digest.update(np.ascontiguousarray(ids, dtype=np.int64).tobytes())
        return digest.hexdigest()
