"""Formulas of a check's words, raised and lowered."""

import pytest

from elementdp.companion.report.formulas import formula_html, typeset


@pytest.mark.parametrize(
    ("text", "shown"),
    [("D e^{(D-1)ε} δ", "D e<sup>(D−1)ε</sup> δ"), ("q e^((K-1)ε))", "q e<sup>(K−1)ε</sup>)"),
     ("n^-1.1 < 10^2", "n<sup>−1.1</sup> &lt; 10<sup>2</sup>"), ("Σ ε_i, θ_{k+1}", "Σ ε<sub>i</sub>, θ<sub>k+1</sub>"),
     ("file_name and test_x", "file_name and test_x"), ("θ^*", "θ<sup>*</sup>"),
     ("Tε_α(q), σ²_std", "Tε<sub>α</sub>(q), σ²<sub>std</sub>"), ("δ = n^-1.1.", "δ = n<sup>−1.1</sup>."),
     ("1e-06, 5.09e-5; 2e4", "10<sup>−6</sup>, 5.09 · 10<sup>−5</sup>; 2 · 10<sup>4</sup>"),
     (r"\(x_i^2\) and x^2", r"\(x_i^2\) and x<sup>2</sup>"), ("a1e-06b 0x1e5", "a1e-06b 0x1e5"),
     ("4^-t q_j²", "4<sup>−t</sup> q<sub>j</sub>²"), ("f-privacy, CIFAR-10, 2026-11-18",) * 2,
     ("(1-q)N, n(q_i-q_j)", "(1−q)N, n(q<sub>i</sub>−q<sub>j</sub>)"),
     ("Ĥ_j - Ĥ_l", "Ĥ<sub>j</sub> − Ĥ<sub>l</sub>"),
     ("--q - x", "--q − x"), ("-3.1 ± 2.7, (-.5,-1)", "−3.1 ± 2.7, (−.5,−1)"),
     ("mp_j, θ⁺_k", "mp<sub>j</sub>, θ⁺<sub>k</sub>"),
     ("m√(p/(nm))", 'm√<span class="edp-root">p/(nm)</span>'), ("√L", '√<span class="edp-root">L</span>')],
)  # fmt: skip
def test_powers_are_raised_and_indices_lowered(text: str, shown: str) -> None:
    assert formula_html(text) == shown


def test_markup_stays_markup() -> None:
    caption = "<b>x^2</b> <code>1e-06</code> at δ = 1e-06"
    assert typeset(caption) == "<b>x<sup>2</sup></b> <code>1e-06</code> at δ = 10<sup>−6</sup>"
