"""``tempriv summarize``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tempriv.cli import _options
from tempriv.cli._options import (
    About,
    AcceptWeak,
    Dataset,
    DryRun,
    Force,
    Help,
    Json,
    KeySeed,
    LedgerOption,
    NoLedger,
    NotPrivate,
    Output,
    PrivateReport,
    Report,
    Sign,
    Source,
    budget_option,
    protection_option,
    table_option,
)
from tempriv.cli._output import progress, table
from tempriv.cli.app import app
from tempriv.errors import TemprivError, require
from tempriv.mechanisms.options import names, pair

if TYPE_CHECKING:
    from tempriv.ledger.ledger import Budget
    from tempriv.summaries.from_table import Layout
    from tempriv.summaries.run import SummaryRun
    from tempriv.summaries.spec import PeopleSummary

HELP = (
    "Publish statistics of many people's readings, with each whole person protected.\n\n"
    "INPUT has a row for each reading: whose, when, how much. Each person becomes one bounded "
    "vector, an average for each hour of the day for instance; of these come means, quantiles, "
    "peaks and shares, with intervals. You see the table and are trusted; whoever gets the "
    "statistics is not."
)
EXAMPLE = """
[bold]Examples[/bold]: the average day of homes, its spread and the hours of their peaks

  tempriv summarize meters.csv day.csv --person home --time time --value kWh
  --bounds 0 20 --epsilon 1 --report day.html

Time in range of patients by hour, two groups apart

  tempriv summarize glucose.parquet range.csv --person patient --time time --value mg_dl
  --bounds 40 400 --statistics mean,share-between=70:180 --by hour-of-day --by therapy=pump,pen
  --epsilon 1
