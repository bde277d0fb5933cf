"""``elementdp book sweep``: one notebook over a grid of parameters, resumable at any moment."""

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elementdp.companion.book.cache import DamagedError, key, seal, unseal
from elementdp.companion.book.console import Board
from elementdp.companion.book.execute import Workers
from elementdp.companion.book.notebooks import Notebook, profile_values
from elementdp.companion.book.parameters import Parameter, known
from elementdp.companion.book.project import Project, keep
from elementdp.companion.book.provenance import results
from elementdp.companion.book.run import Runner
from elementdp.errors import ArgumentError
from elementdp.files import require_writable, sha256_file

LARGEST = 10_000
"""The most points a grid may have: a mistyped range is refused before it fills the memory or the disk."""


@dataclass(frozen=True)
class Swept:
    """What a sweep did."""

    table: Path
    ran: int
    kept: int
    damaged: int


def axis(parameter: Parameter, text: str) -> list[Any]:
    """The values of one ``--grid NAME=VALUES``: ``a,b,c`` or, for whole numbers, ``start:stop[:step]`` without stop."""
    parts = text.split(":")
    if parameter.type == "int" and len(parts) in (2, 3):
        try:
            places = range(*(int(part) for part in parts))
        except ValueError:
            raise ArgumentError(f"--grid {parameter.name}", text, "start:stop or start:stop:step") from None
        # Sliced before it is listed: a range is free, the list of its numbers may not fit into memory.
        values: list[Any] = [parameter.check(place) for place in places[: LARGEST + 1]]
    else:
        separator = ";" if parameter.is_list else ","
        values = [parameter.parse(part.strip()) for part in text.split(separator) if part.strip()]
    if not values:
        raise ArgumentError(f"--grid {parameter.name}", text, "at least one value")
    return values


def grid(notebook: Notebook, axes: Sequence[str]) -> list[dict[str, Any]]:
    """Every point of the product of the axes, the last one turning fastest."""
    found: dict[str, list[Any]] = {}
    for text in axes:
        name, equals, values = text.partition("=")
        if not equals:
            raise ArgumentError("--grid", text, "NAME=VALUES, such as epsilon=0.5,1,2 or seed=0:10")
        if name in found:
            raise ArgumentError("--grid", text, f"given once for {name}: one NAME=VALUES lists all its values")
        found[name] = axis(known(notebook.parameters, name, notebook.name), values)
    if math.prod(map(len, found.values())) > LARGEST:
        raise ArgumentError("--grid", ", ".join(axes), f"a grid of at most {LARGEST:,} points")
    return [dict(zip(found, point, strict=True)) for point in itertools.product(*found.values())]


def sweep(
    project: Project, name: str, axes: Sequence[str], output: Path | None = None, profile: str = "quick", jobs: int = 1,
    board: Board | None = None,
) -> Swept:  # fmt: skip
    """Run the notebook at each point whose result is not in ``output`` yet; then write all rows as one table."""
    board = board or Board()
    notebook = Notebook.read(project, name)
    if not any("record_result(" in source for source in notebook.code):
        raise ArgumentError("notebook", name, "a notebook that records results (calls record_result)")
    base = profile_values(project, profile).get(notebook.name, {})
    points = {key(project, notebook, base | point): base | point for point in grid(notebook, axes)}
    folder = _prepared(output or Path(f"{notebook.name}.results"))
    runner = Runner(project, Workers(project, jobs), profile)
    rows, damaged = _kept(folder, points, board)
    todo = [entry for entry in points if entry not in rows]
    kept = len(points) - len(todo)
    board.say(f"{notebook.name}: {len(points)} points, {kept} kept, {len(todo)} to run")

    def task(entry: str) -> None:
        label = ", ".join(f"{name}={value}" for name, value in points[entry].items())
        with board.notebook(f"{notebook.name} {label}") as progress:
            outcome = runner.run(notebook, points[entry], progress)
        provenance = outcome.executed.provenance.as_json()
        found = results(outcome.executed.notebook) or [{}]
        rows[entry] = [
            {"parameters": provenance["parameters"], "result": row, "provenance": provenance} for row in found
        ]
        keep(_path(folder, entry), seal({"rows": rows[entry]}))
        board.done(outcome)

    with board:
        runner.workers.all([lambda entry=entry: task(entry) for entry in todo])  # type: ignore[misc]
    table = folder / "results.jsonl"
    text = "".join(json.dumps(row, sort_keys=True) + "\n" for entry in points for row in rows[entry])
    seal_of_table = folder / "results.sha256"
    if table.is_file() and seal_of_table.is_file() and sha256_file(table) != seal_of_table.read_text().strip():
        damaged += 1
        board.say(f"{table.name}: damaged (hash mismatch), written again from its points")
    keep(table, text)
    keep(seal_of_table, sha256_file(table) + "\n")
    return Swept(table, len(todo), kept, damaged)


def _prepared(folder: Path) -> Path:
    """The folder of a sweep, made and tried before anything runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError("output", str(folder), f"a folder that can be made ({error.strerror})") from error
    require_writable("output", folder / "results.jsonl")
    return folder


def _kept(folder: Path, points: Iterable[str], board: Board) -> tuple[dict[str, list[dict[str, Any]]], int]:
    """The rows of the points that an earlier sweep left whole, and how many it left damaged."""
    rows, damaged = {}, 0
    for entry in points:
        path = _path(folder, entry)
        try:
            if path.is_file():
                rows[entry] = unseal(path.read_text(errors="replace"))["rows"]
        except DamagedError:
            damaged += 1
            board.say(f"{path.name}: damaged (hash mismatch), this point is redone")
    return rows, damaged


def _path(folder: Path, entry: str) -> Path:
    return folder / "points" / f"{entry[:20]}.json"
