"""Recorded image runs: their tables, one row a run, as results."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from elementdp.companion.data.backbones import WIDTHS
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.recorded import FOLDER, Recorded, read
from elementdp.errors import ElementdpError, one_of

RUNS = {"photos": ("photos", "photos-few"), "cifar": ("cifar", "cifar-more", "cifar-rest")}
"""Recorded runs by section: the first, and others of the same size that add curves to it."""

_SIZES = ("photos", "tests", "backbone", "steps", "users", "q", "users_a_step")


def to_row(result: RunResult) -> dict[str, Any]:
    """A row of a recorded table, whose column for the accounting is called ``way``."""
    values = asdict(result)
    return {"way": values.pop("accounting"), **values}


def from_row(row: Mapping[str, Any]) -> RunResult:
    """A result read back from a recorded table."""
    values = dict(row)
    values["accounting"] = values.pop("way")
    values["iterations"], values["accuracy"] = tuple(values["iterations"]), tuple(values["accuracy"])
    # Runs recorded before rates were tuned list (α, ρ, accuracy): all of them were tried at the run's own q.
    for seen in ("tried", "whole"):
        values[seen] = tuple((*trial, values["q"])[:4] for trial in values.get(seen, ()))
    return RunResult(**values)


def results_of(run: Recorded) -> list[RunResult]:
    """All results of one recorded run."""
    return [from_row(row) for row in run.rows("lines")]


def recorded_results(section: str = "photos", folder: Path = FOLDER) -> tuple[list[Recorded], list[RunResult]]:
    """The section's recorded runs that are there, and their results; a variant that two runs have counts once."""
    names = RUNS[one_of("section", section, RUNS)]
    runs = [read(name, folder) for name in names if (folder / f"{name}.json").is_file()]
    sizes = {tuple(run.provenance.parameters.get(name) for name in _SIZES) for run in runs}
    if len(sizes) > 1:
        raise ElementdpError(f"recorded runs of different sizes cannot be compared curve by curve: {sizes}")
    results: dict[tuple[object, ...], RunResult] = {}
    for found in (found for run in runs for found in results_of(run)):
        variant = (found.accounting, found.unit, found.epsilon, found.k, found.clusters, found.users)
        results.setdefault((*variant, found.repetition), found)
    return runs, list(results.values())


def paper_length_runs(section: str = "photos", folder: Path = FOLDER) -> list[Recorded]:
    """The section's recorded runs with the noise of the paper's 40,000 iterations: every table of such a name."""
    one_of("section", section, RUNS)
    return [read(name, folder) for name in sorted(path.stem for path in folder.glob(f"{section}-paper*.json"))]


def width_of(run: Recorded) -> int:
    """How many numbers the features of a photo had: all that the network gives, unless they were projected."""
    size = run.provenance.parameters
    return int(size.get("dimension") or WIDTHS[size["backbone"]])


def fair_results(section: str = "photos", folder: Path = FOLDER) -> list[RunResult]:
    """Variants of the section at the rate that suits each best; none if they were not recorded."""
    path = folder / f"{one_of('section', section, RUNS)}-rates.json"
    return results_of(read(path.stem, folder)) if path.is_file() else []
