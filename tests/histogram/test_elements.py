"""Which element an event belongs to: equal keys are one element, and no name is taken for another."""

import enum
import math
from collections.abc import Callable, Hashable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.errors import ArgumentError
from elementdp.histogram import Budget, PrivateHistogram, private_histogram
from elementdp.histogram.element_rule import canonical, element_rule
from elementdp.privacy import Unit

ITEMS = ["a", "b", "x", "y"]


class Colour(enum.StrEnum):
    RED = "red"


class Named(str, enum.Enum):  # noqa: UP042 (its str() is not its content, which is what is tested)
    RED = "red"


class Folded(str):
    """Equal whatever the case."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str(self).lower() == str(other).lower()

    def __hash__(self) -> int:
        return hash(str(self).lower())


class Same:
    """All equal, each printed by its address."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same)

    def __hash__(self) -> int:
        return 0


def exact(rows: list[tuple[str, str, float]], element: Callable[[str], Hashable]) -> PrivateHistogram:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elementdp.histogram.release.exact_noise", lambda values, scale: values)
        return private_histogram(
            pd.DataFrame(rows, columns=["u", "i", "c"]),
            user="u",
            item="i",
            count="c",
            element=element,
            privacy=Budget(1.0, 1e-6),
            items=ITEMS,
            rho=4.0,
        )


@pytest.mark.parametrize(("first", "other"), [(1, np.int64(1)), (1, np.uint8(1)), ("red", Named.RED)])
def test_equal_keys_of_other_types_are_one_element(first: Hashable, other: Hashable) -> None:
    """All of a user's data in the one element replaced moves the sums by √2·ρ at most, as charged."""

    def key(item: str) -> Hashable:
        return first if item < "m" else other

    x, y = (exact([("u", one, 1e6), ("u", two, 1e6)], key) for one, two in ("ax", "by"))
    gap = np.array(x.histogram["count"]) - np.array(y.histogram["count"])
    assert np.linalg.norm(gap) == pytest.approx(4.0 * math.sqrt(2), rel=0.02)
    assert np.linalg.norm(gap) <= x.spent[0].sensitivity * (1 + 0.02)  # counts are rounded to a hundredth of the noise


@pytest.mark.parametrize("key", [1.0, np.float64(1), True, np.True_, None, (1, 2), Same(), object(), Folded("a")])
def test_keys_whose_text_may_differ_though_equal_are_refused(key: Hashable) -> None:
    with pytest.raises(ArgumentError, match=f"element must be a function .* not a {type(key).__name__}, got"):
        exact([("u", "a", 1.0)], lambda item: key)


KEYS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    st.integers(-5, 5),
    st.integers(0, 5).map(np.int32),
    st.integers(-5, 5).map(str),
    st.binary(max_size=2),
    st.sampled_from([Colour.RED, Named.RED, "red", np.str_("red"), b"red", "s", "", b"", 10**5000]),
)


@given(one=KEYS, two=KEYS)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_canonical_texts_are_equal_exactly_when_the_keys_are(one: Hashable, two: Hashable) -> None:
    assert (canonical(one) == canonical(two)) == (one == two)


def test_named_enumerations_are_their_content() -> None:
    assert canonical(Named.RED) == canonical(Colour.RED) == canonical("red") == canonical(np.str_("red"))


@pytest.mark.parametrize(
    ("element", "words", "unit", "column"),
    [
        ("uid", "all a user has", Unit.USER, None),
        ("url", "each url", Unit.ELEMENT, None),
        ("column:uid", "all a user has", Unit.USER, None),
        ("column:user", "column user", Unit.ELEMENT, "user"),
        ("column:item", "column item", Unit.ELEMENT, "item"),
        ("kind", "column kind", Unit.ELEMENT, "kind"),
        ("domain", "the domain of url", Unit.ELEMENT, None),
    ],
)
def test_the_user_column_is_the_user_whatever_other_columns_are_called(
    element: str, words: str, unit: Unit, column: str | None
) -> None:
    rule = element_rule(element, "uid", "url", ["uid", "url", "user", "item", "kind"], "the table")
    assert (rule.words, rule.unit, rule.column) == (words, unit, column)
    assert rule.alone == (element == "url")


@pytest.mark.parametrize("word", ["user", "item", "domain"])
def test_a_word_that_is_a_key_and_a_column_is_refused(word: str) -> None:
    """A column user that is not the user would be a weaker promise than the one the word seems to make."""
    with pytest.raises(ArgumentError, match=f"element must be 'column:{word}' for the column"):
        element_rule(word, "uid", "url", ["uid", "url", "user", "item", "domain"], "the table")


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(ArgumentError, match="element must be a column of the table: one of 'uid', 'url'"):
        element_rule("column:kind", "uid", "url", ["uid", "url"], "the table")
