"""``tempriv release``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from tempriv.cli import _options
from tempriv.cli._options import (
    Duplicates,
    Gaps,
    Help,
    Step,
    output_option,
    protection_option,
    table_option,
)
from tempriv.cli._release_command import (
    ReleaseCommand,
    admit_looking,
    correlation_of,
    require_known_landmarks,
)
from tempriv.cli.app import app
from tempriv.cli.mechanism_options import MechanismOptions, with_mechanism_options
from tempriv.errors import require

EXAMPLE = """
[bold]Example[/bold]: hourly meter readings, each protected by itself

  tempriv release meters.csv private.csv --mechanism laplace --epsilon 1 --bounds 0 5
  --time date+hour --value energy_kWh --series home --report private.html
"""


@app.command(epilog=EXAMPLE, add_help_option=False)
@with_mechanism_options("release")
def release(
    choice: MechanismOptions,
    command: ReleaseCommand,
    person: Annotated[
        str | None, table_option(metavar="COLUMN", help="Who a series belongs to.")
    ] = None,
    max_series_per_person: Annotated[
        int | None, table_option(metavar="N", help="The most series that one person has.")
    ] = None,
    grid: Annotated[
        str,
        table_option(
            metavar="KIND",
            help="Times: regular (default), index, or calendar FILE.",
            show_default=False,
        ),
    ] = "regular",
    calendar: Annotated[Path | None, typer.Option(hidden=True)] = None,
    step: Step = None,
    gaps: Gaps = "refuse",
    duplicates: Duplicates = "refuse",
    clip: Annotated[
        bool,
        table_option("--clip", help="Move values outside the bounds to the nearest bound."),
    ] = False,
    pseudonyms: Annotated[
        bool,
        protection_option(
            "--pseudonyms", help="Replace series ids by names that cannot be linked."
        ),
    ] = False,
    landmarks_given: Annotated[
        bool,
        protection_option(
            "--landmarks-given",
            help="Confirm that no released value decided which readings are landmarks.",
            # the refusal of marks without a note names it
            hidden=True,
        ),
    ] = False,
    chain: Annotated[
        Path | None,
        output_option(
            metavar="FILE", help="Report what correlated readings tell (see tempriv leakage)."
        ),
    ] = None,
    across: Annotated[
        float | None,
        output_option(
            metavar="METERS",
            help="With --chain: how far apart two places of it can be.",
            hidden=True,
        ),
    ] = None,
    engine: Annotated[
        str,
        table_option(
            metavar="NAME",
            help="embedded (default), or spark for the largest tables.",
            show_default=False,
        ),
    ] = "embedded",
    master: Annotated[
        str | None,
        table_option(metavar="URL", help="Where Spark runs; on this machine by default."),
    ] = None,
    show_help: Help = False,
) -> None:
    """Release a table of time series: a copy to hand out, with its guarantee beside it."""
    from tempriv.data.series import SeriesTable, require_columns
    from tempriv.mechanisms.domains import OpaqueRows
    from tempriv.releases.run import ReleaseRun

    source, report = command.source, command.report or command.private_report
    admit_looking(choice, source)
    chosen = choice.make(max_series_per_person, command.target_error)
    _options.refuse_unprotected(chosen, command.key_seed, command.not_private)
    require(
        not clip or chosen.domain.bounds is not None,
        f"--clip: --mechanism {choice.mechanism} has no bounds to move values to",
    )
    table = SeriesTable(
        source,
        values=choice.columns,
        time=choice.time,
        series=choice.series,
        person=person,
        max_series_per_person=max_series_per_person,
        grid=cast(Any, grid),
        calendar=calendar,
        step=step,
        gaps=cast(Any, gaps),
        duplicates=cast(Any, duplicates),
        clip=clip,
    )
    by_spark = engine == "spark"
    require(by_spark or engine == "embedded", f"--engine {engine}: must be embedded or spark")
    require(by_spark or master is None, "--master: goes with --engine spark")
    require(
        not by_spark or report is None,
        "--report: Spark's readings do not pass by here; make a report of the output afterwards, "
        "with tempriv report",
    )
    correlation = correlation_of(chain, across, chosen, command.report, command.private_report)
    _options.refuse_input(source, command.output)
    require_known_landmarks(choice, source, landmarks_given)
    if command.dry_run:
        times = [] if table.time is None else table.time.split("+")
        named = [*table.values, *times, table.series, table.person]
        require_columns(_header(source), [name for name in named if name is not None], str(source))
        # rows that are moved whole have one error for all columns
        command.preview(table.values[: len(chosen.errors)], chosen)
        return
    settings: dict[str, Any] = {k: str(v) for k, v in vars(table).items() if k != "source"}
    with ExitStack() as stack:

        def open_run(key: Any, watch: Any) -> Any:
            if not by_spark:
                return ReleaseRun(table, chosen, key, pseudonyms, watch)
            from tempriv.integrations.spark.files import opened
            from tempriv.integrations.spark.frames import SparkReleaseRun

            as_text = chosen.domain.categories is not None or isinstance(chosen.domain, OpaqueRows)
            texts = table.values if as_text else ()
            frame = stack.enter_context(opened(source, master or "local[*]", texts))
            return SparkReleaseRun(frame, table, chosen, key, pseudonyms)

        command.run(chosen, {**settings, "pseudonyms": pseudonyms}, open_run, correlation)


def _header(source: Path) -> list[str]:
    if source.is_dir():
        from tempriv.integrations.spark.files import header_of_parts

        return header_of_parts(source)
    from tempriv.data.duckdb import header

    return header(source)
