"""The recording commands: from options to a table, on invented photos."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from elementdp.companion.experiments import images
from elementdp.companion.experiments.images import from_row
from elementdp.companion.experiments.record import record
from elementdp.companion.experiments.recorded import read

SIZES = ["--photos", "300", "--tests", "60", "--steps", "4", "--tuning-steps", "2", "--evaluations", "2"]


@pytest.fixture
def invented(monkeypatch):
    """Pools that claim to be real, so that the commands take them."""

    def claim(pool):
        object.__setattr__(pool, "stand_in", False)
        return pool

    monkeypatch.setattr(
        images, "load_photos", lambda *_, **__: claim(images.photos_stand_in(300, 60, classes=4, dimension=6))
    )
    monkeypatch.setattr(images, "load_cifar", lambda **_: claim(images.cifar_stand_in(300, 40)))


def ran(name: str, folder: Path, *options: str):
    command = [name, *SIZES, "--work", str(folder / "work"), "--folder", str(folder), *options]
    result = CliRunner().invoke(record, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return read(name, folder)


def test_photos_are_recorded_with_what_was_tried(invented, tmp_path):
    legend = '[["non-private", null, 3, 8], ["element", 3, 3, 8], ["user", 3, 3, 8]]'
    options = ["--users", "40", "--q", "0.1", "--step-sizes", "1,10", "--rhos", "0.1,1", "--rate-factors", "1,2"]
    run = ran("photos", tmp_path, "--legend", legend, *options)
    lines = [from_row(row) for row in run.rows("lines")]
    assert len(lines) == 1 + 3 + 2
    assert all(line.tried and line.seconds > 0 for line in lines)
    assert all({trial[3] for trial in line.tried} == {0.1, 0.2} for line in lines)
    assert all(line.q * line.steps == pytest.approx(0.4) for line in lines)
    assert run.provenance.parameters["backbone"] == "resnet50"


def test_hours_are_those_of_every_run_and_try_whichever_process_made_them(invented, tmp_path):
    options = ["--users", "40", "--q", "0.1", "--step-sizes", "1,10", "--rhos", "0.1", "--repetitions", "2"]
    options += ["--legend", '[["element", 3, 3, 8]]', "--accounting", "pairs sampled"]
    ran("photos", tmp_path, *options)
    kept = sorted((tmp_path / "work").glob("*.json"))
    assert len(kept) == 4  # two tries and two repetitions
    for number, path in enumerate(kept):
        path.write_text(json.dumps({**json.loads(path.read_text()), "seconds": 3_600.0 * 10**number}))
    again = ran("photos", tmp_path, *options)
    assert again.provenance.hours == 1_111
    assert "1.1e+03 hours with its tuning" in again.label


def test_networks_are_recorded_with_repetitions(invented, tmp_path):
    options = ["--users-a-step", "3", "--step-sizes", "0.3", "--rhos", "1", "--repetitions", "2", "--device", "cpu"]
    legend = '[["element", 3, 4, 20]]'
    run = ran(
        "cifar", tmp_path, "--legend", legend, "--accounting", "non-private", "--accounting", "pairs sampled", *options
    )
    assert [(row["way"], row["repetition"]) for row in run.rows("lines")] == [
        (way, repetition) for way in ("non-private", "pairs sampled") for repetition in (0, 1)
    ]


def test_a_stand_in_is_not_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "load_photos", lambda *_, **__: images.photos_stand_in(50, 20))
    result = CliRunner().invoke(record, ["photos", *SIZES, "--work", str(tmp_path), "--folder", str(tmp_path)])
    assert result.exit_code == 1
    assert "needs the real data" in result.output
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--accounting", "as print"], "--accounting must be one of"),
        (["--legend", "x"], "--legend must be JSON"),
        (["--step-sizes", "1,a"], "--step-sizes must be a list of numbers separated by commas"),
        (["--rate-factors", "1,0"], "--rate-factors must be"),
        (["--users", "0"], "--users must be"),
        (["--q", "2"], "--q must be"),
        (["--legend", '[["user", 3, 3, 8]]', "--accounting", "pairs sampled"], "--accounting must be a way"),
    ],
)
def test_bad_options_are_refused_before_any_work(options, named, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("data were loaded")

    monkeypatch.setattr(images, "load_photos", never)
    result = CliRunner().invoke(
        record, ["photos", *SIZES, "--work", str(tmp_path), "--folder", str(tmp_path), *options]
    )
    assert result.exit_code != 0
    assert named in result.output + str(result.exception)
    assert not list(tmp_path.iterdir())
