"""Users' data in elements: rows of tensors or of a Dataset, each with a user and an element."""

import hashlib
from collections.abc import Callable, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset, TensorDataset, default_collate

from elementdp.elements.grouping import sorted_groups
from elementdp.errors import ArgumentError, at_least
from elementdp.learning._fast.general import Loss
from elementdp.learning.batch import Batch
from elementdp.learning.clipping import GroupClipper
from elementdp.learning.draws import same_draws
from elementdp.learning.plan import Plan
from elementdp.learning.rows import ONE_BY_ONE, Pair, Rows, count, each, tensors
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

    Rows are tensors, or tuples, lists and dictionaries of tensors: a dictionary of inputs is passed to the model by
    name, a tuple as several arguments.

    Args:
        fetch: loads the rows with these numbers: inputs and targets.
        users: the user of each row: numbers, strings or anything else that numpy can sort.
        elements: the element of each row.
        n_users: the number of users, those without data included. n is public, the private iteration divides by qn, and
            a count of the users with rows would change with the data it is to protect.
        content: names the rows' values for checkpoints: a resumed run repeats its noise, which must not meet other
            data. Tensors are hashed whole. What is loaded piece by piece is hashed at up to ``SAMPLED_ROWS`` rows, and
            not at all if loading is random: give a hash of the files, say, to have every change noticed.

    Raises:
        ArgumentError: without ``n_users`` or with too small a one, for missing ids and ids of several types, and for
            lists of different lengths.

    >>> rows = torch.arange(4)
    >>> data = UserData.of(torch.eye(4), rows, users=["a", "a", "b", "b"], elements=[0, 0, 0, 1], n_users=2)
    >>> data.most_elements
    2
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
        who, what = _ids("users", users), _ids("elements", elements)
        if who.shape != what.shape:
            raise ArgumentError("elements", what.shape, f"one for each of the {who.shape} users' rows")
        names, self.users = _numbered("users", who)
        self.elements: Indices = _numbered("elements", what)[1]
        self.n_users = at_least("n_users", n_users, max(1, len(names)))
        if not callable(fetch):
            raise ArgumentError("fetch", fetch, "a function that loads the rows of these numbers")
        self.fetch, self.content, self.workers = _whole("fetch", fetch), content, 0
        self.groups = cache(self._groups)

    @classmethod
    def of(
        cls, inputs: Rows, targets: Rows, users: ArrayLike, elements: ArrayLike, n_users: int | None = None
    ) -> "UserData":
        """Data in memory: row i of ``inputs`` and ``targets`` belongs to ``users[i]`` and ``elements[i]``."""
        rows, known = count((inputs, targets)), np.asarray(users).shape
        if known[:1] != (rows,):
            raise ArgumentError("users", known[0] if known else users, f"one for each of the {rows} rows")

        def fetch(index: Tensor) -> Pair:
            return each(inputs, lambda t: t[index]), each(targets, lambda t: t[index])

        return cls(fetch, users, elements, n_users, content=_hashed(tensors((inputs, targets))))

    @classmethod
    def of_dataset(
        cls,
        dataset: Dataset[Any],
        users: ArrayLike,
        elements: ArrayLike,
        n_users: int | None = None,
        *,
        content: str | None = None,
        collate: Callable[[list[Any]], Pair] = default_collate,
        workers: int = 0,
    ) -> "UserData":
        """A torch Dataset, loaded as its rows are needed; a checkpoint knows a sample of them.

        ``collate`` makes inputs and targets from a list of its items (pads texts, say); ``workers`` threads load them.
        They are threads and not processes, since rows are drawn anew in every step: a process would have to be handed
        each draw, and decoding images or reading files lets go of Python's lock anyway. Random numbers that threads
        draw come in no fixed order: such a run cannot be repeated, not even from a checkpoint.
        """
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
            raise ArgumentError(
                "dataset",
                type(dataset).__name__,
                "one whose rows are found by number (__getitem__): each step draws some",
            )
        known = np.asarray(users).shape
        if isinstance(dataset, Sized) and known[:1] != (len(dataset),):
            raise ArgumentError(
                "users", known[0] if known else users, f"one for each of the {len(dataset)} rows of the dataset"
            )
        if not callable(collate):
            raise ArgumentError("collate", collate, "a function that makes inputs and targets from a list of items")
        pool = ThreadPoolExecutor(workers) if at_least("workers", workers, 0) else None

        def fetch(rows: Tensor) -> Pair:
            together = pool.map if pool and not ONE_BY_ONE.get() else map
            return collate(list(together(dataset.__getitem__, rows.tolist())))

        if content is None and isinstance(dataset, TensorDataset):
            content = _hashed(dataset.tensors)
        found = cls(_whole("collate", fetch), users, elements, n_users, content=content)
        found.workers = workers
        return found

    def _groups(self, unit: Unit) -> Groups:
        parts = self.elements if unit is Unit.ELEMENT else np.zeros_like(self.elements)
        order, start = sorted_groups(self.users, parts)
        first = order[start[:-1]]
        return Groups(self.users[first], parts[first], start, order)

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
        return GroupClipper(
            model,
            loss,
            plan.rho,
            domain=plan.domain,
            method=plan.method,
            precision=plan.precision,
            by_group=plan.exact,
        )

    def _sampled(self) -> str:
        """The values of some rows, evenly spread, where loading a row twice gives the same."""
        total = len(self.users)
        rows = np.unique(np.linspace(0, total - 1, min(total, SAMPLED_ROWS)).round().astype(np.int64))
        found = []
        for _ in range(2):
            with same_draws(0, []):
                found.append(_hashed([t for row in rows.tolist() for t in tensors(self.fetch(torch.tensor([row])))]))
        return found[0] if found[0] == found[1] else "random"

    @cached_property
    def fingerprint(self) -> str:
        """Tells two samples apart: by ids, and by ``content`` or else a sample of the rows."""
        content = self._sampled() if self.content is None else self.content
        digest = hashlib.sha256(f"{self.n_users} {content}".encode())
        for ids in (self.users, self.elements):
            digest.update(np.ascontiguousarray(ids, dtype=np.int64).tobytes())
        return digest.hexdigest()


