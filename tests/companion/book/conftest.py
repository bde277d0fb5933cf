"""Small books to run, and the real one built once in its smallest size."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, sync_playwright
from support.small_books import ROOT

from elementdp.companion.book.build import Built, build
from elementdp.companion.book.project import Project

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]


@pytest.fixture
def small_book(tmp_path: Path) -> Callable[..., Project]:
    """Make a book of the given pages; ``page="…"`` by name."""

    def make(**pages: str) -> Project:
        root = tmp_path / "book-project"
        (root / "book" / "_static").mkdir(parents=True, exist_ok=True)
        (root / "constraints.txt").write_text("numpy==2\n")
        for name in ("elementdp.css", "favicon.svg"):
            shutil.copy(ROOT / "book" / "_static" / name, root / "book" / "_static" / name)
        shutil.copy(ROOT / "_config.yml", root)
        shutil.copy(ROOT / "book" / "references.bib", root / "book")
        names = list(pages)
        chapters = "".join(f"  - file: book/{name}\n" for name in names[1:])
        toc = f"format: jb-book\nroot: book/{names[0]}\n" + (f"chapters:\n{chapters}" if chapters else "")
        (root / "_toc.yml").write_text(toc)
        for name, text in pages.items():
            (root / "book" / f"{name}.md").write_text(text)
        return Project(root)

    return make


@pytest.fixture(scope="session")
def smoke_book(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The whole book, executed in its smallest size and built strictly, away from the reader's own build.

    The test processes of one session share it: the first builds it, and the others wait for it.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    root = shared / "smoke"
    with FileLock(shared / "smoke.lock"):
        index = root / "_build" / "html" / "index.html"
        if index.is_file():  # a build puts its pages there only when they are complete
            return Built(index, [], rebuilt=False)
        if not root.exists():
            shutil.copytree(ROOT / "book", root / "book")
            for name in ("_config.yml", "_toc.yml", "constraints.txt"):
                shutil.copy(ROOT / name, root)
            for name in ("elementdp", "recorded"):
                if (ROOT / name).is_dir():
                    (root / name).symlink_to(ROOT / name)
        return build(Project(root), profile="smoke", jobs=2)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium."""
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium found: .ci/run installs it")
        pytest.skip("no Chromium found; install Debian's package chromium to open the pages")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()
