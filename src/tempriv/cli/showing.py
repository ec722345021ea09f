"""``tempriv mechanisms``, ``tempriv verify`` and ``tempriv demo``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tempriv.cli import app, options
from tempriv.cli.options import Choice, Json, LedgerOption, NoLedger
from tempriv.errors import Refusal, require

# one line each, what it is for, and a command that works; the promise comes from the mechanism
GUIDE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "laplace": (
        "numbers, pure promise",
        "--epsilon 1 --bounds 0 5 --value kwh",
        {"bounds": ["0,5"]},
    ),
    "gaussian": (
        "numbers, less noise when many readings or columns are protected together",
        "--epsilon 1 --delta 1e-6 --bounds 0 5 --value kwh --unit window --window 24",
        {"bounds": ["0,5"], "delta": 1e-6, "unit": "window", "window": 24},
    ),
    "randomized-response": (
        "categories, such as yes and no, or a room",
        "--epsilon 1 --categories home,away --value presence",
        {"categories": ["home,away"]},
    ),
    "planar-laplace": (
        "locations, each hidden among those nearby",
        "--epsilon 1 --metres 200 --origin 39.9 116.4 --value latitude --value longitude",
        {"origin": "39.9,116.4", "metres": 200.0, "value": ["latitude", "longitude"]},
    ),
}


@app.command()
def mechanisms(
    name: Annotated[str | None, typer.Argument(help="One mechanism, to see it in full.")] = None,
    as_json: Json = False,
) -> None:
    """What can be done to values, and what each promises."""
    from tempriv import spec

    require(name is None or name in GUIDE, f"{name}: must be one of {', '.join(GUIDE)}")
    shown = {}
    for one, (purpose, usage, given) in GUIDE.items():
        settings = {"mechanism": one, "value": ["kwh"], "epsilon": 1.0, **given}
        example = Choice(**settings).make()
        shown[one] = (purpose, usage, example)
    if as_json:
        print(
            json.dumps(
                {
                    one: {
                        "for": purpose,
                        "usage": usage,
                        "guarantee": spec.encode(example.guarantee),
                        "published": spec.encode(example.published),
                    }
                    for one, (purpose, usage, example) in shown.items()
                    if name in (None, one)
                }
            )
        )
        return
    for one, (purpose, usage, example) in shown.items():
        if name not in (None, one):
            continue
        print(f"{one}: {purpose}")
        if name is None:
            continue
        print(f"  {(type(example).__doc__ or '').strip().splitlines()[0]}")
        print(f"  promise    {example.guarantee.sentence}")
        print(f"  published  {example.published.sentence}")
        print(f"  error      {example.errors[0]:.4g} ({example.error_name}) in the example")
        print(f"  example    tempriv release IN.csv OUT.csv --mechanism {one} {usage} --time time")
    if name is None:
        print("\ntempriv mechanisms NAME shows one in full, with an example.")


@app.command()
def verify(
    release: Annotated[
        Path, typer.Argument(help="A released file; its description lies beside it.")
    ],
    ledger: LedgerOption = None,
    no_ledger: NoLedger = False,
    as_json: Json = False,
) -> None:
    """Recheck a release from its files: checksum, promise, grid, rows, receipt."""
    from tempriv.verify import as_json as encoded
    from tempriv.verify import verify as run

    # a recipient has a ledger too, but not the one that was charged: compare only if asked to
    book = None if ledger is None else options.existing_ledger(ledger, no_ledger)
    checks = run(release, book)
    if as_json:
        print(json.dumps(encoded(checks)))
    else:
        for check in checks:
            print(f"{'ok  ' if check.good else 'BAD '} {check.what}: {check.found}")
    failed = [check.what for check in checks if not check.good]
    if failed:
        raise Refusal(f"{release}: {len(failed)} of {len(checks)} checks failed")


@app.command()
def report(
    release: Annotated[
        Path, typer.Argument(help="A released file; its description lies beside it.")
    ],
    page: Annotated[Path, typer.Argument(metavar="FILE.html", help="Where to.")],
    force: Annotated[bool, typer.Option("--force", help="Replace it if it exists.")] = False,
) -> None:
    """Make the public report of a release that is there already."""
    from tempriv.releases import read
    from tempriv.report import PublicSample, write_report

    options.refuse_pages([page], force)
    found = read(release)
    write_report(page, found.about, PublicSample.of(found), force=True)
    print(f"report    {page}")


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where to put it.")] = Path("tempriv-demo"),
) -> None:
    """Release a bundled table of made-up meter readings, with reports to look at."""
    from tempriv.sample import METERS

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