def _whole(name: str, fetch: Callable[[Tensor], object]) -> Callable[[Tensor], Pair]:
    """The same function, refused if it does not return inputs and targets of as many rows as it was asked for.

    Groups are told apart by the places of their rows: with a row too many or too few, one user's gradient would be
    clipped with another's.
    """

    def checked(rows: Tensor) -> Pair:
        loaded = fetch(rows)
        if not isinstance(loaded, tuple | list) or len(loaded) != 2:
            raise ArgumentError(
                name,
                f"{type(loaded).__name__} of {len(loaded)}" if isinstance(loaded, Sized) else loaded,
                "a function that returns inputs and targets: take labels out of a dictionary of both",
            )
        if (found := count((loaded[0], loaded[1]))) != len(rows):
            raise ArgumentError(
                name, f"a function that returns {found} rows", f"one that returns the {len(rows)} it was asked for"
            )
        return loaded[0], loaded[1]

    return checked


def _ids(name: str, values: ArrayLike) -> NDArray[Any]:
    """The ids as an array, if there is one for every row and all are of one type: numpy would turn 1 into '1'."""
    found = np.asarray(values)
    if found.ndim != 1:
        raise ArgumentError(name, found.shape, "one id for each row")
    listed: list[Any] = list(values) if isinstance(values, list | tuple) else []
    listed = found.tolist() if found.dtype == object else listed
    missing = any(map(_missing, listed)) or (isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values))
    if missing or (found.dtype.kind in "fmM" and bool((found != found).any())):
        raise ArgumentError(
            name, "a missing id", "one id for each row: an id that is missing would be a user of its own"
        )
    kinds = {str if isinstance(value, str) else bytes if isinstance(value, bytes) else float for value in listed}
    if len(kinds) > 1:
        raise ArgumentError(name, sorted({type(value).__name__ for value in listed}), "ids of one type")
    return found


def _missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is neither the same as itself nor another one
        return True


def _numbered(name: str, ids: NDArray[Any]) -> tuple[NDArray[Any], Indices]:
    """The different ids, and the number of each row's."""
    try:
        names, numbers = np.unique(ids, return_inverse=True)
    except TypeError as error:
        raise ArgumentError(name, sorted({type(i).__name__ for i in ids}), "ids that can be sorted") from error
    return names, numbers.astype(np.int64)


def _hashed(values: Sequence[Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in values:
        digest.update(str((tensor.dtype, tuple(tensor.shape))).encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
