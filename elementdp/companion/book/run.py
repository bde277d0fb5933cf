"""Notebook in, executed notebook out: from the cache when nothing that matters changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elementdp.companion.book.cache import Cache, DamagedError, Executed, key
from elementdp.companion.book.execute import Progress, Workers
from elementdp.companion.book.notebooks import Notebook
from elementdp.companion.book.project import Project
from elementdp.companion.book.provenance import PageProvenance, sources
from elementdp.companion.provenance import checkout, versions


@dataclass(frozen=True)
class Outcome:
    """What happened to one notebook."""

    notebook: Notebook
    executed: Executed
    cached: bool
    damaged: bool = False


@dataclass(frozen=True)
class Runner:
    """Executes notebooks of one checkout."""

    project: Project
    workers: Workers
    profile: str

    @property
    def cache(self) -> Cache:
        """Where executed notebooks are kept."""
        return Cache(self.project)

    def cached(self, notebook: Notebook, parameters: Mapping[str, Any]) -> tuple[Executed | None, bool]:
        """The cached run of these very inputs, and whether a damaged one was found (and dropped) instead."""
        entry = key(self.project, notebook, parameters)
        try:
            return self.cache.get(notebook.name, entry), False
        except DamagedError:
            self.cache.drop(notebook.name, entry)
            return None, True

    def run(
        self, notebook: Notebook, parameters: Mapping[str, Any], progress: Progress = lambda done, cells: None
    ) -> Outcome:
        """The executed notebook, run now unless the cache has it."""
        found, damaged = self.cached(notebook, parameters)
        if found:
            return Outcome(notebook, found, cached=True)
        self.project.ready()
        # Before the run: a commit made while it runs did not make these numbers.
        made_by = checkout(self.project.root)
        content, seconds = self.workers.execute(notebook, parameters, progress)
        provenance = PageProvenance(
            commit=made_by,
            profile=self.profile,
            parameters={**notebook.defaults, **parameters},
            sources=sources(content),
            versions=versions(),
            seconds=seconds,
        )
        executed = Executed(content, provenance)
        # Under the key as it is now: data the run has fetched belong to it.
        self.cache.put(notebook.name, key(self.project, notebook, parameters), executed)
        return Outcome(notebook, executed, cached=False, damaged=damaged)
