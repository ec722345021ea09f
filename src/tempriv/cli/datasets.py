"""``tempriv datasets``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tempriv.cli.app import app


@app.command()
def datasets(
    folder: Annotated[Path, typer.Argument(help="Where to put them.")] = Path(),
) -> None:
    """Write the made-up tables of the examples as CSV files: meters, homes and visits."""
    from tempriv.datasets.files import EXAMPLES, write_examples

    for example, path in zip(EXAMPLES, write_examples(folder), strict=True):
        print(f"{path}  {example.holds}")
