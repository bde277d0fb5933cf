"""Building, rerunning and sweeping small books, and every way in which that may fail."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from support.small_books import GOOD, HEADER, ROOT

from elementdp.cli import main
from elementdp.companion.book.build import build
from elementdp.companion.book.cache import key, sources_hash
from elementdp.companion.book.execute import CellError, Workers
from elementdp.companion.book.notebooks import Notebook, profile_values
from elementdp.companion.book.project import BookError, Project
from elementdp.companion.book.provenance import results
from elementdp.companion.book.run import Outcome, Runner
from elementdp.companion.book.sweep import grid, sweep
from elementdp.errors import ArgumentError

pytestmark = pytest.mark.book
Make = Callable[..., Project]
BROKEN = GOOD.replace('print("total"', 'raise ValueError("no luck")\nprint("total"')


def command(project: Project, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the real command in a book."""
    code = "from elementdp.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "book", *words], cwd=project.root, text=True, capture_output=True, check=False
    )


def run(project: Project) -> Outcome:
    """Run the notebook ``adding`` as a build would, without building pages."""
    sources_hash.cache_clear()
    values = profile_values(project, "quick").get("adding", {})
    return Runner(project, Workers(project), "quick").run(Notebook.read(project, "adding"), values)


def page(project: Project, name: str) -> str:
    return (project.build / "html" / "book" / f"{name}.html").read_text()


def test_build_rerun_damage_and_prose_edits(small_book: Make) -> None:
    project = small_book(adding=GOOD)
    first = build(project)
    assert [outcome.cached for outcome in first.outcomes] == [False]
    assert first.index.is_file()
    html = page(project, "adding")
    assert "total 1.0" in html
    for said in ("profile</b> quick", "seed</b> 0", "made up (stand-in)", "epsilon=1.0", "numpy", "run time</b>"):
        assert said in html, said
    assert "vnd.elementdp" not in html
    assert 'The total is 1.0; see <a class="reference internal" href="#tab-row">Table 1</a>.' in html
    assert "elementdp book run adding -p epsilon 1.0" in html
    downloaded = (project.build / "html" / "_sources" / "book" / "adding.ipynb").read_text()
    assert "The total is 1.0" in downloaded
    assert "{glue" not in downloaded

    again = build(project)
    assert again.outcomes[0].cached
    assert not again.rebuilt
    (first.index.parent / "book" / "adding.html").write_text("gone")
    assert build(project).rebuilt
    assert "total 1.0" in page(project, "adding")

    (project.root / "book" / "adding.md").write_text(GOOD.replace("Some prose.", "Better prose."))
    edited = build(Project(project.root))
    assert edited.outcomes[0].cached
    assert edited.rebuilt
    assert "Better prose." in page(project, "adding")
    assert "total 1.0" in page(project, "adding")

    (project.root / "book" / "adding.md").write_text(GOOD.replace('print("total"', 'print("sum"'))
    config = project.root / "_config.yml"
    config.write_text(config.read_text().replace("# launch_buttons:", "launch_buttons:"))
    assert not build(Project(project.root)).outcomes[0].cached
    links = re.findall(r'href="(http[^"]*(?:colab|binder)[^"]*)"', page(project, "adding"))
    named = [re.search(r"/blob/gh-pages/(.*)$|urlpath=lab/tree/(.*)$", link) for link in links]
    assert [match and match.groups() for match in named] == [
        (None, "book/adding.md"), ("notebooks/book/adding.ipynb", None)]  # fmt: skip
    assert (project.build / "html" / "notebooks" / "book" / "adding.ipynb").is_file()


