"""Texts of small notebooks, and where the real book is."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

HEADER = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""

GOOD = (
    HEADER
    + """
# Adding

Some prose.

```{code-cell} ipython3
:tags: [parameters]
seed: int = 0  # seed of every draw
epsilon: float = 1.0  # how private
levels: list[float] = [0.5, 1.0]  # several levels
```

```{code-cell} ipython3
from elementdp.companion.report import glue, record_result, record_source, table
record_source("made up", sha256="ab" * 32, stand_in=True)
record_result(total=epsilon + seed)
glue("total", epsilon + seed)
table(["a", "b"], [[1, 2]], caption="One row", name="tab-row")
print("total", epsilon + seed)
```

The total is {glue:text}`total`; see {numbered}`tab-row`.
"""
)
