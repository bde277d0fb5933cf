"""The three dependency files name one set of packages, and the documents name commands and files that exist."""

import re
import shlex
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from elementdp.cli import cli

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
README = (ROOT / "README.md").read_text()
EXTRAS = ("companion", "test")
PINS = {
    canonicalize_name(requirement.name): requirement
    for requirement in map(Requirement, (ROOT / "constraints.txt").read_text().split())
}


def direct() -> list[Requirement]:
    """What the package and its extras name; an extra that is part of another stands for its own requirements."""
    todo, found = list(EXTRAS), [Requirement(name) for name in PROJECT["dependencies"]]
    while todo:
        for requirement in map(Requirement, PROJECT["optional-dependencies"][todo.pop()]):
            if requirement.name == PROJECT["name"]:
                todo.extend(requirement.extras)
            else:
                found.append(requirement)
    return found


def pinned(name: str) -> str:
    (specifier,) = PINS[canonicalize_name(name)].specifier
    assert specifier.operator == "==", name
    return specifier.version


@pytest.mark.parametrize("requirement", direct(), ids=str)
def test_every_range_admits_its_pin(requirement: Requirement) -> None:
    assert requirement.specifier.contains(pinned(requirement.name), prereleases=True)


def test_the_installed_set_is_the_pinned_one_and_complete() -> None:
    todo, seen = list(direct()), set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        wanted = (name, frozenset(requirement.extras))
        if wanted in seen or (
            requirement.marker
            and not any(requirement.marker.evaluate({"extra": extra}) for extra in (requirement.extras or {""}))
        ):
            continue
        seen.add(wanted)
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            pytest.fail(f"{requirement} is not installed")
        assert name in PINS, f"{name} {installed.version} has no pin in constraints.txt"
        assert installed.version.split("+")[0] == pinned(name), name
        for line in installed.requires or []:
            child = Requirement(line)
            if child.marker is None or any(
                child.marker.evaluate({"extra": extra}) for extra in (requirement.extras or {""})
            ):
                child.marker = None
                todo.append(child)


def test_conda_installs_the_same_set() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python = next(line for line in environment["dependencies"] if str(line).startswith("python="))
    pip = next(line["pip"] for line in environment["dependencies"] if isinstance(line, dict))
    assert Requirement("python" + PROJECT["requires-python"]).specifier.contains(python.partition("=")[2] + ".0")
    assert pip == ["--constraint constraints.txt", f"--editable .[{','.join(EXTRAS)}]"]


def test_no_pin_names_a_host() -> None:
    assert not re.search(r"https?://|file:", (ROOT / "constraints.txt").read_text())


def readme_commands() -> list[str]:
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    lines = [line.partition("  #")[0].strip() for block in blocks for line in block.replace("\\\n", "").splitlines()]
    return [line for line in lines if line.startswith("elementdp ")]


@pytest.mark.parametrize("line", readme_commands())
def test_readme_commands_parse(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("events.parquet", "sales.csv"):
        (tmp_path / name).touch()
    command: click.Command = cli
    words = shlex.split(line)[1:]
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None, line
        command = found
    with command.make_context(line, words):
        pass


def test_what_the_readme_shows_is_what_the_accountant_prints() -> None:
    shown = re.findall(
        r"```bash\n(elementdp (?:epsilon|noise) [^\n]*)\n```\n\n```text\n(.*?)```", README, flags=re.DOTALL
    )
    assert len(shown) == 2
    for line, printed in shown:
        assert CliRunner().invoke(cli, shlex.split(line)[1:], catch_exceptions=False).output == printed


def test_readme_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:`|\n)make (\w+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_paths_that_documents_name_exist(document: str) -> None:
    rooms = r"elementdp|book|tests|benchmarks|recorded"
    named = re.findall(rf"`((?:{rooms})/[\w./-]*)`", (ROOT / document).read_text())
    assert named
    for path in named:
        assert (ROOT / path).exists() or path.startswith("book/part/"), (document, path)


def test_the_layout_has_a_row_for_every_room() -> None:
    """Every room of the package has its row."""
    readme = (ROOT / "README.md").read_text()
    for folder in [*(ROOT / "elementdp").iterdir(), *(ROOT / "elementdp" / "companion").iterdir()]:
        if (folder / "__init__.py").is_file() and folder.name not in ("companion", "__pycache__"):
            where = f"`{folder.relative_to(ROOT).as_posix()}/`"
            assert where in readme or where == "`elementdp/companion/cli/`", where


def test_readme_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert blocks
    rng = np.random.default_rng(0)
    (tmp_path / "flickr").mkdir()
    np.save(tmp_path / "flickr" / "features.npy", rng.normal(size=(60, 5)).astype(np.float32))
    (tmp_path / "flickr" / "tags.txt").write_text("sea,sun\ncat\n" * 30)
    sites = [f"https://site{number % 7}.org/page{number}" for number in range(40)]
    frame = pd.DataFrame({"user_id": rng.integers(0, 900, 30_000), "url": rng.choice(sites, 30_000)})
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {"frame": frame})
