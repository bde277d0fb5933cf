"""Users' texts: a JSON object a line with ``user`` and ``texts``, plain or zstd-compressed."""

import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from elementdp.companion.data.store import DataError


@dataclass(frozen=True)
class UserTexts:
    """What one user wrote."""

    user: str
    texts: tuple[str, ...]


def read_texts(path: Path) -> Iterator[UserTexts]:
    """The users of a ``.jsonl`` or ``.jsonl.zst`` file, one after the other; a bad line is named."""
    with pa.OSFile(str(path)) as raw:
        stream = pa.CompressedInputStream(raw, "zstd") if path.suffix == ".zst" else raw
        # pyarrow's streams have readline but do not iterate over lines; BufferedReader does, without a copy in memory.
        for number, line in enumerate(_lines(cast("IO[bytes]", stream)), start=1):
            try:
                row = json.loads(line)
                yield UserTexts(str(row["user"]), tuple(str(text) for text in row["texts"]))
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(f'{path.name}, line {number}: not {{"user": …, "texts": […]}} ({error!r})') from error


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while block := stream.read(1 << 20):
        *lines, rest = (rest + block).split(b"\n")
        yield from (line for line in lines if line.strip())
    if rest.strip():
        yield rest


def write_texts(path: Path, users: Iterable[UserTexts]) -> None:
    """Write users in the form :func:`read_texts` reads; compressed if the name ends in ``.zst``."""
    with pa.OSFile(str(path), "wb") as raw:
        stream = pa.CompressedOutputStream(raw, "zstd") if path.suffix == ".zst" else raw
        for user in users:
            row = {"user": user.user, "texts": list(user.texts)}
            stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
        stream.close()


def prepare_chitchat(archive: Path, target: Path) -> None:
    """The senders of the Chit-Chat dataset, each with all they wrote in the order of the file."""
    with zipfile.ZipFile(archive) as wheel:
        chats = json.loads(wheel.read("chitchat_dataset/dataset.json"))
    written: dict[str, list[str]] = {}
    for chat in chats.values():
        for turn in chat["messages"]:
            for message in turn:
                written.setdefault(message["sender"], []).append(message["text"])
    write_texts(target, (UserTexts(user, tuple(texts)) for user, texts in sorted(written.items())))
