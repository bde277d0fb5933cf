"""Files that are either whole or not there, and the hashes that tell."""

import errno
import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from elementdp.errors import ArgumentError


def sha256_bytes(data: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file's content, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def source_hash(root: Path, files: Iterable[Path]) -> str:
    """One SHA-256 over these files below ``root``, names included."""
    digest = hashlib.sha256()
    for path in sorted(path for path in files if path.is_file()):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def write_atomic(path: Path, data: bytes | str, *, secret: bool = False, new: bool = False) -> None:
    """Write a file so that whoever is killed in between leaves the old file or the new one, never half of it.

    The file gets the mode an ordinary new file has, or is its owner's alone if ``secret``; through a symbolic link, the
    file it points at is replaced. When this returns, the new file outlives a loss of power.

    Raises:
        FileExistsError: if the file has to be ``new`` and is not.
    """
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        partial.touch(0o600 if secret else 0o666, exist_ok=False)
        with partial.open("wb") as stream:
            stream.write(data.encode() if isinstance(data, str) else data)
            stream.flush()
            os.fsync(stream.fileno())
        if not (new and _linked(partial, target)):
            partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # the new name, not only the bytes, has to reach the disk
    finally:
        os.close(directory)


def _linked(partial: Path, target: Path) -> bool:
    """Give a file its name if nothing else has it; False where files cannot have two names for a moment."""
    try:
        target.hardlink_to(partial)
    except FileExistsError:
        raise
    except OSError:
        return False
    partial.unlink()
    return True


def target_of(name: str, path: Path) -> Path:
    """What a path leads to through symbolic links; a loop of them is refused in the name of the argument."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop, before Python 3.13
        raise ArgumentError(name, str(path), "a file, not a symbolic link that leads nowhere") from error


def require_writable(name: str, path: Path, size: int = 1 << 20) -> Path:
    """Return ``path`` if a file of ``size`` bytes can be written beside it now; asked before work begins, not after.

    Raises:
        ArgumentError: names the argument ``name`` and says what stands in the way (a full or read-only disk, …).
    """
    probe = target_of(name, path).parent / f".{path.name}.{secrets.token_hex(8)}"
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        try:
            probe.write_bytes(bytes(size))
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise ArgumentError(name, str(path), f"a file that can be written ({error.strerror})") from error
    return path
