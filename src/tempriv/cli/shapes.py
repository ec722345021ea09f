"""``tempriv shapes``."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tempriv.cli import _options
from tempriv.cli._options import Dataset, Json, KeySeed, LedgerOption, NoLedger, NotPrivate
from tempriv.cli._output import refuse_plot
from tempriv.cli._parsing import names
from tempriv.cli._release_command import Report, Source
from tempriv.cli.app import app
from tempriv.errors import DataError, TemprivError, require

if TYPE_CHECKING:
    from tempriv.ledger.ledger import Budget
    from tempriv.local.shapes.from_table import People
    from tempriv.local.shapes.plan import ShapesPlan
    from tempriv.local.shapes.simulate import Outcome

HELP = (
    "Find the shapes that many people's series have in common; each series is protected whole.\n\n"
    "INPUT has a row for each person, with readings in columns t0, t1 and so on; or a row for each "
    "reading (--series, --time, --value). Each series answers one question, through noise, and "
    "shapes are put together from the answers. You see all series; whoever gets the shapes is "
    "guaranteed about. Where nobody may see them all, devices answer themselves: see the page on "
    "shapes."
)
EXAMPLE = """
[bold]Examples[/bold]: three shapes, and a page that draws them

  tempriv shapes people.csv --epsilon 4 --shapes 3 --report shapes.html

What is typical of each label, of a table with a row for each reading

  tempriv shapes readings.parquet --series home --time hour --value kWh --label heating
  --epsilon 4 --segment 4 --output shapes.csv
