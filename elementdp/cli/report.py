"""``elementdp report``: one page about a release for people who are not experts."""

from pathlib import Path

import click

from elementdp.cli.options import Command


@click.command("report", cls=Command)
@click.argument("guarantee", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="[default: GUARANTEE.html here]")
@click.option("--force", is_flag=True, help="Replace an existing page.")
def command(guarantee: Path, output: Path | None, force: bool) -> None:
    """Write a page that says what the release with this GUARANTEE protects, what it does not, and how it was made."""
    from elementdp.errors import ArgumentError
    from elementdp.files import require_writable, write_atomic
    from elementdp.histogram.output import read_guarantee
    from elementdp.histogram.report import page

    target = output or Path(f"{guarantee.name.removesuffix('.json')}.html")
    if target.exists() and not force:
        raise ArgumentError("output", str(target), "a new file (--force replaces an old one)")
    require_writable("output", target)
    write_atomic(target, page(read_guarantee(guarantee)))
    click.echo(target)
