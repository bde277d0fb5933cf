"""The paper's own numbers, counted from its source where that is at hand.

The source loads its theorem declarations from the authors' macros, which are not part of it. They number definitions,
lemmas and corollaries within sections, the other environments through.
"""

import re
from pathlib import Path

import pytest

from elementdp.companion.claims import CATALOGUE

SOURCE = Path(__file__).parents[4] / "shared" / "paper" / "element-level-dp.tex"
WITHIN = ("definition", "lemma", "corollary")
THROUGH = ("theorem", "proposition", "example", "assumption", "figure", "algorithm")
TOKEN = re.compile(
    r"\\(?P<appendix>appendix)\b|\\(?P<level>section|subsection)\{|\\begin\{(?P<kind>"
    + "|".join((*WITHIN, *THROUGH, "equation", "align"))
    + r")\}|\\label\{(?P<label>[^}]*)\}"
)


def in_reading_order(text: str) -> str:
    """The source's files, which stand one after the other, put where the first of them reads them in."""
    parts = re.split(r"^%% file: (.*)\.tex$", text, flags=re.M)[1:]
    names, bodies = parts[::2], parts[1::2]
    files = {name: re.sub(r"(?<!\\)%.*", "", body) for name, body in zip(names, bodies, strict=True)}
    return re.sub(r"\\input\{(\w[\w-]*)\}", lambda match: files[match.group(1)], files[names[0]])


def numbers(text: str) -> dict[str, str]:
    """What each label stands for, in the words of the printed paper."""
    counts: dict[str, int] = {}
    appendix, here, found = False, "", {}
    for match in TOKEN.finditer(in_reading_order(text)):
        section = counts.get("section", 0)
        if match["appendix"]:
            appendix, counts["section"] = True, 0
        elif match["level"] == "section":
            counts |= {"section": section + 1, "subsection": 0} | dict.fromkeys(WITHIN, 0)
            here = "Appendix " + chr(64 + section + 1) if appendix else f"Section {section + 1}"
        elif match["level"]:
            counts["subsection"] += 1
            here = f"Section {section}.{counts['subsection']}"
        elif kind := match["kind"]:
            counts[kind] = counts.get(kind, 0) + 1
            name = chr(64 + section) if appendix else str(section)
            number = f"{name}.{counts[kind]}" if kind in WITHIN else str(counts[kind])
            here = f"Equation ({number})" if kind in ("equation", "align") else f"{kind.capitalize()} {number}"
            if kind == "align":  # several numbers may stand in one; those in the main text do not
                counts["align"] -= 1
        elif match["label"]:
            found[match["label"]] = here
    return found


def test_the_counter_by_hand():
    text = (
        "%% file: main.tex\n\\input{one}\\appendix\\input{two}\n"
        "%% file: two.tex\n\\section{B}\\begin{lemma}\\label{d}\n"
        "%% file: one.tex\n\\section{A}\\begin{equation}\\label{a}\\begin{lemma}\\label{b}\n"
        "\\begin{theorem}\\label{c}% \\label{x}\n"
    )
    assert numbers(text) == {"a": "Equation (1)", "b": "Lemma 1.1", "c": "Theorem 1", "d": "Lemma A.1"}


@pytest.mark.skipif(not SOURCE.is_file(), reason="the paper's source is not here")
@pytest.mark.parametrize("claim", [claim for claim, statement in CATALOGUE.items() if statement.label])
def test_numbers_are_the_papers_own(claim):
    statement, counted = CATALOGUE[claim], numbers(SOURCE.read_text())
    first = re.sub(r"Equations \((\d+)\)", r"Equation (\1)", statement.number)
    assert counted[statement.label] in first
