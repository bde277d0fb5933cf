"""The fold of symbols that every chapter has, from a glossary as Sphinx writes it."""

import re

import pytest

from elementdp.companion.book.symbols import read_glossary, with_symbols


def math(tex: str) -> str:
    return f'<span class="math notranslate nohighlight">\\({tex}\\)</span>'


def entry(anchor: str, term: str, meaning: str, *chapters: str) -> str:
    only = "".join(f'<a class="reference internal" href="{chapter}.html">it</a>' for chapter in chapters)
    below = f"\n<p>In {only}.</p>" if chapters else ""
    return f'<dt id="term-{anchor}">{term}<a class="headerlink" href="#">#</a></dt><dd><p>{meaning}</p>{below}\n</dd>'


FACTOR = f"A factor {math('e^{' + chr(92) + 'eps}')} &amp; more."
GLOSSARY = "".join((
    entry("q", math("q"), "The sampling rate."),
    entry("eps-delta", f"{math(chr(92) + 'eps')}, {math(chr(92) + 'delta')}", FACTOR),
    entry("ell", math(r"\ell_{\mathsf{el}}"), "A loss."),
    entry("element", "element", "No formula."),
    entry("k", f"{math('k')} (elements)", "A number of elements."),
    entry("k-step", f"{math('k')} (step)", "The index of a step.", "learning/training", "learning/asymptotics"),
    entry("q-j", math("q_j"), "Of item j.", "mechanisms/histograms"),
    entry("q-0", math("q_0"), "The first."),
))  # fmt: skip


def page(*formulas: str) -> str:
    return "<section><h1>Title</h1><section>" + "".join(map(math, formulas)) + "</section></section>"


def test_a_page_explains_the_symbols_it_uses_and_no_others() -> None:
    glossary = read_glossary(GLOSSARY)
    assert [one.anchor for one in glossary] == [
        "term-q", "term-eps-delta", "term-ell", "term-k", "term-k-step", "term-q-j", "term-q-0",
    ]  # fmt: skip
    shown = with_symbols(page(r"\delta \le 1", r"\text{rate q}"), glossary, "../glossary.html", "accounting/accounting")
    assert shown.count("<dt>") == 1
    assert 'href="../glossary.html#term-eps-delta" aria-label="ε, δ"' in shown
    assert 'data-words="A factor e^ε &amp; more."' in shown
    assert shown.index("<details") < shown.index("<section>", 1)


def test_a_page_without_such_symbols_stays_what_it_is() -> None:
    plain = page("z^2")
    assert with_symbols(plain, read_glossary(GLOSSARY), "../glossary.html", "a/b") == plain
    assert with_symbols(plain, [], "../glossary.html", "a/b") == plain


@pytest.mark.parametrize(
    ("chapter", "anchor"), [("learning/training", "term-k-step"), ("foundations/student", "term-k")]
)
def test_a_letter_has_the_meaning_of_its_chapter_and_no_other(chapter: str, anchor: str) -> None:
    shown = with_symbols(page("k"), read_glossary(GLOSSARY), "../glossary.html", chapter)
    assert re.findall(r"glossary\.html#([^\"]+)", shown) == [anchor]


@pytest.mark.parametrize("tex", ["q_j", r"\widehat q_j", r"\hat{q}_j", "q^{(u)}_j", r"\theta_k"])
def test_a_letter_with_an_index_is_another_symbol(tex: str) -> None:
    shown = with_symbols(page(tex), read_glossary(GLOSSARY), "../glossary.html", "mechanisms/histograms")
    assert "#term-q&" not in shown
    assert '#term-q"' not in shown
    assert ("#term-q-j" in shown) is ("q" in tex)


@pytest.mark.parametrize(("tex", "anchor"), [("q_0^2", "term-q-0"), ("q_{0}", "term-q-0"), ("q_{01}", "term-q-j")])
def test_index_0_is_a_symbol_of_its_own(tex: str, anchor: str) -> None:
    shown = with_symbols(page(tex), read_glossary(GLOSSARY), "../glossary.html", "mechanisms/histograms")
    assert re.findall(r"glossary\.html#([^\"]+)", shown) == [anchor]
