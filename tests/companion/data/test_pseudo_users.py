"""Pseudo-users: m images each from exactly k elements, whatever the clusters look like."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from elementdp.companion.data.pseudo_users import pseudo_users
from elementdp.errors import ArgumentError


@st.composite
def plans(draw):
    elements = np.array(draw(st.lists(st.integers(0, 30), min_size=1, max_size=80)))
    m = draw(st.integers(1, 20))
    k = draw(st.integers(1, min(m, len(np.unique(elements)))))
    return elements, draw(st.integers(1, 12)), m, k, draw(st.integers(0, 9))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(plans())
def test_every_user_has_m_images_from_exactly_k_elements(plan):
    elements, n, m, k, seed = plan
    held = pseudo_users(elements, n, m, k, np.random.default_rng(seed))
    assert np.bincount(held.user, minlength=n).tolist() == [m] * n
    assert held.elements_each.tolist() == [k] * n
    assert all(len(set(held.element[held.user == user])) == k for user in range(n))
    assert (elements[held.image] == held.element).all()
    again = pseudo_users(elements, n, m, k, np.random.default_rng(seed))
    assert (again.image == held.image).all()


def test_elements_are_uniform_whatever_their_size_and_images_uniform_within():
    elements = np.repeat([0, 1, 2, 3], [1, 5, 20, 74])
    held = pseudo_users(elements, 4_000, 6, 2, np.random.default_rng(0))
    users_with = [len(np.unique(held.user[held.element == e])) for e in range(4)]
    assert stats.chisquare(users_with).pvalue > 1e-3  # each user has 2 of 4: equal shares
    inside = np.bincount(held.image[held.element == 2] - 6, minlength=20)
    assert stats.chisquare(inside).pvalue > 1e-3


def test_users_share_images():
    held = pseudo_users(np.arange(10) % 5, 50, 4, 2, np.random.default_rng(1))
    owners = [len(np.unique(held.user[held.image == image])) for image in range(10)]
    assert max(owners) > 1


@pytest.mark.parametrize(("m", "k"), [(3, 4), (10, 6), (5, 0)])
def test_more_elements_than_images_or_clusters_is_refused(m, k):
    with pytest.raises(ArgumentError, match="k must be"):
        pseudo_users(np.arange(5), 2, m, k, np.random.default_rng(0))
