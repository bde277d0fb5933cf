"""What a table may be: every frame of the Arrow world, several files, compressed ones; and which rows are refused."""

import gzip
import io
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from elementdp.errors import ArgumentError
from elementdp.histogram import Budget, LocalEngine, PrivateHistogram, RowPolicy, TableError, private_histogram
from elementdp.histogram.quotes import unterminated
from elementdp.histogram.utf8 import Utf8Stream

ROWS = [(f"user {k}", f"item {k % 5}") for k in range(200)]


@pytest.fixture(autouse=True)
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the noise off: what is left is the exact query."""
    monkeypatch.setattr("elementdp.histogram.release.exact_noise", lambda values, scale: values)


def release(table: object, items: object = tuple(f"item {k}" for k in range(5)), **options: object) -> PrivateHistogram:
    chosen = {"user": "user", "item": "item", "element": "item", "privacy": Budget(1, 1e-6), "rho": 1.0} | options
    return private_histogram(table, items=items, **chosen)  # type: ignore[arg-type]


def counts(table: object, **options: object) -> dict[str, float]:
    histogram = release(table, **options).histogram
    return dict(zip(histogram["item"].to_pylist(), histogram["count"].to_pylist(), strict=True))


def frame() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=["user", "item"])


class Stream:
    """Nothing but the Arrow stream that data frames of all libraries offer."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.Table.from_pandas(frame()).__arrow_c_stream__(requested_schema)


