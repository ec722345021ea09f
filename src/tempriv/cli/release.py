"""``tempriv release``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from tempriv.cli import _options
from tempriv.cli._options import (
    OUTPUT,
    PROTECTION,
    TABLE,
    Dataset,
    Help,
    Json,
    KeySeed,
    LedgerOption,
    NoLedger,
    NotPrivate,
)
from tempriv.cli._release_command import (
    Force,
    Output,
    PrivateReport,
    ReleaseCommand,
    Report,
    Source,
    TargetError,
    admit_looking,
    correlation_of,
    remind_of_looking,
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
    source: Source,
    output: Output,
    target_error: TargetError = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Who a series belongs to.", rich_help_panel=TABLE),
    ] = None,
    max_series_per_person: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="The most series that one person has.", rich_help_panel=TABLE
        ),
    ] = None,
    grid: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Times: regular (default), index, or calendar FILE.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = "regular",
    calendar: Annotated[Path | None, typer.Option(hidden=True)] = None,
    step: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Step of a regular grid, such as 15min.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    gaps: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Missing steps: refuse (default), or null, left empty.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = "refuse",
    duplicates: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Two at one time: refuse (default), or keep the first.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = "refuse",
    clip: Annotated[
        bool,
        typer.Option(
            "--clip",
            help="Move values outside the bounds to the nearest bound.",
            rich_help_panel=TABLE,
        ),
    ] = False,
    pseudonyms: Annotated[
        bool,
        typer.Option(
            "--pseudonyms",
            help="Replace series ids by names that cannot be linked.",
            rich_help_panel=PROTECTION,
        ),
    ] = False,
    dataset: Dataset = None,
    ledger: LedgerOption = None,
    no_ledger: NoLedger = False,
    report: Report = None,
    private_report: PrivateReport = None,
    chain: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Report what correlated readings tell (see tempriv leakage).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    across: Annotated[
        float | None,
        typer.Option(
            metavar="METERS",
            help="With --chain: how far apart two places of it can be.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only say what it would cost; reads the header alone.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="embedded (default), or spark for the largest tables.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = "embedded",
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where Spark runs; on this machine by default.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    force: Force = False,
    key_seed: KeySeed = None,
    not_private: NotPrivate = False,
    as_json: Json = False,
    show_help: Help = False,
) -> None:
    """Hand out a private copy of a table of series, with its guarantee beside it."""
    from tempriv.data.series import SeriesTable, require_columns
    from tempriv.mechanisms.domains import OpaqueRows
    from tempriv.releases.run import ReleaseRun

    admit_looking(choice, source)
    chosen = choice.make(max_series_per_person, target_error)
    _options.refuse_unprotected(chosen, key_seed, not_private)
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
        not by_spark or (report is None and private_report is None),
        "--report: Spark's readings do not pass by here; make a report of the output afterwards, "
        "with tempriv report",
    )
    correlation = correlation_of(chain, across, chosen, report, private_report)
    hand_out = ReleaseCommand(
        source=source,
        output=output,
        dataset=dataset,
        ledger=ledger,
        no_ledger=no_ledger,
        report=report,
        private_report=private_report,
        force=force,
        key_seed=key_seed,
        not_private=key_seed is not None,  # of what was asked for above, this is left
        as_json=as_json,
        correlation=correlation,
    )
    if dry_run:
        times = [] if table.time is None else table.time.split("+")
        named = [*table.values, *times, table.series, table.person]
        require_columns(_header(source), [name for name in named if name is not None], str(source))
        # rows that are moved whole have one error for all columns
        hand_out.dry_run(table.values[: len(chosen.errors)], chosen)
        return
    settings: dict[str, Any] = {k: str(v) for k, v in vars(table).items() if k != "source"}
    with ExitStack() as around:

        def passing(key: Any, watch: Any) -> Any:
            if not by_spark:
                return ReleaseRun(table, chosen, key, pseudonyms, watch)
            from tempriv.integrations.spark.files import opened
            from tempriv.integrations.spark.frames import SparkReleaseRun

            as_text = chosen.domain.categories is not None or isinstance(chosen.domain, OpaqueRows)
            texts = table.values if as_text else ()
            frame = around.enter_context(opened(source, master or "local[*]", texts))
            return SparkReleaseRun(frame, table, chosen, key, pseudonyms)

        hand_out.run(chosen, {**settings, "pseudonyms": pseudonyms}, passing)
    if not as_json:
        remind_of_looking(choice, source)


def _header(source: Path) -> list[str]:
    if source.is_dir():
        from tempriv.integrations.spark.files import header_of_parts

        return header_of_parts(source)
    from tempriv.data.duckdb import header

    return header(source)
