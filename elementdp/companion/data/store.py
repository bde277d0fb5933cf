"""Where data files live: a searched list of directories, content hashes, and writes that are whole or not there."""

import hashlib
import io
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import platformdirs
import pyarrow as pa
from numpy.typing import NDArray

from elementdp.errors import ElementdpError
from elementdp.files import write_atomic

VARIABLE = "ELEMENTDP_DATA"
"""Environment variable with one or more data directories, separated as in ``PATH``."""


class DataError(ElementdpError):
    """A data source that cannot be had, or that is not what it should be."""


def directories() -> list[Path]:
    """The directories searched, in order: those of ``ELEMENTDP_DATA``, then the user's cache folder."""
    named = [Path(entry).expanduser() for entry in os.environ.get(VARIABLE, "").split(os.pathsep) if entry.strip()]
    return [*named, platformdirs.user_cache_path("elementdp", appauthor=False)]


def find(file: str) -> Path | None:
    """The first file of that name in the searched directories."""
    return next((folder / file for folder in directories() if (folder / file).is_file()), None)


def writable() -> Path:
    """The first searched directory new files may go to (made if missing)."""
    for folder in directories():
        if _may_write(folder):
            folder.mkdir(parents=True, exist_ok=True)
            return folder
    raise DataError(f"no data directory can be written to: set {VARIABLE} to one that can")


def _may_write(folder: Path) -> bool:
    # The mode is looked at as well: a folder marked read-only is somebody's archive even when we run as root.
    present = next(path for path in (folder, *folder.parents) if path.exists())
    return present.is_dir() and bool(present.stat().st_mode & stat.S_IWUSR) and os.access(present, os.W_OK)


def digest(path: Path) -> str:
    """The SHA-256 of what a file holds, whatever its packing: arrays (.npz), text (.zst) or plain bytes."""
    if path.suffix == ".npz":
        return digest_arrays(read_arrays(path))
    sha = hashlib.sha256()
    try:
        with pa.OSFile(str(path)) as raw:
            stream = pa.CompressedInputStream(raw, "zstd") if path.suffix == ".zst" else raw
            while block := stream.read(1 << 20):
                sha.update(block)
    except OSError as error:
        raise DataError(f"{path.name} is damaged ({error}): remove it and fetch it again") from error
    return sha.hexdigest()


def digest_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> str:
    """The SHA-256 of named arrays: name, type, shape and little-endian bytes of each, in the order of the names."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        sha.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sha.update(array.data if array.size else b"")
    return sha.hexdigest()


def read_arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """Every array of an ``.npz`` file; a damaged file is an error that says so."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise DataError(f"{path.name} is damaged ({error}): remove it and fetch it again") from error


def write_arrays(path: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Write arrays as ``.npz`` so that the file is whole or not there, even when interrupted."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(arrays))
    write_atomic(path, buffer.getvalue())
