"""``tempriv after``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tempriv.cli import _options
from tempriv.cli._options import Json, Sign
from tempriv.cli.app import app
from tempriv.errors import require

EXAMPLE = """
[bold]Example[/bold]: a calmer copy of a release, without values below zero

  tempriv after private.csv calm.csv --smooth 5 --non-negative --round 0.5

Steps are taken in the order of the options above, whatever the order on the command line; for
another order run the command again on its output. Later steps may undo earlier ones: after
--non-negative or --round, totals no longer add up exactly.
"""


@app.command(epilog=EXAMPLE)
def after(
    source: Annotated[
        Path,
        typer.Argument(metavar="INPUT", help="A released file; its description lies beside it."),
    ],
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="Where to, .csv or .parquet.")],
    smooth: Annotated[
        int | None, typer.Option(metavar="N", help="Average over N steps about each.")
    ] = None,
    smooth_weight: Annotated[
        float | None,
        typer.Option(metavar="W", help="Instead: each new value counts W, the past the rest."),
    ] = None,
    total: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Make this column the sum of the --part columns; without --part, this series the "
            "sum of all others.",
        ),
    ] = None,
    part: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A part of the total; repeat it.")
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(metavar="N", help="The total holds sums over the last N steps of the part."),
    ] = None,
    monotone: Annotated[
        bool, typer.Option("--monotone", help="The nearest series that never fall.")
    ] = False,
    non_negative: Annotated[
        bool, typer.Option("--non-negative", help="Zero instead of anything below it.")
    ] = False,
    round_to: Annotated[
        float | None, typer.Option("--round", metavar="STEP", help="Nearest multiples of STEP.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Only this value column; repeat it. All by default."),
    ] = None,
    sign: Sign = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUTPUT if it exists.")] = False,
    as_json: Json = False,
) -> None:
    """Smooth, round or straighten out a release; its guarantee stays, and no budget is won back."""
    from tempriv.releases.description import read_about
    from tempriv.releases.postprocess import apply, read_untouched
    from tempriv.releases.postprocess.consistency import totals
    from tempriv.releases.postprocess.steps import Monotone, NonNegative, RoundTo, Smooth, Step
    from tempriv.releases.to_file import require_new_output

    require(source.resolve() != output.resolve(), f"{output}: is the input; it stays as it is")
    columns = None if column is None else tuple(column)
    steps: list[Step] = []
    if smooth is not None or smooth_weight is not None:
        steps.append(Smooth(window=smooth, weight=smooth_weight, columns=columns))
    require(total is not None or not (part or window), "--part and --window go with --total")
    if total is not None:
        require(
            columns is None or not part,
            "--column: --total with --part names its columns already; leave it out",
        )
        steps.append(totals(total, part or None, window, columns))
    if monotone:
        steps.append(Monotone(columns=columns))
    if non_negative:
        steps.append(NonNegative(columns=columns))
    if round_to is not None:
        steps.append(RoundTo(step=round_to, columns=columns))
    require(
        bool(steps),
        "nothing to do: give --smooth, --smooth-weight, --total, --monotone, --non-negative or "
        "--round",
    )
    require_new_output(output, force)
    key = _options.signing_key(sign)
    apply(read_untouched(source), steps).write(output, force=force, signing_key=key)
    about = read_about(output)
    if as_json:
        print(json.dumps(about))
        return
    print(f"Wrote {about['rows']:,} rows of {about['series']:,} series to {output}")
    for step in steps:
        print(f"  done      {step.sentence}")
    print(f"  guarantee {about['sentence']}")
    print(f"  budget    {about['after_note']}")
    print(f"  check it  tempriv verify {output}")
