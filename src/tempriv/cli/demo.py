"""``tempriv demo``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tempriv.cli.app import app


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where to put it.")] = Path("tempriv-demo"),
) -> None:
    """Release a bundled table of made-up meter readings, with reports to look at."""
    from tempriv.datasets import METERS

    folder.mkdir(exist_ok=True)
    output = folder / "meters_private.csv"
    arguments = [
        "release",
        str(METERS),
        str(output),
        "--mechanism",
        "laplace",
        "--epsilon",
        "1",
        "--bounds=0,5",
        "--clip",
        "--time",
        "time",
        "--value",
        "energy_kWh",
        "--series",
        "home",
        "--report",
        str(folder / "report.html"),
        "--private-report",
        str(folder / "private_report.html"),
        "--no-ledger",
        "--force",
    ]
    print("$ tempriv " + " ".join(arguments) + "\n")
    sys.stdout.flush()
    app(arguments, standalone_mode=False)
    print(f"\nOpen {folder / 'report.html'} in a browser: it may be handed out with the data.")
    print(f"{folder / 'private_report.html'} shows before and after, and stays with you.")
