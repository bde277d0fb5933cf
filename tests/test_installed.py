"""What the package brings without any extra: the library's own commands work, and the rest says what it needs."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COMPANIONS = ("dp-accounting", "ipykernel", "jupyter-book", "pandas", "scikit-learn", "seaborn", "torch", "torchvision")
RUN = ["-q", "0.01", "--steps", "100", "--delta", "1e-5", "--sampler", "poisson-pairs"]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment into which only the package was installed, from a copy: building litters."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "elementdp", folder / "source" / "elementdp", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile"]
    subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(folder / "source")], check=True)
    return python.parent


def said(fresh: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What a program of that environment answers, in an empty folder beside it."""
    folder = fresh.parent / "work"
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [fresh / words[0], *words[1:]], cwd=folder, env={"HOME": str(folder)}, capture_output=True, text=True
    )


def test_the_base_install_brings_no_companion(fresh: Path) -> None:
    listed = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
    installed = {name.lower().replace("_", "-") for name in said(fresh, "python", "-c", listed).stdout.split()}
    assert {"elementdp", "click", "numpy", "pyarrow", "scipy"} <= installed
    assert not installed & set(COMPANIONS)


@pytest.mark.parametrize("words", [["epsilon", "--sigma", "4", *RUN], ["noise", "--epsilon", "1", *RUN]])
def test_the_accountant_works(fresh: Path, words: list[str]) -> None:
    answer = said(fresh, "elementdp", *words)
    assert answer.returncode == 0, answer.stderr
    assert "promise" in answer.stdout


def test_the_histogram_works(fresh: Path) -> None:
    rows = ["user,word", *(f"u{user},{word}" for user in range(500) for word in ("a", "b"))]
    (fresh.parent / "events.csv").write_text("\n".join(rows) + "\n")
    options = ["--user", "user", "--item", "word", "--element", "item", "--epsilon", "1", "--delta", "1e-6"]
    answer = said(fresh, "elementdp", "histogram", "../events.csv", *options)
    assert answer.returncode == 0, answer.stderr
    assert len((fresh.parent / "work" / "events.histogram.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize("words", [["book", "list"], ["claims"], ["data", "list"]])
def test_the_companion_names_its_extra(fresh: Path, words: list[str]) -> None:
    answer = said(fresh, "elementdp", *words)
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1
    assert "pip install 'elementdp[companion]'" in answer.stderr


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("import elementdp.learning", "learning"),
        ("from elementdp import train", "learning"),
        ("from elementdp.companion.experiments.images import load_photos", "companion"),
    ],
)
def test_a_module_names_its_extra(fresh: Path, line: str, extra: str) -> None:
    answer = said(fresh, "python", "-c", line)
    assert answer.returncode == 1
    assert f"is not installed: pip install 'elementdp[{extra}]'" in answer.stderr.splitlines()[-1]
