"""Executed notebooks, kept by a hash of everything that decides what they show."""

import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from elementdp.companion.book.notebooks import Notebook
from elementdp.companion.book.project import Project, keep
from elementdp.companion.book.provenance import PageProvenance
from elementdp.files import sha256_bytes, source_hash

KEEP = 6
"""How many executed versions of one notebook stay: the three profiles, and their predecessors."""


@dataclass(frozen=True)
class Executed:
    """A notebook that ran, and what made it."""

    notebook: NotebookNode
    provenance: PageProvenance


@cache
def sources_hash(root: Path) -> str:
    """One hash over the package's sources, the recorded runs and the pins, whatever commit they come from.

    How a page is staged and built decides nothing that its cells compute, so these modules are not in it.
    """
    package = root / "elementdp"
    modules = (path for path in package.rglob("*.py") if package / "companion" / "book" not in path.parents)
    worker = package / "companion" / "book" / "worker.py"
    files = [root / "constraints.txt", *modules, worker, *(root / "recorded").rglob("*")]
    return f"{platform.python_version()} {source_hash(root, files)}"


def data_present(notebook: Notebook) -> dict[str, int]:
    """The data files a notebook that reads data would find, with their sizes: they decide between real and stand-in."""
    if not re.search(r"elementdp\.companion\.(data|experiments)", "\n".join(notebook.code)):
        return {}
    from elementdp.companion.data import SOURCES, find

    found = {source.file: find(source.file) for source in SOURCES.values()}
    return {file: path.stat().st_size for file, path in found.items() if path is not None}


def own_data(project: Project, notebook: Notebook, values: Mapping[str, Any]) -> dict[str, list[tuple[str, int, int]]]:
    """The files behind each text parameter that is a path, with sizes and times of change.

    ``work`` is no data: a run leaves its own checkpoints there.
    """
    found = {}
    for name, value in values.items():
        if not (isinstance(value, str) and value) or name == "work" or notebook.parameters[name].choices:
            continue
        path = project.root / value
        files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
        if files:
            stats = [(file, file.stat()) for file in files]
            found[name] = [(str(file.relative_to(path)), stat.st_size, stat.st_mtime_ns) for file, stat in stats]
    return found


def key(project: Project, notebook: Notebook, parameters: Mapping[str, Any]) -> str:
    """What decides a run: code cells, parameters, package sources, pins and the data there is. Prose is not in it."""
    values = {**notebook.defaults, **parameters}
    content = {
        "code": notebook.code,
        "data": data_present(notebook),
        "own data": own_data(project, notebook, values),
        "parameters": values,
        "sources": sources_hash(project.root),
    }
    return sha256_bytes(json.dumps(content, sort_keys=True).encode())


class DamagedError(Exception):
    """A stored result whose content does not match its hash."""


def seal(payload: Mapping[str, Any]) -> str:
    """JSON that carries its own hash."""
    body = json.dumps(payload, sort_keys=True)
    return json.dumps({"sha256": sha256_bytes(body.encode()), "payload": payload}, sort_keys=True)


def unseal(text: str) -> dict[str, Any]:
    """The payload of sealed JSON, or :class:`DamagedError`."""
    try:
        sealed = json.loads(text)
        payload: dict[str, Any] = sealed["payload"]
        body = json.dumps(payload, sort_keys=True)
        if sha256_bytes(body.encode()) != sealed["sha256"]:
            raise DamagedError
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError from error
    return payload


@dataclass(frozen=True)
class Cache:
    """Executed notebooks below ``_build/cache``."""

    project: Project

    def _path(self, name: str, entry: str) -> Path:
        return self.project.build / "cache" / name / f"{entry}.json"

    def get(self, name: str, entry: str) -> Executed | None:
        """The executed notebook under this key; None where there is none; :class:`DamagedError` if it was altered."""
        path = self._path(name, entry)
        if not path.is_file():
            return None
        payload = unseal(path.read_text(errors="replace"))
        return Executed(nbformat.from_dict(payload["notebook"]), PageProvenance(**payload["provenance"]))

    def put(self, name: str, entry: str, executed: Executed) -> None:
        """Keep an executed notebook, and drop the oldest ones beyond :data:`KEEP`."""
        path = self._path(name, entry)
        keep(path, seal({"notebook": executed.notebook, "provenance": executed.provenance.as_json()}))
        kept = sorted(path.parent.glob("*.json"), key=lambda other: other.stat().st_mtime, reverse=True)
        for old in kept[KEEP:]:
            old.unlink()

    def drop(self, name: str, entry: str) -> None:
        """Forget one entry."""
        self._path(name, entry).unlink(missing_ok=True)
