"""Where the book's files are, and which notebooks it has."""

import itertools
import string
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from elementdp.companion.provenance import ROOT
from elementdp.errors import ArgumentError, ElementdpError
from elementdp.files import require_writable, write_atomic


class BookError(ElementdpError):
    """The book cannot be built; exit code 1, as a failed build has."""

    exit_code = 1


@dataclass(frozen=True)
class Project:
    """A checkout of the book."""

    root: Path

    @classmethod
    def find(cls, start: Path | None = None, otherwise: Path = ROOT) -> "Project":
        """The checkout around ``start`` (the working directory), or else the one this package is installed from."""
        here = (start or Path.cwd()).resolve()
        for folder in (here, *here.parents, otherwise):
            if (folder / "_toc.yml").is_file() and (folder / "_config.yml").is_file():
                return cls(folder)
        raise BookError(f"no book here: neither {here} nor a folder above it holds _toc.yml and _config.yml")

    @property
    def build(self) -> Path:
        """Everything a build leaves behind; safe to delete."""
        return self.root / "_build"

    def ready(self) -> None:
        """Refuse, before a notebook runs, to work where its result could not be kept."""
        try:
            self.build.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BookError(f"{self.build} cannot be made: {error.strerror}") from error
        require_writable("the build folder", self.build / "probe")

    @cached_property
    def pages(self) -> tuple[str, ...]:
        """The pages of ``_toc.yml`` in reading order, as paths without extension."""
        toc = yaml.safe_load((self.root / "_toc.yml").read_text()) or {}
        found = tuple(_files(toc))
        if not found:
            raise BookError("the book is empty: _toc.yml names no page")
        missing = [page for page in found if not self.source(page).is_file()]
        if missing:
            raise BookError(f"_toc.yml names pages without a source: {', '.join(f'{page}.md' for page in missing)}")
        return found

    @cached_property
    def chapters(self) -> dict[str, str]:
        """What stands before a figure's number, by page: ``3.`` in chapter 3, ``A.`` on the first unnumbered page."""
        toc = yaml.safe_load((self.root / "_toc.yml").read_text()) or {}
        numbers, letters = itertools.count(1), iter(string.ascii_uppercase)
        return {
            page: f"{next(numbers) if part.get('numbered') else next(letters)}."
            for part in toc.get("parts", [])
            for page in _files(part)
        }

    def source(self, page: str) -> Path:
        """The text notebook behind a page."""
        return self.root / f"{page}.md"

    @cached_property
    def names(self) -> dict[str, str]:
        """Pages by the short name used on the command line (the last part of the path)."""
        names: dict[str, str] = {}
        for page in self.pages:
            name = Path(page).name
            if name in names:
                raise BookError(f"two pages are called {name}: {names[name]}.md and {page}.md")
            names[name] = page
        return names

    def page(self, name: str) -> str:
        """The page with this short name (or path)."""
        page = self.names.get(Path(name).name.removesuffix(".md"))
        if page is None:
            raise ArgumentError("notebook", name, "one of " + ", ".join(self.names))
        return page


def keep(path: Path, text: str) -> None:
    """Write a result whole or not at all; a disk that refuses it is said in one line."""
    try:
        write_atomic(path, text)
    except OSError as error:
        raise BookError(f"{path} cannot be written: {error.strerror}") from error


def _files(node: Any) -> list[str]:
    """Every page named below a node of the table of contents, root first."""
    if isinstance(node, list):
        return [page for child in node for page in _files(child)]
    if not isinstance(node, dict):
        return []
    own = [node[key] for key in ("root", "file") if key in node]
    return own + [page for key in ("parts", "chapters", "sections") for page in _files(node.get(key))]
