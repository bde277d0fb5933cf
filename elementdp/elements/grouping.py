"""Rows with equal keys side by side."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sorted_groups(*keys: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows in order of their keys (the first key first), and where each group of equal rows starts.

    The number of rows closes the starts: group g has the places from ``starts[g]`` to ``starts[g + 1]`` of the order.
    """
    order = np.lexsort(keys[::-1])
    changes = [key[order][1:] != key[order][:-1] for key in keys]
    inner = 1 + np.flatnonzero(np.logical_or.reduce(changes))
    return order, np.concatenate([[0], inner, [len(order)]] if len(order) else [[0]]).astype(np.int64)
