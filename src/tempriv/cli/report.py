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
    force: _options.Force = False,
) -> None:
    """Write the public HTML report of a release."""
    from tempriv.releases.release import read
    from tempriv.report.excerpt import PublicSample
    from tempriv.report.page import write_report

    _options.refuse_pages(page, None, force)
    released = read(release)
    write_report(page, released.about, PublicSample.of(released), force=True)
    print(f"report    {page}")
