"""The ledger: complete, computed, and impossible to correct by hand."""

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from elementdp.companion.claims import (
    CATALOGUE,
    Effort,
    Entry,
    Fact,
    Finding,
    Gap,
    Role,
    Severity,
    Verdict,
    all_checks,
    check,
    entry,
    examine,
    ledger,
)
from elementdp.companion.claims.verdict import CheckError
from elementdp.companion.cli.claims import command
from elementdp.companion.report.ledger import book_titles, ledger_html, tally
from elementdp.errors import ArgumentError


def test_every_statement_is_catalogued():
    assert set(all_checks()) == set(CATALOGUE)
    assert all(statement.id == key and statement.text and statement.number for key, statement in CATALOGUE.items())


@pytest.fixture(scope="module")
def entries():
    """Every check, run once."""
    return {claim: examine(claim, Effort.SMOKE, seed=0) for claim in CATALOGUE}


def test_every_entry_says_what_was_computed(entries):
    for found in entries.values():
        assert found.verdict in set(Verdict) - {Verdict.UNCHECKED}
        assert any(character.isdigit() for line in found.evidence for character in line), "evidence without a number"
        refuted = found.verdict in (Verdict.FAILS, Verdict.NEEDS_REPAIR)
        assert refuted == (found.severity is not Severity.NONE)
        assert any(line.startswith("printed, false: ") for line in found.evidence) == refuted
        if refuted:
            assert found.repair
            assert any(line.startswith("repaired, true: ") for line in found.evidence)


def test_what_may_be_promised_to_people_is_marked(entries):
    """The repairs that change a promise are those of sampling, sensitivity and composition; no other row claims so."""
    broken = {claim for claim, found in entries.items() if found.severity is Severity.PRIVACY}
    assert broken == {
        "composition-advanced", "subsampling", "moments-accountant", "moments-display", "moments-rule", "f-privacy",
        "heavy-hitters-user", "histogram-privacy", "histogram-user", "sgd-privacy", "sgd-user-privacy", "sgd-rate",
        "private-element", "noise-factor", "exp-histogram", "exp-logistic", "exp-flickr", "exp-cifar",
    }  # fmt: skip


@pytest.mark.parametrize("claim", ["def-dp", "normality", "private-normality", "sgd-privacy"])
def test_a_check_is_reproducible(claim, entries):
    assert examine(claim, Effort.SMOKE, seed=0) == entries[claim]


def test_an_entry_is_computed_once_for_page_and_ledger(monkeypatch, tmp_path):
    monkeypatch.setenv("ELEMENTDP_ENTRIES", str(tmp_path))
    first = entry("figure-1", Effort.SMOKE)
    monkeypatch.setattr(sys.modules[entry.__module__], "examine", None)  # from here on nothing can be computed
    assert entry("figure-1", Effort.SMOKE) == first
    assert ledger(Effort.SMOKE, only=["figure-1", "figure-1"]) == [first]


def test_a_statement_without_a_check_is_shown_as_unchecked(monkeypatch):
    monkeypatch.setattr(sys.modules[entry.__module__], "all_checks", dict)
    found = ledger(Effort.SMOKE)
    assert [line.id for line in found] == list(CATALOGUE)
    assert {line.verdict for line in found} == {Verdict.UNCHECKED}
    assert tally(found)[Verdict.UNCHECKED] == len(CATALOGUE)
    assert ledger_html(found, {}).count("No check has run.") == len(CATALOGUE)


def facts(*holds: bool, role: Role = Role.PRINTED) -> tuple[Fact, ...]:
    return tuple(Fact(role, "x", value) for value in holds)


def test_the_verdict_follows_from_the_facts():
    fixed = facts(True, role=Role.REPAIRED)
    assert Finding(facts(True, True)).verdict is Verdict.HOLDS
    assert Finding(facts(True) + facts(False, role=Role.TIGHT)).verdict is Verdict.HOLDS_LOOSELY
    assert Finding(facts(True, False) + fixed, "r", Gap.WORDING).verdict is Verdict.NEEDS_REPAIR
    assert Finding(facts(True, False) + fixed, "r", Gap.SUBSTANCE).verdict is Verdict.FAILS
    assert Finding(facts(True), "r", Gap.SUBSTANCE).verdict is Verdict.HOLDS, "a gap alone condemns nothing"
    assert Finding(facts(False)).verdict is Verdict.FAILS, "refuted, and no repair is known"


@pytest.mark.parametrize(
    ("gap", "severity"),
    [
        (Gap.WORDING, Severity.WORDING),
        (Gap.CONSTANT, Severity.CONSTANT),
        (Gap.ASSUMPTION, Severity.ASSUMPTION),
        (Gap.SUBSTANCE, Severity.CONCLUSION),
        (None, Severity.CONCLUSION),
    ],
)
def test_the_severity_follows_from_the_facts(gap, severity):
    fixed = facts(True, role=Role.REPAIRED)
    broken = Fact(Role.PRINTED, "x", False, promised_delta=1e-6)
    empty = Fact(Role.PRINTED, "x", False, promised_delta=0.9)
    assert Finding(facts(False) + fixed, "r", gap).severity is severity
    assert Finding((broken, *fixed), "r", gap).severity is Severity.PRIVACY
    assert Finding((empty, *fixed), "r", gap).severity is severity, "a promise with δ = 0.9 promises nothing"
    assert Finding(facts(True) + fixed, "r", gap).severity is Severity.NONE


