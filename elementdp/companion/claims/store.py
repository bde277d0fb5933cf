"""Entries kept between processes: a page and the ledger ask for the same check, which runs once for both."""

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs

from elementdp.companion.provenance import ROOT, versions
from elementdp.files import sha256_bytes, source_hash, write_atomic

VARIABLE = "ELEMENTDP_ENTRIES"
"""Environment variable that names the folder of kept entries; ``off`` keeps none."""


@dataclass(frozen=True)
class Store:
    """A folder of entries for one state of the sources; None keeps nothing."""

    folder: Path | None

    @classmethod
    def of_this_package(cls) -> "Store":
        """The store for the sources as they are now, in ``ELEMENTDP_ENTRIES`` or the user's cache folder."""
        named = os.environ.get(VARIABLE, "")
        if named == "off":
            return cls(None)
        base = Path(named) if named else platformdirs.user_cache_path("elementdp", appauthor=False) / "entries"
        return cls(base / sources())

    def read(self, claim: str, effort: str, seed: int) -> dict[str, Any] | None:
        """The kept entry, if there is one."""
        path = self._path(claim, effort, seed)
        if path is None or not path.is_file():
            return None
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def write(self, claim: str, effort: str, seed: int, entry: dict[str, Any]) -> None:
        """Keep an entry; a folder that cannot be written to is no reason to fail a check that ran."""
        path = self._path(claim, effort, seed)
        if path is None:
            return
        try:
            write_atomic(path, json.dumps(entry, ensure_ascii=False))
        except OSError:
            return

    def _path(self, claim: str, effort: str, seed: int) -> Path | None:
        return None if self.folder is None else self.folder / f"{claim}-{effort}-{seed}.json"


@cache
def sources() -> str:
    """One hash over what a verdict depends on: sources, recorded runs beside them, and the libraries that compute."""
    files = source_hash(ROOT, [*(ROOT / "elementdp").rglob("*.py"), *(ROOT / "recorded").rglob("*")])
    return sha256_bytes(f"{versions()} {files}".encode())[:16]
