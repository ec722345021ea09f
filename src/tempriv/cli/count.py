"""``tempriv count``."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from tempriv.cli._options import refuse_input, refuse_seed
from tempriv.cli._release_command import ReleaseCommand
from tempriv.cli.app import app
from tempriv.cli.mechanism_options import MechanismOptions, require_counts, with_mechanism_options
from tempriv.errors import require
from tempriv.mechanisms.options import names, pair

# what counts are asked about otherwise, or have from how they were counted
ASKED_OTHERWISE = (
    *("value", "time", "series", "unit", "length", "bounds", "resolution", "per_column"),
)

HELP = (
    "Count people's events in time steps, and hand out the counts with a guarantee.\n\n"
    "INPUT has a row for each event: who, when, and perhaps a value or a category. One person "
    "changes the counts by no more than you allow (--max-per-person, --max-per-step); noise is "
    "measured by that. You see the events and are trusted; whoever gets the counts is not."
)
EXAMPLE = """
[bold]Example[/bold]: visits in an hour, at most one an hour and ten in the week of a person

  tempriv count visits.csv visits_private.csv --person card --time entered --every 1h
  --from 2026-03-02 --to 2026-03-09 --max-per-step 1 --max-per-person 10
  --mechanism laplace --epsilon 1
"""


def count(
    choice: MechanismOptions,
    command: ReleaseCommand,
    person: Annotated[str, typer.Option(metavar="COLUMN", help="Whose event it is.")],
    time: Annotated[str, typer.Option(metavar="COLUMN", help="Time column, or two as date+hour.")],
    every: Annotated[str, typer.Option(help="Length of a time step, such as 15min, 1h, 1d.")],
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Where the first step begins. Not from the "
            "data: the first event would give away when somebody was there.",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="Where the last step ends; no longer counted."),
    ] = None,
    sum: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Add this column up instead of counting.")
    ] = None,
    bounds: Annotated[
        str | None,
        typer.Option(
            metavar="LOW HIGH",
            help="For --sum: smallest and largest value of one event; "
            "others are moved to the nearest.",
        ),
    ] = None,
    resolution: Annotated[
        float | None,
        typer.Option(
            help="For --sum: values are rounded to multiples of this power of two; fine by default."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Count each category of this column by itself."),
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="For --by: the categories, or a JSON list of them."),
    ] = None,
    max_per_person: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="For --unit person: so many events of one person are counted, the first in time.",
        ),
    ] = None,
    max_per_step: Annotated[
        int | None,
        typer.Option(metavar="N", help="So many events of one person in a time step are counted."),
    ] = None,
    unit: Annotated[
        str,
        typer.Option(
            metavar="person|window|event",
            help="What is protected of one person: all "
            "their events, those of any --window steps in a row, or of any one step.",
        ),
    ] = "person",
    missing: Annotated[
        str,
        typer.Option(
            metavar="refuse|drop",
            help="Rows without a person, a time or a value (or "
            "with another category): refuse, or leave them out.",
        ),
    ] = "refuse",
) -> None:
    """Count people's events and hand out the counts with a guarantee."""
    from tempriv.data.aggregate import aggregate
    from tempriv.releases.run import ReleaseRun, series_of

    require(
        start is not None and end is not None,
        "--from and --to must be declared: the first and last event of the data would give away "
        "when somebody was there",
    )
    require_counts(choice.mechanism, unit)
    refuse_seed(command.key_seed, command.not_private)
    refuse_input(command.source, command.output)
    how: dict[str, Any] = {
        "person": person,
        "time": time,
        "every": every,
        "start": start,
        "end": end,
        "sum": sum,
        "bounds": None if bounds is None else pair("bounds", bounds),
        "resolution": resolution,
        "by": by,
        "categories": None if categories is None else names("categories", categories),
        "max_per_person": max_per_person,
        "max_per_step": max_per_step,
        "each": _part(unit, choice.window),
        "missing": cast(Any, missing),
    }
    planned = aggregate(command.source, **how, dry=True)
    choice.value = list(planned.columns)
    chosen = choice.make(target_error=command.target_error, counted=planned)
    if command.dry_run:
        command.preview(planned.columns, chosen)
        return
    counted = aggregate(command.source, **how)
    command.run(
        chosen,
        {name: str(value) for name, value in how.items()},
        lambda key, watch: ReleaseRun(
            series_of(counted), chosen, key, watch=watch, counted=counted
        ),
    )


def _part(unit: str, window: int | None) -> Any:
    """What is protected of a person's events; None is all of them."""
    from tempriv.privacy.units import Event, Window

    require(
        unit in ("person", "window", "event"), f"--unit {unit}: must be person, window or event"
    )
    require(
        (unit == "window") == (window is not None),
        f"--window {window}: goes with --unit window only"
        if unit != "window"
        else "--unit window needs --window: how many steps in a row it covers",
    )
    return Window(window or 0) if unit == "window" else Event() if unit == "event" else None


command = with_mechanism_options("count", without=ASKED_OTHERWISE)(count)
app.command("count", help=HELP, epilog=EXAMPLE)(command)
