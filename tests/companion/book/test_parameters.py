"""What can be turned in a notebook, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.small_books import GOOD, HEADER, ROOT

from elementdp.companion.book.notebooks import Notebook, profile_values, read_all
from elementdp.companion.book.parameters import Parameter, resolve
from elementdp.companion.book.project import BookError, Project
from elementdp.companion.book.sweep import grid
from elementdp.errors import ArgumentError

Make = Callable[..., Project]
RANGES = """effort: str = 'smoke'  # how hard: smoke, quick or paper
size: int = 5  # how large (> 0)
sizes: list[int] = [1, 2]  # how large, several (> 0)
rate: float = 1.0  # how often (in (0, 1])
rates: list[float] = [0.5]  # how often, several (in (0, 1])
runs: list[str] = ["big 1"]  # which to run: small, big 1 or big 2
"""


def test_parameters_are_read_with_type_default_and_meaning(small_book: Make) -> None:
    parameters = Notebook.read(small_book(adding=GOOD), "adding").parameters
    assert list(parameters) == ["seed", "epsilon", "levels"]
    assert parameters["epsilon"] == Parameter("epsilon", "float", 1.0, "how private")
    assert parameters["levels"].default == [0.5, 1.0]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("epsilon", "3", 3.0), ("epsilon", "1e-5", 1e-5), ("seed", "7", 7), ("levels", "[1, 2]", [1.0, 2.0]),
     ("levels", "0.5,1e-3", [0.5, 1e-3])],
)  # fmt: skip
def test_values_typed_on_the_command_line(small_book: Make, name: str, text: str, value: object) -> None:
    notebook = Notebook.read(small_book(adding=GOOD), "adding")
    got = resolve(notebook.parameters, "adding", {}, [(name, text)])[name]
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("seed", "1.5", "valid integer"), ("seed", "x", "valid integer"), ("seed", "true", "valid integer"),
     ("epsilon", "lots", "valid number"), ("levels", "1,b", "entry 2 of"), ("epsilon", "[1", "valid number"),
     ("sigma", "1", "seed, epsilon, levels")],
)  # fmt: skip
def test_ill_typed_and_unknown_values_are_refused_by_name(small_book: Make, name: str, text: str, words: str) -> None:
    notebook = Notebook.read(small_book(adding=GOOD), "adding")
    with pytest.raises(ArgumentError, match=words) as caught:
        resolve(notebook.parameters, "adding", {}, [(name, text)])
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("epsilon", "nan", "finite"), ("epsilon", "inf", "finite"), ("seed", "-1", "greater than or equal to 0"),
     ("size", "0", "greater than 0"), ("effort", "huge", "'smoke', 'quick' or 'paper'"), ("levels", "1,nan", "finite"),
     ("sizes", "3,-1", "entry 2 of parameter sizes must be greater than 0"), ("rate", "0", "greater than 0"),
     ("rate", "1.01", "less than or equal to 1"), ("rates", "0.5,2", "less than or equal to 1, got '2'"),
     ("runs", "big 2,large", "'small', 'big 1' or 'big 2'")],
)  # fmt: skip
def test_values_out_of_range_are_refused_by_name(small_book: Make, name: str, text: str, words: str) -> None:
    notebook = Notebook.read(small_book(adding=GOOD.replace("seed: int", RANGES + "seed: int")), "adding")
    assert notebook.parameters["effort"].choices == ("smoke", "quick", "paper")
    with pytest.raises(ArgumentError, match=words) as caught:
        resolve(notebook.parameters, "adding", {}, [(name, text)])
    assert name in str(caught.value)


def test_a_parameters_cell_that_does_not_say_types_is_refused(small_book: Make) -> None:
    untyped = GOOD.replace("seed: int = 0", "seed = 0")
    with pytest.raises(BookError, match="name: type = value"):
        Notebook.read(small_book(adding=untyped), "adding")


def test_two_parameters_cells_are_refused(small_book: Make) -> None:
    twice = GOOD + "\n```{code-cell} ipython3\n:tags: [parameters]\nother: int = 1  # x\n```\n"
    with pytest.raises(BookError, match="2 cells tagged parameters"):
        Notebook.read(small_book(adding=twice), "adding")


def test_a_default_of_the_wrong_type_is_refused(small_book: Make) -> None:
    with pytest.raises(ArgumentError, match="seed"):
        Notebook.read(small_book(adding=GOOD.replace("seed: int = 0", "seed: int = 'zero'")), "adding")


@pytest.mark.parametrize(
    ("profiles", "words"),
    [("smoke: {nothing: {seed: 1}}", "nothing"), ("smoke: {adding: {sigma: 1}}", "sigma"),
     ("smoke: {adding: {seed: x}}", "seed"), ("tiny: {}", "tiny")],
)  # fmt: skip
def test_profiles_are_checked_before_anything_runs(small_book: Make, profiles: str, words: str) -> None:
    project = small_book(adding=GOOD)
    (project.root / "book" / "profiles.yml").write_text(profiles)
    with pytest.raises((ArgumentError, BookError), match=words):
        profile_values(project, "smoke")


def test_unknown_profile_and_notebook_name_what_would_be_right(small_book: Make) -> None:
    project = small_book(adding=GOOD)
    with pytest.raises(ArgumentError, match="smoke, quick, paper"):
        profile_values(project, "huge")
    with pytest.raises(ArgumentError, match="adding"):
        Notebook.read(project, "subtracting")


def test_pages_without_source_and_empty_books_are_refused(small_book: Make) -> None:
    project = small_book(adding=GOOD, second=HEADER + "# Two\n")
    (project.root / "book" / "second.md").unlink()
    with pytest.raises(BookError, match=r"second\.md"):
        _ = Project(project.root).pages
    (project.root / "_toc.yml").write_text("format: jb-book\n")
    with pytest.raises(BookError, match="empty"):
        _ = Project(project.root).pages


def test_a_path_typed_on_the_command_line_starts_where_the_caller_is(
    small_book: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = "source: str = 'reddit'  # texts\neffort: str = 'smoke'  # how hard: smoke or quick\n"
    notebook = Notebook.read(small_book(adding=GOOD.replace("seed: int", more + "seed: int")), "adding")
    for name in ("flickr", "reddit", "quick"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    for text, meant in (("flickr/", str(tmp_path / "flickr")), ("reddit", "reddit"), ("absent/", "absent/"), ("", "")):
        assert resolve(notebook.parameters, "adding", {}, [("source", text)]) == {"source": meant}
    assert resolve(notebook.parameters, "adding", {}, [("effort", "quick")]) == {"effort": "quick"}
    assert grid(notebook, ["source=flickr,reddit"]) == [{"source": str(tmp_path / "flickr")}, {"source": "reddit"}]


def test_numbers_in_pages_say_their_range() -> None:
    """A level, rate, size or number of runs that no page restricts would fail deep inside a cell, or not at all."""
    restricted = {"epsilon", "epsilons", "sigma", "delta", "deltas", "q", "rate", "rates", "n", "steps", "trials"}
    restricted |= {"repeats", "replications", "repetitions", "sizes", "user_counts", "targets"}
    for notebook in read_all(Project(ROOT)):
        for parameter in notebook.parameters.values():
            if parameter.name in restricted:
                assert parameter.range, f"{notebook.name}: {parameter.name}"
