"""Many small files kept together, read one at a time: an uncompressed tar file, a zip file or a plain directory."""

import os
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elementdp.companion.data.store import DataError


@dataclass(frozen=True, eq=False)
class Packed:
    """The files of a package by name (``/`` between folders); the same names and bytes whatever the packing."""

    path: Path
    names: tuple[str, ...]
    read: Callable[[Iterable[str]], Iterator[bytes]]

    def text(self, name: str) -> str:
        """One file as text."""
        (content,) = self.read([name])
        return content.decode()


def open_packed(path: Path) -> Packed:
    """A directory, ``.zip`` or ``.tar`` opened for reading; one that is damaged or of another kind is refused."""
    if path.is_dir():
        return _directory(path)
    try:
        return _zip(path) if zipfile.is_zipfile(path) else _tar(path)
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise DataError(f"{path.name} is no directory, zip file or uncompressed tar file ({error})") from error


def _directory(path: Path) -> Packed:
    path = path.resolve()  # "." has no name of its own
    found = [Path(folder, file) for folder, _, files in os.walk(path) for file in files]

    def read(names: Iterable[str]) -> Iterator[bytes]:
        for name in names:
            yield (path.parent / name).read_bytes()

    # The directory's own name leads, as in an archive of it.
    return Packed(path, tuple(sorted(file.relative_to(path.parent).as_posix() for file in found)), read)


def _zip(path: Path) -> Packed:
    package = zipfile.ZipFile(path)  # stays open: finding 110,000 names anew for every batch would take longer than it

    def read(names: Iterable[str]) -> Iterator[bytes]:
        for name in names:
            try:
                yield package.read(name)
            except (OSError, zipfile.BadZipFile) as error:
                raise DataError(f"{path.name} is damaged at {name} ({error})") from error

    return Packed(path, tuple(name for name in package.namelist() if not name.endswith("/")), read)


def _tar(path: Path) -> Packed:
    with tarfile.open(path, "r:") as package:
        places = {member.name: (member.offset_data, member.size) for member in package if member.isfile()}

    def read(names: Iterable[str]) -> Iterator[bytes]:
        with path.open("rb") as stream:
            for name in names:
                offset, size = places[name]
                stream.seek(offset)
                yield stream.read(size)

    return Packed(path, tuple(places), read)
