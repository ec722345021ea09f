"""``tempriv verify``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tempriv.cli import _options
from tempriv.cli._options import Json, LedgerOption, NoLedger
from tempriv.cli.app import app
from tempriv.errors import TemprivError


@app.command()
def verify(
    release: Annotated[
        Path, typer.Argument(help="A released file; its description lies beside it.")
    ],
    ledger: LedgerOption = None,
    no_ledger: NoLedger = False,
    as_json: Json = False,
) -> None:
    """Recheck a release from its files: checksum, guarantee, grid, rows, receipt."""
    from tempriv.collect import verify as checking
    from tempriv.releases.verify import as_json as encoded
    from tempriv.releases.verify import verify as run
    from tempriv.summaries import verify as summaries

    # a recipient has a ledger too, but not the one that was charged: compare only if asked to
    book = None if ledger is None else _options.existing_ledger(ledger, no_ledger)
    if checking.is_campaign(release):
        checks = checking.verify(release)
    elif summaries.is_summary(release):
        checks = summaries.verify(release, book)
    else:
        checks = run(release, book)
    if as_json:
        print(json.dumps(encoded(checks)))
    else:
        for check in checks:
            print(f"{'ok  ' if check.good else 'BAD '} {check.what}: {check.found}")
    failed = [check.what for check in checks if not check.good]
    if failed:
        raise TemprivError(f"{release}: {len(failed)} of {len(checks)} checks failed")
