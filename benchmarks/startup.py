"""What starting costs: processor time of two commands over that of the imports they cannot do without, in one run.

Run ``python benchmarks/startup.py``. Bars: ``elementdp epsilon --help`` at most 2 times ``import click``; the README's
``elementdp epsilon`` at most 4 times ``import numpy, scipy.special``.
"""

import resource
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

REPEATS = 8
COMMAND = [sys.executable, "-c", "from elementdp.cli import main; main()"]
README = Path(__file__).resolve().parents[1] / "README.md"


def seconds(command: list[str]) -> float:
    """Processor seconds, of the user and of the system, that ``command`` takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Print the table."""
    example = next(line for line in README.read_text().splitlines() if line.startswith("elementdp epsilon "))
    cases = [
        ("elementdp epsilon --help", "import click", 2.0),
        (example, "import numpy, scipy.special", 4.0),
    ]
    table = Table("command", "imports", "command s", "imports s", "ratio", "bar")
    for line, imports, bar in cases:
        peer = [sys.executable, "-c", imports]
        pairs = [(seconds([*COMMAND, *shlex.split(line)[1:]]), seconds(peer)) for _ in range(REPEATS)]  # in turns
        ours, theirs = (min(column) for column in zip(*pairs, strict=True))
        table.add_row(line, imports, f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.2f}", f"{bar:g}")
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
