"""The one place that talks to the notebook's display."""

from collections.abc import Mapping


def publish(data: Mapping[str, object], metadata: Mapping[str, object] | None = None) -> None:
    """Put a bundle of representations, by mime type, into the outputs of the running cell."""
    from IPython.display import publish_display_data

    publish_display_data(dict(data), dict(metadata or {}))


def display_html(markup: str, plain: str) -> None:
    """Show ``markup`` in a notebook, with ``plain`` for readers that take no HTML."""
    publish({"text/html": markup, "text/plain": plain})
