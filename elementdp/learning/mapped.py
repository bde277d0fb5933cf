"""Rows that stay on disk: Parquet files, as Spark writes them, become arrays that every process maps into memory.

Parquet packs rows in groups that are read as a whole, while a private step needs a few rows from all over the table. So
the files are unpacked once, a bundle of rows at a time, into one ``.npy`` a column, of which the system reads what a
step touches. Only the ids of users and elements are held in memory, 16 bytes a row.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch import Tensor

from elementdp.errors import ArgumentError
from elementdp.files import sha256_bytes, write_atomic
from elementdp.learning.data import UserData
from elementdp.learning.rows import Pair

_ROWS = 1 << 16
"""Rows unpacked at a time."""

_NO_NUMBERS = (
    "a column of numbers, or of lists of numbers, none missing (of a vector, Spark's vector_to_array makes a list)"
)
_SEAL = "content.json"
"""Written last, with the hash of all arrays: a folder without it was not finished."""


def unpack_parquet(source: str | Path, into: str | Path, *, user: str, element: str, inputs: str, targets: str) -> None:
    """Unpack a Parquet file, or a folder of them in the order of their names, into arrays in the folder ``into``.

    Args:
        source: a file or folder whose rows have a user, an element, inputs and targets.
        into: a folder of its own, on a disk that the processes of a run can read.
        user: the column of whole numbers that names the user.
        element: the column of whole numbers that names the element.
        inputs: a column of numbers, or of lists of numbers that are all equally long.
        targets: likewise.

    Raises:
        ArgumentError: for a missing column, a missing value, ids that are no whole numbers, and lists that differ in
            length.
    """
    files = _files(Path(source)) if Path(source).is_dir() else [Path(source)]
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    if not rows:
        raise ArgumentError("source", str(source), "a Parquet file or a folder of them, with at least one row")
    columns = {"users": user, "elements": element, "inputs": inputs, "targets": targets}
    folder = Path(into)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _SEAL).unlink(missing_ok=True)
    arrays: dict[str, Any] = {}
    digests = {name: hashlib.sha256() for name in columns}
    first = 0
    for batch in _batches(files, list(columns.values())):
        for name, column in columns.items():
            values = _ids(column, batch) if name in ("users", "elements") else _numbers(column, batch)
            if name not in arrays:
                shape = (rows, *values.shape[1:])
                path = folder / f"{name}.npy"
                arrays[name] = np.lib.format.open_memmap(path, mode="w+", dtype=values.dtype, shape=shape)
            if values.shape[1:] != arrays[name].shape[1:] or values.dtype != arrays[name].dtype:
                raise ArgumentError(column, values.shape[1:], f"numbers like those of the first row in all of {source}")
            arrays[name][first : first + len(values)] = values
            digests[name].update(np.ascontiguousarray(values).tobytes())
        first += batch.num_rows
    for array in arrays.values():
        array.flush()
    kinds = {name: [str(array.dtype), array.shape] for name, array in arrays.items()}
    content = sha256_bytes(json.dumps([kinds, [one.hexdigest() for one in digests.values()]]).encode())
    write_atomic(folder / _SEAL, json.dumps({"content": content, "arrays": kinds}))


def mapped_data(folder: str | Path, n_users: int | None) -> UserData:
    """The data that :func:`unpack_parquet` left in ``folder``; inputs and targets stay on disk.

    The hash of the content is part of the data's fingerprint, by which the processes of a run are compared.
    """
    seal = Path(folder, _SEAL)
    if not seal.is_file():
        raise ArgumentError("folder", str(folder), "one that unpack_parquet has finished")
    told = json.loads(seal.read_text())
    arrays = {name: np.load(Path(folder, f"{name}.npy"), mmap_mode="r") for name in told["arrays"]}
    if told["arrays"] != {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()}:
        raise ArgumentError("folder", str(folder), "one whose arrays are those that unpack_parquet wrote")

    def fetch(rows: Tensor) -> Pair:
        chosen = rows.numpy()
        return torch.from_numpy(arrays["inputs"][chosen]), torch.from_numpy(arrays["targets"][chosen])

    return UserData(fetch, arrays["users"], arrays["elements"], n_users, content=told["content"])


def _files(folder: Path) -> list[Path]:
    """The files of a folder, without those that Spark hides or has not finished (``_temporary``)."""
    found = sorted(folder.rglob("*.parquet"))
    return [file for file in found if not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)]


def _batches(files: list[Path], names: list[str]) -> Iterator[pa.RecordBatch]:
    for file in files:
        with pq.ParquetFile(file) as parquet:
            if missing := sorted({*names} - {*parquet.schema_arrow.names}):
                raise ArgumentError("columns", missing, f"columns of {file}: {', '.join(parquet.schema_arrow.names)}")
            yield from parquet.iter_batches(_ROWS, columns=names)


def _ids(name: str, batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Ids as 64-bit numbers."""
    column = batch.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        found = "a missing id" if column.null_count else str(column.type)
        raise ArgumentError(name, found, "a column of whole numbers, none missing (in Spark: dense_rank or xxhash64)")
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _numbers(name: str, batch: pa.RecordBatch) -> NDArray[Any]:
    """One number a row, or as many in each."""
    column = batch.column(name)
    wide = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    wide = wide or pa.types.is_fixed_size_list(column.type)
    flat = column.flatten() if wide else column
    kind = flat.type
    if column.null_count or flat.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ArgumentError(name, str(column.type), _NO_NUMBERS)
    numbers = np.asarray(flat.to_numpy())
    if not wide:
        return numbers
    lengths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(lengths) > 1:
        raise ArgumentError(name, sorted(lengths), "lists of one length")
    return numbers.reshape(len(column), *lengths)