"""
MOST_LABELS = 256
COLUMNS = ("shape", "label", "count", "standard_error", "share", "low", "high", "sure", "ends")


@app.command("shapes", help=HELP, epilog=EXAMPLE)
def find(
    source: Source,
    epsilon: Annotated[float, typer.Option(help="The budget of each series, for all of it.")],
    shapes: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many; 3 by default, or as many as labels."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Find the shapes of each entry of this column."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="For --label: the entries, or a JSON list of them. Those of the table by default; "
            "then it is not protected which there are.",
        ),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For a row for each person: readings are in columns NAME0, NAME1 and so on; t by "
            "default.",
        ),
    ] = None,
    series: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that says whose series it is.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that says when, or two as date+hour."),
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of readings, a row for each.")
    ] = None,
    symbols: Annotated[
        int, typer.Option(metavar="N", help="Letters of the alphabet, from low to high.")
    ] = 4,
    segment: Annotated[
        int, typer.Option(metavar="N", help="So many readings become one letter.")
    ] = 10,
    longest: Annotated[
        int, typer.Option(metavar="N", help="No more than so many letters of a series count.")
    ] = 10,
    readings: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="A series has at most so many readings, whoever's it is: the guarantee is for "
            "that many. It is public; declare it without a look at the table.",
        ),
    ] = 1_000_000,
    distance: Annotated[
        str,
        typer.Option(metavar="levenshtein|dtw|euclidean", help="How unlike two shapes are."),
    ] = "levenshtein",
    method: Annotated[
        str,
        typer.Option(
            metavar="automatic|one-shot|nearest|published|baseline",
            help="How shapes are asked for; automatic takes one of the next two.",
        ),
    ] = "automatic",
    dataset: Dataset = None,
    ledger: LedgerOption = None,
    no_ledger: NoLedger = False,
    report: Report = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png|.svg|.pdf", help="Draw a picture too.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv|.json", help="Write the shapes; as JSON with all facts."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    key_seed: KeySeed = None,
    not_private: NotPrivate = False,
    as_json: Json = False,
) -> None:
    """Find shapes that many series have in common, each protected whole."""
    _options.refuse_seed(key_seed, not_private)
    require(source.exists(), f"{source}: no such file", DataError)
    require(labels is None or label is not None, "--labels: goes with --label COLUMN")
    _options.refuse_pages([report], force)
    refuse_plot(plot, force)
    _refuse_output(output, source, force)
    from tempriv.local.shapes.simulate import check_series, describe_outcome, guarantee_of, simulate
    from tempriv.releases.description import with_receipt
    from tempriv.releases.run import check_early
    from tempriv.sampling.keys import new_id

    # what is wrong with an option is said before a table is read, let alone charged
    settings: dict[str, Any] = {
        "epsilon": epsilon,
        "symbols": symbols,
        "segment": segment,
        "longest": longest,
        "readings": readings,
        "distance": distance,
        "method": method,
        "shapes": shapes,
    }
    declared = None if labels is None else names(labels, "--labels")
    early = _plan(settings, 1, declared or ())
    name = dataset or source.name
    with _options.charging(ledger, no_ledger, name, dataset is None) as book:
        check_early(book, None if book is None else name, guarantee_of(early, seed=key_seed))
        people = _read(source, prefix, series, time, value, label)
        listed = () if people.labels is None else declared or tuple(sorted(set(people.labels)))
        numbers = _numbered(people, listed, label)
        plan = _plan(settings, len(people), listed)
        check_series(plan, people.series, numbers)
        paid, release, receipt = guarantee_of(plan, seed=key_seed), new_id(), None
        if book is not None:
            # on disk before anyone answers: whatever happens then, it is paid
            receipt = book.charge(name, paid, people.scope, release, note=_note(output, report))
        campaign = release if key_seed is None else None  # one seed may be used for many charges
        with _progress(len(people)) as advance:
            found = simulate(
                plan, people.series, numbers, seed=key_seed, campaign=campaign, progress=advance
            )
        told = with_receipt(describe_outcome(found, declared is not None), receipt)
        budget = None if book is None else book.show(name)
    written = _write(told, found, output, report, plot)
    if as_json:
        print(json.dumps(told, allow_nan=False))
    else:
        _show(told, budget, written)


def _note(output: Path | None, report: Path | None) -> str | None:
    where = output or report
    return None if where is None else str(where)


def _plan(settings: dict[str, Any], people: int, labels: tuple[str, ...]) -> ShapesPlan:
    from tempriv.local.shapes.plan import ShapesPlan
    from tempriv.local.shapes.sax import Sax

    given = dict(settings)
    sax = Sax(**{option: given.pop(option) for option in ("symbols", "segment", "longest")})
    given["shapes"] = given["shapes"] if given["shapes"] is not None else len(labels) or 3
    return ShapesPlan(people=people, labels=labels, sax=sax, **given)


def _refuse_output(output: Path | None, source: Path, force: bool) -> None:
    if output is None:
        return
    require(output.suffix.lower() in (".csv", ".json"), f"{output}: must end in .csv or .json")
    require(output.parent.is_dir(), f"{output.parent}: no such directory")
    require(
        output.resolve() != source.resolve(),
        f"{output}: is the input; the private table stays as it is",
    )
    require(
        force or not output.exists(),
        f"{output}: exists already; choose another name, or replace it with --force",
        TemprivError,
    )


def _read(
    source: Path,
    prefix: str | None,
    series: str | None,
    time: str | None,
    value: str | None,
    label: str | None,
) -> People:
    from tempriv.local.shapes.from_table import from_long, from_wide

    if value is None:
        require(time is None, "--time: goes with --value, for a table with a row for each reading")
        return from_wide(
            source, prefix="t" if prefix is None else prefix, series=series, label=label
        )
    require(prefix is None, "--prefix: is for a row for each person; leave it out, or --value")
    require(series is not None, "--value: needs --series, the column that says whose reading it is")
    return from_long(source, series=cast(str, series), time=time, value=value, label=label)


def _numbered(people: People, labels: tuple[str, ...], column: str | None) -> list[int] | None:
    if people.labels is None:
        return None
    require(
        len(labels) > 1,
        f"--label {column}: the column has one entry only; leave it out, or declare --labels",
        DataError,
    )
    require(
        len(labels) <= MOST_LABELS,
        f"--label {column}: has {len(labels):,} entries; must have at most {MOST_LABELS}",
        DataError,
    )
    number = {name: i for i, name in enumerate(labels)}
    unknown = sum(one not in number for one in people.labels)
    require(
        unknown == 0,
        f"{unknown} series have none of the declared --labels; declare all, with one for others",
        DataError,
    )
    return [number[one] for one in people.labels]


@contextmanager
def _progress(people: int) -> Iterator[Callable[[int], None]]:
    """How many have answered, on a terminal; quiet in a pipe."""
    if not sys.stderr.isatty():
        yield lambda answered: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("asking", total=people)
        yield lambda answered: bar.advance(task, answered)


def _write(
    told: dict[str, Any],
    found: Outcome,
    output: Path | None,
    report: Path | None,
    plot: Path | None,
) -> list[tuple[str, Path]]:
    """All files that were asked for; existing ones were refused before anything was paid."""
    from tempriv.data.files import follow_umask, write_durably

    written: list[tuple[str, Path]] = []
    if output is not None:
        text = (
            json.dumps(told, indent=1, allow_nan=False)
            if output.suffix.lower() == ".json"
            else _csv(told)
        )
        write_durably(output, text.encode())
        follow_umask(output)
        written.append(("shapes", output))
    if report is not None:
        from tempriv.report.shapes import write_report

        written.append(("report", write_report(report, told, force=True)))
    if plot is not None:
        from tempriv.report.plots.budget import drawn
        from tempriv.report.plots.shapes import plot_shapes

        write_durably(plot, drawn(plot_shapes(found), plot.suffix[1:].lower()))
        follow_umask(plot)
        written.append(("picture", plot))
    return written


def _csv(told: dict[str, Any]) -> str:
    text = io.StringIO()
    rows = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    rows.writeheader()
    rows.writerows(told["shapes"])
    return text.getvalue()


def _show(told: dict[str, Any], budget: Budget | None, written: list[tuple[str, Path]]) -> None:
    from tempriv.cli._output import table
    from tempriv.local.shapes.simulate import format_count
    from tempriv.report.shapes import counts_mean, people_of, tells_sureness

    asked = len(told["rounds"])
    print(
        f"Shapes of {told['series']:,} series, each asked one question in one of {asked} rounds "
        f"({told['method']})"
    )
    labelled, sure = bool(told["settings"]["labels"]), tells_sureness(told)
    rows = []
    for one in told["shapes"]:
        share = f"{100 * one['share']:.1f} % ({100 * one['low']:.1f} to {100 * one['high']:.1f})"
        error = one["standard_error"]
        rows.append(
            [
                one["shape"] + ("" if one["ends"] else "…"),
                *([one["label"]] if labelled else []),
                share,
                format_count(one["count"], error),
                "not known" if error is None else format_count(error, error),
                ("yes" if one["sure"] else "no") if sure else people_of(one, told),
            ]
        )
    table(
        [
            "shape",
            *(["label"] if labelled else []),
            "share",
            "count",
            "standard error",
            "surely there" if sure else "of people",
        ],
        rows,
    )
    print(f"  share     {counts_mean(told)} (of {told['counted']:,}, with 95 % interval)")
    if sure and not all(one["sure"] for one in told["shapes"]):
        print("  mind      noise alone can make up what is not surely there; more series, a larger")
        print("            epsilon or fewer symbols help")
    if told["counted"] == 0:
        print("  mind      nobody was left for the last question: how common they are is unknown")
    print(f"  guarantee {told['sentence']}")
    print("  not protected: " + "; ".join(told["not_protected"]))
    for line in _options.standing(budget):
        print(f"  budget    {line}")
    for kind, path in written:
        print(f"  {kind:<9} {path}")
