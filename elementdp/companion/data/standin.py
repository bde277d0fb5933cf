"""Seeded stand-ins of the same shape as the real data, so that every page runs with no data and no network."""

import numpy as np

from elementdp.companion.data.texts import UserTexts
from elementdp.companion.data.vectors import WordVectors

TOPICS = 60
"""Subjects the invented words belong to; an invented user writes about a few of them."""


def word_vectors(seed: int = 0, words: int = 400_000, dimensions: int = 50) -> WordVectors:
    """Invented words ``w0, w1, …`` (most frequent first) whose vectors lie around one centre a subject."""
    rng = np.random.default_rng([seed, 1])
    centres = rng.normal(size=(TOPICS, dimensions))
    vectors = centres[_topics(words)] + 0.6 * rng.normal(size=(words, dimensions))
    return WordVectors(tuple(f"w{number}" for number in range(words)), vectors.astype(np.float32))


def users(seed: int = 0, users: int = 1_315, words_each: int = 2_000, vocabulary: int = 400_000) -> list[UserTexts]:
    """Invented users: words by Zipf's law, half of them from the few subjects the user writes about."""
    rng = np.random.default_rng([seed, 2])
    zipf = 1.0 / (np.arange(vocabulary) + 2.7)
    everything = np.cumsum(zipf / zipf.sum())
    of_topic = _topics(vocabulary)
    members = [np.flatnonzero(of_topic == topic) for topic in range(TOPICS)]
    heights = [np.cumsum(zipf[rows] / zipf[rows].sum()) for rows in members]
    written = []
    for number in range(users):
        general = np.searchsorted(everything, rng.random(words_each // 2))
        own = rng.choice(TOPICS, size=4, replace=False)
        share = (words_each - len(general)) // len(own) + 1
        special = [members[topic][np.searchsorted(heights[topic], rng.random(share))] for topic in own]
        tokens = np.concatenate([general, *special])[:words_each]
        text = " ".join(f"w{token}" for token in np.minimum(tokens, vocabulary - 1))
        written.append(UserTexts(f"s{number:05d}", (text,)))
    return written


def _topics(words: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    # The subject depends on the word's number alone, so that vocabularies of different sizes agree on common words.
    number = np.arange(words, dtype=np.uint64)
    scrambled: np.ndarray[tuple[int], np.dtype[np.int64]] = (
        ((number * np.uint64(2_654_435_761)) >> np.uint64(7)) % np.uint64(TOPICS)
    ).astype(np.int64)
    return scrambled