"""
STATISTICS = "Statistics"
Statistics = Annotated[
    str,
    typer.Option(
        metavar="A,B,C",
        rich_help_panel=STATISTICS,
        help="mean, total, peak, histogram, quantiles such as q90, share-above=140, "
        "share-between=70:180.",
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CELLS|COLUMN=A,B",
        rich_help_panel=STATISTICS,
        help="hour-of-day (default), weekday, hour-of-week, month or step; and a column of groups "
        "with its values, declared.",
        show_default=False,
    ),
]
Bins = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        rich_help_panel=STATISTICS,
        help="Edges of the histogram within the bounds; 20 bins of one width by default.",
    ),
]


@app.command("summarize", help=HELP, epilog=EXAMPLE, add_help_option=False)
def summarize(
    source: Source,
    output: Output,
    person: Annotated[str, table_option(metavar="COLUMN", help="Whose reading it is.")],
    time: Annotated[str, table_option(metavar="COLUMN", help="Time column, or two as date+hour.")],
    value: Annotated[str, table_option(metavar="COLUMN", help="Column of readings.")],
    bounds: Annotated[
        str,
        table_option(
            metavar="LOW HIGH",
            help="Least and greatest reading, from what you know of them; others are moved to the "
            "nearest.",
        ),
    ],
    epsilon: Annotated[float, budget_option(help="The budget of the whole release.")],
    delta: Annotated[float, budget_option(help="The budget's second part.")] = 1e-6,
    statistics: Statistics = "mean,q10,q50,q90,peak",
    by: By = None,
    bins: Bins = None,
    start: Annotated[
        str | None,
        table_option("--from", metavar="TIME", help="The first moment that counts."),
    ] = None,
    end: Annotated[
        str | None,
        table_option("--to", metavar="TIME", help="The first moment that no longer counts."),
    ] = None,
    every: Annotated[
        str | None,
        table_option(metavar="TIME", help="For --by step: the length of a step, such as 1h."),
    ] = None,
    min_readings: Annotated[
        int, table_option(metavar="N", help="Leave out people with fewer readings.")
    ] = 1,
    missing: Annotated[
        str,
        table_option(
            metavar="refuse|drop",
            help="Rows without a person, a time, a number or a declared group.",
        ),
    ] = "refuse",
    protect: Annotated[
        str,
        protection_option(
            metavar="person|day|reading",
            help="What is protected: a whole person, all of a person's day, or one reading.",
        ),
    ] = "person",
    people: Annotated[
        int | None,
        budget_option(
            metavar="N",
            help="About how many people there are, as far as that is public: says beforehand "
            "whether they are enough.",
        ),
    ] = None,
    dataset: Dataset = None,
    ledger: LedgerOption = None,
    no_ledger: NoLedger = False,
    accept_weak: AcceptWeak = False,
    report: Report = None,
    private_report: PrivateReport = None,
    about: About = None,
    sign: Sign = None,
    dry_run: DryRun = False,
    force: Force = False,
    key_seed: KeySeed = None,
    not_private: NotPrivate = False,
    as_json: Json = False,
    show_help: Help = False,
) -> None:
    """Publish statistics of many people, each protected whole."""
    from tempriv.summaries.from_table import Layout, read_strata
    from tempriv.summaries.spec import PeopleSummary

    _options.refuse_seed(key_seed, not_private)
    _options.refuse_input(source, output)
    require(people is None or people >= 1, f"--people {people}: must be at least 1")
    cells, group, groups = _by(by or [])
    spec = PeopleSummary(
        epsilon=epsilon,
        delta=delta,
        bounds=pair("bounds", bounds),
        statistics=names("statistics", statistics),
        by=cells,
        protect=protect,
        groups=groups,
        bins=() if bins is None else tuple(map(_number, bins.split(","))),
        min_readings=min_readings,
    )
    layout = Layout(person, time, value, group, start, end, every, cast(Any, missing))
    # what is wrong with an option is said before anything is measured, let alone charged
    read_strata(source, spec, layout, dry=True)
    name = dataset or source.name
    if dry_run:
        _preview(spec, people, name, ledger, no_ledger, as_json)
        return
    _options.refuse_weak(spec.guarantee, key_seed, accept_weak)
    _warn(spec, people)
    _options.refuse_pages(report, private_report, force)
    _release(
        spec,
        layout,
        source,
        output,
        {"dataset": name, "seed": key_seed, "layout": repr(layout)},
        {
            "statements": _options.statements(about),
            "signing_key": _options.signing_key(sign),
        },
        (ledger, no_ledger, dataset is None),
        (report, private_report),
        (force, as_json),
    )


def _release(
    spec: PeopleSummary,
    layout: Layout,
    source: Path,
    output: Path,
    settings: dict[str, Any],
    evidence: dict[str, Any],
    book_of: tuple[Path | None, bool, bool],
    pages: tuple[Path | None, Path | None],
    how: tuple[bool, bool],
) -> None:
    from tempriv.releases.to_file import release_file, request_of
    from tempriv.sampling.keys import Key
    from tempriv.summaries.run import SummaryRun

    name, seed, (force, as_json) = settings["dataset"], settings["seed"], how
    key = Key.generate() if seed is None else Key.from_seed(seed)
    run = SummaryRun(source, spec, layout, key)
    with _options.charging(book_of[0], book_of[1], name, book_of[2]) as book:
        with progress("reading and measuring", spinner=True):
            about = release_file(
                run,
                output,
                ledger=book,
                dataset=None if book is None else name,
                request=request_of(source, spec, settings),
                note=str(output),
                force=force,
                **evidence,
            )
        left = None if book is None else book.show(name)
    written = _pages(run, about, output, *pages)
    if as_json:
        print(json.dumps(about))
        return
    _show(about, output, left, written)


def _pages(
    run: SummaryRun,
    about: dict[str, Any],
    output: Path,
    report: Path | None,
    private_report: Path | None,
) -> list[tuple[Path, bool]]:
    """Write the reports that were asked for, and whether each is for the owner alone.

    The private one needs a run that read the table.
    """
    if report is None and private_report is None:
        return []
    from tempriv.releases.release import read
    from tempriv.report.summaries import write_report
    from tempriv.summaries.exact import exact_rows

    written = []
    try:
        rows = read(output).table
        if report is not None:
            written.append((write_report(report, about, rows), False))
        if private_report is not None and run.strata is not None:
            exact = exact_rows(run.spec, run.strata)
            written.append((write_report(private_report, about, rows, exact), True))
    except OSError as problem:
        raise TemprivError(
            f"{problem.filename}: {problem.strerror}; the release itself is complete in {output}"
        ) from None
    return written


def _by(given: list[str]) -> tuple[str, str | None, tuple[str, ...]]:
    """The cells, and the column of groups with its values."""
    cells = [word for word in given if "=" not in word]
    columns = [word for word in given if "=" in word]
    require(len(cells) <= 1, f"--by {' --by '.join(cells)}: one kind of cells can be taken")
    require(len(columns) <= 1, "--by COLUMN=A,B: one column of groups can be taken")
    if not columns:
        return (cells or ["hour-of-day"])[0], None, ()
    column, _, values = columns[0].partition("=")
    return (cells or ["hour-of-day"])[0], column, names("by", values)


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise TemprivError(f"--bins {word}: must be numbers, such as 1,2,5") from None


def _per_group(spec: PeopleSummary, people: int | None) -> float | None:
    return None if people is None else people / max(len(spec.groups), 1)


def _warn(spec: PeopleSummary, people: int | None) -> None:
    from tempriv.summaries.run import too_few

    each = _per_group(spec, people)
    said = None if each is None or spec.protect != "person" else too_few(spec, each)
    if said is not None:
        print(f"tempriv: WARNING: {said}", file=sys.stderr)


def _preview(
    spec: PeopleSummary,
    people: int | None,
    name: str,
    ledger: Path | None,
    no_ledger: bool,
    as_json: bool,
) -> None:
    """Cost and what would be left, and whether people are enough; looks at no row."""
    from tempriv.privacy import serialization
    from tempriv.releases.run import check_early

    standing: list[str] = []
    book = _options.existing_ledger(ledger, no_ledger)
    if book is not None and name in book.datasets():
        standing = _options.standing(book.show(name))
        check_early(book, name, spec.guarantee)
    if as_json:
        plan = {
            "mechanism": serialization.encode(spec),
            "guarantee": serialization.encode(spec.guarantee),
            "enough_people": spec.enough_people,
            "budget": standing,
        }
        print(json.dumps(plan))
        return
    print("Nothing was released; it would")
    print(f"  cost      {spec.guarantee.loss}, for {spec.guarantee.unit.sentence}")
    print(f"  people    about {spec.enough_people:,} in each group are enough at this budget")
    _warn(spec, people)
    for line in standing or ["no budget is kept for this dataset yet"]:
        print(f"  budget    {line}")


def _show(
    about: dict[str, Any], output: Path, budget: Budget | None, pages: list[tuple[Path, bool]]
) -> None:
    from tempriv.releases.release import read

    if about.get("finished_interrupted"):
        print("An earlier run was interrupted after it had paid; its output is now in place.")
    print(f"Released {about['rows']:,} statistics to {output}")
    rows = read(output).table.to_pylist()
    whole = [row for row in rows if row["cell"] == "all"]
    if 0 < len(whole) <= 40:
        lines = [
            [
                row["group"],
                row["statistic"],
                f"{row['value']:,.4g}",
                f"{row['low']:,.4g} to {row['high']:,.4g}",
            ]
            for row in whole
        ]
        table(["group", "statistic, all cells", "value", "95 % interval"], lines)
    print(f"  guarantee {about['sentence']}")
    for said in about["warnings"]:
        print(f"  note      {said}")
    print("  not protected: " + "; ".join(about["not_protected"]))
    for line in _options.standing(budget):
        print(f"  budget    {line}")
    for page, own in pages:
        print(f"  {'for you ' if own else 'report  '}  {page}")
    print(f"  check it  tempriv verify {output}")
