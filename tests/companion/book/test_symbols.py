"""The fold of symbols that every chapter has, from a glossary as Sphinx writes it."""

from elementdp.companion.book.symbols import read_glossary, with_symbols


def math(tex: str) -> str:
    return f'<span class="math notranslate nohighlight">\\({tex}\\)</span>'


def entry(anchor: str, term: str, meaning: str) -> str:
    return f'<dt id="term-{anchor}">{term}<a class="headerlink" href="#">#</a></dt><dd><p>{meaning}</p>\n</dd>'


FACTOR = f"A factor {math('e^{' + chr(92) + 'eps}')} &amp; more."
GLOSSARY = "".join((
    entry("q", math("q"), "The sampling rate."),
    entry("eps-delta", f"{math(chr(92) + 'eps')}, {math(chr(92) + 'delta')}", FACTOR),
    entry("ell", math(r"\ell_{\mathsf{el}}"), "A loss."),
    entry("element", "element", "No formula."),
))  # fmt: skip


def page(*formulas: str) -> str:
    return "<section><h1>Title</h1><section>" + "".join(map(math, formulas)) + "</section></section>"


def test_a_page_explains_the_symbols_it_uses_and_no_others() -> None:
    glossary = read_glossary(GLOSSARY)
    assert [one.anchor for one in glossary] == ["term-q", "term-eps-delta", "term-ell"]
    shown = with_symbols(page(r"\delta \le 1", r"\text{rate q}"), glossary, "../glossary.html")
    assert shown.count("<dt>") == 1
    assert 'href="../glossary.html#term-eps-delta" aria-label="ε, δ"' in shown
    assert 'data-words="A factor e^ε &amp; more."' in shown
    assert shown.index("<details") < shown.index("<section>", 1)


def test_a_page_without_such_symbols_stays_what_it_is() -> None:
    plain = page("z^2")
    assert with_symbols(plain, read_glossary(GLOSSARY), "../glossary.html") == plain
    assert with_symbols(plain, [], "../glossary.html") == plain
