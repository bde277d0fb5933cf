"""Formulas of a check's words, raised and lowered."""

import pytest

from elementdp.companion.report.formulas import formula_html


@pytest.mark.parametrize(
    ("text", "shown"),
    [("D e^{(D-1)ε} δ", "D e<sup>(D-1)ε</sup> δ"), ("q e^((K-1)ε))", "q e<sup>(K-1)ε</sup>)"),
     ("n^-1.1 < 10^2", "n<sup>-1.1</sup> &lt; 10<sup>2</sup>"), ("Σ ε_i, θ_{k+1}", "Σ ε<sub>i</sub>, θ<sub>k+1</sub>"),
     ("file_name and test_x", "file_name and test_x"), ("θ^*", "θ<sup>*</sup>"),
     ("Tε_α(q), σ²_std", "Tε<sub>α</sub>(q), σ²<sub>std</sub>")],
)  # fmt: skip
def test_powers_are_raised_and_indices_lowered(text: str, shown: str) -> None:
    assert formula_html(text) == shown
