"""``tempriv verify``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from tempriv.cli import _options
from tempriv.cli._options import Json, LedgerOption, NoLedger
from tempriv.cli.app import app
from tempriv.errors import TemprivError

EXAMPLE = """
[bold]Example[/bold]: whether a file is as its curator signed it

  tempriv verify private.csv --key ed25519:...

What was not checked is listed with its reason, and is never ok. Whoever changes a file can compute
its checksum again: only a signature, or numbers that do not fit each other, shows that.
"""


@app.command(epilog=EXAMPLE)
def verify(
    release: Annotated[
        Path,
        typer.Argument(help="A released file; its description lies beside it. Or shapes, as JSON."),
    ],
    key: Annotated[
        str | None,
        typer.Option(
            metavar="PUBLIC",
            help="Public key of whoever should have signed it (tempriv keys show), or its file.",
        ),
    ] = None,
    ledger: LedgerOption = None,
    no_ledger: NoLedger = False,
    as_json: Json = False,
) -> None:
    """Recheck a release from its files: checksum, signature, guarantee, values, rows, receipt."""
    from tempriv.collect import verify as checking
    from tempriv.local.shapes import verify as shapes_checking
    from tempriv.mechanisms.checks import Check
    from tempriv.releases.signature import read_public_key
    from tempriv.releases.verify import as_json as encoded
    from tempriv.releases.verify import verify as run
    from tempriv.summaries import verify as summaries

    public = None if key is None else read_public_key(key)
    # a recipient has a ledger too, but not the one that was charged: compare only if asked to
    book = None if ledger is None else _options.existing_ledger(ledger, no_ledger)
    try:
        shapes = shapes_checking.read_shapes(release)
        if shapes is not None:
            checks = shapes_checking.verify(shapes, public)
        elif checking.is_campaign(release):
            checks = checking.verify(release, public)
        elif summaries.is_summary(release):
            checks = summaries.verify(release, book, public)
        else:
            checks = run(release, book, public)
    except TemprivError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as problem:
        # the files may be anyone's: what cannot be understood is wrong, and no error of ours
        told = f"not as tempriv writes it ({type(problem).__name__})"
        checks = [Check("the description can be read", False, told)]
    counts = Counter(check.state for check in checks)
    if as_json:
        print(json.dumps(encoded(checks)))
    else:
        for check in checks:
            state = "WRONG" if check.wrong else check.state
            print(f"{state:<11} {check.what}: {check.found}")
        told = ", ".join(f"{counts[state]} {state}" for state in ("ok", "wrong", "not checked"))
        print(f"{len(checks)} checks: {told}")
    if counts["wrong"]:
        failed = "; ".join(check.what for check in checks if check.wrong)
        raise TemprivError(f"{release}: {counts['wrong']} of {len(checks)} checks failed: {failed}")
