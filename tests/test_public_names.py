"""The dozen names a user needs: each says what it takes, returns and refuses, and shows it in an example that runs."""

import doctest
import inspect
import sys

import pytest

import elementdp


@pytest.mark.parametrize("name", elementdp.__all__)
def test_the_docstring_has_an_example_that_runs(name: str) -> None:
    value = getattr(elementdp, name)
    names = vars(sys.modules[value.__module__]) | {public: getattr(elementdp, public) for public in elementdp.__all__}
    (test,) = doctest.DocTestFinder(recurse=False).find(value, name, globs=names)
    assert test.examples, f"{name} shows no example"
    failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert not failed


@pytest.mark.parametrize("name", elementdp.__all__)
def test_the_docstring_names_every_argument(name: str) -> None:
    value = getattr(elementdp, name)
    if name in ("Sampler", "Unit"):  # enumerations, looked up by value
        return
    told = inspect.getdoc(value) or ""
    assert "Args:" in told
    assert "Raises:" in told
    assert not [argument for argument in inspect.signature(value).parameters if f"{argument}:" not in told]
