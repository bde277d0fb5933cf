"""Bytes that are not UTF-8: they cost the row they stand in, and not the whole table."""

import codecs
from typing import Any

SUBSTITUTE = "\x1a"
"""What stands for each such byte: the character that ASCII has for this. It is one byte, so lengths stay."""


def _substituted(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return SUBSTITUTE * (error.end - error.start), error.end


codecs.register_error("elementdp.substitute", _substituted)


class Utf8Stream:
    """A stream that passes on UTF-8 only."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("elementdp.substitute")
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Some bytes; none at the end only, though the beginning of a character waits for its rest."""
        while True:
            data = bytes(self._stream.read(size))
            text = self._decoder.decode(data, final=not data).encode("utf-8")
            if text or not data:
                return text

    def readable(self) -> bool:
        """Arrow asks."""
        return True
