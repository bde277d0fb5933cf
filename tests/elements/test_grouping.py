"""Rows with equal keys side by side, against a dictionary."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elementdp.elements.grouping import sorted_groups


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab"))))
def test_groups_are_those_of_a_dictionary(rows):
    expected: dict[tuple[int, str], list[int]] = {}
    for place, key in enumerate(rows):
        expected.setdefault(key, []).append(place)
    first, second = np.array([a for a, _ in rows], dtype=int), np.array([b for _, b in rows], dtype=str)
    order, starts = sorted_groups(first, second)
    found = [order[a:b].tolist() for a, b in itertools.pairwise(starts)]
    assert found == [expected[key] for key in sorted(expected)]
    assert starts[-1] == len(rows)
