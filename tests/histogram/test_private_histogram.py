"""The release as a whole: exact sums whatever the batches, neighbours within the bound, noise as stated."""

import json
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from elementdp.elements import Partition, domain_of
from elementdp.errors import ArgumentError
from elementdp.histogram import Budget, LocalEngine, PrivateHistogram, RowPolicy, Split, TableError, private_histogram
from elementdp.histogram.tables import read_domain
from elementdp.privacy import Relation, Unit

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
DOMAIN = [f"http://{site}.org/{page}" for site in "abc" for page in range(3)] + ["http://lone.org/0"]

Event = tuple[str, str, float]


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the noise off: what is left is the exact query."""
    monkeypatch.setattr("elementdp.histogram.release.exact_noise", lambda values, scale: values)


def frame(events: list[Event]) -> pd.DataFrame:
    return pd.DataFrame(events, columns=["user", "url", "times"])


def sample(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    users = [f"u{k}" for k in rng.integers(0, 12, rows)]
    urls = [DOMAIN[k] for k in np.minimum(rng.geometric(0.3, rows) - 1, len(DOMAIN) - 1)]
    return frame(list(zip(users, urls, rng.integers(0, 5, rows).tolist(), strict=True)))


def by_hand(table: pd.DataFrame, rho: float) -> dict[str, float]:
    """eqn:histogram-mechanism without noise, as sums, straight from its definition."""
    groups: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for user, url, times in table.itertuples(index=False):
        groups[user, domain_of(url)][url] += times
    sums: dict[str, float] = dict.fromkeys(DOMAIN, 0.0)
    for counts in groups.values():
        norm = math.sqrt(sum(count**2 for count in counts.values()))
        for url, count in counts.items():
            sums[url] += count * min(1.0, rho / norm) if norm else 0.0
    return sums


def release(table: object, **options: object) -> PrivateHistogram:
    chosen = {"user": "user", "item": "url", "element": "domain", "count": "times", "items": DOMAIN, "rho": 2.5}
    chosen |= options
    given = {name: chosen.pop(name) for name in ("split", "seed") if name in chosen}
    budget = Budget(*(chosen.pop(name, BUDGET[name]) for name in ("epsilon", "delta")), **given)
    engine = LocalEngine(
        **{name: chosen.pop(name) for name in ("progress", "batch_rows", "part_bytes") if name in chosen}
    )
    policy = RowPolicy(**{name: chosen.pop(name) for name in ("bad_rows", "unknown_items", "tell") if name in chosen})
    return private_histogram(table, privacy=budget, policy=policy, engine=engine, **chosen)  # type: ignore[arg-type]


def counts(result: PrivateHistogram) -> dict[str, float]:
    return dict(zip(*(result.histogram.column(name).to_pylist() for name in ("item", "count")), strict=True))


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
@pytest.mark.parametrize("part_bytes", [1 << 9, 1 << 25])
def test_batches_and_parts_do_not_matter(batch_rows: int, part_bytes: int) -> None:
    table = sample(300)
    found = release(table, batch_rows=batch_rows, part_bytes=part_bytes)
    assert found.histogram.equals(release(table).histogram)
    digits = 10 ** -max(0, math.ceil(2 - math.log10(min(found.histogram.column("noise").to_pylist()))))
    assert counts(found) == pytest.approx(by_hand(table, 2.5), abs=digits)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("extension", ["csv", "tsv", "jsonl", "parquet", "arrow", "shuffled"])
def test_every_form_of_a_table_gives_the_same(extension: str, tmp_path: Path) -> None:
    table = sample(200)
    path = tmp_path / f"events.{extension}"
    source: object = path
    match extension:
        case "csv" | "tsv":
            table.to_csv(path, index=False, sep="," if extension == "csv" else "\t")
        case "jsonl":
            table.to_json(path, orient="records", lines=True)
        case "parquet":
            table.assign(user=table["user"].astype("category")).to_parquet(path, index=False)
        case "arrow":
            source = pa.Table.from_pandas(table)
        case _:
            source = table.sample(frac=1.0, random_state=1)
    assert release(source).histogram.equals(release(table).histogram)


@pytest.mark.usefixtures("silent")
def test_discovery_with_parts_split_again_finds_the_same() -> None:
    events = [(f"u{k}", f"http://{site}.org/{page}", 1.0) for k in range(300) for site in "ab" for page in range(4)]
    table = frame([*events, ("u1", "http://rare.org/x", 1.0)])
    whole, split = (release(table, items=None, part_bytes=size) for size in (1 << 25, 1 << 9))
    assert whole.histogram.equals(split.histogram)
    assert whole.histogram.column("item").to_pylist() == sorted({url for _, url, _ in events})
    assert whole.discovered


def test_guarantee_and_budget_are_stated() -> None:
    result = release(sample(100), items=None, rho=None)
    assert (result.guarantee.epsilon, result.guarantee.delta) == (1.0, 1e-6)
    assert (result.guarantee.unit, result.guarantee.relation) == (Unit.ELEMENT, Relation.REPLACE)
    assert [one.stage for one in result.spent] == ["discovery", "choice of rho", "release", "clipped share"]
    for one in result.spent:
        assert one.mu >= one.sensitivity / one.noise * (1 - 1e-9) if one.noise else True
    assert result.as_json()["element"] == "the domain of url"
    assert "(1, 1e-06)-DP for one element of one user" in result.as_json()["statement"]


def test_items_alone_in_their_element_get_the_smaller_noise() -> None:
    noise = release(sample(50)).histogram.column("noise").to_pylist()
    assert noise[0] / noise[-1] == pytest.approx(math.sqrt(2))
    assert len(set(noise[:-1])) == 1


def test_user_level_privacy_is_one_element() -> None:
    for element in ("user", Partition.single()):
        result = release(sample(50), element=element)
        assert len(set(result.histogram.column("noise").to_pylist())) == 1
    assert release(sample(50), element="user").guarantee.unit is Unit.USER


EVENTS = st.lists(
    st.tuples(st.sampled_from(["u", "v"]), st.sampled_from(DOMAIN), st.integers(0, 6).map(float)),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("element", ["domain", "item", "user", "column"])
@given(before=EVENTS, put=EVENTS, rho=st.floats(0.5, 9))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_neighbours_are_within_what_the_noise_hides(
    element: str, before: list[Event], put: list[Event], rho: float
) -> None:
    """Replace all that user u has in one element by anything else of that element: Σ (Δ/σ)² stays within μ²."""
    keys = {"domain": domain_of, "item": str, "user": lambda url: "", "column": lambda url: url[-1]}
    key = keys[element]
    target = key(put[0][1])
    changed = [event for event in before if event[0] != "u" or key(event[1]) != target]
    changed += [("u", url, times) for _, url, times in put if key(url) == target]
    rule = element if element != "column" else "kind"
    rest = ("w", DOMAIN[0], 0.0)  # so that no table is empty

    tables = (frame([*events, rest]).assign(kind=lambda t: t["url"].str[-1]) for events in (before, changed))
    (x, mu), (y, _) = (noiseless(table, element=rule, rho=rho) for table in tables)
    assert np.sum((x - y) ** 2) <= mu**2 * (1 + 1e-9)


def noiseless(table: object, **options: object) -> tuple[np.ndarray, float]:
    """The whole numbers that noise is added to, each over its noise's scale, and the μ they may move by."""
    seen: list[np.ndarray] = []

    def spy(values: np.ndarray, scale: float) -> np.ndarray:
        seen.append(values / scale)
        return values

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elementdp.histogram.release.exact_noise", spy)
        result = release(table, split=Split(clipping=0.0), **options)
    return np.concatenate(seen), result.spent[-1].mu


