"""Whoever copies the cells that a how-to page shows, its parameters first, gets a program that runs as it is."""

import subprocess
import sys
from pathlib import Path

import jupytext
import pytest
import yaml
from support.small_books import ROOT

_HIDDEN = {"hide-input", "remove-input", "remove-cell"}
_SMALL = yaml.safe_load((ROOT / "book" / "profiles.yml").read_text(encoding="utf-8"))["smoke"]


def as_copied(name: str) -> str:
    """The parameters, small, and every shown cell; a command that the page runs is run in a shell."""
    parts = ["import sys", "sys.modules['elementdp.companion'] = None  # a practitioner has not installed the book"]
    for cell in jupytext.read(ROOT / "book" / "howto" / f"{name}.md").cells:
        tags = set(cell.metadata.get("tags", []))
        if cell.cell_type != "code":
            continue
        if "parameters" in tags:
            parts += [cell.source, *(f"{key} = {value!r}" for key, value in _SMALL.get(name, {}).items())]
        elif "run_command(command)" in cell.source:
            parts += [cell.source.replace("run_command(command)", ""), "import shlex, subprocess"]
            program = str(Path(sys.executable).with_name("elementdp"))
            parts += [f"subprocess.run([{program!r}, *shlex.split(command)[1:]], check=True)"]
        elif not tags & _HIDDEN:
            parts.append(cell.source)
    return "\n".join(parts)


@pytest.mark.parametrize("name", ["elements", "guarantee", "model", "noise", "pitfalls", "table"])
def test_shown_cells_run_without_the_book(name: str, tmp_path: Path) -> None:
    program = tmp_path / "copied.py"
    program.write_text(as_copied(name), encoding="utf-8")
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
