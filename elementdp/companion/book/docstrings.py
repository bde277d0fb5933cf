"""Powers and indices in docstrings, as the page of public names shows them: the same text is read on a terminal."""

import re

from elementdp.companion.report.formulas import typeset

_AS_IT_IS = re.compile(r"(``.*?``|:[\w:]+:`[^`]*`|^\s*:\w+ [\w, ]+:)")
_ROLES = re.compile(r"<(sup|sub)>(.*?)</\1>")


def typeset_docstring(lines: list[str]) -> None:
    """Raise ``x^(…)`` and lower ``x_i`` in the prose of a docstring; examples, code and names stay as they are."""
    example = False
    for place, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example and not line.lstrip().startswith(".. math::"):
            parts = _AS_IT_IS.split(line)
            lines[place] = "".join(part if odd % 2 else _roles(part) for odd, part in enumerate(parts))


def _roles(text: str) -> str:
    return _ROLES.sub(r"\\ :\1:`\2`\\ ", typeset(text))
