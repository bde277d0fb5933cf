"""URL → domain, against hand-written answers for the shapes URLs come in."""

import pytest

from elementdp.elements import domain_of
from elementdp.errors import ArgumentError


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("https://en.wikipedia.org/wiki/Apple_Inc.", "wikipedia.org"),
        ("https://en.wikipedia.org/wiki/NeXT", "wikipedia.org"),
        ("http://web.stanford.edu/~jduchi/", "stanford.edu"),
        ("web.stanford.edu/~asi/", "stanford.edu"),
        ("//cdn.example.com/x", "example.com"),
        ("HTTPS://User:Secret@WWW.Example.CO.UK:8443/a?b=http://other.org#c", "example.co.uk"),
        ("example.com:8080/path", "example.com"),
        ("http://192.168.0.1:80/x", "192.168.0.1"),
        ("http://[2001:DB8:0::1]:80/x", "2001:db8::1"),
        ("localhost:8000", "localhost"),
        ("co.uk", "co.uk"),
        ("http://www.example.com./", "example.com"),
        ("https://bücher.example.de/", "example.de"),
        ("https://www.bücher.de/", "xn--bcher-kva.de"),
        ("alice.github.io/page", "alice.github.io"),
        ("  https://a.b.c.example.com  ", "example.com"),
    ],
)
def test_domain(url: str, domain: str) -> None:
    assert domain_of(url) == domain


@pytest.mark.parametrize(
    "url",
    [
        "",
        "   ",
        "http://",
        "https:///path",
        "http://[::1",
        "http://a b.com/",
        "...",
        "/wiki/NeXT",
        "https:/x.com",
        "https:x.com",
        "mailto:a@b.org",
    ],
)
def test_no_host_is_refused(url: str) -> None:
    with pytest.raises(ArgumentError, match="host name"):
        domain_of(url)
