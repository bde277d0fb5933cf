"""``elementdp histogram`` end to end: what it writes, and that a refusal is one line and leaves nothing behind."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from elementdp.cli import main
from elementdp.histogram import output as output_module

COLUMNS = ["--user", "user", "--item", "url", "--element", "domain"]
BUDGET = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [(f"u{k}", f"http://{site}.org/") for k in range(300) for site in ("a", "b")]
    pd.DataFrame(rows, columns=["user", "url"]).to_csv(tmp_path / "events.csv", index=False)
    (tmp_path / "list.txt").write_text("http://a.org/\nhttp://b.org/\nhttp://c.org/\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["elementdp", "histogram", *arguments])
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_csv_with_its_guarantee_beside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "events.csv", *COLUMNS, *BUDGET) == 0
    table = pd.read_csv(folder / "events.histogram.csv")
    assert table["item"].tolist() == ["http://a.org/", "http://b.org/"]
    assert ((table["count"] - 300).abs() < 8 * table["noise"]).all()
    promise = json.loads((folder / "events.histogram.csv.guarantee.json").read_text())
    assert (promise["epsilon"], promise["delta"], promise["unit"]) == (1.0, 1e-6, "one element of one user")
    assert 1.0 <= promise["rho"] < 20
    assert promise["items"] == "discovered privately"
    assert [stage["stage"] for stage in promise["spent"]] == ["discovery", "choice of rho", "release", "clipped share"]


@pytest.mark.parametrize("domain", ["list.txt", "list.csv"])
def test_parquet_and_json_carry_it_inside(folder: Path, monkeypatch: pytest.MonkeyPatch, domain: str) -> None:
    (folder / "list.csv").write_text("url\nhttp://a.org/\nhttp://b.org/\nhttp://c.org/\n")
    given = ["events.csv", *COLUMNS, *BUDGET, "--domain", domain, "--rho", "1"]
    assert run(monkeypatch, *given, "--output", "h.parquet") == 0
    assert run(monkeypatch, *given, "--output", "h.json") == 0
    promise = json.loads(pq.read_schema("h.parquet").metadata[b"elementdp"])
    content = json.loads(Path("h.json").read_text())
    promises = [promise, content["guarantee"]]
    assert all({"share", "low", "high", "words"} <= one.pop("clipped").keys() for one in promises)  # noisy, each anew
    assert promises[0] == promises[1]
    assert promise["items"] == "public list"
    assert [row["item"] for row in content["histogram"]] == pq.read_table("h.parquet").column("item").to_pylist()
    assert len(content["histogram"]) == 3
    assert not Path("h.json.guarantee.json").exists()


def test_seed_repeats_and_is_said_to_be_for_testing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one.csv", "two.csv"):
        assert run(monkeypatch, "events.csv", *COLUMNS, *BUDGET, "--seed", "1", "--output", name) == 0
    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()
    assert "testing only" in capsys.readouterr().err
    promise = json.loads(Path("one.csv.guarantee.json").read_text())
    assert promise["statement"].startswith("NONE")
    assert promise["epsilon"] is None
    assert promise["delta"] is None


BAD_FILES = {
    "empty.csv": b"",
    "header.csv": b"user,url\n",
    "short.csv": b"user,url\nu,http://a.org/\nv\n",
    "binary.csv": b"user,url\nu,\xff\xfe\n",
    "nothing.jsonl": b"\n\n",
    "broken.jsonl": b'{"user": "u", "url": "http://a.org/"}\n{"user": \n',
    "list.jsonl": b"[1]\n",
    "nested.jsonl": b'{"user": ["u"], "url": "http://a.org/"}\n',
    "later.jsonl": b'{"user": "u", "url": "http://a.org/"}\n{"user": "v"}\n',
    "broken.parquet": b"PAR1 not really",
    "odd.xls": b"user,url\n",
    "gap.csv": b"user,url\n,http://a.org/\n",
    "other.csv": b"person,url\nu,http://a.org/\n",
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["empty.csv", *COLUMNS, *BUDGET], "is empty"),
        (["header.csv", *COLUMNS, *BUDGET], "no events"),
        (["short.csv", *COLUMNS, *BUDGET], "Expected 2 columns"),
        (["binary.csv", *COLUMNS, *BUDGET], "UTF8"),
        (["nothing.jsonl", *COLUMNS, *BUDGET], "is empty"),
        (["broken.jsonl", *COLUMNS, *BUDGET], "row 2: not a line of JSON"),
        (["list.jsonl", *COLUMNS, *BUDGET], "row 1: a JSON object was expected"),
        (["nested.jsonl", *COLUMNS, *BUDGET], "row 1: 'user' must be a string or a number"),
        (["later.jsonl", *COLUMNS, *BUDGET], "row 2: 'url' is missing"),
        (["broken.parquet", *COLUMNS, *BUDGET], "not a Parquet file"),
        (["odd.xls", *COLUMNS, *BUDGET], "unknown extension '.xls'"),
        (["gap.csv", *COLUMNS, *BUDGET], "row 1: 'user' is missing"),
        (["other.csv", *COLUMNS, *BUDGET], "no column 'user'"),
        (["missing.csv", *COLUMNS, *BUDGET], "no such file"),
        (["events.csv", *COLUMNS, "--epsilon", "0", "--delta", "1e-6"], "--epsilon must be"),
        (["events.csv", *COLUMNS, "--epsilon", "1", "--delta", "1"], "--delta must be"),
        (["events.csv", *COLUMNS, *BUDGET, "--rho", "-2"], "--rho must be"),
        (["events.csv", *COLUMNS, *BUDGET, "--count", "times"], "no column 'times'"),
        (["events.csv", *COLUMNS, *BUDGET, "--domain", "small.txt"], "row 2: item 'http://b.org/' is not in"),
        (["events.csv", *COLUMNS, *BUDGET, "--ignore-unknown-items"], "--ignore-unknown-items must be given with a"),
        (["events.csv", *COLUMNS, *BUDGET, "--domain", "void.txt"], "lists no items"),
        (["events.csv", *COLUMNS, *BUDGET, "--output", "h.xls"], "--output must be"),
        (["events.csv", *COLUMNS, *BUDGET, "--output", "none/h.csv"], "a folder that exists"),
        (["events.csv", *COLUMNS, *BUDGET, "--output", "events.csv"], "--output must be a new file"),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    for name, content in BAD_FILES.items():
        (folder / name).write_bytes(content)
    (folder / "small.txt").write_text("http://a.org/\n")
    (folder / "void.txt").write_text("\n")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert run(monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_failed_write_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full_disk(result: object, path: Path) -> None:
        path.write_text("half")
        raise OSError("no space left")

    monkeypatch.setitem(output_module.WRITERS, ".csv", full_disk)
    before = set(folder.iterdir())
    assert run(monkeypatch, "events.csv", *COLUMNS, *BUDGET) == 2
    assert "no space left" in capsys.readouterr().err
    assert set(folder.iterdir()) == before


def test_force_replaces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["events.csv", *COLUMNS, *BUDGET, "--output", "h.csv"]
    assert run(monkeypatch, *given) == 0
    assert run(monkeypatch, *given) == 2
    assert run(monkeypatch, *given, "--force") == 0


def test_help_needs_no_torch() -> None:
    code = "import sys; from elementdp.cli import cli; cli(['histogram', '--help'], standalone_mode=False); "
    code += "assert 'torch' not in sys.modules and 'pyarrow' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--epsilon" in done.stdout


def test_a_dry_run_reads_and_writes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(folder.iterdir())
    assert run(monkeypatch, "not-there.csv", *COLUMNS, *BUDGET, "--dry-run", "--rho", "2") == 0
    said = capsys.readouterr().out
    assert "noise of a count" in said
    assert "discovered if about" in said
    assert "nothing was read or spent" in said
    assert set(folder.iterdir()) == before
    assert run(monkeypatch, "not-there.csv", *COLUMNS, "--epsilon", "0", "--delta", "1e-6", "--dry-run") == 2


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (["--rho", "-1"], "--rho"),
        (["--top", "0"], "--top"),
        (["--split", "discovery=2"], "discovery"),
        (["--value", "price", "5", "1"], "--value"),
        (["--value", "price", "0", "1", "--count", "n"], "--count"),
        (["--item", "url"], "--item"),
        (["--plot", "a.pdf"], "--plot"),
        (["--output", "a.txt"], "--output"),
        (["--output", "events.csv"], "--output"),
    ],
)
def test_a_dry_run_checks_the_options(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrong: list[str], named: str
) -> None:
    assert run(monkeypatch, "events.csv", *COLUMNS, *BUDGET, "--dry-run", *wrong) == 2
    assert named in capsys.readouterr().err


def test_a_dry_run_after_a_release_tells_the_noise_and_that_the_output_exists(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ("events.csv", *COLUMNS, *BUDGET)
    assert run(monkeypatch, *common) == 0
    kept = (folder / "events.histogram.csv").read_bytes()
    capsys.readouterr()
    assert run(monkeypatch, *common, "--dry-run", "--json") == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["noise_unit"] == "rho"
    assert "events.histogram.csv exists" in told.err
    assert "--force" in told.err
    assert (folder / "events.histogram.csv").read_bytes() == kept


def test_a_dry_run_tells_the_noise_that_the_release_will_have(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("prices.csv").write_text("user,url,price\n" + "".join(f"u{k},a,{k}\n" for k in range(9)))
    Path("one.csv").write_text("url\na\n")
    common = ["prices.csv", "--user", "user", "--item", "url", "--element", "item", *BUDGET, "--domain", "one.csv"]
    common += ["--rho", "2", "--value", "price", "-2", "6"]
    assert run(monkeypatch, *common, "--dry-run") == 0
    said = dict(re.findall(r"noise of a (\w+): (\S+)", capsys.readouterr().out))
    assert run(monkeypatch, *common, "--plot", "a.svg", "--output", "a.json") == 0
    assert capsys.readouterr().out.split() == ["a.json", "a.svg"]
    (found,) = json.loads(Path("a.json").read_text())["histogram"]
    assert float(said["count"]) == pytest.approx(found["noise"], rel=1e-3)
    assert float(said["sum"]) == pytest.approx(found["sum_noise"], rel=1e-3)


def test_items_of_several_columns_are_listed_in_a_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("shop.csv").write_text("user,city,kind\nu,Rome,tea\nv,Rome,milk\n")
    Path("goods.csv").write_text("kind,city\ntea,Rome\nmilk,Rome\n")
    given = ["shop.csv", "--user", "user", "--item", "city", "--item", "kind", "--element", "city", *BUDGET]
    assert run(monkeypatch, *given, "--domain", "goods.csv", "--output", "a.csv") == 0
    assert pd.read_csv("a.csv")[["city", "kind"]].to_numpy().tolist() == [["Rome", "tea"], ["Rome", "milk"]]
    assert run(monkeypatch, *given, "--domain", "list.txt", "--output", "b.csv") == 2


def test_json_quiet_top_and_several_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["events.csv", "events.csv", *COLUMNS, *BUDGET, "--domain", "list.txt", "--top", "2", "--nonnegative"]
    assert run(monkeypatch, *given, "--json", "--output", "a.csv") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["epsilon"] == 1.0
    assert said.err == ""
    assert run(monkeypatch, *given, "--quiet", "--output", "b.csv") == 0
    said = capsys.readouterr()
    assert said.out.split() == ["b.csv.guarantee.json", "b.csv"]
    assert said.err == ""
    assert pd.read_csv("b.csv").shape == (2, 5)
    assert len(json.loads(Path("b.csv.guarantee.json").read_text())["post-processing"]) == 2


def test_the_split_is_the_one_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["events.csv", *COLUMNS, *BUDGET, "--output", "a.csv"]
    assert run(monkeypatch, *given, "--split", "discovery=0.5,clipping=0") == 0
    stages = {one["stage"]: one["mu"] for one in json.loads(Path("a.csv.guarantee.json").read_text())["spent"]}
    total = sum(mu**2 for mu in stages.values())
    assert stages["discovery"] ** 2 == pytest.approx(total / 2)
    assert "clipped share" not in stages
    for bad in ("discovery=2", "discovery", "nothing=0.1", "discovery=x"):
        assert run(monkeypatch, *given, "--force", "--split", bad) == 2
        assert "--split" in capsys.readouterr().err or bad == "discovery=2"


def test_a_large_delta_is_warned_about(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "events.csv", *COLUMNS, "--epsilon", "1", "--delta", "0.1") == 0
    assert "delta 0.1 is no small number" in capsys.readouterr().err


def other_command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["elementdp", *arguments])
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_releases_share_a_budget_combine_and_are_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("budget.jsonl").write_text('{"epsilon": 1.7, "delta": 1e-5}\n')
    given = ["events.csv", *COLUMNS, *BUDGET, "--budget", "budget.jsonl"]
    assert run(monkeypatch, *given, "--output", "a.csv") == 0
    assert run(monkeypatch, *given, "--output", "b.csv") == 0
    assert run(monkeypatch, *given, "--output", "c.csv") == 0
    capsys.readouterr()
    assert run(monkeypatch, *given, "--output", "d.csv") == 2
    assert "nothing was spent" in capsys.readouterr().err
    assert not Path("d.csv").exists()
    assert other_command(monkeypatch, "compose", "a.csv.guarantee.json", "b.csv", "--json") == 0
    together = json.loads(capsys.readouterr().out)
    assert 1.0 < together["epsilon"] < 2.0
    assert other_command(monkeypatch, "report", "a.csv.guarantee.json") == 0
    assert "What this release protects" in Path("a.csv.guarantee.html").read_text()
    assert other_command(monkeypatch, "report", "a.csv.guarantee.json") == 2
    (folder / "junk.json").write_text("{}")
    assert other_command(monkeypatch, "compose", "junk.json") == 2


@pytest.mark.parametrize(
    "wrong",
    [
        ["--rho", "-1"],
        ["--top", "0"],
        ["--count", "none"],
        ["--user", "none"],
        ["--domain", "empty.txt"],
        ["--ignore-unknown-items"],
        ["--max-items-per-element", "0"],
        ["--seed", "1"],
    ],
)
def test_a_mistake_in_the_options_spends_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, wrong: list[str]
) -> None:
    Path("empty.txt").write_text("\n")
    Path("budget.jsonl").write_text('{"epsilon": 1, "delta": 1e-6}\n')
    assert run(monkeypatch, "events.csv", *COLUMNS, *BUDGET, "--budget", "budget.jsonl", *wrong) == 2
    assert len(Path("budget.jsonl").read_text().splitlines()) == 1


def test_a_release_is_charged_before_its_events_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("budget.jsonl").write_text('{"epsilon": 1, "delta": 1e-6}\n')
    Path("bad.csv").write_text("user,url\nu,\n")
    assert run(monkeypatch, "bad.csv", *COLUMNS, *BUDGET, "--budget", "budget.jsonl") == 2
    assert len(Path("budget.jsonl").read_text().splitlines()) == 2


def test_the_guarantee_printed_is_that_of_the_release_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["events.csv", *COLUMNS, *BUDGET, "--top", "1", "--nonnegative", "--json", "--output", "h.json"]
    assert run(monkeypatch, *given) == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed["post-processing"]) == 2
    assert printed.pop("files")
    assert printed == json.loads(Path("h.json").read_text())["guarantee"]
    assert other_command(monkeypatch, "report", "h.json") == 0
    assert other_command(monkeypatch, "compose", "h.json", "h.json") == 0
    joint = capsys.readouterr().out
    assert "2 releases together" in joint


def test_escapes_in_the_data_do_not_reach_the_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.csv").write_text("user,\x1b[31murl\nu,x\n")
    assert run(monkeypatch, "bad.csv", *COLUMNS, *BUDGET) == 2
    Path("wide.csv").write_text("user,url\nu,x,\x1b[31m\n")
    assert run(monkeypatch, "wide.csv", *COLUMNS, *BUDGET) == 2
    assert "\x1b" not in capsys.readouterr().err
