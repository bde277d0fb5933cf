"""A picture of a release says what is promised, names the largest items, and is refused before any work."""

import re
from html import unescape
from pathlib import Path

import pyarrow as pa
import pytest
from PIL import Image

from elementdp.errors import ArgumentError, ElementdpError
from elementdp.histogram import BoundedValue, Budget, PrivateHistogram, plot, plot_release, private_histogram

ITEMS = [f"item {k}" for k in range(30)] + ["$x_1$ <b>", "\x1b[31m", "日本", "y" * 200]


def release(**options: object) -> PrivateHistogram:
    rows = [(str(user), item) for place, item in enumerate(ITEMS) for user in range(4000 - 100 * place)]
    table = pa.table({"user": [user for user, _ in rows], "word": [item for _, item in rows], "n": [1.0] * len(rows)})
    chosen = {"user": "user", "item": "word", "element": "item", "privacy": Budget(1, 1e-6), "rho": 1, "items": ITEMS}
    return private_histogram(table, **chosen | options)  # type: ignore[arg-type]


def texts(path: Path) -> list[str]:
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text())]


def test_an_svg_says_unit_relation_epsilon_and_delta_and_names_the_largest(tmp_path: Path) -> None:
    result = release()
    assert plot_release(result, tmp_path / "a.svg", number=25) == tmp_path / "a.svg"
    found = texts(tmp_path / "a.svg")
    assert "ε = 1, δ = 1e-06 for one element of one user (data replaced by any other)" in found
    assert "element: each word" in found
    assert [text for text in found if text.startswith("item")] == ITEMS[:25]
    assert any(text.startswith("the 25 largest of 34 items") for text in found)
    assert result.clipped is not None
    assert result.clipped.words() in " ".join(found)  # long lines are folded


def test_every_text_is_drawn_as_it_is_without_escapes(tmp_path: Path) -> None:
    plot_release(release(), tmp_path / "a.svg", number=100)
    found = texts(tmp_path / "a.svg")
    assert {"$x_1$ <b>", "\N{REPLACEMENT CHARACTER}[31m", "日本"} <= set(found)
    assert max(len(text) for text in found if text.startswith("yy")) < 60


def test_sums_have_a_panel_and_a_png_is_a_picture(tmp_path: Path) -> None:
    result = release(count=BoundedValue("n", 0, 2))
    plot_release(result.top(3), tmp_path / "a.svg")
    assert {"count", "sum of n"} <= set(texts(tmp_path / "a.svg"))
    plot_release(result.top(3), str(tmp_path / "a.PNG"))
    with Image.open(tmp_path / "a.PNG") as picture:
        assert picture.format == "PNG"
        assert len(picture.convert("RGB").getcolors(1 << 20) or []) > 2


def test_a_release_without_items_and_a_seeded_one(tmp_path: Path) -> None:
    empty = private_histogram(
        pa.table({"user": ["a"], "word": ["b"]}), user="user", item="word", element="item", privacy=Budget(1, 1e-6)
    )
    plot_release(empty, tmp_path / "a.svg")
    assert any("no item had enough users" in text for text in texts(tmp_path / "a.svg"))
    with pytest.warns(UserWarning, match="testing"):
        plot_release(release(privacy=Budget(1, 1e-6, seed=0)), tmp_path / "b.svg")
    assert "NO privacy: seeded noise, for testing only" in texts(tmp_path / "b.svg")
    assert not any("ε" in text for text in texts(tmp_path / "b.svg"))


def test_what_cannot_be_drawn_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old.svg").write_text("old")
    for name in ("a.pdf", "none/a.svg", "old.svg"):
        with pytest.raises(ArgumentError, match="plot"):
            plot_release(release(), tmp_path / name)
    assert (tmp_path / "old.svg").read_text() == "old"
    monkeypatch.setattr(plot, "find_spec", lambda name: None)
    with pytest.raises(ElementdpError, match=r"pip install 'elementdp\[plot\]'"):
        plot.check_plot(tmp_path / "a.svg", force=False)