FORMS = {
    "read_csv": lambda folder: pd.read_csv(io.StringIO(frame().to_csv(index=False))),
    "concat of unsorted parts": lambda folder: pd.concat([frame()[100:], frame()[:100]]),
    "strings in chunks": lambda folder: pd.concat([frame().astype("string[pyarrow]")[k::3] for k in range(3)]),
    "categories": lambda folder: frame().astype("category"),
    "arrow table": lambda folder: pa.Table.from_pandas(frame()),
    "large strings": lambda folder: pa.Table.from_pandas(frame()).cast(
        pa.schema([("user", pa.large_string()), ("item", pa.string_view())])
    ),
    "reader": lambda folder: pa.Table.from_pandas(frame()).to_reader(max_chunksize=7),
    "dataset": lambda folder: pa.dataset.dataset(pa.Table.from_pandas(frame())),
    "any stream": lambda folder: Stream(),
    "folder": lambda folder: folder / "parts",
    "pattern": lambda folder: str(folder / "parts" / "*.csv*"),
    "list of files": lambda folder: sorted((folder / "parts").iterdir()),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_gives_the_same(form: str, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    frame()[:90].to_csv(parts / "a.csv", index=False)
    (parts / "b.csv.gz").write_bytes(gzip.compress(frame()[90:].to_csv(index=False).encode()))
    assert counts(FORMS[form](tmp_path)) == {f"item {k}": 40.0 for k in range(5)}


TEXTS = {
    "csv": lambda: frame().to_csv(index=False),
    "tsv": lambda: frame().to_csv(index=False, sep="\t"),
    "jsonl": lambda: frame().to_json(orient="records", lines=True),
}


@pytest.mark.parametrize(("ending", "codec"), [("gz", "gzip"), ("zst", "zstd"), ("bz2", "bz2")])
@pytest.mark.parametrize("form", TEXTS)
def test_compressed_files_give_the_same_and_a_torn_one_is_refused(
    form: str, ending: str, codec: str, tmp_path: Path
) -> None:
    path = tmp_path / f"events.{form}.{ending}"
    with pa.output_stream(path, compression=codec) as stream:
        stream.write(TEXTS[form]().encode())
    assert counts(path) == {f"item {k}": 40.0 for k in range(5)}
    whole = path.read_bytes()
    for torn in (whole[: len(whole) // 2], b"not compressed at all"):
        path.write_bytes(torn)
        with pytest.raises(TableError):
            counts(path)


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_frames_of_other_libraries(library: str) -> None:
    module = pytest.importorskip(library)
    table = pa.Table.from_pandas(frame())
    source = module.from_arrow(table)
    assert counts(source) == {f"item {k}": 40.0 for k in range(5)}


def test_a_single_column_is_no_table() -> None:
    with pytest.raises(TableError, match="the Series given is no table with named columns"):
        release(frame()["item"])


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_standard_input_with_its_format(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO()
    match form:
        case "parquet":
            pq.write_table(pa.Table.from_pandas(frame()), content)
        case "jsonl":
            content.write(frame().to_json(orient="records", lines=True).encode())
        case _:
            content.write(frame().to_csv(index=False, sep="," if form == "csv" else "\t").encode())
    stand_in(monkeypatch, content.getvalue())
    assert counts("-", engine=LocalEngine(form=form)) == {f"item {k}": 40.0 for k in range(5)}


def stand_in(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Let standard input hold ``content``."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bz2"])
@pytest.mark.parametrize("form", TEXTS)
def test_compressed_standard_input_is_read_as_files_are(form: str, codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, codec) as stream:
        stream.write(TEXTS[form]().encode())
    whole = packed.getvalue().to_pybytes()
    stand_in(monkeypatch, whole)
    assert counts("-", engine=LocalEngine(form=form)) == {f"item {k}": 40.0 for k in range(5)}
    stand_in(monkeypatch, whole[: len(whole) // 2])
    with pytest.raises(TableError, match="standard input: "):
        release("-", engine=LocalEngine(form=form))
    stand_in(monkeypatch, whole)
    with pytest.raises(TableError, match="standard input: Parquet is compressed inside"):
        release("-", engine=LocalEngine(form="parquet"))


def test_what_is_wrong_with_standard_input_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for form in ("csv", "jsonl", "parquet"):
        stand_in(monkeypatch, b"")
        with pytest.raises(TableError, match="standard input is empty"):
            release("-", engine=LocalEngine(form=form))
    stand_in(monkeypatch, b'user,item\nu,"item 0\n')
    with pytest.raises(TableError, match="standard input: the quote that begins in line 2 does not end"):
        release("-", engine=LocalEngine(form="csv"))


def test_instants_that_spark_wrote_without_their_zone_have_it(tmp_path: Path) -> None:
    times = pa.array([0, 1_500_000, 2_000_000] * 20, pa.timestamp("us"))
    table = pa.table({"user": range(60), "item": times})
    pq.write_table(table, tmp_path / "zoneless.parquet")
    pq.write_table(table, tmp_path / "spark.parquet", use_deprecated_int96_timestamps=True)
    names = ["1970-01-01 00:00:00", "1970-01-01 00:00:01.5", "1970-01-01 00:00:02"]
    assert counts(tmp_path / "zoneless.parquet", items=names) == dict.fromkeys(names, 20.0)
    zoned = [f"{name}Z" for name in names]
    assert counts(tmp_path / "spark.parquet", items=zoned) == dict.fromkeys(zoned, 20.0)


@pytest.mark.parametrize("mark", ["\ufeff", "\ufeff\ufeff"])
def test_marks_of_files_that_were_put_together_are_no_part_of_their_lines(mark: str, tmp_path: Path) -> None:
    part = mark + TEXTS["jsonl"]()
    (tmp_path / "both.jsonl").write_text(part + part)
    assert counts(tmp_path / "both.jsonl", rho=2.0) == {f"item {k}": 80.0 for k in range(5)}


def test_standard_input_needs_a_format_and_a_pattern_a_file(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="format must be given for standard input"):
        release("-")
    with pytest.raises(TableError, match="no file matches"):
        release(str(tmp_path / "*.csv"))
    with pytest.raises(TableError, match="a folder without a file of events"):
        release(tmp_path)


def test_files_of_one_table_have_the_same_columns(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "a.csv", index=False)
    frame().rename(columns={"user": "person"}).to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(TableError, match=r"b.csv has other columns than .*a.csv: 'person', 'item'"):
        release(tmp_path)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'user,item\nu,a\nv,"b\nw,a\nx,a\n', 3),
        (b'user,item\nu,"a"\nv,b 5" pipe\nw,"c', 4),
        (b'user,item\nu,"a ""quoted"" word"\n"v,b\n', 3),
    ],
)
def test_a_file_that_ends_inside_a_quote_is_refused_with_its_line(content: bytes, line: int, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content))
    for name in ("t.csv", "t.csv.gz"):
        with pytest.raises(TableError, match=f"the quote that begins in line {line} does not end"):
            release(tmp_path / name, items=None)


@pytest.mark.parametrize(
    "content",
    [
        b'user,item\nu,"a\nb"\n',
        b'user,item\nu,5" pipe\n',
        b'user,item\nu,"a ""b"""\n',
        b'user,item\nu,a""b\n',
        b"user,item\nu,a\n",
    ],
)
def test_quotes_that_end_and_quotes_that_are_none_are_read(content: bytes, tmp_path: Path) -> None:
    assert unterminated(io.BytesIO(content), b",") is None
    (tmp_path / "t.csv").write_bytes(content)
    assert release(tmp_path / "t.csv", items=None).histogram.num_rows == 0


@pytest.mark.parametrize(("extension", "separator"), [("csv", ","), ("tsv", "\t")])
def test_whole_numbers_are_one_name_in_text_files_too(extension: str, separator: str, tmp_path: Path) -> None:
    rows = [("7", "1"), ("7.0", "1.0"), ("7.00", "-0.0"), ("07", "0"), ("v1.0", "0")]
    text = "".join(separator.join(row) + "\n" for row in [("user", "item"), *rows])
    (tmp_path / f"t.{extension}").write_text(text)
    # user 7 has item 1 twice and item 0 once, the users 07 and v1.0 have item 0 once each
    assert counts(tmp_path / f"t.{extension}", items=["0", "1"]) == {"0": 3.0, "1": 1.0}


@pytest.mark.parametrize("bad", ["1_000", "0x10", "1,5", "one", "", "nan", "inf", "-1", "1e300"])
def test_what_is_no_count_is_refused_or_dropped(bad: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"user": ["u", "v"], "item": ["item 1"] * 2, "times": ["3", bad]})
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(TableError, match="row 2: 'times' must be a finite count"):
        release(tmp_path / "t.csv", count="times")
    told: list[int] = []
    policy = RowPolicy(bad_rows="drop", tell=told.append)
    assert counts(tmp_path / "t.csv", count="times", rho=100.0, policy=policy)["item 1"] == 3.0
    assert told == [1]


def test_bad_rows_are_dropped_alone_whatever_is_wrong_with_them(tmp_path: Path) -> None:
    lines = [json.dumps({"user": f"u{k}", "item": "item 1"}) for k in range(3)]
    broken = [
        '{"user": ',
        "[1]",
        '{"user": null, "item": "item 1"}',
        '{"item": "item 1"}',
        '{"user": "x", "item": true}',
    ]
    (tmp_path / "t.jsonl").write_text("\n".join([lines[0], *broken, *lines[1:]]) + "\n")
    (tmp_path / "t.csv").write_text("user,item\nu0,item 1\nu1\nu2,item 1,more\n,item 1\nu1,item 1\nu2,item 1\n")
    for name, dropped in (("t.jsonl", 5), ("t.csv", 3)):
        told: list[int] = []
        policy = RowPolicy(bad_rows="drop", tell=told.append)
        assert counts(tmp_path / name, policy=policy)["item 1"] == 3.0
        assert told == [dropped]
        with pytest.raises(TableError):
            release(tmp_path / name)


def test_text_that_is_not_utf8_is_a_bad_row_of_its_own(tmp_path: Path) -> None:
    good = [(f"u{k}", "item 1") for k in range(3)]
    for form, line in (("csv", b"%s,%s"), ("tsv", b"%s\t%s"), ("jsonl", b'{"user": "%s", "item": "%s"}')):
        rows = [line % (user.encode(), item.encode()) for user, item in good]
        broken = [line % (b"caf\xe9", b"item 1"), line % (b"u4", b"\xff"), line % (b"u5", b"\xff") + b",x\ty"]
        header = [] if form == "jsonl" else [b"user\titem".replace(b"\t", b"," if form == "csv" else b"\t")]
        (tmp_path / f"t.{form}").write_bytes(b"\n".join([*header, rows[0], *broken, *rows[1:]]) + b"\n")
        told: list[int] = []
        policy = RowPolicy(bad_rows="drop", tell=told.append)
        assert counts(tmp_path / f"t.{form}", policy=policy)["item 1"] == 3.0
        assert told == [3]
        with pytest.raises(TableError, match=r"(?i)utf|columns"):
            release(tmp_path / f"t.{form}")
    (tmp_path / "names.csv").write_bytes(b"user,item,caf\xe9\nu,item 1,x\n")
    assert counts(tmp_path / "names.csv")["item 1"] == 1.0  # nobody reads that column


def test_only_bytes_that_are_not_utf8_are_substituted() -> None:
    """Cut at every place and read in pieces of every length, a text stays itself."""
    content = "naïve 😀, 日本".encode() + b"\xff\xe6\x97 end\xf0\x9f"
    expected = "naïve 😀, 日本".encode() + b"\x1a\x1a\x1a end\x1a\x1a"
    for size in range(1, len(content) + 2):
        stream, found = Utf8Stream(io.BytesIO(content)), b""
        while piece := stream.read(size):
            found += piece
        assert found == expected


@pytest.mark.parametrize(
    "odd",
    [
        '"z": -NaN',
        '"z": Inf',
        '"z": "\\ud800"',
        f'"z": {"9" * 5000}',
        f'"z": {"[" * 2000}{"]" * 2000}',
        '"user": 12345678901.5',
        '"user": 1e-5',
        '"user": 1700000000.123',
    ],
)
def test_how_a_line_of_json_is_read_does_not_depend_on_other_lines(odd: str, tmp_path: Path) -> None:
    """A block of lines is read in one of two ways: one person must not choose the way for another."""
    user = "" if odd.startswith('"user"') else '"user": 0.5, '
    line = f'{{{user}"item": "item 1", {odd}}}'
    found = []
    for name, other in (("plain", '{"user": 2.5, "item": "item 2"}'), ("mixed", '{"user": "u", "item": "item 2"}')):
        (tmp_path / f"{name}.jsonl").write_text(f"{other}\n{line}\n{line}\n")
        found.append(counts(tmp_path / f"{name}.jsonl", policy=RowPolicy(bad_rows="drop"), rho=9.0)["item 1"])
    assert found[0] == found[1]


def test_an_object_over_two_lines_is_two_bad_rows_whatever_the_others_are(tmp_path: Path) -> None:
    """Arrow reads it, and with two objects in one line the number of rows is that of the lines."""
    rows = '{"user": 1, "item": "item 1"} {"user": 2,\n"item": "item 1"}\n'
    found = []
    for name, other in (("plain", '{"user": 3, "item": "item 2"}'), ("mixed", '{"user": "u", "item": "item 2"}')):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"user": 3, "item": "item 1"}}\n{rows}{other}\n')
        found.append(counts(tmp_path / f"{name}.jsonl", policy=RowPolicy(bad_rows="drop"), rho=9.0)["item 1"])
    assert found == [1.0, 1.0]


