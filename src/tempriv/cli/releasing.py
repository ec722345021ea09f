"""``tempriv release``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from tempriv.cli import app, options
from tempriv.cli.options import Choice, Dataset, Json, KeySeed, LedgerOption, NoLedger, NotPrivate
from tempriv.errors import DataRefusal, Refusal, require

EXAMPLE = """
[bold]Example[/bold]: hourly meter readings, each protected by itself

  tempriv release meters.csv private.csv --mechanism laplace --epsilon 1 --bounds 0 5
  --time date+hour --value energy_kWh --series home --report private.html
"""


@app.command(epilog=EXAMPLE)
@options.with_choice
def release(
    choice: Choice,
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="Table, .csv or .parquet.")],
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="Where to, .csv or .parquet.")],
    target_error: Annotated[
        float | None,
        typer.Option(help="The expected error you can live with, instead of a budget."),
    ] = None,
    person: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Who a series belongs to.")
    ] = None,
    max_series_per_person: Annotated[
        int | None, typer.Option(metavar="N", help="The most series that one person has.")
    ] = None,
    grid: Annotated[
        str,
        typer.Option(
            metavar="regular|index|calendar FILE",
            help="Time grid: one step throughout, readings in order whatever their times, "
            "or the times listed in a file.",
        ),
    ] = "regular",
    calendar: Annotated[Path | None, typer.Option(hidden=True)] = None,
    step: Annotated[
        str | None,
        typer.Option(help="Step of a regular grid, such as 15min, 1h, 1d; found by default."),
    ] = None,
    gaps: Annotated[
        str, typer.Option(metavar="refuse|null", help="Missing steps: refuse, or fill with empty.")
    ] = "refuse",
    duplicates: Annotated[
        str,
        typer.Option(
            metavar="refuse|first", help="Two readings at one time: refuse, or keep the first."
        ),
    ] = "refuse",
    clip: Annotated[
        bool, typer.Option("--clip", help="Move values outside the bounds to the nearest bound.")
    ] = False,
    pseudonyms: Annotated[
        bool,
        typer.Option("--pseudonyms", help="Replace series ids by names that cannot be linked."),
    ] = False,
    dataset: Dataset = None,
    ledger: LedgerOption = None,
    no_ledger: NoLedger = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Report that may be handed out.")
    ] = None,
    private_report: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Report with before and after, for you."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it would cost; reads the header alone.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace OUTPUT if it exists.")] = False,
    key_seed: KeySeed = None,
    not_private: NotPrivate = False,
    as_json: Json = False,
) -> None:
    """Hand out a private copy of a table of series, with its promise beside it."""
    from tempriv.mechanisms.run import Passage, release_file, request_of
    from tempriv.randomness import Key
    from tempriv.releases import read
    from tempriv.report import PublicSample
    from tempriv.series import Series

    options.refuse_seed(key_seed, not_private)
    chosen = choice.make(max_series_per_person, target_error)
    table = Series(
        source,
        values=tuple(choice.value),
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
    require(source.exists(), f"{source}: no such file", DataRefusal)
    require(
        source.resolve() != output.resolve(),
        f"{output}: is the input; the private table stays as it is",
    )
    name = dataset or source.name
    if dry_run:
        _dry_run(table, chosen, ledger, no_ledger, name, as_json)
        return
    options.refuse_pages([report, private_report], force)
    with options.charging(ledger, no_ledger, name, dataset is None) as book:
        key = None if key_seed is None else Key.from_seed(key_seed)
        samples = _samples(report, private_report, chosen)
        passage = Passage(table, chosen, key, pseudonyms, _watching(samples))
        settings: dict[str, Any] = {k: str(v) for k, v in vars(table).items() if k != "source"}
        settings |= {"pseudonyms": pseudonyms, "dataset": name, "seed": key_seed}
        with _progress() as advance:
            about = release_file(
                passage,
                output,
                ledger=book,
                dataset=None if book is None else name,
                request=request_of(source, chosen, settings),
                note=str(output),
                force=force,
                progress=advance,
            )
        if about.get("finished_interrupted"):
            # this run saw no rows: the public report comes from the output, the private one cannot
            samples = [(page, PublicSample.of(read(output))) for page in (report,) if page]
        for page, sample in samples:
            _write_page(page, about, sample, output)
        budget_left = None if book is None else book.show(name)
    _print_release(about, output, [page for page, _ in samples], budget_left, as_json)


def _write_page(page: Path, about: dict[str, Any], sample: Any, output: Path) -> None:
    from tempriv.report import write_report

    try:
        write_report(page, about, sample, force=True)
    except OSError as problem:
        raise Refusal(
            f"{page}: {problem.strerror}; the release itself is complete in {output}, and tempriv "
            "report makes its page"
        ) from None


def _samples(
    report: Path | None, private_report: Path | None, chosen: Any
) -> list[tuple[Path, Any]]:
    if report is None and private_report is None:
        return []
    from tempriv.report import PrivateSample, PublicSample

    samples: list[tuple[Path, Any]] = []
    if report is not None:
        samples.append((report, PublicSample()))
    if private_report is not None:
        samples.append((private_report, PrivateSample(chosen)))
    return samples


def _watching(samples: list[tuple[Path, Any]]) -> Any:
    if not samples:
        return None

    def watch(private: Any, released: Any) -> None:
        for _, sample in samples:
            sample.watch(private, released)

    return watch


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """Rows so far, on a terminal; quiet in a pipe."""
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading and sorting")
        done = 0

        def advance(rows: int) -> None:
            nonlocal done
            done += rows
            bar.update(task, description=f"{done:,} rows released")

        yield advance


def _dry_run(
    table: Any, chosen: Any, ledger: Path | None, no_ledger: bool, name: str, as_json: bool
) -> None:
    """Cost, expected error and what would be left, from the options and the header alone."""
    from tempriv import spec
    from tempriv.mechanisms.run import check_early
    from tempriv.series import require_columns
    from tempriv.tables import header

    exist = header(table.source)
    times = [] if table.time is None else table.time.split("+")
    named = [*table.values, *times, table.series, table.person]
    require_columns(exist, [name for name in named if name is not None], str(table.source))
    standing: list[str] = []
    book = options.existing_ledger(ledger, no_ledger)
    if book is not None and name in book.datasets():
        standing = options.standing(book.show(name))
        check_early(book, name, chosen.guarantee)
    errors = [
        {"column": column, "error": error, "measure": chosen.error_name}
        for column, error in zip(table.values, chosen.errors, strict=True)
    ]
    if as_json:
        print(
            json.dumps(
                {
                    "mechanism": spec.encode(chosen),
                    "expected_error": errors,
                    "guarantee": spec.encode(chosen.guarantee),
                    "budget": standing,
                }
            )
        )
        return
    print("Nothing was released; it would")
    print(f"  cost      {chosen.guarantee.loss}, for {chosen.guarantee.unit.sentence}")
    for error in errors:
        print(f"  error     {error['column']}: {error['error']:.4g} ({error['measure']})")
    for line in standing or ["no budget is kept for this dataset yet"]:
        print(f"  budget    {line}")


def _print_release(
    about: dict[str, Any], output: Path, pages: list[Path], budget: Any, as_json: bool
) -> None:
    if as_json:
        print(json.dumps(about))
        return
    if about.get("finished_interrupted"):
        print("An earlier run was interrupted after it had paid; its output is now in place.")
        print("(No private report of it can be made any more.)")
    print(f"Released {about['rows']:,} rows of {about['series']:,} series to {output}")
    print(f"  promise   {about['sentence']}")
    for error in about["expected_error"]:
        print(f"  error     {error['column']}: {error['error']:.4g} ({error['measure']})")
    print("  not protected: " + "; ".join(about["not_protected"]))
    for line in options.standing(budget):
        print(f"  budget    {line}")
    for page in pages:
        print(f"  report    {page}")
    print(f"  check it  tempriv verify {output}")
