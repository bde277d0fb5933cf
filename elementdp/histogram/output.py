"""A private histogram as a file that says what it promises; whole or not there at all.

CSV and TSV have no place for metadata: the guarantee goes beside them, in ``NAME.guarantee.json``, with the hash of the
file it belongs to. Parquet carries it in the schema's metadata (key ``elementdp``), JSON in the field ``guarantee``.

The two files of a CSV are written as one: under a lock on their folder, each under a temporary name first; then the
old counts go, the new guarantee comes, and the new counts come last. Whoever is killed in between leaves counts with
their own guarantee or a guarantee alone, never counts beside another's.
"""

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from elementdp.errors import ArgumentError
from elementdp.files import require_writable, sha256_file, target_of
from elementdp.histogram.release import PrivateHistogram

METADATA_KEY = b"elementdp"
_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?$"


def _csv(result: PrivateHistogram, path: Path, delimiter: str = ",") -> None:
    table = result.histogram
    for place, name in enumerate(result.item_columns):
        items = table.column(name)
        formula = pc.and_not(pc.match_substring_regex(items, _FORMULA), pc.match_substring_regex(items, _NUMBER))
        quoted = pc.if_else(formula, pc.binary_join_element_wise("'", items, ""), items)
        table = table.set_column(place, name, quoted)
    pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter=delimiter))


def _parquet(result: PrivateHistogram, path: Path) -> None:
    promise = {METADATA_KEY: json.dumps(result.as_json())}
    pa.parquet.write_table(result.histogram.replace_schema_metadata(promise), path)


def _json(result: PrivateHistogram, path: Path) -> None:
    content = {"guarantee": result.as_json(), "histogram": result.histogram.to_pylist()}
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


Writer = Callable[[PrivateHistogram, Path], None]
WRITERS: dict[str, Writer] = {
    ".csv": _csv,
    ".tsv": lambda result, path: _csv(result, path, "\t"),
    ".parquet": _parquet,
    ".json": _json,
}
"""A spreadsheet would run an item like ``=cmd|…`` as a formula: in CSV and TSV it begins with an apostrophe."""


def files_of(output: Path) -> list[Path]:
    """The files that a release to ``output`` writes, the histogram itself last; through links, as they will be."""
    if output.suffix.lower() not in WRITERS:
        raise ArgumentError("output", str(output), f"a file named with one of {', '.join(WRITERS)}")
    if not output.parent.is_dir():
        raise ArgumentError("output", str(output), "in a folder that exists")
    target = target_of("output", output)
    beside = [target.with_name(target.name + ".guarantee.json")] if output.suffix.lower() in (".csv", ".tsv") else []
    return [*beside, target]


def check_output(output: Path, *, force: bool) -> None:
    """Refuse, before any work, a place where the release cannot be written or would replace another."""
    for path in files_of(output):
        if path.is_dir() or (path.exists() and not force):
            raise ArgumentError(
                "output", str(path), "a new file (each release spends privacy anew; --force replaces an old one)"
            )
        require_writable("output", path)


def write_release(result: PrivateHistogram, output: str | Path, *, force: bool = False) -> list[Path]:
    """Write the files of a release, all or none; an old release is replaced with ``force`` only.

    Returns:
        The files written, the histogram last.

    Raises:
        ArgumentError: ``output`` has no known ending, lies in no folder, or is there already.
    """
    *beside, target = files_of(Path(output))
    writer = WRITERS[Path(output).suffix.lower()]
    partial = [path.with_name(f".{path.name}.{secrets.token_hex(8)}") for path in (*beside, target)]
    with _locked(target.parent):
        if not force and (old := next((path for path in (*beside, target) if path.exists()), None)):
            raise ArgumentError("output", str(old), "a new file (force replaces an old one)")
        try:
            writer(result, partial[-1])
            if beside:
                promise = result.as_json() | {"file": target.name, "sha256": sha256_file(partial[-1])}
                partial[0].write_text(json.dumps(promise, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
                target.unlink(missing_ok=True)
                partial[0].replace(beside[0])
            partial[-1].replace(target)
        except BaseException:
            for path in partial:
                path.unlink(missing_ok=True)
            raise
    return [*beside, target]


def read_guarantee(path: Path) -> dict[str, Any]:
    """The guarantee that a file carries, or that lies beside it; counts that are not its own are refused."""
    beside = path.with_name(path.name + ".guarantee.json")
    if path.suffix.lower() in (".csv", ".tsv") and beside.exists():
        path = beside
    try:
        if path.suffix.lower() == ".parquet":
            content = json.loads((pa.parquet.read_schema(path).metadata or {})[METADATA_KEY])
        else:
            content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise ArgumentError("guarantee", str(path), f"a file that carries a guarantee ({error})") from error
    content = content.get("guarantee", content) if isinstance(content, dict) else {}
    if "statement" not in content or "spent" not in content:
        raise ArgumentError("guarantee", str(path), "a file that carries the guarantee of a release")
    if "file" in content:
        counts = path.with_name(content["file"])
        if counts.exists() and sha256_file(counts) != content["sha256"]:
            raise ArgumentError("guarantee", str(path), f"that of {counts.name} beside it, whose content is another's")
    return dict(content)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time in a folder, where the system has locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
