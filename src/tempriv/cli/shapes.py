"""``tempriv shapes``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tempriv.cli import _options
from tempriv.cli._options import (
    AcceptWeak,
    Dataset,
    Force,
    Json,
    KeySeed,
    LedgerOption,
    NoLedger,
    NotPrivate,
    Plot,
    Report,
    Sign,
    Source,
)
from tempriv.cli._output import alarm, counting, save_picture, table
from tempriv.cli.app import app
from tempriv.errors import DataError, require
from tempriv.mechanisms.options import names

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
MAX_LABELS = 256
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
    accept_weak: AcceptWeak = False,
    report: Report = None,
    plot: Plot = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv|.json", help="Write the shapes; as JSON with all facts."),
    ] = None,
    sign: Sign = None,
    force: Force = False,
    key_seed: KeySeed = None,
    not_private: NotPrivate = False,
    as_json: Json = False,
) -> None:
    """Find shapes that many series have in common, each protected whole."""
    _options.refuse_seed(key_seed, not_private)
    _options.refuse_input(source, output)
    require(labels is None or label is not None, "--labels: goes with --label COLUMN")
    _options.refuse_pages(report, None, force)
    _options.refuse_plot(plot, force)
    if output is not None:
        _options.refuse_file(output, (".csv", ".json"), force)
    from tempriv.local.shapes.simulate import check_series, describe_outcome, guarantee_of, simulate
    from tempriv.releases.description import signed, with_receipt
    from tempriv.releases.run import check_early
    from tempriv.sampling.keys import new_id

    signing_key = _options.signing_key(sign)
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
    declared = None if labels is None else names("labels", labels)
    early = _plan(settings, 1, declared or ())
    _options.refuse_weak(guarantee_of(early, seed=key_seed), key_seed, accept_weak)
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
            book.warn_of_repetition(name, paid, people.scope, release)
            receipt = book.charge(name, paid, people.scope, release, note=_note(output, report))
        campaign = release if key_seed is None else None  # one seed may be used for many charges
        with counting("asking", len(people)) as advance:
            outcome = simulate(
                plan, people.series, numbers, seed=key_seed, campaign=campaign, progress=advance
            )
        about = with_receipt(describe_outcome(outcome, declared is not None), receipt)
        about = signed(about, signing_key)
        budget = None if book is None else book.show(name)
    written = _write(about, outcome, output, report, plot)
    if as_json:
        print(json.dumps(about, allow_nan=False))
    else:
        _show(about, budget, written)


def _note(output: Path | None, report: Path | None) -> str | None:
    where = output or report
    return None if where is None else str(where)


def _plan(settings: dict[str, Any], people: int, labels: tuple[str, ...]) -> ShapesPlan:
    from tempriv.local.shapes.plan import ShapesPlan
    from tempriv.local.shapes.sax import Sax

    fields = dict(settings)
    sax = Sax(**{option: fields.pop(option) for option in ("symbols", "segment", "longest")})
    fields["shapes"] = fields["shapes"] if fields["shapes"] is not None else len(labels) or 3
    return ShapesPlan(people=people, labels=labels, sax=sax, **fields)


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
        len(labels) <= MAX_LABELS,
        f"--label {column}: has {len(labels):,} entries; must have at most {MAX_LABELS}",
        DataError,
    )
    number = {name: i for i, name in enumerate(labels)}
    unknown = sum(entry not in number for entry in people.labels)
    require(
        unknown == 0,
        f"{unknown} series have none of the declared --labels; declare all, with one for others",
        DataError,
    )
    return [number[entry] for entry in people.labels]


def _write(
    about: dict[str, Any],
    outcome: Outcome,
    output: Path | None,
    report: Path | None,
    plot: Path | None,
) -> list[tuple[str, Path]]:
    """All files that were asked for; existing ones were refused before anything was paid."""
    from tempriv.data.files import follow_umask, write_durably

    written: list[tuple[str, Path]] = []
    if output is not None:
        text = (
            json.dumps(about, indent=1, allow_nan=False)
            if output.suffix.lower() == ".json"
            else _csv(about)
        )
        write_durably(output, text.encode())
        follow_umask(output)
        written.append(("shapes", output))
    if report is not None:
        from tempriv.report.shapes import write_report

        written.append(("report", write_report(report, about, force=True)))
    if plot is not None:
        from tempriv.report.plots.shapes import plot_shapes

        save_picture(plot_shapes(outcome), plot)
        written.append(("picture", plot))
    return written


def _csv(about: dict[str, Any]) -> str:
    text = io.StringIO()
    rows = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    rows.writeheader()
    rows.writerows(about["shapes"])
    return text.getvalue()


def _show(about: dict[str, Any], budget: Budget | None, written: list[tuple[str, Path]]) -> None:
    from tempriv.local.shapes.simulate import format_count
    from tempriv.privacy import guarantees
    from tempriv.report.shapes import counts_mean, people_of, tells_sureness

    asked = len(about["rounds"])
    print(
        f"Shapes of {about['series']:,} series, each asked one question in one of {asked} rounds "
        f"({about['method']})"
    )
    labelled, sure = bool(about["settings"]["labels"]), tells_sureness(about)
    rows = []
    for shape in about["shapes"]:
        share = (
            f"{100 * shape['share']:.1f} % ({100 * shape['low']:.1f} to {100 * shape['high']:.1f})"
        )
        error = shape["standard_error"]
        rows.append(
            [
                shape["shape"] + ("" if shape["ends"] else "…"),
                *([shape["label"]] if labelled else []),
                share,
                format_count(shape["count"], error),
                "not known" if error is None else format_count(error, error),
                ("yes" if shape["sure"] else "no") if sure else people_of(shape, about),
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
    print(f"  share     {counts_mean(about)} (of {about['counted']:,}, with 95 % interval)")
    if sure and not all(shape["sure"] for shape in about["shapes"]):
        print("  mind      noise alone can make up what is not surely there; more series, a larger")
        print("            epsilon or fewer symbols help")
    if about["counted"] == 0:
        print("  mind      nobody was left for the last question: how common they are is unknown")
    guarantee = guarantees.decode(about["guarantee"])
    line = f"  guarantee {about['sentence']}"
    if guarantee.protects_little:
        alarm(f"{line} This {guarantees.PROTECTS_NOTHING}.", to_errors=False)
    else:
        print(line)
    print("  not protected: " + "; ".join(about["not_protected"]))
    for line in _options.standing(budget):
        print(f"  budget    {line}")
    for kind, path in written:
        print(f"  {kind:<9} {path}")
