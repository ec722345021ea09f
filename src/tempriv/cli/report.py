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
    from tempriv.summaries.verify import is_summary

    _options.refuse_pages(page, None, force)
    if is_summary(release):
        from tempriv.report.summaries import write_report as write_summary

        summary = read(release)
        write_summary(page, summary.about, summary.table)
        print(f"report    {page}")
        return
    released = read(release)
    write_report(page, released.about, PublicSample.of(released), force=True)
    print(f"report    {page}")
