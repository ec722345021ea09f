"""``tempriv reproduce``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempriv.cli._options import Json
from tempriv.cli._output import table
from tempriv.cli.app import app
from tempriv.errors import TemprivError, require

if TYPE_CHECKING:
    from tempriv.studies.common import Row

STUDIES = ("principles", "tldp", "sppa", "landmark", "privshape")
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
        _principles(output, as_json)
    elif study == "tldp":
        _tldp(data, full, output, as_json)
    elif study == "sppa":
        _sppa(data, full, output, as_json)
    elif study == "landmark":
        _landmark(data, full, output, as_json)
    else:
        _privshape(data, full, output, as_json)


def _progress(part: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{part} ...", end="", file=sys.stderr, flush=True)


def _principles(output: Path | None, as_json: bool) -> None:
    from tempriv.studies import principles

    rows = principles.study(_progress)
    _show(
        rows,
        principles.REMARKS,
        as_json,
        None if output is None else lambda: principles.write(output, rows),
    )


def _tldp(data: Path | None, full: bool, output: Path | None, as_json: bool) -> None:
    from tempriv.studies import tldp
    from tempriv.studies.tldp import data as tldp_data
    from tempriv.studies.tldp.experiment import FULL, QUICK

    holds = f"{tldp_data.STOCK} (daily closes) and {tldp_data.TAXIS} (taxi segments)"
    folder = _folder("tldp", data, holds)
    made = tldp.study(tldp_data.read(folder), FULL if full else QUICK, _progress)
    _show(
        made.rows,
        tldp.REMARKS,
        as_json,
        None if output is None else lambda: tldp.write(output, made),
    )


def _sppa(data: Path | None, full: bool, output: Path | None, as_json: bool) -> None:
    from tempriv.studies import sppa
    from tempriv.studies.common import join_names
    from tempriv.studies.sppa import data as sppa_data
    from tempriv.studies.sppa.experiment import FULL, QUICK

    folder = _folder("sppa", data, join_names(sppa_data.FILES))
    made = sppa.study(sppa_data.read(folder), FULL if full else QUICK, _progress)
    _show(
        made.rows,
        sppa.REMARKS,
        as_json,
        None if output is None else lambda: sppa.write(output, made),
    )


def _landmark(data: Path | None, full: bool, output: Path | None, as_json: bool) -> None:
    from tempriv.studies import landmark
    from tempriv.studies.common import join_names
    from tempriv.studies.landmark import data as landmark_data
    from tempriv.studies.landmark.experiment import FULL, QUICK

    folder = _folder("landmark", data, join_names(landmark_data.FILES))
    made = landmark.study(landmark_data.read(folder), FULL if full else QUICK, _progress)
    _show(
        made.rows,
        landmark.REMARKS,
        as_json,
        None if output is None else lambda: landmark.write(output, made),
    )


def _privshape(data: Path | None, full: bool, output: Path | None, as_json: bool) -> None:
    from tempriv.studies import privshape
    from tempriv.studies.common import join_names
    from tempriv.studies.privshape import data as privshape_data
    from tempriv.studies.privshape.experiment import FULL, QUICK

    files = (privshape_data.SYMBOLS, privshape_data.TRACE)
    folder = _folder("privshape", data, join_names(files))
    made = privshape.study(privshape.make(folder), FULL if full else QUICK, _progress)
    _show(
        made.rows,
        privshape.REMARKS,
        as_json,
        None if output is None else lambda: privshape.write(output, made),
    )


def _folder(study: str, data: Path | None, holds: str) -> Path:
    require(data is not None, f"{study}: needs --data, a folder that holds {holds}")
    assert data is not None
    return data


def _show(
    rows: Sequence[Row],
    remarks: Sequence[str],
    as_json: bool,
    write: Callable[[], list[Path]] | None,
) -> None:
    """Print what was found, write it if asked, and fail if a number is no longer as said."""
    from tempriv.privacy import serialization
    from tempriv.studies.common import format_number

    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if as_json:
        print(json.dumps(serialization.encode(rows)))
    else:
        shown = [
            [r.what, format_number(r.published), format_number(r.ours), r.verdict, r.how]
            for r in rows
        ]
        for section in dict.fromkeys(row.section for row in rows):
            part = [line for line, row in zip(shown, rows, strict=True) if row.section == section]
            print(section)
            table(["", "published", "ours", "", "how"], part)
        for remark in remarks:
            print(f"- {remark}")
    if write is not None:
        for path in write():
            print(f"written   {path}", file=sys.stderr)
    wrong = [row.what for row in rows if not row.as_said]
    if wrong:
        raise TemprivError(f"no longer as said: {'; '.join(wrong)}")
