"""The ledger: complete, computed, and impossible to correct by hand."""

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from elementdp.companion.claims import CATALOGUE, Effort, Entry, Fact, Finding, Gap, Role, Verdict, check, entry, ledger
from elementdp.companion.claims.ledger import checks
from elementdp.companion.claims.verdict import CheckError
from elementdp.companion.cli.claims import command
from elementdp.companion.report.ledger import book_pages, ledger_html, tally
from elementdp.errors import ArgumentError

IDS = [
    "def-dp", "def-rdp", "def-element", "rdp-to-dp", "gaussian-mech", "basic-mech", "post-processing", "group-privacy",
    "composition", "subsampling", "moments-accountant", "heavy-hitters-privacy", "heavy-hitters-loss",
    "heavy-hitters-utility", "histogram-privacy", "histogram-utility", "element-loss", "alg-1", "private-sgd",
    "sgd-privacy", "normality", "private-normality", "glm", "exp-histogram", "exp-logistic", "exp-flickr", "exp-cifar",
]  # fmt: skip


def test_every_statement_is_catalogued():
    assert list(CATALOGUE) == IDS
    assert all(statement.id == key and statement.text and statement.where for key, statement in CATALOGUE.items())


@pytest.mark.parametrize("claim", sorted(checks()))
def test_every_check_runs_and_is_reproducible(claim):
    found = entry(claim, Effort.SMOKE, seed=0)
    assert found.verdict in set(Verdict) - {Verdict.UNCHECKED}
    assert found.evidence
    assert any(character.isdigit() for line in found.evidence for character in line), "evidence without a number"
    if found.verdict in (Verdict.FAILS, Verdict.NEEDS_REPAIR):
        assert found.repair
        assert any(line.startswith("printed, false: ") for line in found.evidence)
        assert any(line.startswith("repaired, true: ") for line in found.evidence)
    assert entry(claim, Effort.SMOKE, seed=0) == found


def test_a_statement_without_a_check_is_shown_as_unchecked(monkeypatch):
    monkeypatch.setattr(sys.modules[entry.__module__], "checks", dict)
    entries = ledger(Effort.SMOKE)
    assert [found.id for found in entries] == IDS
    assert {found.verdict for found in entries} == {Verdict.UNCHECKED}
    assert tally(entries)[Verdict.UNCHECKED] == len(IDS)
    assert ledger_html(entries).count("No check has run.") == len(IDS)


def facts(*holds: bool, role: Role = Role.PRINTED) -> tuple[Fact, ...]:
    return tuple(Fact(role, "x", value) for value in holds)


def test_the_verdict_follows_from_the_facts():
    fixed = facts(True, role=Role.REPAIRED)
    assert Finding(facts(True, True)).verdict is Verdict.HOLDS
    assert Finding(facts(True) + facts(False, role=Role.TIGHT)).verdict is Verdict.HOLDS_LOOSELY
    assert Finding(facts(True, False) + fixed, "r", Gap.TYPO).verdict is Verdict.NEEDS_REPAIR
    assert Finding(facts(True, False) + fixed, "r", Gap.SUBSTANCE).verdict is Verdict.FAILS
    assert Finding(facts(True), "r", Gap.SUBSTANCE).verdict is Verdict.HOLDS, "a gap alone condemns nothing"


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
        ({"facts": facts(False)}, "needs a gap"),
        ({"facts": facts(False), "repair": "r", "gap": Gap.TYPO}, "fact that checks the repair"),
        ({"facts": facts(True) + facts(False, role=Role.REPAIRED)}, "fails too"),
    ],
)
def test_a_check_that_decides_nothing_is_refused(kwargs, match):
    with pytest.raises(CheckError, match=match):
        Finding(**kwargs)


def test_unknown_ids_are_refused_by_name():
    with pytest.raises(ArgumentError, match="claim must be one of def-dp"):
        entry("no-such-claim")
    with pytest.raises(ArgumentError, match="claim"):
        check("no-such-claim")
    with pytest.raises(ArgumentError, match="effort"):
        entry("post-processing", "heroic")


def test_the_command_prints_the_ledger_as_json():
    result = CliRunner().invoke(command, ["--json", "post-processing", "composition"])
    assert result.exit_code == 0
    found = json.loads(result.output)
    assert [item["id"] for item in found] == ["post-processing", "composition"]
    assert all(set(item) == {"id", "where", "statement", "verdict", "evidence", "repair", "section"} for item in found)
    assert found[1]["verdict"] == entry("composition", Effort.SMOKE).verdict


def test_the_command_prints_a_table():
    result = CliRunner().invoke(command, ["post-processing", "group-privacy"])
    assert result.exit_code == 0
    assert "post-processing" in result.output
    assert "1 holds · 1 holds, loosely" in result.output


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
        Entry("a", "Lemma <1>", "x < y", Verdict.FAILS, ("printed: 2 > 1",), "use ≤", "part/here"),
        Entry("b", "w", "s", Verdict.HOLDS, ("printed: 1",), "", "part/missing"),
    ]
    markup = ledger_html(made, {"part/here"})
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
    assert book_pages(tmp_path / "book" / "part") == {"ledger", "part/here"} == book_pages(tmp_path / "elsewhere")
