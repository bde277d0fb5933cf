"""The element-level loss (Equation (10)) and its average over users."""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor


def element_loss(losses: Tensor, users: ArrayLike, elements: ArrayLike, n_users: int | None = None) -> Tensor:
    """ℓ_el of every user: losses are averaged within each element, and the averages summed over a user's elements.

    ``losses`` holds the loss of every row. Users are numbered from zero; one without data has loss zero.
    """
    who, what = np.asarray(users), np.asarray(elements)
    pairs, place = np.unique(np.stack([who, what]), axis=1, return_inverse=True)
    place_of_row = torch.from_numpy(np.ravel(place)).to(losses.device)
    count = torch.bincount(place_of_row, minlength=pairs.shape[1]).to(losses)
    means = losses.new_zeros(pairs.shape[1]).index_add(0, place_of_row, losses) / count
    total = losses.new_zeros(int(who.max(initial=-1)) + 1 if n_users is None else n_users)
    return total.index_add(0, torch.from_numpy(pairs[0].astype(np.int64)).to(losses.device), means)


def element_risk(losses: Tensor, users: ArrayLike, elements: ArrayLike, n_users: int | None = None) -> Tensor:
    """L_el^n, the empirical version of Equation (11): the mean of the users' element-level losses."""
    return element_loss(losses, users, elements, n_users).mean()
