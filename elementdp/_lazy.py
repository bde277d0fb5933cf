"""Names of a package that load when they are first asked for (PEP 562): an ε needs no torch, ``--help`` no numpy."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package``, whose public ``names`` live in the modules they are mapped to."""
    modules = {name: module for module, listed in names.items() for name in listed.split()}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(modules[name], package), name)
        setattr(sys.modules[package], name, value)  # the next time it is simply there
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return load, listed
