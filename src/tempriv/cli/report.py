"""``tempriv report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tempriv.cli import _options
from tempriv.cli.app import app


@app.command()
def report(
    release: Annotated[
        Path, typer.Argument(help="A released file; its description lies beside it.")
    ],
    page: Annotated[Path, typer.Argument(metavar="FILE.html", help="Where to.")],
    force: Annotated[bool, typer.Option("--force", help="Replace it if it exists.")] = False,
) -> None:
    """Make the public report of a release that is there already."""
    from tempriv.releases.release import read
    from tempriv.report.excerpt import PublicSample
    from tempriv.report.page import write_report

    _options.refuse_pages([page], force)
    found = read(release)
    write_report(page, found.about, PublicSample.of(found), force=True)
    print(f"report    {page}")
