"""Files of a release: written as one, through links, never over another's unasked, harmless in a spreadsheet."""

import hashlib
import json
import multiprocessing
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from elementdp.errors import ArgumentError
from elementdp.histogram import Budget, PrivateHistogram, private_histogram, write_release
from elementdp.histogram.output import check_output, read_guarantee


def release(items: list[str] | None = None, rho: float = 1.0) -> PrivateHistogram:
    names = items or ["a", "b"]
    table = pa.table({"user": [f"u{k}" for k in range(len(names))], "item": names})
    return private_histogram(
        table, user="user", item="item", element="item", privacy=Budget(1, 1e-6), items=names, rho=rho
    )


def test_a_string_is_a_path_and_nothing_is_replaced_unasked(tmp_path: Path) -> None:
    path = str(tmp_path / "a.csv")
    assert [file.name for file in write_release(release(), path)] == ["a.csv.guarantee.json", "a.csv"]
    first = Path(path).read_bytes()
    with pytest.raises(ArgumentError, match="output must be a new file"):
        write_release(release(), path)
    assert Path(path).read_bytes() == first
    write_release(release(), path, force=True)
    assert Path(path).read_bytes() != first


def test_the_guarantee_names_the_content_it_belongs_to(tmp_path: Path) -> None:
    write_release(release(), tmp_path / "a.csv")
    promise = json.loads((tmp_path / "a.csv.guarantee.json").read_text())
    assert promise["sha256"] == hashlib.sha256((tmp_path / "a.csv").read_bytes()).hexdigest()
    assert read_guarantee(tmp_path / "a.csv") == read_guarantee(tmp_path / "a.csv.guarantee.json") == promise
    (tmp_path / "a.csv").write_text("other counts")
    with pytest.raises(ArgumentError, match="beside it, whose content is another"):
        read_guarantee(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["a.json", "a.parquet"])
def test_a_guarantee_inside_the_file_is_read(name: str, tmp_path: Path) -> None:
    result = release()
    write_release(result, tmp_path / name)
    assert read_guarantee(tmp_path / name) == result.as_json()


def write_in_turn(path: Path, rho: float) -> None:
    for _ in range(5):
        write_release(release(rho=rho), path, force=True)


def test_writers_at_once_leave_a_pair(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=write_in_turn, args=(tmp_path / "a.csv", rho)) for rho in (1.0, 2.0, 4.0)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", "a.csv.guarantee.json"}
    assert read_guarantee(tmp_path / "a.csv")["rho"] in (1.0, 2.0, 4.0)


def test_through_a_link_the_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "b.csv").write_text("old")
    (tmp_path / "a.csv").symlink_to(tmp_path / "real" / "b.csv")
    write_release(release(), tmp_path / "a.csv", force=True)
    assert (tmp_path / "a.csv").is_symlink()
    assert (tmp_path / "real" / "b.csv").read_text().startswith('"item"')
    assert (tmp_path / "real" / "b.csv.guarantee.json").exists()


def test_a_link_that_leads_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    for write in (lambda path: write_release(release(), path), lambda path: check_output(path, force=True)):
        with pytest.raises(ArgumentError, match="output must be a file, not a symbolic link"):
            write(tmp_path / "a.csv")


def test_a_place_that_cannot_be_written_is_known_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(ArgumentError, match="output"):
        check_output(tmp_path / "a.csv", force=True)
    with pytest.raises(ArgumentError, match="a folder that exists"):
        check_output(tmp_path / "none" / "a.csv", force=False)


def test_formulas_do_not_reach_a_spreadsheet(tmp_path: Path) -> None:
    items = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "plain", "-5", "+7.5", "a=b"]
    result = release(items)
    write_release(result, tmp_path / "a.csv")
    written = pyarrow.csv.read_csv(tmp_path / "a.csv", convert_options=_text()).column("item").to_pylist()
    assert written == ["'" + item if item in items[:4] else item for item in items]
    write_release(result, tmp_path / "a.json")
    assert [row["item"] for row in json.loads((tmp_path / "a.json").read_text())["histogram"]] == items


def _text() -> pyarrow.csv.ConvertOptions:
    return pyarrow.csv.ConvertOptions(column_types={"item": pa.string()})


def test_post_processing_is_labelled(tmp_path: Path) -> None:
    result = release([f"item {k}" for k in range(50)])
    raised = result.nonnegative()
    assert min(raised.histogram["count"].to_pylist()) >= 0
    best = raised.top(3)
    assert best.histogram["count"].to_pylist() == sorted(raised.histogram["count"].to_pylist())[:-4:-1]
    assert [words.split(",")[0] for words in best.as_json()["post-processing"]] == [
        "negative counts raised to 0",
        "only the 3 largest noisy counts",
    ]
    assert result.as_json()["post-processing"] == []
