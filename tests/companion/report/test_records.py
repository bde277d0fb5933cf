"""What a notebook leaves in its outputs."""

from typing import Any

import numpy as np
import pytest

from elementdp.companion.report import records


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    seen: list[tuple[Any, Any]] = []
    monkeypatch.setattr(records, "publish", lambda data, metadata=None: seen.append((data, metadata)))
    return seen


def test_results_hold_plain_numbers(published: list[tuple[Any, Any]]) -> None:
    records.record_result(a=np.float64(0.5), b=np.arange(2), c="x")
    assert published == [({records.RESULT_MIME: {"a": 0.5, "b": [0, 1], "c": "x"}}, None)]


def test_what_json_cannot_hold_is_refused(published: list[tuple[Any, Any]]) -> None:
    with pytest.raises(TypeError, match="object"):
        records.record_result(a=object())
    assert not published


def test_glue_is_the_record_myst_nb_reads(published: list[tuple[Any, Any]]) -> None:
    records.glue("eps", 1.23456, ".2f")
    ((data, metadata),) = published
    assert data == {"application/papermill.record/text/plain": "'1.23'"}
    assert metadata["scrapbook"]["name"] == "eps"
