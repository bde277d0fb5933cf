"""Commands whose refusals name the option that was typed, not the Python argument it became."""

import re
from collections.abc import Iterable
from typing import Any

import click

from elementdp.errors import ArgumentError, ElementdpError


def printable(text: str) -> str:
    """Text without control characters: a name in somebody's data must not command the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


class Command(click.Command):
    """A command with options; what its callback refuses is told in their spelling."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ElementdpError as error:
            error.args = (printable(_spelled(error, self.params)),)
            raise


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


def _spelled(error: ElementdpError, parameters: Iterable[click.Parameter]) -> str:
    """The words of ``error`` with options as they are typed.

    The argument it is about may have any name; elsewhere only a name with an underscore cannot be a plain word.
    """
    typed: dict[str, str] = {}
    for option in parameters:
        if isinstance(option, click.Option):
            spelling = max(option.opts, key=len)
            typed |= {str(option.name): spelling, spelling.lstrip("-").replace("-", "_"): spelling}
    words = str(error)
    if isinstance(error, ArgumentError) and error.name in typed:
        words = typed[error.name] + words.removeprefix(error.name)
    for name, spelling in typed.items():
        if "_" in name:
            words = re.sub(rf"(?<![\w-]){name}(?!\w)", spelling, words)
    return words
