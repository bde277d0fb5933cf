"""Rows that stay on disk: the same run as with rows in memory, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from elementdp.errors import ArgumentError
from elementdp.learning import Plan, Target, UserData, mapped_data, train, unpack_parquet

NAMES = {"user": "u", "element": "e", "inputs": "x", "targets": "y"}


def rows(n: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 5)).astype(np.float32)
    return {"u": rng.integers(0, 40, n), "e": rng.integers(0, 3, n), "x": x, "y": (x[:, 0] > 0).astype(np.int64)}


def written(folder: Path, table: dict[str, Any], *, cut: int = 170) -> Path:
    """As Spark leaves a table: a folder of files, rows in small groups, features as lists."""
    arrow = pa.table(table | {"x": list(table["x"])})
    folder.mkdir()
    for name, part in (("part-00000", arrow.slice(0, cut)), ("part-00001", arrow.slice(cut))):
        pq.write_table(part, folder / f"{name}.parquet", row_group_size=37)
    return folder


def test_a_run_is_that_with_rows_in_memory(tmp_path: Path) -> None:
    table = rows()
    unpack_parquet(written(tmp_path / "spark", table), tmp_path / "arrays", **NAMES)
    on_disk = mapped_data(tmp_path / "arrays", n_users=50)
    x, y = torch.from_numpy(table["x"]), torch.from_numpy(table["y"])
    in_memory = UserData.of(x, y, table["u"], table["e"], n_users=50)
    weights = []
    for data in (on_disk, in_memory):
        torch.manual_seed(0)
        done = train(
            torch.nn.Linear(5, 2),
            data,
            loss=torch.nn.CrossEntropyLoss(reduction="none"),
            privacy=Target(3, delta=1e-3),
            plan=Plan(steps=5, q=0.2, rho=1.0),
            seed=1,
            progress=False,
        )
        weights.append(done.model.weight.detach().clone())
    assert torch.equal(*weights)


def test_another_value_is_another_fingerprint(tmp_path: Path) -> None:
    """Processes compare fingerprints: one whose files differ in a single number has to be noticed."""
    found = []
    for change in (0.0, 0.0, 1e-7):
        table = rows()
        table["x"][123, 4] += change
        place = tmp_path / str(len(found))
        place.mkdir()
        unpack_parquet(written(place / "spark", table), place / "arrays", **NAMES)
        found.append(mapped_data(place / "arrays", n_users=50).fingerprint)
    assert found[0] == found[1] != found[2]


def test_how_the_rows_are_cut_into_files_does_not_matter(tmp_path: Path) -> None:
    for name, cut in (("a", 10), ("b", 290)):
        unpack_parquet(written(tmp_path / f"{name}.parquet", rows(), cut=cut), tmp_path / name, **NAMES)
    assert mapped_data(tmp_path / "a", 50).fingerprint == mapped_data(tmp_path / "b", 50).fingerprint


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("u", pa.array(["ann", "bob"]), "u must be a column of whole numbers"),
        ("e", pa.array([1, None]), "e must be a column of whole numbers, none missing"),
        ("x", pa.array([[1.0], [1.0, 2.0]]), "x must be lists of one length"),
        ("x", pa.array([[1.0], [None]]), "x must be a column of numbers"),
        ("y", pa.array(["yes", "no"]), "y must be a column of numbers"),
        ("x", pa.array([{"type": 1, "values": [1.0]}] * 2), "of a vector, Spark's vector_to_array makes a list"),
    ],
)
def test_columns_that_cannot_be_mapped_are_named(tmp_path: Path, column: str, values: pa.Array, message: str) -> None:
    table = pa.table({"u": [1, 2], "e": [1, 2], "x": [[1.0], [2.0]], "y": [0, 1]})
    place = table.schema.get_field_index(column)
    pq.write_table(table.set_column(place, column, values), tmp_path / "t.parquet")
    with pytest.raises(ArgumentError, match=message):
        unpack_parquet(tmp_path / "t.parquet", tmp_path / "arrays", **NAMES)
    with pytest.raises(ArgumentError, match="one that unpack_parquet has finished"):
        mapped_data(tmp_path / "arrays", n_users=2)


def test_files_that_spark_has_not_finished_are_left_out(tmp_path: Path) -> None:
    """A writer that died leaves its rows in ``_temporary``; another one may have written the same rows again."""
    folder = written(tmp_path / "spark", rows())
    unpack_parquet(folder, tmp_path / "whole", **NAMES)
    (folder / "_temporary" / "0").mkdir(parents=True)
    for left in (folder / "_temporary" / "0" / "part-00000.parquet", folder / ".part-00003.parquet"):
        left.write_bytes((folder / "part-00000.parquet").read_bytes())
    unpack_parquet(folder, tmp_path / "arrays", **NAMES)
    assert mapped_data(tmp_path / "arrays", 50).fingerprint == mapped_data(tmp_path / "whole", 50).fingerprint


def test_files_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "spark", rows())
    other = pa.table({"u": [1], "e": [1], "x": [[1.0]], "y": [0]})
    pq.write_table(other, folder / "part-00002.parquet")
    with pytest.raises(ArgumentError, match="like those of the first row"):
        unpack_parquet(folder, tmp_path / "arrays", **NAMES)
    with pytest.raises(ArgumentError, match="columns must be columns of"):
        unpack_parquet(folder, tmp_path / "arrays", **(NAMES | {"targets": "label"}))
    with pytest.raises(ArgumentError, match="source must be a Parquet file or a folder"):
        unpack_parquet(tmp_path / "arrays", tmp_path / "more", **NAMES)
