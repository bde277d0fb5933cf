"""The list of references in the style of the citations: by author and year."""

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from pybtex.database import Entry as Reference
from pybtex.richtext import Text
from pybtex.style.formatting.plain import Style as PlainStyle
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.template import field, href

from elementdp.companion.book.project import BookError


class AuthorYearLabels(BaseLabelStyle):  # type: ignore[misc]
    """Labels such as *Asi et al., 2019*."""

    def format_labels(self, sorted_entries: Iterable[Reference]) -> Iterator[str]:
        """The label of each reference, in their order. The citations have no letters but those of the years."""
        labels = [_label(entry) for entry in sorted_entries]
        if twins := {label for label in labels if labels.count(label) > 1}:
            raise BookError(f"give the years in references.bib letters, as in 2006a: {', '.join(sorted(twins))}")
        yield from labels


def _label(entry: Reference) -> str:
    names = [str(Text.from_latex(" ".join([*one.prelast_names, *one.last_names]))) for one in entry.persons["author"]]
    short = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{short}, {entry.fields['year']}"


class AuthorYearStyle(PlainStyle):  # type: ignore[misc]
    """Plain references under author-year labels."""

    default_label_style = AuthorYearLabels

    def format_url(self, entry: Reference) -> object:
        """The name of the site."""
        return href[field("url", raw=True), f"at {urlsplit(entry.fields.get('url', '')).hostname}"]
