"""Runs of the paper's length are told apart by the width of their features, and a new table needs no code."""

import math
import shutil
import statistics
from dataclasses import replace

import matplotlib.pyplot as plt
import pytest

from elementdp.companion.experiments.images import PaperLength
from elementdp.companion.experiments.recorded import FOLDER, read, write
from elementdp.errors import ElementdpError

ENDS = ("", "-user", "-sampled", "-printed", "-plain")
SHIFT = 0.02


@pytest.fixture
def folder(tmp_path):
    for path in FOLDER.glob("photos*.json"):
        if not path.stem.startswith("photos-paper-full"):
            shutil.copy(path, tmp_path)
    return tmp_path


def add_full(folder, *ends):
    """Made-up tables with all features: the first repetition of the projected runs, with accuracies SHIFT higher."""
    for end in ends:
        found = read(f"photos-paper{end}", folder)
        provenance = replace(found.provenance, parameters={**found.provenance.parameters, "dimension": 0})
        rows = [
            {**row, "accuracy": [value + SHIFT for value in row["accuracy"]]}
            for row in found.rows("lines", repetition=0)
        ]
        write(replace(found, provenance=provenance, tables={"lines": rows}), folder / f"photos-paper-full{end}.json")


def reached(folder, name):
    return [max(row["accuracy"]) for row in read(name, folder).rows("lines")]


def shown(paper):
    found = [paper.curves(), paper.widths(), paper.tuning()]
    plt.close("all")
    return found


def test_projected_runs_are_shown_alone_and_the_page_says_that_the_others_are_missing(folder):
    paper = PaperLength.read("photos", folder)
    assert paper.width == 256 and not paper.others
    assert "any other width" in shown(paper)[1].numbers["photos-paper-missing"]


def test_all_features_are_the_main_figure_only_once_both_units_have_them(folder):
    add_full(folder, "")
    paper = PaperLength.read("photos", folder)
    assert paper.width == 256 and [other.width for other in paper.others] == [2_048]
    _, widths, _ = shown(paper)
    assert "d = 2,048, user level, element level" in widths.numbers["photos-paper-missing"]
    assert ("element, pairs sampled, true ε", "2,048", 1) in {row[:3] for row in widths.rows}

    add_full(folder, "-user")
    paper = PaperLength.read("photos", folder)
    assert paper.width == 2_048 and [other.width for other in paper.others] == [256]
    assert "d = 2,048" in shown(paper)[0].caption
    numbers = shown(paper)[0].numbers
    assert numbers["photos-paper-plain"] == "(not run)" and numbers["photos-paper-rest"] == ""
    lacking = "element level with whole users sampled, element level as printed and training without privacy"
    assert numbers["photos-paper-lacking"] == f"Not run at this length with d = 2,048: {lacking}."


@pytest.mark.parametrize("lead", [0.0, 0.1])
def test_a_gain_within_chance_is_said_to_be_one(folder, lead):
    user = read("photos-paper-user", folder)
    element = read("photos-paper", folder)
    rows = [
        {**row, "accuracy": [max(other["accuracy"]) + lead] * len(row["accuracy"])}
        for row, other in zip(element.rows("lines"), user.rows("lines"), strict=True)
    ]
    write(replace(element, tables={"lines": rows}), folder / "photos-paper.json")
    gain = shown(PaperLength.read("photos", folder))[0].numbers["photos-paper-gain"]
    assert gain.startswith(f"{100 * lead:+.1f} points") and ("chance" in gain) == (lead == 0)


def test_runs_made_once_are_compared_by_the_spread_of_the_repeated_ones(folder):
    add_full(folder, "", "-user")
    rows = {row.said: row for row in PaperLength.read("photos", folder).sentences()}
    said = "With the work of 40,000 iterations, at the same true ε = 3, "
    wide = rows[said + "element level with pairs sampled beats user level."]
    repeated = [reached(folder, f"photos-paper{end}") for end in ("", "-user", "-sampled", "-printed")]
    bar = 1.959964 * math.sqrt(2 * statistics.mean(statistics.variance(values) for values in repeated))
    gap = reached(folder, "photos-paper")[0] - reached(folder, "photos-paper-user")[0]
    assert wide.found == f"{100 * gap:+.1f} ± {100 * bar:.1f} points" and "d = 2,048" in wide.more
    narrow = rows[said + "sampling pairs beats sampling users."]  # users were not sampled with all features
    assert "d = 256" in narrow.more and narrow.holds


def test_what_a_projection_costs_is_the_difference_of_like_variants(folder):
    add_full(folder, *ENDS)
    paper = PaperLength.read("photos", folder)
    _, widths, tuning = shown(paper)
    assert widths.numbers["photos-paper-missing"] == "Every variant was run with both widths."
    assert len(widths.rows) == len(tuning.rows) == 2 * len(ENDS)
    costs = [
        100
        * (SHIFT + reached(folder, f"photos-paper{end}")[0] - statistics.mean(reached(folder, f"photos-paper{end}")))
        for end in ENDS
    ]
    said = f"From d = 256 to d = 2,048 accuracies change by {min(costs):+.1f} to {max(costs):+.1f} points."
    assert widths.numbers["photos-paper-widths"].startswith(said)


def test_a_run_that_two_tables_hold_counts_once(folder):
    before = PaperLength.read("photos", folder)
    shutil.copy(folder / "photos-paper.json", folder / "photos-paper-again.json")
    after = PaperLength.read("photos", folder)
    assert [len(some) for some in after.groups] == [len(some) for some in before.groups]


def test_without_runs_of_both_units_there_is_nothing_to_compare(folder):
    (folder / "photos-paper-user.json").unlink()
    with pytest.raises(ElementdpError, match="both units"):
        PaperLength.read("photos", folder)


def test_curves_that_fall_late_in_the_run_are_named(folder):
    name = "photos-paper-doubts"
    before = shown(PaperLength.read("photos", folder))[0].numbers[name]
    found = read("photos-paper-user", folder)
    rows = [
        {**row, "accuracy": [value - 0.07 * (k == 30) for k, value in enumerate(row["accuracy"])]}
        for row in found.rows("lines")
    ]
    write(replace(found, tables={"lines": rows}), folder / "photos-paper-user.json")
    after = shown(PaperLength.read("photos", folder))[0].numbers[name]
    assert "user, true ε (7 points)" in after and "user, true ε (" not in before
