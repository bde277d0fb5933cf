"""Data: sources with content hashes, a searched data directory, and stand-ins that say what they are."""

from elementdp.companion.data.ladder import (
    STAND_IN,
    TEXT_SOURCES,
    VECTOR_SOURCES,
    Loaded,
    file_of,
    load_users,
    load_vectors,
)
from elementdp.companion.data.sources import SOURCES, Source, get
from elementdp.companion.data.store import DataError, digest, digest_arrays, directories, find, read_arrays, writable
from elementdp.companion.data.texts import UserTexts, read_texts, write_texts
from elementdp.companion.data.vectors import WordVectors

__all__ = [
    "SOURCES",
    "STAND_IN",
    "TEXT_SOURCES",
    "VECTOR_SOURCES",
    "DataError",
    "Loaded",
    "Source",
    "UserTexts",
    "WordVectors",
    "digest",
    "digest_arrays",
    "directories",
    "file_of",
    "find",
    "get",
    "load_users",
    "load_vectors",
    "read_arrays",
    "read_texts",
    "writable",
    "write_texts",
]
