"""The command never writes over its inputs, and never takes the events for a public list."""

import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from elementdp.cli import main

WORDS = ["--user", "user", "--item", "url", "--element", "domain", "--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [(f"u{k}", f"http://{site}.org/") for k in range(30) for site in ("a", "b")]
    pd.DataFrame(rows, columns=["user", "url"]).to_csv(tmp_path / "events.csv", index=False)
    shutil.copy(tmp_path / "events.csv", tmp_path / "copy.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("more", "said"),
    [(["--output", "events.csv", "--force"], "output"), (["--domain", "events.csv"], "public list"),
     (["--domain", "copy.csv"], "public list"),
     (["--domain", "list.csv", "--output", "list.csv", "--force"], "output")],
)  # fmt: skip
def test_inputs_are_kept_apart(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    (folder / "list.csv").write_text("url\nhttp://a.org/\nhttp://b.org/\n")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(sys, "argv", ["elementdp", "histogram", "events.csv", *WORDS, *more])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert said in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_empty_discovery_says_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pd.DataFrame([("u", "http://a.org/")], columns=["user", "url"]).to_csv("one.csv", index=False)
    monkeypatch.setattr(sys, "argv", ["elementdp", "histogram", "one.csv", *WORDS])
    main()
    assert "--domain" in capsys.readouterr().err
