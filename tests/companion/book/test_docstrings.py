"""Powers and indices of docstrings are typeset; what is code stays code."""

import pytest

from elementdp.companion.book.docstrings import typeset_docstring


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("α_k = α₀ k^(-β)", r"α\ :sub:`k`\  = α₀ k\ :sup:`−β`\ "),
        ("(to 1e-4, rounded up)", r"(to 10\ :sup:`−4`\ , rounded up)"),
        (":param n_users: e^ε of ``n_users``", r":param n_users: e\ :sup:`ε`\  of ``n_users``"),
        (r"at :math:`x_i^{2}` or ``x_i``", r"at :math:`x_i^{2}` or ``x_i``"),
        (r".. math:: x_i^2", r".. math:: x_i^2"),
    ],
)
def test_prose_is_typeset(line: str, shown: str) -> None:
    lines = [line]
    typeset_docstring(lines)
    assert lines == [shown]


def test_examples_stay_as_they_are_up_to_the_next_empty_line() -> None:
    lines = [">>> x_i", "(1.5, 1e-06)", "", "x_i"]
    typeset_docstring(lines)
    assert lines == [">>> x_i", "(1.5, 1e-06)", "", r"x\ :sub:`i`\ "]
