"""Data: sources with content hashes, a searched data directory, and stand-ins that say what they are."""

from elementdp.companion.data.ladder import STAND_IN, file_of, load_users, load_vectors
from elementdp.companion.data.sources import SOURCES, get
from elementdp.companion.data.store import DataError, digest, digest_arrays, directories, find, read_arrays
from elementdp.companion.data.texts import UserTexts, read_texts, write_texts
