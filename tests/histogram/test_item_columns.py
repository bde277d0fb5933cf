"""Items of several columns: one text for each and no other, and the columns again in the release."""

import csv
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elementdp.elements import Partition, domain_of
from elementdp.errors import ArgumentError
from elementdp.histogram import Budget, PrivateHistogram, RowPolicy, TableError, private_histogram, write_release
from elementdp.histogram.cells import Names
from elementdp.histogram.item_columns import cells_of, joined_texts
from elementdp.histogram.tables import read_domain

ROWS = [
    (f"u{k}", city, kind)
    for k in range(300)
    for city, kind in (("Paris", "tea"), ("Paris", "wine"), ("Rome", "tea"))
    if k % 3 or kind == "tea"
]
CELLS = st.text(alphabet="ab\\u\x1f'\"\u2028 ", max_size=4)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the noise off: what is left is the exact query."""
    monkeypatch.setattr("elementdp.histogram.release.exact_noise", lambda values, scale: values)


def frame() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=["user", "city", "kind"])


def release(table: object, **options: object) -> PrivateHistogram:
    chosen = {"user": "user", "item": ("city", "kind"), "element": "item", "privacy": Budget(1, 1e-6), "rho": 1.0}
    return private_histogram(table, **chosen | options)  # type: ignore[arg-type]


def counts(result: PrivateHistogram) -> dict[tuple[str, str], float]:
    columns = (result.histogram.column(name).to_pylist() for name in ("city", "kind", "count"))
    return {(city, kind): count for city, kind, count in zip(*columns, strict=True)}


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=20))
def test_a_text_can_be_taken_apart_in_one_way(rows: list[tuple[str, str, str]]) -> None:
    texts = joined_texts([pa.array(column, pa.string()) for column in zip(*rows, strict=True)]).to_pylist()
    assert [cells_of(text) for text in texts] == rows


@given(st.lists(st.tuples(st.none() | CELLS, st.none() | CELLS, CELLS), min_size=1, max_size=20))
def test_columns_are_joined_row_by_row(rows: list[tuple[str | None, str | None, str]]) -> None:
    batch = pa.record_batch([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], names=list("xyz"))
    joined = Names.joined([Names.of(batch, name) for name in "xyz"])
    texts = joined.texts.to_pylist()
    assert len(set(texts)) == len(texts)
    assert [None if code < 0 else cells_of(texts[code]) for code in joined.codes] == [
        row if all(row) else None for row in rows
    ]


@pytest.mark.usefixtures("silent")
def test_each_pair_is_an_item_listed_or_discovered() -> None:
    table = frame()
    truth = table.drop_duplicates().groupby(["city", "kind"]).size()
    found = release(table)
    assert found.histogram.column_names == ["city", "kind", "count", "noise", "low", "high"]
    assert counts(found) == pytest.approx(truth.to_dict(), abs=0.01)
    assert found.element == "each (city, kind)"
    listed = release(table, items=[("Rome", "tea"), ("Paris", "tea"), ("Paris", "wine"), ("Rome", "wine")])
    assert counts(listed) == pytest.approx(truth.to_dict() | {("Rome", "wine"): 0}, abs=0.01)
    assert next(iter(counts(listed))) == ("Rome", "tea")


@pytest.mark.usefixtures("silent")
def test_cells_that_look_like_two_are_not_taken_for_two() -> None:
    rows = [("a\x1fb", "c"), ("a", "b\x1fc"), ("a\\ub", "c"), ("a\\", "c")]
    table = pa.table(
        {"user": [str(k) for k in range(4)], "city": [city for city, _ in rows], "kind": [kind for _, kind in rows]}
    )
    assert counts(release(table, items=rows)) == pytest.approx(dict.fromkeys(rows, 1), abs=0.01)


@pytest.mark.usefixtures("silent")
def test_an_element_may_be_one_of_the_columns_or_a_function_of_all() -> None:
    """A user's norm in Paris is √2 with both kinds there: by hand."""
    expected = {("Paris", "tea"): 100 + 200 / 2**0.5, ("Paris", "wine"): 200 / 2**0.5, ("Rome", "tea"): 300.0}
    items = list(expected)
    by_city = Partition.from_key(lambda item: item[0], "city")
    for element in ("city", "column:city", by_city, lambda item: item[0]):
        found = release(frame(), element=element, items=items)
        assert counts(found) == pytest.approx(expected, abs=0.01)
        noise = found.histogram.column("noise").to_pylist()
        assert noise[0] == noise[1] == pytest.approx(2**0.5 * noise[2])  # Rome has one item, as the list shows
    copied = frame().assign(town=frame()["city"])
    assert counts(release(copied, element="town", items=items)) == pytest.approx(expected, abs=0.01)
    assert release(frame(), element="city", items=items).element == "column city"


def test_what_is_ambiguous_or_has_no_meaning_is_refused() -> None:
    for element in ("domain", domain_of):
        with pytest.raises(ArgumentError, match="several columns has no domain"):
            release(frame(), element=element)
    with pytest.raises(ArgumentError, match="column:item"):
        release(frame().rename(columns={"city": "item"}), item=("item", "kind"))
    for item in ((), ("city", "city"), ("city", "count")):
        with pytest.raises(ArgumentError, match="item"):
            release(frame().rename(columns={"kind": "count"}), item=item)
    for items in (["Paris"], [("Paris",)], [("Paris", None)]):
        with pytest.raises(ArgumentError, match="items"):
            release(frame(), items=items)


def test_a_missing_cell_is_a_bad_row() -> None:
    table = frame()
    table.loc[4, "kind"] = None
    with pytest.raises(TableError, match="row 5: 'kind' is missing"):
        release(table)
    told: list[int] = []
    release(table, policy=RowPolicy(bad_rows="drop", tell=told.append))
    assert told == [1]
    with pytest.raises(TableError, match="item 'Paris', 'wine' is not in"):
        release(frame(), items=[("Paris", "tea"), ("Rome", "tea")])


def test_a_public_list_of_several_columns(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("kind,city\ntea,Paris\n7.0,Rome\n")
    assert read_domain(tmp_path / "list.csv", ["city", "kind"]) == [("Paris", "tea"), ("Rome", "7")]
    (tmp_path / "gap.csv").write_text("kind,city\ntea,Paris\n,Rome\n")
    with pytest.raises(TableError, match="row 2: 'kind' is missing"):
        read_domain(tmp_path / "gap.csv", ["city", "kind"])
    (tmp_path / "list.txt").write_text("Paris\n")
    with pytest.raises(TableError, match="several columns"):
        read_domain(tmp_path / "list.txt", ["city", "kind"])


def test_no_column_of_the_release_is_a_formula(tmp_path: Path) -> None:
    table = pa.table({"user": ["a"], "city": ["=1+1"], "kind": ["@x"]})
    write_release(release(table, items=[("=1+1", "@x")]), tmp_path / "a.csv")
    with (tmp_path / "a.csv").open() as stream:
        assert next(csv.DictReader(stream))["kind"] == "'@x"
    assert (tmp_path / "a.csv").read_text().splitlines()[1].startswith('"\'=1+1"')
    assert json.loads((tmp_path / "a.csv.guarantee.json").read_text())["element"] == "each (city, kind)"
