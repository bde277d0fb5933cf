"""What pages show of recorded runs is what was recorded, and every figure is described."""

from functools import partial

import matplotlib.pyplot as plt
import pytest

from elementdp.companion.experiments.closing import ClosingPage, sampler_noise
from elementdp.companion.experiments.images import CifarPage, PaperLength, PhotosPage
from elementdp.companion.experiments.logistic import LogisticPage
from elementdp.companion.experiments.words import WordsPage

EXHIBITS = {
    WordsPage.read: ("figure_two", "sentences", "elements", "linearity", "private_radius", "readings", "choices"),
    LogisticPage.read: ("figure_three", "sentences", "true_axis", "baselines", "rate_table"),
    PhotosPage.read: ("figure_four", "sentences", "where_it_stops", "own_rates", "tuning"),
    PaperLength.read: ("noise", "curves", "widths", "tuning", "legend"),
    CifarPage.read: ("figure_five", "sentences", "who_is_ahead", "own_rates", "tuning"),
    partial(PaperLength.read, "cifar"): ("noise", "curves", "tuning"),
}


@pytest.mark.parametrize("read", EXHIBITS)
def test_every_exhibit_can_be_shown_and_cited(read):
    made = read()
    shown = [getattr(made, name)() for name in EXHIBITS[read]]
    assert len({exhibit.name for exhibit in shown} - {""}) == len(shown), "anchors differ"
    for exhibit in shown:
        assert exhibit.caption
        assert (exhibit.figure is None) == (not exhibit.alt)
        assert all(len(row) == len(exhibit.header) for row in exhibit.rows)
        plt.close(exhibit.figure) if exhibit.figure else None
    names = [name for exhibit in shown for name in exhibit.numbers]
    assert len(names) == len(set(names)), "no number is given twice"


def test_figure_two_has_a_curve_a_partition_in_every_panel():
    drawing = WordsPage.read().figure_two().figure
    for axis in drawing.axes:
        assert axis.containers[0].get_label() == "1 (user level)"
        assert len(axis.containers) == 6
    plt.close(drawing)


def test_figure_three_has_element_and_user_level_on_one_axis():
    drawing = LogisticPage.read().figure_three().figure
    for axis in drawing.axes:
        labels = {text.get_text() for text in axis.get_legend().get_texts()}
        kinds = ("element level", "user level", "non-private")
        assert labels == {f"{kind}, clusters: {k}/10" for kind in kinds for k in (2, 5, 8)}
    plt.close(drawing)


def test_the_closing_page_compares_every_setting_once():
    page = ClosingPage()
    shown = page.forest()
    assert len(shown.rows) == len({row[:2] for row in shown.rows}) == shown.numbers["closing-count"]
    upper, lower = shown.figure.axes
    drawn = [float(x) for axis in (upper, lower) for x in axis.containers[0].lines[0].get_xdata()]
    ahead = sum(x > 1 for x in drawn[: len(page.factors)]) + sum(x > 0 for x in drawn[len(page.factors) :])
    assert shown.numbers["closing-clear"] <= ahead <= len(drawn)
    for one in page.factors:
        low, high = one.ends
        assert low < one.user / one.element < high
    assert page.where_it_stops().numbers["closing-few"] == 1
    plt.close(shown.figure)


def test_pairs_take_the_noise_of_single_elements_whatever_users_have():
    shown = sampler_noise([1, 4], users=100, q=0.1, steps=5)
    (_, alone, pairs_alone), (_, sampled, pairs) = shown.rows
    assert pairs == pytest.approx(pairs_alone, rel=1e-3)
    assert alone == pytest.approx(pairs_alone, rel=1e-3)
    assert sampled > pairs
    plt.close(shown.figure)
