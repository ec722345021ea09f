"""``tempriv reproduce``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from tempriv.cli import app
from tempriv.cli.options import Json
from tempriv.cli.screen import table
from tempriv.errors import Refusal, require

STUDIES = ("principles",)
EXAMPLE = """
[bold]Example[/bold]: the table, a page and a picture into a folder

  tempriv reproduce principles --output principles
"""


@app.command(epilog=EXAMPLE)
def reproduce(
    study: Annotated[str, typer.Argument(metavar="|".join(STUDIES), help="Which paper.")],
    output: Annotated[
        Path | None, typer.Option(metavar="DIRECTORY", help="Write table, page and picture there.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make the numbers of a paper again, ours beside them; takes a few seconds."""
    require(study in STUDIES, f"{study}: must be one of {', '.join(STUDIES)}")
    from tempriv import spec
    from tempriv.studies import principles
    from tempriv.studies.tables import number

    def progress(part: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{part} ...", end="", file=sys.stderr, flush=True)

    rows = principles.study(progress)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if as_json:
        print(json.dumps(spec.encode(rows)))
    else:
        shown = [[r.what, number(r.published), number(r.ours), r.verdict, r.how] for r in rows]
        for section in dict.fromkeys(row.section for row in rows):
            part = [line for line, row in zip(shown, rows, strict=True) if row.section == section]
            print(section)
            table(["", "published", "ours", "", "how"], part)
        for remark in principles.REMARKS:
            print(f"- {remark}")
    if output is not None:
        for path in principles.write(output, rows):
            print(f"written   {path}", file=sys.stderr)
    wrong = [row.what for row in rows if not row.as_said]
    if wrong:
        raise Refusal(f"no longer as said: {'; '.join(wrong)}")
