"""An exhibit is shown whole: figure, numbers that were drawn, numbers for the prose."""

from typing import Any

import matplotlib.pyplot as plt
import pytest

from elementdp.companion.exhibit import Exhibit, Folded
from elementdp.companion.report import present


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    outputs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    monkeypatch.setattr("IPython.display.publish_display_data", lambda data, meta: outputs.append((data, meta)))
    return outputs


def test_a_figure_has_its_table_folded_and_a_table_alone_its_caption(shown):
    figure, _ = plt.subplots()
    drawn = Exhibit(name="fig-a", caption="A.", figure=figure, alt="A line.", header=("x",), rows=[(0.5,)])
    present(drawn, Exhibit(name="tab-b", caption="B.", header=("y",), rows=[(1 / 3,)], numbers={"third": "0.33"}))
    pages = [data.get("text/html", "") for data, _ in shown]
    assert [bool(page) for page in pages] == [True, True, False, True]
    assert 'id="fig-a"' in pages[0] and "<figcaption" in pages[0]
    assert pages[1].startswith('<details class="edp-fold">') and "<td>0.5</td>" in pages[1]
    assert "<caption>" not in pages[1], "a folded table is not numbered"
    assert shown[2][1]["scrapbook"]["name"] == "third"
    assert 'id="tab-b"' in pages[3] and "<td>0.3333</td>" in pages[3] and "B." in pages[3]


def test_a_range_stays_on_one_line_and_a_row_with_folded_evidence_says_what_its_cells_are(shown):
    present(
        Exhibit(name="tab-a", caption="A.", header=("x", "y"), rows=[("1.5 to +2", "from 1 to 2")]),
        Exhibit(name="tab-b", caption="B.", header=("said", "found"), rows=[("It is < 1.", Folded("yes", "by 0.2"))]),
    )
    ranges, folded = (data["text/html"] for data, _ in shown)
    assert '<td class="edp-whole">1.5 to +2</td><td>from 1 to 2</td>' in ranges
    assert "edp-stacked" in folded and "edp-stacked" not in ranges
    assert '<td role="cell" data-label="said">It is &lt; 1.</td>' in folded
    assert '<summary data-label="found">yes</summary>by 0.2' in folded