def test_no_verdict_can_be_set_by_hand():
    finding = Finding(facts(True))
    with pytest.raises((FrozenInstanceError, AttributeError)):
        finding.verdict = Verdict.FAILS  # type: ignore[misc]
    with pytest.raises(TypeError):
        Finding(facts(True), verdict=Verdict.FAILS)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        replace(finding, verdict=Verdict.FAILS)


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"facts": ()}, "at least one fact"),
        ({"facts": facts(True) + facts(False, role=Role.REPAIRED)}, "fails too"),
    ],
)
def test_a_check_that_decides_nothing_is_refused(kwargs, match):
    with pytest.raises(CheckError, match=match):
        Finding(**kwargs)


def test_a_refuted_statement_of_the_paper_needs_a_repair_that_is_checked(monkeypatch):
    monkeypatch.setattr(
        sys.modules[entry.__module__], "all_checks", lambda: {"def-dp": lambda effort, seed: Finding(facts(False))}
    )
    with pytest.raises(CheckError, match="needs a gap, a repair"):
        examine("def-dp")


def test_unknown_ids_are_refused_by_name():
    with pytest.raises(ArgumentError, match="claim must be one of side-information"):
        entry("no-such-claim")
    with pytest.raises(ArgumentError, match="claim"):
        check("no-such-claim")
    with pytest.raises(ArgumentError, match="effort"):
        entry("post-processing", "heroic")


def test_the_command_prints_the_ledger_as_json():
    result = CliRunner().invoke(command, ["--json", "post-processing", "composition-advanced"])
    assert result.exit_code == 0
    found = json.loads(result.output)
    assert [item["id"] for item in found] == ["post-processing", "composition-advanced"]
    keys = {"id", "number", "title", "label", "statement", "verdict", "severity", "evidence", "repair", "section"}
    assert all(set(item) == keys for item in found)
    assert (found[1]["number"], found[1]["severity"]) == ("Corollary 2.3, second part", "privacy broken")


def test_the_command_shows_details_of_one_statement():
    result = CliRunner().invoke(command, ["group-privacy", "group-privacy"])
    assert result.exit_code == 0
    assert result.output.count("Corollary 2.2 (corollary:group-privacy)") == 1
    assert "holds, loosely" in result.output
    assert "linear program" in result.output


def test_the_command_prints_a_line_a_statement(monkeypatch):
    monkeypatch.setattr(sys.modules[entry.__module__], "all_checks", dict)  # the lines, not the checks, are tried here
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert len(lines) == len(CATALOGUE) + 3
    assert max(map(len, lines)) <= 80
    assert all(sum(line.startswith(f"{claim} ") for line in lines) == 1 for claim in CATALOGUE)
    assert f"{len(CATALOGUE)} unchecked" in result.output


def test_a_narrow_screen_cuts_neither_verdict_nor_severity(entries):
    lines = CliRunner().invoke(command, [], env={"COLUMNS": "80"}).output.splitlines()
    for found, line in zip(entries.values(), lines[1:], strict=False):
        severity = "" if found.severity is Severity.NONE else str(found.severity)
        assert line.startswith(f"{found.id} ")
        assert line.split(f" {found.verdict} ")[-1].strip() == severity
        assert len(line) <= 80


def test_the_command_names_a_wrong_id():
    result = CliRunner().invoke(command, ["no-such-claim"])
    assert result.exit_code != 0
    assert isinstance(result.exception, ArgumentError)


def test_the_catalogue_loads_without_torch():
    code = "import sys, elementdp.companion.claims; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class _Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name == "href"]
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_links_only_to_pages_that_exist():
    made = [
        Entry(
            "a",
            "Lemma <1>",
            "what",
            "l",
            "x < y",
            Verdict.FAILS,
            Severity.CONCLUSION,
            ("printed: 2 > 1",),
            "use ≤",
            "part/here",
        ),
        Entry("b", "w", "t", "", "s", Verdict.HOLDS, Severity.NONE, ("printed: 1",), "", "part/missing"),
    ]
    markup = ledger_html(made, {"part/here": "Here"})
    parser = _Links()
    parser.feed(markup)
    assert not parser.open
    assert parser.links == ["part/here.html#claim-a"]
    assert "x &lt; y" in markup
    assert "Lemma &lt;1&gt;" in markup
    assert tally(made) == {
        Verdict.HOLDS: 1, Verdict.HOLDS_LOOSELY: 0, Verdict.NEEDS_REPAIR: 0, Verdict.FAILS: 1, Verdict.UNCHECKED: 0,
    }  # fmt: skip


def test_pages_are_found_from_any_folder_of_the_book(tmp_path):
    (tmp_path / "book" / "part").mkdir(parents=True)
    for page in ("ledger.md", "part/here.md"):
        (tmp_path / "book" / page).write_text("# x")
    (tmp_path / "elsewhere").mkdir()
    titles = {"ledger": "x", "part/here": "x"}
    assert book_titles(tmp_path / "book" / "part") == titles == book_titles(tmp_path / "elsewhere")
