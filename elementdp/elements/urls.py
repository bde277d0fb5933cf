"""The domain of a URL: the elements of the paper's second example (Example 2)."""

import ipaddress
import re
from functools import cache, lru_cache
from urllib.parse import urlsplit

from publicsuffixlist import PublicSuffixList

from elementdp.errors import ArgumentError

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_HOST = re.compile(r"[^\s/?#@:\\]+")
_NO_HOST = re.compile(r"/(?!/)|[a-zA-Z][a-zA-Z0-9+-]*:(?!//)(?![0-9]+(?:[/?#]|$))")
"""A path without a host, and a scheme without ``//``: ``/wiki/NeXT``, ``https:/x.com``, ``mailto:a@b.org``."""


def domain_of(url: str) -> str:
    """The registrable domain of a URL, in lower case ASCII: ``https://en.wikipedia.org/wiki/NeXT`` → ``wikipedia.org``.

    The scheme may be missing; user names, ports, paths and a trailing dot do not matter. A path alone has no domain and
    is refused. An address (IPv4, IPv6) and a name that is itself a public suffix (``localhost``, ``co.uk``) stand for
    themselves. Registrable means one label below the longest suffix of the Public Suffix List, private section
    included, as browsers define a site; the list is the one bundled with the package ``publicsuffixlist``, nothing is
    downloaded.
    """
    text = url.strip()
    try:
        whole = text if _SCHEME.match(text) else "//" + text.removeprefix("//")
        host = None if _NO_HOST.match(text) else urlsplit(whole).hostname
    except ValueError:
        host = None
    if not host:
        raise ArgumentError("url", url, "a URL with a host name")
    domain = _registrable(host)
    if not domain:
        raise ArgumentError("url", url, "a URL with a host name")
    return domain


@lru_cache(maxsize=65536)
def _registrable(host: str) -> str:
    """The domain above a host name; empty if it is no host name."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        name = host.rstrip(".").encode("idna").decode("ascii").lower()
    except UnicodeError:
        return ""
    if not _HOST.fullmatch(name):
        return ""
    return _suffixes().privatesuffix(name) or name


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()