def test_the_bound_on_neighbours_is_reached() -> None:
    (x, mu), (y, _) = (noiseless(frame([("u", url, 100.0)])) for url in DOMAIN[:2])
    assert np.linalg.norm(x - y) == pytest.approx(mu)


def test_noise_has_the_stated_deviation() -> None:
    items = [f"item {k}" for k in range(3000)]
    table = pd.DataFrame({"user": ["u"] * 3000, "item": items})
    result = release(table, item="item", element="item", items=items, rho=1.0, count=None)
    scores = (np.array(result.histogram.column("count")) - 1) / np.array(result.histogram.column("noise"))
    # The noise takes no seed: each side fails once in 10⁹ runs.
    assert chi2.isf(1 - 1e-9, 3000) <= np.sum(scores**2) <= chi2.isf(1e-9, 3000)


def test_seed_repeats_and_warns() -> None:
    with pytest.warns(UserWarning, match="testing only"):
        first = release(sample(50), seed=3)
    with pytest.warns(UserWarning, match="testing only"):
        again = release(sample(50), seed=3)
    assert first.histogram.equals(again.histogram)
    promise = json.loads(json.dumps(first.as_json(), allow_nan=False))
    assert promise["statement"].startswith("NONE")
    assert (promise["epsilon"], promise["delta"]) == (None, None)
    assert {(one["mu"], one["delta"]) for one in promise["spent"]} == {(None, None)}
    assert (first.guarantee.epsilon, first.guarantee.delta) == (math.inf, 1.0)
    assert first.guarantee.unit is Unit.ELEMENT
    assert not release(sample(50)).histogram.equals(release(sample(50)).histogram)


