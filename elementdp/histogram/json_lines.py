"""JSON lines in batches: by Arrow where a block of lines is plain, line by line where it is not.

Which of the two reads a line depends on the other lines of its block, so it must not matter: both take the same lines
for bad and read the same names. Where Arrow takes what Python refuses, the block is not plain.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from elementdp.histogram.bad_rows import BadRows
from elementdp.histogram.errors import TableError
from elementdp.histogram.event_files import EventFile
from elementdp.histogram.events import Batches, Events
from elementdp.histogram.text import whole_number

_LINE_BYTES = 64
_LONG_LINE = 1500
"""Bytes of a line without which neither a number nor a nesting is too long for Python."""

_ODD_NUMBERS = re.compile(rb"[:,\[]\s*(-?Inf(?!inity)|-NaN)")
"""Numbers that Arrow knows and Python does not (within a string they only cost time)."""


def json_lines(file: EventFile, batch_rows: int) -> Events:
    """The events of a file with a JSON object a line; its columns are those of the first."""
    with file.opened() as (stream, _):
        names = _first_names(stream, file.source)

    def batches(columns: Sequence[str], bad: BadRows) -> Batches:
        with file.opened() as (stream, share):
            for batch in _blocks(stream, columns, bad, batch_rows):
                yield batch, share()

    return Events(file.source, names, batches)


def _first_names(stream: Any, source: str) -> tuple[str, ...]:
    for block in _lines(stream, 1):
        for line in block:
            return json_names(line)
    raise TableError(f"{source} is empty")


def json_names(line: bytes) -> tuple[str, ...]:
    """The columns of the first line."""
    value = _object(line)
    if isinstance(value, str):
        raise TableError(f"row 1: {value}")
    return tuple(value)


def _lines(stream: Any, batch_rows: int) -> Iterator[list[bytes]]:
    """The lines that are not blank, in blocks; the first without its byte order mark."""
    held, first = b"", True
    while True:
        data = bytes(stream.read(min(1 << 23, _LINE_BYTES * batch_rows)))
        held += data
        if first and len(held) >= 3:
            held, first = held.removeprefix(b"\xef\xbb\xbf"), False
        cut = held.rfind(b"\n") + 1 if data else len(held)
        if lines := [line for line in held[:cut].split(b"\n") if line.strip()]:
            yield lines
        held = held[cut:]
        if not data:
            return


def _blocks(stream: Any, columns: Sequence[str], bad: BadRows, batch_rows: int) -> Iterator[pa.RecordBatch]:
    row = 0
    for lines in _lines(stream, batch_rows):
        for start in range(0, len(lines), batch_rows):
            some = lines[start : start + batch_rows]
            yield json_batch(some, columns, bad, row)
            row += len(some)


def json_batch(lines: list[bytes], columns: Sequence[str], bad: BadRows, first: int = 0) -> pa.RecordBatch:
    """The columns of some lines, none of them blank, that ``first`` lines came before."""
    plain = _plain(lines, columns)
    return plain if plain is not None else _one_by_one(lines, columns, bad, first)


def _plain(lines: list[bytes], columns: Sequence[str]) -> pa.RecordBatch | None:
    """A block read by Arrow, if each column has one type; numbers beyond 2⁵³ could lose digits and are left alone."""
    first = _object(lines[0])
    if isinstance(first, str):
        return None
    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    kinds = [types.get(type(first.get(name))) for name in columns]
    if None in kinds:
        return None
    schema = pa.schema(list(zip(columns, kinds, strict=True)))
    options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    content = b"\n".join(lines)
    if not _read_alike(content, lines):
        return None
    try:
        table = pa.json.read_json(
            pa.BufferReader(content), pa.json.ReadOptions(block_size=len(content) + 1), parse_options=options
        )
    except pa.ArrowException:
        return None
    if table.num_rows != len(lines):
        return None
    for column in table.columns:
        if pa.types.is_floating(column.type) and not pc.all(pc.less(pc.abs(pc.drop_null(column)), 2.0**53)).as_py():
            return None
    return table.select(list(columns)).combine_chunks().to_batches()[0]


def _read_alike(content: bytes, lines: list[bytes]) -> bool:
    """Whether Python takes each line for JSON that Arrow does.

    Arrow reads objects that go on in the next line. Where every line begins and ends with a brace, each holds whole
    objects, since no comma stands between two lines, and as many objects as lines are one a line.
    """
    if not all(line.strip().startswith(b"{") and line.strip().endswith(b"}") for line in lines):
        return False
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    odd = (b"Inf" in content or b"NaN" in content) and _ODD_NUMBERS.search(content) is not None
    return not odd and max(map(len, lines)) <= _LONG_LINE


def _object(line: bytes) -> dict[str, Any] | str:
    """The object of a line, or words that say why there is none.

    The line may begin with a byte order mark: files that begin so may have been put together.
    """
    try:
        value = json.loads(line.decode("utf-8").lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        return f"not a line of JSON ({error})"
    return value if isinstance(value, dict) else f"a JSON object was expected, not {line[:40]!r}"


def _one_by_one(lines: list[bytes], columns: Sequence[str], bad: BadRows, row: int) -> pa.RecordBatch:
    """A block line by line: columns of several types, and lines that are no objects."""
    held: list[list[str | None]] = []
    for place, line in enumerate(lines, start=row + 1):
        value = _object(line)
        if isinstance(value, str):
            bad.found(place, value, "not a line with a JSON object")
            continue
        cells = [value.get(name) for name in columns]
        odd = next((pair for pair in zip(columns, cells, strict=True) if isinstance(pair[1], bool | list | dict)), None)
        if odd is not None:
            kind = f"{odd[0]!r} must be a string or a number"
            bad.found(place, f"{kind}, got {odd[1]!r}", kind)
            continue
        texts = [None if cell is None or cell != cell else whole_number(cell) or str(cell) for cell in cells]
        try:
            "".join(filter(None, texts)).encode("utf-8")  # JSON can spell half a character
        except UnicodeEncodeError as error:
            bad.found(place, f"not text ({error})", "not text")
            continue
        held.append(texts)
    columns_of = [list(cells) for cells in zip(*held, strict=True)] or [[] for _ in columns]
    return pa.record_batch([pa.array(cells, pa.string()) for cells in columns_of], names=list(columns))
