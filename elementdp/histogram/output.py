"""A private histogram as a file that says what it promises; whole or not there at all.

CSV and TSV have no place for metadata: the guarantee goes beside them, in ``NAME.guarantee.json``. Parquet carries it
in the schema's metadata (key ``elementdp``), JSON in the field ``guarantee``.
"""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from elementdp.errors import ArgumentError
from elementdp.histogram.release import PrivateHistogram

METADATA_KEY = b"elementdp"


def _csv(result: PrivateHistogram, path: Path, delimiter: str = ",") -> None:
    pa.csv.write_csv(result.histogram, path, pa.csv.WriteOptions(delimiter=delimiter))


def _parquet(result: PrivateHistogram, path: Path) -> None:
    promise = {METADATA_KEY: json.dumps(result.as_json())}
    pa.parquet.write_table(result.histogram.replace_schema_metadata(promise), path)


def _json(result: PrivateHistogram, path: Path) -> None:
    content = {"guarantee": result.as_json(), "histogram": result.histogram.to_pylist()}
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _promise(result: PrivateHistogram, path: Path) -> None:
    path.write_text(json.dumps(result.as_json(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


Writer = Callable[[PrivateHistogram, Path], None]
WRITERS: dict[str, Writer] = {
    ".csv": _csv,
    ".tsv": lambda result, path: _csv(result, path, "\t"),
    ".parquet": _parquet,
    ".json": _json,
}


def files_of(output: Path) -> dict[Path, Writer]:
    """The files that a release to ``output`` writes; the histogram itself last."""
    writer = WRITERS.get(output.suffix.lower())
    if writer is None:
        raise ArgumentError("output", str(output), f"a file named with one of {', '.join(WRITERS)}")
    if not output.parent.is_dir():
        raise ArgumentError("output", str(output), "in a folder that exists")
    beside = output.with_name(output.name + ".guarantee.json")
    return ({beside: _promise} if output.suffix.lower() in (".csv", ".tsv") else {}) | {output: writer}


def check_output(output: Path, *, force: bool) -> None:
    """Refuse, before any work, a place where the release cannot be written or would replace another."""
    for path in files_of(output):
        if path.is_dir() or (path.exists() and not force):
            raise ArgumentError(
                "output", str(path), "a new file (each release spends privacy anew; --force replaces an old one)"
            )


def write_release(result: PrivateHistogram, output: Path) -> list[Path]:
    """Write the files of a release, each under a temporary name first; on any failure none is left."""
    files = files_of(output)
    made: list[Path] = []
    try:
        for path, writer in files.items():
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            os.close(handle)
            made.append(Path(name))
            writer(result, made[-1])
            made[-1].chmod(0o666 & ~_umask())
        for temporary, path in zip(tuple(made), files, strict=True):
            temporary.replace(path)
            made.append(path)
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise
    return list(files)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
