"""Recorded runs: small tables kept in the repository, each with the run that made it."""

import json
import math
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from elementdp.companion.provenance import ROOT, commit, package_hash
from elementdp.errors import ElementdpError
from elementdp.files import write_atomic

FOLDER = ROOT / "recorded"
"""The recorded tables of the repository this package is run from."""


@dataclass(frozen=True)
class RunProvenance:
    """Where a recorded table came from: enough to run it again and to doubt it."""

    experiment: str
    parameters: Mapping[str, Any]
    seed: int
    data: Mapping[str, str]  # source → SHA-256 of its content; empty for simulations
    commit: str
    code: str  # SHA-256 of the package's source files
    machine: str
    python: str
    started: str
    hours: float  # of all its runs and their tuning, over all resumptions
    processor_hours: float  # of the process that wrote the table: less where earlier ones had run parts of it


@dataclass(frozen=True)
class Recorded:
    """A recorded run: provenance and named tables of rows."""

    provenance: RunProvenance
    tables: Mapping[str, Sequence[Mapping[str, Any]]]

    def rows(self, table: str, **where: object) -> list[dict[str, Any]]:
        """The rows of a table whose columns have these values."""
        return [dict(row) for row in self.tables[table] if all(row[name] == value for name, value in where.items())]

    @property
    def label(self) -> str:
        """One line for a caption."""
        p, spent = self.provenance, f"{self.provenance.hours:.2g} hours"
        if runs := [row for row in self.tables.get("lines", ()) if "seconds" in row]:
            # Tables written before tuning was timed know only the hours of their last part, and the runs' own seconds.
            timed = any("tuning_seconds" in row for row in runs)
            own = f"{spent_seconds({'lines': runs}) / 3600:.2g} hours beside tuning"
            spent = f"{spent} with its tuning" if timed else own
        return f"recorded run of {p.started[:10]}, {spent}, seed {p.seed}"


def spent_seconds(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> float:
    """What the runs of these tables say they and their tuning took, whichever process ran them."""
    rows = [row for table in tables.values() for row in table]
    return float(sum(row.get("seconds", 0.0) + row.get("tuning_seconds", 0.0) for row in rows))


def _processor_seconds() -> float:
    """Processor time spent so far, worker processes included."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


@contextmanager
def recording(
    name: str, parameters: Mapping[str, Any], seed: int, data: Mapping[str, str], folder: Path = FOLDER
) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Run the body, then write the tables it filled, with provenance; nothing is written if the body fails."""
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    clock, processor = time.monotonic(), _processor_seconds()
    made_by = {"commit": commit(), "code": package_hash()}  # before the run: files may be edited while it goes on
    tables: dict[str, list[dict[str, Any]]] = {}
    yield tables
    provenance = RunProvenance(
        experiment=name,
        parameters=dict(parameters),
        seed=seed,
        data=dict(data),
        **made_by,
        machine=f"{platform.machine()}, {os.cpu_count()} processors",
        python=platform.python_version(),
        started=started,
        hours=round(max(time.monotonic() - clock, spent_seconds(tables)) / 3600, 4),
        processor_hours=round((_processor_seconds() - processor) / 3600, 4),
    )
    write(Recorded(provenance, tables), folder / f"{name}.json")


def write(recorded: Recorded, path: Path) -> None:
    """Write a recorded run as JSON, one row a line; infinity becomes null."""
    head = json.dumps(_finite(asdict(recorded.provenance)), indent=1, ensure_ascii=False)
    parts = [
        f"{json.dumps(table)}: [\n" + ",\n".join(json.dumps(_finite(row)) for row in rows) + "\n]"
        for table, rows in recorded.tables.items()
    ]
    write_atomic(path, f'{{"provenance": {head},\n"tables": {{\n' + ",\n".join(parts) + "\n}}\n")


def read(name: str, folder: Path = FOLDER) -> Recorded:
    """The recorded run of that name; null in a row is read as infinity, as it was written."""
    path = folder / f"{name}.json"
    if not path.is_file():
        raise ElementdpError(f"there is no recorded run {name!r} in {folder}; recorded runs come with the repository")
    content = json.loads(path.read_text())
    tables = {
        table: [{key: _infinite(value) for key, value in row.items()} for row in rows]
        for table, rows in content["tables"].items()
    }
    return Recorded(RunProvenance(**content["provenance"]), tables)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value.item() if hasattr(value, "item") else value


def _infinite(value: Any) -> Any:
    if isinstance(value, list):
        return [_infinite(part) for part in value]
    return math.inf if value is None else value