@pytest.mark.usefixtures("silent")
def test_unknown_items_are_refused_or_dropped() -> None:
    stray = [("u0", "http://a.org/0", 1.0), ("u0", "http://a.org/none", 9.0)]
    with pytest.raises(
        TableError, match=r"row 2: item 'http://a.org/none' is not in the public list.*ignore_unknown_items"
    ):
        release(frame(stray))
    assert counts(release(frame(stray), unknown_items="drop"))["http://a.org/0"] == 1.0


@pytest.mark.usefixtures("silent")
def test_nothing_discovered_is_an_empty_histogram() -> None:
    result = release(sample(5), items=None, rho=None)
    assert result.histogram.num_rows == 0
    assert result.histogram.column_names == ["item", "count", "noise", "low", "high"]


def test_one_busy_group_is_added_up_on_disk() -> None:
    rows = 40_000
    table = pa.table({"user": ["u"] * rows, "url": [DOMAIN[k % 3] for k in range(rows)]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elementdp.histogram.release.exact_noise", lambda values, scale: values)
        result = release(table, count=None, rho=1e5, part_bytes=1 << 12, batch_rows=1000)
    assert [counts(result)[url] for url in DOMAIN[:3]] == [
        float(sum(k % 3 == j for k in range(rows))) for j in range(3)
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"rho": -1.0}, "rho"),
        ({"items": []}, "items"),
        ({"items": "http://a.org"}, "items"),
        ({"items": ["http://a.org/0", None]}, "items must be a list of items, none of them missing"),
        ({"items": ["http://a.org/0", 7]}, "items must be a list of items of one kind"),
        ({"element": "nothing"}, "element must be a column"),
        ({"seed": -1}, "seed"),
        ({"batch_rows": 0}, "batch_rows"),
    ],
)
@pytest.mark.filterwarnings("ignore:a seeded release")
def test_bad_arguments(options: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        release(sample(5), **options)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("user", None, r"row 3: 'user' is missing"),
        ("url", "", r"row 3: 'url' is missing"),
        ("times", -1.0, r"row 3: 'times' must be a finite count"),
        ("times", math.inf, r"row 3: 'times' must be a finite count"),
        ("times", math.nan, r"row 3: 'times' must be a finite count"),
        ("times", 1e300, r"row 3: 'times' must be a finite count"),
        ("url", "http:///", r"row 3: url must be a URL"),
    ],
)
def test_bad_cells_are_named_by_row(column: str, value: object, message: str) -> None:
    table = sample(6).astype({"times": float, "user": object, "url": object})
    table.loc[2, column] = value
    with pytest.raises(TableError, match=message):
        release(table, batch_rows=2, items=None)


@pytest.mark.parametrize("column", ["user", "url", "times"])
def test_missing_columns_are_named(column: str) -> None:
    with pytest.raises(TableError, match=f"no column '{column}'; its columns are"):
        release(sample(5).drop(columns=column))


def test_tables_that_are_no_tables() -> None:
    with pytest.raises(TableError, match="no events"):
        release(sample(0))
    with pytest.raises(TableError, match="not a list"):
        release([1, 2])
    with pytest.raises(TableError, match="2 columns 'url'"):
        release(pa.Table.from_arrays([pa.array(["u"])] * 4, names=["user", "url", "url", "times"]))
    with pytest.raises(TableError, match="cannot be read as text"):
        release(pa.table({"user": [["u"]], "url": ["http://a.org/0"], "times": [1]}))


