"""The share of the weight that the bound ρ removed: its sensitivity, and what it says about releases that mislead."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.histogram import Budget, private_histogram
from elementdp.histogram.clipping import LEVELS, Clipped, ClippingQuery
from elementdp.histogram.noise import seeded_noise
from elementdp.histogram.projection import GridBall, GroupCounts

VECTORS = st.lists(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=3), max_size=8)
QUERY = ClippingQuery.of(GridBall.of(2.0), 3, 0.1)


def groups(vectors: list[list[float]]) -> GroupCounts:
    keys = np.repeat(np.arange(len(vectors), dtype=np.uint64), [len(vector) for vector in vectors])
    counts = np.array([count for vector in vectors for count in vector], dtype=float)
    return GroupCounts.sorted(keys, np.arange(len(keys)), counts, np.ones(len(keys), dtype=bool))


@given(VECTORS, st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=3))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_one_group_moves_the_query_within_what_the_noise_hides(vectors: list[list[float]], other: list[float]) -> None:
    before = QUERY.measure(groups(vectors)).astype(float)
    for neighbour in ([*vectors, other], [*vectors[1:], other], vectors[1:]):
        moved = (QUERY.measure(groups(neighbour)) - before) / QUERY.scale
        assert np.linalg.norm(moved) <= 0.1 * (1 + 1e-9)


@given(VECTORS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_the_weight_lost_is_what_the_projection_takes(vectors: list[list[float]]) -> None:
    unit = 2.0 * math.sqrt(3)
    lost = [sum(v) * max(0.0, 1 - 2.0 / math.hypot(*v)) for v in vectors]
    expected = [sum(min(x / unit / level, 1.0) for x in lost) for level in LEVELS]
    assert QUERY.measure(groups(vectors)) / 2**30 == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_intervals_cover_the_true_share_as_often_as_they_say() -> None:
    vectors = groups([[1.0]] * 3000 + [[30.0]] * 1000)
    lost, kept = QUERY.measure(vectors), 3000 + 2000.0
    truth = 28_000 / 33_000
    found = [QUERY.estimate(lost, kept, 0.0, seeded_noise(seed)) for seed in range(400)]
    assert np.mean([one.low <= truth <= one.high for one in found]) >= 0.92
    assert np.median([one.share for one in found]) == pytest.approx(truth, abs=0.05)
    nothing = QUERY.measure(groups([[1.0]] * 5000))
    alarms = [QUERY.estimate(nothing, 5000.0, 0.0, seeded_noise(seed)).low > 0 for seed in range(400)]
    assert np.mean(alarms) <= 0.05


def test_the_noises_of_four_levels_and_the_total_leave_the_interval_in_six_of_a_hundred_cases_at_most() -> None:
    kept = 1e6
    found = QUERY.estimate(np.full(len(LEVELS), 10**5 * 2**30), kept, 0.0, lambda sums, _: sums)
    lowest = kept * found.low / (1 - found.low)  # the least weight removed that the interval admits
    deviations = (10**5 * found.limit - lowest) / (QUERY.noise * found.limit)
    assert (len(LEVELS) + 1) * math.erfc(deviations / math.sqrt(2)) <= 0.06


@pytest.mark.parametrize(
    ("clipped", "said"),
    [
        (Clipped(0.41, 0.38, 0.44, 100.0), "the counts are too low: the bound rho removed about 41% of the weight"),
        (Clipped(0.01, 0.0, 0.02, 100.0), "removed little"),
        (Clipped(0.01, 0.0, 0.02, 100.0), "what a single group held beyond 100 is not counted in this"),
        (Clipped(0.1, 0.0, 0.6, 100.0), "too few groups to tell"),
    ],
)
def test_words_say_what_it_means(clipped: Clipped, said: str) -> None:
    assert said in clipped.words()


def many_items() -> pa.Table:
    """2,500 users with 400 of 1,000 items each."""
    rng = np.random.default_rng(0)
    items = np.concatenate([rng.choice(1000, 400, replace=False) for _ in range(2500)])
    return pa.table({"user": np.repeat(np.arange(2500), 400), "item": items})


@pytest.mark.filterwarnings("ignore:a seeded release")
def test_hundreds_of_items_a_user_are_not_destroyed_and_a_bad_rho_is_told() -> None:
    """A rule that counts clipped groups, not the weight they lose, chose ρ = 1 here and released a twentieth.

    The noise is seeded: the interval of the clipped share misses in 6 of 100 releases, as it says.
    """
    table, privacy = many_items(), Budget(1, 1e-6, seed=0)
    options = {"user": "user", "item": "item", "element": "user", "privacy": privacy, "items": range(1000)}
    good = private_histogram(table, **options)
    truth = np.bincount(table["item"].to_numpy(), minlength=1000)
    found, noise = (good.histogram[name].to_numpy() for name in ("count", "noise"))
    assert good.rho >= 19
    assert np.abs(found - truth).mean() <= 1.5 * noise.mean()
    inside = (good.histogram["low"].to_numpy() <= truth) & (truth <= good.histogram["high"].to_numpy())
    assert inside.mean() >= 0.9
    assert good.clipped is not None
    assert good.clipped.high < 0.2
    bad = private_histogram(table, rho=1.0, **options)
    assert bad.clipped is not None
    assert bad.clipped.low > 0.8
    assert "too low" in bad.as_json()["clipped"]["words"]
