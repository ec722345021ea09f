"""``tempriv reproduce``."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempriv.cli._options import Json
from tempriv.cli._output import progress, table
from tempriv.cli.app import app
from tempriv.errors import TemprivError, require

if TYPE_CHECKING:
    from tempriv.studies.common import Row

STUDIES = ("principles", "tldp", "sppa", "landmark", "privshape", "people")
EXAMPLE = """
[bold]Examples[/bold]: the table, a page and a picture into a folder

  tempriv reproduce principles --output principles

The figures of the paper on release orders, from a folder of data sets

  tempriv reproduce tldp --data DIRECTORY --output tldp

Those of the paper on sampling periods, from the same folder

  tempriv reproduce sppa --data DIRECTORY --output sppa

Those of the paper on landmarks, from the same folder

  tempriv reproduce landmark --data DIRECTORY --output landmark

Those of the paper on shapes, from the same folder

  tempriv reproduce privshape --data DIRECTORY --output privshape

Statistics of people beside clipping to public bounds, from the same folder

  tempriv reproduce people --data DIRECTORY --output people
"""


@app.command(epilog=EXAMPLE)
def reproduce(
    study: Annotated[str, typer.Argument(metavar="|".join(STUDIES), help="Which paper.")],
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIRECTORY", help="Where the data sets are (all but principles)."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="More steps, data and runs (all but principles).")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIRECTORY", help="Write tables, page and pictures there."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make the numbers of a paper again, ours beside them; takes seconds, or minutes with data."""
    require(study in STUDIES, f"{study}: must be one of {', '.join(STUDIES)}")
    if study == "principles":
        require(
            data is None and not full,
            "principles: needs neither --data nor --full, leave them out",
        )
        from tempriv.studies import principles

        with progress("computing", spinner=True) as update:
            rows = principles.study(lambda part: update(description=part))
        _print_rows(rows, principles.REMARKS, as_json)
        _finish(rows, [] if output is None else principles.write(output, rows))
        return
    from tempriv.studies.common import join_names

    chosen = importlib.import_module(f"tempriv.studies.{study}").STUDY
    holds = chosen.holds or join_names(chosen.files)
    require(data is not None, f"{study}: needs --data, a folder that holds {holds}")
    with progress("reading", spinner=True) as update:
        settings = chosen.full if full else chosen.quick
        result = chosen.run(chosen.read(data), settings, lambda part: update(description=part))
    _print_rows(result.rows, chosen.remarks, as_json)
    _finish(result.rows, [] if output is None else chosen.write(output, result))


def _print_rows(rows: Sequence[Row], remarks: Sequence[str], as_json: bool) -> None:
    from tempriv.privacy import serialization
    from tempriv.studies.common import format_number

    if as_json:
        print(json.dumps(serialization.encode(rows)))
        return
    for section in dict.fromkeys(row.section for row in rows):
        print(section)
        lines = [
            [row.what, format_number(row.published), format_number(row.ours), row.verdict, row.how]
            for row in rows
            if row.section == section
        ]
        table(["", "published", "ours", "", "how"], lines)
    for remark in remarks:
        print(f"- {remark}")


def _finish(rows: Sequence[Row], written: Sequence[Path]) -> None:
    """Name the files, and fail if a number no longer bears out its verdict."""
    for path in written:
        print(f"written   {path}", file=sys.stderr)
    wrong = [row.what for row in rows if not row.is_confirmed]
    if wrong:
        raise TemprivError(f"no longer as said: {'; '.join(wrong)}")
