"""Sums of a bounded column: right without noise, hidden by the noise for every neighbour, and stated."""

import math
from collections import defaultdict
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from elementdp.errors import ArgumentError
from elementdp.histogram import BoundedValue, Budget, LocalEngine, PrivateHistogram, RowPolicy, TableError
from elementdp.histogram import private_histogram as released
from elementdp.histogram.projection import GridBall, GroupCounts
from elementdp.histogram.values import VALUE_UNITS

ITEMS = ["a1", "a2", "a3", "b1"]
PRICE = BoundedValue("price", 2.0, 10.0)


def letter(item: str) -> str:
    return item[0]


def release(table: object, **options: object) -> PrivateHistogram:
    chosen = {"user": "user", "item": "item", "element": letter, "privacy": Budget(1, 1e-6), "count": PRICE, "rho": 2.5}
    return released(table, items=ITEMS, **chosen | options)  # type: ignore[arg-type]


def sample(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "user": rng.integers(0, 9, rows),
            "item": rng.choice(ITEMS, rows, p=[0.5, 0.2, 0.2, 0.1]),
            "price": rng.normal(6.0, 4.0, rows),
        }
    )


def by_hand(table: pd.DataFrame, rho: float) -> dict[str, tuple[float, float]]:
    """Counts and sums, each group scaled by one factor, straight from the definition."""
    pairs: dict[tuple[int, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for user, item, price in table.itertuples(index=False):
        pairs[user, letter(item)][item].append(min(max(price, PRICE.low), PRICE.high))
    totals = dict.fromkeys(ITEMS, (0.0, 0.0))
    for group in pairs.values():
        factor = min(1.0, rho / math.sqrt(sum(len(prices) ** 2 for prices in group.values())))
        for item, prices in group.items():
            count, total = totals[item]
            totals[item] = count + factor * len(prices), total + factor * sum(prices)
    return totals


@pytest.mark.parametrize(("batch_rows", "part_bytes"), [(1, 1 << 9), (7, 1 << 25), (1000, 1 << 9)])
def test_sums_are_exact_whatever_the_batches(monkeypatch: pytest.MonkeyPatch, batch_rows: int, part_bytes: int) -> None:
    monkeypatch.setattr("elementdp.histogram.release.exact_noise", lambda values, scale: values)
    table = sample(300)
    found = release(table, engine=LocalEngine(batch_rows=batch_rows, part_bytes=part_bytes)).histogram
    assert found.column_names[5:] == ["sum", "sum_noise", "sum_low", "sum_high"]
    assert found.equals(release(table.sample(frac=1.0, random_state=1)).histogram)
    truth = by_hand(table, 2.5)
    for place, (name, noise) in enumerate((("count", "noise"), ("sum", "sum_noise"))):
        shown = min(found.column(noise).to_pylist()) / 100  # digits below that are left out
        assert found.column(name).to_pylist() == pytest.approx([truth[item][place] for item in ITEMS], abs=shown)


def steps(rows: list[tuple[int, float]], radius: int) -> tuple[np.ndarray, np.ndarray]:
    """z and t of one group: rows of (item, u)."""
    ball = GridBall(radius, 1.0)
    total = np.zeros((2, 3), np.int64)
    if rows:
        once = np.ones(len(rows), np.int64)
        values = np.rint(np.array([u for _, u in rows]) * VALUE_UNITS).astype(np.int64)
        items = np.array([item for item, _ in rows])
        groups = GroupCounts.of(np.zeros(len(rows), np.uint64), items, once, 0 * once, values)
        total[:, groups.items] = groups.project_both(ball)
    return total[0], total[1]


GROUP = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-1.0, 1.0]) | st.floats(-1, 1)), max_size=30)


@given(before=GROUP, after=GROUP, radius=st.integers(1, 9))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_group_moves_counts_and_sums_within_the_bound(
    before: list[tuple[int, float]], after: list[tuple[int, float]], radius: int
) -> None:
    (z, t), (other_z, other_t) = steps(before, radius), steps(after, radius)
    assert (np.abs(t) <= z).all()
    assert (z**2).sum() <= radius**2
    assert ((z - other_z) ** 2).sum() + ((t - other_t) ** 2).sum() <= 4 * radius**2


def test_the_sensitivities_are_the_largest_over_all_groups_of_a_small_ball() -> None:
    """Every whole (z, t) of one item and of two, enumerated: the bounds hold, and are attained."""
    radius = 3
    one = [(z, t) for z in range(radius + 1) for t in range(-z, z + 1)]
    assert max(3 * (z - x) ** 2 + (t - y) ** 2 for (z, t), (x, y) in product(one, one)) == 4 * radius**2
    two = [(z, t, y, x) for (z, t), (y, x) in product(one, one) if z**2 + y**2 <= radius**2]
    assert max(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) for p, q in product(two, two)) == 4 * radius**2
    ball = GridBall(radius, 1.0)
    assert ball.sensitivity(one_item=False, valued=True) == 2 * radius
    assert 3 * ball.sensitivity(one_item=True, valued=True) ** 2 == pytest.approx(4 * radius**2, rel=1e-15)
    assert 3 * ball.sensitivity(one_item=True, valued=True) ** 2 >= 4 * radius**2


def test_the_noise_is_what_is_stated() -> None:
    result = release(sample(50))
    mu = next(one.mu for one in result.spent if one.stage == "release")
    counted, added = (result.histogram.column(name).to_numpy() for name in ("noise", "sum_noise"))
    assert counted == pytest.approx(2.5 * 2 / mu * np.array([1, 1, 1, 1 / math.sqrt(3)]), rel=1e-6)
    assert added == pytest.approx(np.hypot(6 * counted, 4 * 2.5 * 2 / mu), rel=1e-6)
    table, truth = sample(40), by_hand(sample(40), 2.5)
    runs = [release(table).histogram.column("sum").to_numpy() for _ in range(150)]
    wrong = (np.array(runs) - [truth[item][1] for item in ITEMS]) / added
    for z in wrong.T:
        assert chi2.ppf(1e-5, len(runs)) < np.square(z).sum() < chi2.ppf(1 - 1e-5, len(runs))


def test_a_sum_is_stated_and_charged_as_one_stage() -> None:
    result = release(sample(50), rho=None)
    assert [one.stage for one in result.spent] == ["choice of rho", "release", "clipped share"]
    promise = result.as_json()
    assert promise["value"]["low"] == 2.0
    assert "price is moved into [2, 10]" in promise["value"]["words"]
    assert release(sample(50), count=None).as_json()["value"] is None


@pytest.mark.parametrize("cell", ["x", "", None, "nan", "inf"])
def test_a_value_that_is_no_number_is_a_bad_row(cell: str | None) -> None:
    table = pa.table({"user": ["u", "v"], "item": ["a1", "a1"], "price": pa.array(["3", cell], pa.string())})
    with pytest.raises(TableError, match="row 2: 'price' must be a finite number"):
        release(table)
    told: list[int] = []
    release(table, policy=RowPolicy(bad_rows="drop", tell=told.append))
    assert told == [1]


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (math.nan, 1), (0, math.inf), (-1e300, 1)])
def test_a_range_must_be_one(low: float, high: float) -> None:
    with pytest.raises(ArgumentError, match="low < high"):
        BoundedValue("price", low, high)