def test_a_number_is_one_name_in_whatever_block_it_stands(tmp_path: Path) -> None:
    """The same user in a block of numbers and in one with texts, so bounded once."""
    rows = ['{"user": 12345678901.5, "item": "item 1"}', '{"user": "u", "item": "item 2"}']
    (tmp_path / "t.jsonl").write_text("\n".join([rows[0], rows[0], rows[1], rows[0]]) + "\n")
    assert counts(tmp_path / "t.jsonl", engine=LocalEngine(batch_rows=2))["item 1"] == 1.0


def test_urls_without_a_host_are_refused_or_dropped() -> None:
    table = pa.table({"user": ["u", "v", "w"], "item": ["https://a.org/x", "/wiki/NeXT", "https:/x.com"]})
    options = {"element": "domain", "items": ["https://a.org/x"]}
    with pytest.raises(TableError, match="row 2: url must be a URL with a host name, got '/wiki/NeXT'"):
        release(table, **options)
    policy = RowPolicy(bad_rows="drop", unknown_items="drop")
    assert counts(table, policy=policy, **options) == {"https://a.org/x": 1.0}


def test_weights_far_below_one_are_kept() -> None:
    """In units of 2⁻²⁰ a weight of 1e-7 would be nothing."""
    table = pa.table({"user": np.arange(1000), "item": ["a"] * 1000, "weight": [1e-7] * 1000})
    found = counts(table, items=["a"], count="weight", rho=1e-6)
    assert found["a"] == pytest.approx(1e-4, rel=1e-3)
