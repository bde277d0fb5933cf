"""The elements of many items at once: a hash of each, with the element function called as seldom as can be."""

import threading
from collections.abc import Callable, Hashable
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elementdp.elements import domain_of
from elementdp.errors import ElementdpError
from elementdp.histogram.element_rule import ElementRule, canonical
from elementdp.histogram.text import Keys, hash_strings, places_among

_REMEMBERED = 1 << 20
_PLAIN_URL = r"^(?:[a-zA-Z][a-zA-Z0-9+.-]*://)?(?P<host>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)(?::[0-9]*)?(?:[/?#].*)?$"


class ElementKeys:
    """Hashes of the elements of items under one rule; may be asked from several threads."""

    def __init__(self, rule: ElementRule) -> None:
        self._rule = rule
        self._lock = threading.Lock()
        self._domain = lru_cache(_REMEMBERED)(domain_of)
        self._met = np.empty(0, np.uint64), np.empty(0, np.uint64)  # hashes of items, in order, and of their elements

    def of(self, texts: pa.Array, hashes: Keys) -> tuple[Keys, dict[int, str]]:
        """The hash of the element of each of ``texts`` (whose own hashes are given), and what is wrong with some."""
        if self._rule.alone:
            return hashes, {}
        if self._rule.constant:
            return np.zeros(len(texts), np.uint64), {}
        items, elements = self._met
        places = places_among(items, hashes)
        known = places >= 0
        keys = np.zeros(len(texts), np.uint64)
        keys[known] = elements[places[known]]
        fresh = np.flatnonzero(~known)
        if not len(fresh):
            return keys, {}
        found, wrong = self._computed(texts.take(pa.array(fresh)))
        keys[fresh] = found
        good = np.ones(len(fresh), dtype=bool)
        good[list(wrong)] = False
        self._remember(hashes[fresh][good], found[good])
        return keys, {int(fresh[place]): words for place, words in wrong.items()}

    def _remember(self, hashes: Keys, elements: Keys) -> None:
        with self._lock:
            items, known = self._met
            if len(items) < _REMEMBERED:
                items, first = np.unique(np.r_[items, hashes], return_index=True)
                self._met = items, np.r_[known, elements][first]

    def _computed(self, texts: pa.Array) -> tuple[Keys, dict[int, str]]:
        if self._rule.partition is not None and self._rule.partition.key is domain_of:
            return _by_host(texts, self._domain)
        return _one_by_one(texts, self._rule.key)


def _by_host(texts: pa.Array, domain: Callable[[str], str]) -> tuple[Keys, dict[int, str]]:
    """Domains of URLs: plain ones by their host, which is looked up once; the others one by one."""
    hosts = pc.struct_field(pc.extract_regex(texts, _PLAIN_URL), "host")
    plain = hosts.is_valid().to_numpy(zero_copy_only=False)
    encoded = hosts.dictionary_encode()
    by_host, wrong_hosts = _one_by_one(encoded.dictionary, domain)
    keys = np.zeros(len(texts), np.uint64)
    codes = pc.fill_null(encoded.indices, 0).to_numpy()
    if len(by_host):
        keys[plain] = by_host[codes[plain]]
    odd = np.flatnonzero(~plain | np.isin(codes, list(wrong_hosts)))
    found, wrong = _one_by_one(texts.take(pa.array(odd)), domain_of)
    keys[odd] = found
    return keys, {int(odd[place]): words for place, words in wrong.items()}


def _one_by_one(texts: pa.Array, element: Callable[[str], Hashable]) -> tuple[Keys, dict[int, str]]:
    elements: list[str] = []
    wrong: dict[int, str] = {}
    for place, text in enumerate(texts.to_pylist()):
        try:
            found = element(text)
        except ElementdpError as error:
            wrong[place] = str(error)
            found = ""
        elements.append(canonical(found))
    hashed: NDArray[np.uint64] = hash_strings(pa.array(elements, pa.string()))
    return hashed, wrong
