"""``tempriv demo``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from tempriv.cli.app import app
from tempriv.cli.mechanism_options import offer_options


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where to put it.")] = Path("tempriv-demo"),
) -> None:
    """Release a bundled table of made-up meter readings, with reports to look at."""
    from tempriv.datasets import METERS

    # only the command that was typed is loaded, and its mechanism's options offered
    import_module("tempriv.cli.release")

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
    offer_options(arguments)
    app(arguments, standalone_mode=False)
    print(f"\nOpen {folder / 'report.html'} in a browser: it may be handed out with the data.")
    print(f"{folder / 'private_report.html'} shows before and after, and stays with you.")