def test_whole_parquet_columns_of_numbers_are_names(tmp_path: Path) -> None:
    pq.write_table(pa.table({"user": [1, 2], "url": [10, 11]}), tmp_path / "t.parquet")
    result = release(tmp_path / "t.parquet", element="item", items=["10", "11"], rho=1.0, count=None)
    assert result.histogram.column("item").to_pylist() == ["10", "11"]


def jsonl(columns: dict[str, list[float]], path: Path) -> Path:
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("form", ["jsonl", "arrow", "pandas"])
@pytest.mark.parametrize(("one", "two"), [(7, 7.0), (0.0, -0.0), (10**15, 1e15), (10**17, 1e17)])
def test_equal_numbers_are_one_name(form: str, one: float, two: float, tmp_path: Path) -> None:
    """Users, items and elements that are equal numbers, however written and in whichever batch."""
    columns = {"user": [one, two], "item": [two, one], "kind": [one, two]}
    source: object
    match form:
        case "jsonl":
            source = jsonl(columns, tmp_path / "t.jsonl")
        case "arrow":
            source = pa.table({name: list(map(float, cells)) for name, cells in columns.items()})
        case _:
            source = pd.DataFrame(columns, dtype=object)
    for element in ("item", "user", "kind"):
        options = {"user": "user", "item": "item", "element": element, "items": [str(int(one))], "count": None}
        # two events of one group: 2 is cut to ρ = 1, where two groups of one event each would count 2
        assert counts(release(source, rho=1.0, batch_rows=1, **options)) == pytest.approx({str(int(one)): 1.0}, abs=0.1)


def test_a_list_of_numbers_reads_as_the_events_do(tmp_path: Path) -> None:
    pq.write_table(pa.table({"item": [7.0, 1e15, 2.5]}), tmp_path / "list.parquet")
    (tmp_path / "list.jsonl").write_text('{"item": 7}\n{"item": 1e15}\n{"item": 2.5}\n')
    for name in ("list.parquet", "list.jsonl"):
        assert read_domain(tmp_path / name, ["item"]) == ["7", "1000000000000000", "2.5"]


@pytest.mark.usefixtures("silent")
def test_a_list_of_numbers_from_python_reads_as_the_events_do() -> None:
    """7.0 is the item "7" of the table: read as "7.0", all of it would be dropped as unknown, without a word."""
    table = pa.table({"user": [1, 2, 3], "item": [7.0, 7.0, 2.5]})
    options = {"item": "item", "element": "item", "count": None, "rho": 1.0}
    found = release(table, items=[7.0, 2.5], unknown_items="drop", **options)
    assert counts(found) == pytest.approx({"7": 2.0, "2.5": 1.0}, abs=0.1)


@pytest.mark.parametrize("form", ["jsonl", "arrow", "categories", "pandas"])
@pytest.mark.parametrize("column", ["user", "item", "kind"])
def test_nan_is_no_name(form: str, column: str, tmp_path: Path) -> None:
    """Everybody without a name would be one user, and all their events bounded as one person's."""
    columns = {"user": [1.0, 2.0, 3.0], "item": [1.0, 1.0, 1.0], "kind": [1.0, 1.0, 1.0]}
    columns[column][1] = math.nan
    source: object
    match form:
        case "jsonl":
            source = jsonl(columns, tmp_path / "t.jsonl")
        case "arrow":
            source = pa.table(columns)
        case "categories":
            source = pa.table({name: pa.array(cells).dictionary_encode() for name, cells in columns.items()})
        case _:
            source = pd.DataFrame(columns)
    with pytest.raises(TableError, match=f"row 2: '{column}' is missing"):
        release(source, item="item", element="kind", items=["1"], count=None)


def test_half_a_character_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"user": 1, "item": "a"}\n{"user": 2, "item": "\\ud800"}\n')
    with pytest.raises(TableError, match="row 2: not text"):
        release(tmp_path / "t.jsonl", item="item", element="item", items=["a"], count=None)


def test_a_list_is_checked_before_the_table_is_read() -> None:
    seen: list[str] = []
    with pytest.raises(ArgumentError, match="URL"):
        release(sample(5), items=[*DOMAIN, "::"], progress=lambda stage, share: seen.append(stage))
    assert not seen


def test_only_line_breaks_part_a_list(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes("one\x85item\r\nanother\u2028\n\n".encode())
    assert read_domain(tmp_path / "list.txt", ["item"]) == ["one\x85item", "another\u2028"]
