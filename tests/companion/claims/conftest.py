"""Checks run anew in these tests: nothing is read from, or left in, the folder of kept entries."""

import pytest


@pytest.fixture(autouse=True)
def no_kept_entries(monkeypatch):
    monkeypatch.setenv("ELEMENTDP_ENTRIES", "off")