def test_data_that_has_come_reruns_only_notebooks_that_read_data(
    small_book: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELEMENTDP_DATA", str(tmp_path))
    project = small_book(
        adding=GOOD, reading=GOOD + "\n```{code-cell} ipython3\nimport elementdp.companion.data\n```\n"
    )
    keys = {name: key(project, Notebook.read(project, name), {}) for name in ("adding", "reading")}
    (tmp_path / "blog_users.jsonl.zst").write_bytes(b"x")
    after = {name: key(project, Notebook.read(project, name), {}) for name in keys}
    assert after["adding"] == keys["adding"]
    assert after["reading"] != keys["reading"]


@pytest.mark.parametrize("place", ["mine", "mine/a.txt"])
def test_changed_data_of_ones_own_reruns_the_page(small_book: Make, tmp_path: Path, place: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    more = "source: str = ''  # a folder of your own\nwork: str = ''  # checkpoints\n"
    project = small_book(adding=GOOD.replace("seed: int", more + "seed: int"))
    notebook = Notebook.read(project, "adding")

    def now(name: str) -> str:
        return key(project, notebook, {name: str(tmp_path / place)})

    before, work, empty = now("source"), now("work"), key(project, notebook, {})
    assert now("source") == before
    (folder / "a.txt").write_text("three")
    longer = now("source")
    assert longer != before
    os.utime(folder / "a.txt", ns=(0, 0))
    assert now("source") not in (before, longer)
    (folder / "a.txt").rename(folder / "b.txt")
    assert now("source") not in (before, longer)
    assert now("work") == work
    assert key(project, notebook, {}) == empty


@pytest.mark.parametrize("change", ["package", "pins", "profile"])
def test_what_decides_a_run_reruns_it(small_book: Make, change: str) -> None:
    project = small_book(adding=GOOD)
    shutil.copytree(ROOT / "elementdp", project.root / "elementdp")
    assert not run(project).cached
    if change == "package":
        with (project.root / "elementdp" / "errors.py").open("a") as module:
            module.write("\nEXTRA = 1\n")
    elif change == "pins":
        (project.root / "constraints.txt").write_text("numpy==3\n")
    else:
        (project.root / "book" / "profiles.yml").write_text("quick: {adding: {seed: 4}}")
    outcome = run(project)
    assert not outcome.cached
    assert outcome.executed.provenance.parameters["seed"] == (4 if change == "profile" else 0)
    assert run(project).cached


def test_damaged_cache_is_noticed_and_redone(small_book: Make) -> None:
    project = small_book(adding=GOOD)
    run(project)
    (stored,) = (project.build / "cache" / "adding").glob("*.json")
    stored.write_text(stored.read_text().replace("total 1.0", "total 9.0"))
    outcome = run(project)
    assert outcome.damaged
    assert "total 1.0" in json.dumps(outcome.executed.notebook)
    stored.write_text(stored.read_text()[:100])
    assert run(project).damaged
    assert run(project).cached


def test_a_failing_cell_names_notebook_cell_and_error_and_keeps_the_partial_notebook(small_book: Make) -> None:
    project = small_book(adding=GOOD, broken=BROKEN)
    done = command(project, "build")
    assert done.returncode == 1
    for said in ("broken", "cell", "from elementdp.companion.report import", "ValueError: no luck"):
        assert said in done.stderr
    partial = nbformat.read(project.build / "failed" / "broken.ipynb", as_version=4)
    assert any("no luck" in str(cell.get("outputs")) for cell in partial.cells)
    assert not (project.build / "html").exists()


def test_a_kernel_that_dies_fails_the_build(small_book: Make) -> None:
    dying = GOOD.replace('print("total"', 'import os; os._exit(3)\nprint("total"')
    with pytest.raises(BookError, match="adding"):
        build(small_book(adding=dying))


def test_warnings_fail_the_build_every_time(small_book: Make) -> None:
    project = small_book(adding=GOOD + "\nSee {ref}`nowhere`.\n")
    for _ in range(2):
        with pytest.raises(BookError, match="nowhere"):
            build(project)
    assert not (project.build / "html").exists()


def test_only_runs_one_notebook_and_a_partial_book_does_not_pass(small_book: Make) -> None:
    project = small_book(adding=GOOD, second=GOOD.replace("# Adding", "# Second"))
    done = command(project, "build", "--only", "adding")
    assert done.returncode == 1
    assert "partial book: second" in done.stderr
    assert (project.build / "preview" / "html" / "book" / "adding.html").is_file()
    assert not (project.build / "html").exists()
    assert command(project, "build", "--jobs", "2").returncode == 0
    assert command(project, "build", "--only", "adding").returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [(["build", "--profile", "huge"], "'smoke', 'quick', 'paper'"), (["build", "--only", "nope"], "adding"),
     (["run", "nope"], "adding"), (["run", "adding", "-p", "sigma", "1"], "seed, epsilon, levels"),
     (["run", "adding", "-p", "seed", "x"], "valid integer"), (["sweep", "adding", "--grid", "seed"], "NAME=VALUES"),
     (["sweep", "adding", "--grid", "tau=1"], "seed, epsilon, levels"), (["build", "--jobs", "0"], "--jobs"),
     (["sweep", "adding", "--grid", "seed=3:x"], "start:stop"), (["run", "adding", "-o", "out.md"], ".ipynb"),
     (["run", "adding", "-o", "nowhere/out.ipynb"], "nowhere"),
     (["sweep", "adding", "--grid", "seed=0:1000000000000"], "at most 10,000 points"),
     (["sweep", "adding", "--grid", "seed=0:200", "--grid", "epsilon=" + "1," * 60], "at most 10,000 points"),
     (["sweep", "adding", "--grid", "seed=0:2", "-o", "/dev/full/results"], "Not a directory")],
)  # fmt: skip
def test_bad_words_are_refused_before_anything_runs(
    small_book: Make, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = small_book(adding=GOOD)
    monkeypatch.chdir(project.root)
    monkeypatch.setattr(sys, "argv", ["elementdp", "book", *words])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert said in capsys.readouterr().err
    assert not project.build.exists()


def test_outside_a_book_the_command_says_so(tmp_path: Path) -> None:
    with pytest.raises(BookError, match="no book here"):
        Project.find(tmp_path, otherwise=tmp_path)


def test_run_writes_the_notebook_with_its_parameters_and_provenance(small_book: Make) -> None:
    project = small_book(adding=GOOD)
    done = command(project, "run", "adding", "-p", "epsilon", "3", "-p", "seed", "7", "-o", "out.ipynb")
    assert done.returncode == 0, done.stderr
    executed = nbformat.read(project.root / "out.ipynb", as_version=4)
    text = json.dumps(executed)
    assert "total 10.0" in text
    assert "The total is 10.0" in text
    assert "edp-provenance" in executed.cells[-1].source
    assert "<b>seed</b> 7" in executed.cells[-1].source


def test_list_shows_every_parameter_with_its_meaning(small_book: Make) -> None:
    project = small_book(adding=GOOD)
    done = command(project, "list")
    for said in ("adding", "epsilon", "float", "1.0", "how private"):
        assert said in done.stdout


def test_sweep_resumes_notices_damage_and_keeps_provenance(small_book: Make) -> None:
    project = small_book(adding=GOOD)
    output = project.root / "results"
    axes = ["epsilon=0.5,1", "seed=0:2"]
    first = sweep(project, "adding", axes, output, jobs=2)
    assert (first.ran, first.kept) == (4, 0)
    rows = [json.loads(line) for line in first.table.read_text().splitlines()]
    assert [(row["parameters"]["epsilon"], row["parameters"]["seed"]) for row in rows] == [
        (0.5, 0), (0.5, 1), (1.0, 0), (1.0, 1)]  # fmt: skip
    for row in rows:
        assert row["result"]["total"] == row["parameters"]["epsilon"] + row["parameters"]["seed"]
        assert {"commit", "versions", "seconds", "sources", "profile"} <= row["provenance"].keys()

    one, two = sorted((output / "points").glob("*.json"))[:2]
    one.unlink()
    two.write_text(two.read_text().replace('"total"', '"totol"'))
    again = sweep(project, "adding", axes, output)
    assert (again.ran, again.kept, again.damaged) == (2, 2, 1)
    assert again.table.read_text().count("total") == 4

    again.table.write_text(again.table.read_text()[:50])
    last = sweep(project, "adding", axes, output)
    assert (last.ran, last.kept, last.damaged) == (0, 4, 1)
    assert last.table.read_text().count("total") == 4


def test_a_killed_sweep_loses_at_most_what_was_in_flight(small_book: Make) -> None:
    slow = GOOD.replace(
        "record_result(total", "import time; time.sleep(0.5 * (seed > 0) + 60 * (seed > 1))\nrecord_result(total"
    )
    project = small_book(adding=slow)
    code = "from elementdp.cli import main; main()"
    words = ["book", "sweep", "adding", "--grid", "seed=0:3", "-o", "results"]
    started = subprocess.Popen([sys.executable, "-c", code, *words], cwd=project.root, start_new_session=True)
    points = project.root / "results" / "points"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(list(points.glob("*.json"))) < 2:
        time.sleep(0.1)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    kept = sorted(points.glob("*.json"))
    assert len(kept) == 2
    quick = sweep(project, "adding", ["seed=0:2"], project.root / "results")
    assert (quick.ran, quick.kept, quick.damaged) == (0, 2, 0)


def test_grid_is_the_product_in_order(small_book: Make) -> None:
    notebook = Notebook.read(small_book(adding=GOOD), "adding")
    points = grid(notebook, ["seed=0:4:2", "levels=0.5,1;2"])
    assert points == [{"seed": seed, "levels": levels} for seed in (0, 2) for levels in ([0.5, 1.0], [2.0])]
    with pytest.raises(ArgumentError, match="at least one value"):
        grid(notebook, ["seed=3:3"])


def test_grid_refuses_a_name_twice_and_places_out_of_range(small_book: Make) -> None:
    notebook = Notebook.read(small_book(adding=GOOD), "adding")
    with pytest.raises(ArgumentError, match="once for seed"):
        grid(notebook, ["seed=0,1", "epsilon=1", "seed=2"])
    with pytest.raises(ArgumentError, match="seed must be greater than or equal to 0"):
        grid(notebook, ["seed=-1:2"])


def test_a_notebook_without_results_cannot_be_swept(small_book: Make) -> None:
    silent = HEADER + "# Silent\n\n```{code-cell} ipython3\n:tags: [parameters]\nseed: int = 0  # s\n```\n"
    with pytest.raises(ArgumentError, match="record_result"):
        sweep(small_book(silent=silent), "silent", ["seed=0:2"], Path("results"))


def test_cell_error_is_a_book_error() -> None:
    assert issubclass(CellError, BookError)
    assert BookError.exit_code == 1


def test_plain_papermill_as_the_readme_shows_it_gives_the_same_numbers(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    line = next(line for line in readme.splitlines() if "| papermill -" in line)
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    plain = line.replace("out.ipynb", str(tmp_path / "plain.ipynb"))
    subprocess.run(
        ["bash", "-c", f"set -o pipefail; {plain}"], cwd=ROOT, env=environment, check=True, capture_output=True
    )
    ours = next(line for line in readme.splitlines() if line.startswith("elementdp book run")).replace(
        "out.ipynb", str(tmp_path / "ours.ipynb")
    )
    done = command(Project(ROOT), *shlex.split(ours)[2:])
    assert done.returncode == 0, done.stderr
    one, other = (results(nbformat.read(tmp_path / f"{name}.ipynb", as_version=4)) for name in ("plain", "ours"))
    assert one == other != []
