"""A page of the book as a notebook, with the values it will run with."""

from dataclasses import dataclass, field
from typing import Any

import jupytext
import yaml
from nbformat import NotebookNode

from elementdp.companion.book.parameters import Parameter, read_parameters, resolve
from elementdp.companion.book.project import BookError, Project
from elementdp.errors import one_of

PROFILES = ("smoke", "quick", "paper")
"""CI in seconds, the default in minutes, the paper's own sizes."""


@dataclass(frozen=True)
class Notebook:
    """A text notebook of the book."""

    name: str
    page: str
    content: NotebookNode = field(repr=False, compare=False)
    parameters: dict[str, Parameter] = field(repr=False)

    @classmethod
    def read(cls, project: Project, name: str) -> "Notebook":
        """Read the notebook with this short name."""
        page = project.page(name)
        content = jupytext.read(project.source(page))
        return cls(name=page.rsplit("/", 1)[-1], page=page, content=content, parameters=read_parameters(content, page))

    @property
    def code(self) -> list[str]:
        """The sources of the code cells: all that decides what running the notebook gives."""
        return [cell.source for cell in self.content.cells if cell.cell_type == "code"]

    @property
    def title(self) -> str:
        """The first heading."""
        for cell in self.content.cells:
            for line in cell.source.splitlines() if cell.cell_type == "markdown" else ():
                if line.startswith("# "):
                    return str(line[2:].strip())
        return self.name

    @property
    def defaults(self) -> dict[str, Any]:
        """The values of a run that sets nothing."""
        return {parameter.name: parameter.default for parameter in self.parameters.values()}


def read_all(project: Project) -> list[Notebook]:
    """Every page of the book, in reading order."""
    return [Notebook.read(project, name) for name in project.names]


def profile_values(project: Project, profile: str) -> dict[str, dict[str, Any]]:
    """What a profile sets, by notebook and parameter: every name and type checked before anything runs."""
    one_of("profile", profile, PROFILES)
    path = project.root / "book" / "profiles.yml"
    content = yaml.safe_load(path.read_text()) if path.is_file() else {}
    unknown = set(content or {}) - set(PROFILES)
    if unknown:
        raise BookError(f"book/profiles.yml has unknown profiles: {', '.join(sorted(unknown))}")
    values = {}
    for name, given in ((content or {}).get(profile) or {}).items():
        notebook = Notebook.read(project, name)
        values[name] = resolve(notebook.parameters, f"{notebook.name} (profile {profile})", given or {})
    return values
