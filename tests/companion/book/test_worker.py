"""The process that runs one notebook: a kernel that does not come up is started again, one that dies is not."""

import io
import json
from pathlib import Path
from typing import Any

import papermill
import pytest
from nbclient.exceptions import DeadKernelError

from elementdp.companion.book import worker

NOTEBOOK = "---\nkernelspec: {display_name: Python 3, language: python, name: python3}\n---\n# A page\n"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.stdin", io.StringIO("{}"))
    path = tmp_path / "page.md"
    path.write_text(NOTEBOOK)
    return path


def failing(monkeypatch: pytest.MonkeyPatch, errors: list[Exception]) -> list[Exception]:
    """Let papermill raise these errors, one a call, and succeed when they are used up; the list of those left."""

    def execute(*_: Any, **__: Any) -> None:
        if errors:
            raise errors.pop(0)

    monkeypatch.setattr(papermill, "execute_notebook", execute)
    return errors


def test_a_kernel_that_does_not_come_up_is_started_again(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = failing(monkeypatch, [RuntimeError("Kernel died before replying to kernel_info") for _ in range(2)])
    assert worker.main(str(page), str(page.with_suffix(".ipynb"))) == 0
    assert not left
    assert "seconds" in json.loads(capsys.readouterr().out)


def test_a_kernel_that_never_comes_up_is_an_error(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, [RuntimeError("Kernel died before replying to kernel_info") for _ in range(50)])
    with pytest.raises(RuntimeError, match="before replying"):
        worker.main(str(page), str(page.with_suffix(".ipynb")))


def test_a_kernel_that_dies_in_a_cell_is_not_started_again(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = failing(monkeypatch, [DeadKernelError("Kernel died"), RuntimeError("never reached")])
    with pytest.raises(DeadKernelError):
        worker.main(str(page), str(page.with_suffix(".ipynb")))
    assert len(left) == 1
