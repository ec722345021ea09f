"""``tempriv leakage``: what a release tells of a reading when readings are correlated."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tempriv.cli._options import Json
from tempriv.cli._output import refuse_plot
from tempriv.cli._parsing import names, pair
from tempriv.cli.app import app
from tempriv.errors import DataError, TemprivError, require

if TYPE_CHECKING:
    from tempriv.correlation.chain import Chain
    from tempriv.leakage.budgets import ReadingBudgets
    from tempriv.leakage.leakage import Allocation, Leakage, ReadingRef

EXAMPLE = """
[bold]Examples[/bold]: readings that stay as they are nine times in ten, for 100 hours

  echo '[[0.9, 0.1], [0.1, 0.9]]' > chain.json

  seq 100 | sed 's/.*/0.1/' > budgets.csv

  tempriv leakage --budgets budgets.csv --chain chain.json --target 1 --plot leakage.png

A release, with a chain estimated from the private table that it was made of

  tempriv leakage private.csv --from meters.csv --states 4 --output mine.csv
"""
PRIVATE = "computed from private data, so as private as they are: do not hand it out"
NO_BOUND = "as published; it can be less than what is lost, so do not rely on it"
EXACT = "the most that any mechanism with these budgets can tell"
SOUND = "never less than what is lost"
OF_METHOD = {"bridge": SOUND, "exact": EXACT, "definition5": NO_BOUND}


@app.command(epilog=EXAMPLE)
def leakage(
    release: Annotated[
        Path | None,
        typer.Argument(metavar="RELEASE", help="A released file, with what lies beside it."),
    ] = None,
    budgets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Instead of RELEASE: the epsilon of each reading, a number in each row; or "
            "columns epsilon, landmark (1 or 0) and series.",
        ),
    ] = None,
    chain: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="How likely each state follows each: a matrix, as JSON or CSV.",
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="DATA", help="Estimate the chain from this private table instead."
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Of DATA; that of RELEASE by default."),
    ] = None,
    bounds: Annotated[
        str | None,
        typer.Option(
            metavar="LOW HIGH",
            help="Public bounds that values of DATA are binned between; those of RELEASE by "
            "default.",
        ),
    ] = None,
    states: Annotated[
        int | None, typer.Option(metavar="N", help="So many equally wide bins.")
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Of DATA instead; those of RELEASE by default."),
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Time column of DATA, or two as date+hour.")
    ] = None,
    series: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of DATA with the series id.")
    ] = None,
    grid: Annotated[
        str,
        typer.Option(metavar="regular|index", help="Of DATA: one time step, or rows in order."),
    ] = "regular",
    duplicates: Annotated[
        str, typer.Option(metavar="refuse|first", help="Of DATA: two readings at one time.")
    ] = "refuse",
    pseudocount: Annotated[
        float,
        typer.Option(help="Added to how often each pair of states was seen; more weakens."),
    ] = 1.0,
    save_chain: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="Keep the estimated chain; it stays private."),
    ] = None,
    across: Annotated[
        float | None,
        typer.Option(
            metavar="METRES", help="For places: how far two places of the chain can be apart."
        ),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(metavar="EPSILON", help="Which budgets would keep every reading at this."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="bridge|definition5|exact",
            help="For landmarks: how their loss is found; the first two by default.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png|.svg|.pdf", help="Draw a picture too.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write a row for each reading.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: Json = False,
) -> None:
    """What everything that is released tells of one reading, if readings go together."""
    require(
        (release is None) != (budgets is None),
        "give one of RELEASE (a released file) and --budgets FILE",
    )
    require((chain is None) != (source is None), "give one of --chain FILE and --from DATA")
    of_data = {
        "--value": value,
        "--bounds": bounds,
        "--states": states,
        "--categories": categories,
        "--time": time,
        "--series": series,
        "--save-chain": save_chain,
    }
    for name, given in of_data.items():
        require(given is None or source is not None, f"{name}: goes with --from DATA")
    require(
        method in (None, "bridge", "definition5", "exact"),
        f"--method {method}: must be bridge, definition5 or exact",
    )
    require(across is None or release is not None, "--across: goes with RELEASE")
    require(
        target is None or (math.isfinite(target) and target > 0),
        f"--target {target}: must be a number above 0",
    )
    refuse_plot(plot, force)
    _refuse_file(output, (".csv",), force)
    _refuse_file(save_chain, (".json",), force)
    from tempriv.leakage.budgets import budgets_of_release, read_budgets
    from tempriv.leakage.leakage import METHODS, allocate_budgets, compute_leakage

    with _working() as say:
        say("reading budgets")
        if release is not None:
            spent = budgets_of_release(release, across)
        else:
            assert budgets is not None
            spent = read_budgets(budgets)
        _require_method(method, spent)
        say("reading the chain")
        if chain is not None:
            known = _read(chain)
        else:
            assert source is not None
            layout = {"time": time, "series": series, "grid": grid, "duplicates": duplicates}
            how = (value, bounds, states, categories, pseudocount)
            known = _estimated(source, release, how, layout)
        many = len(spent.spending)
        say("computing losses; those of landmarks take longest")
        found = compute_leakage(
            known,
            spent,
            METHODS if method is None else (method,),
            insist=method is not None,
            progress=lambda done: say(f"{done:,} of {many:,} series done"),
        )
        kept: dict[int, Allocation] | None = None
        if target is not None:
            say("looking for budgets")
            lengths = {spent.longest}
            if output is not None:
                lengths |= {len(one.budgets) for one in spent.spending}
            kept = {length: allocate_budgets(known, target, length) for length in sorted(lengths)}
    written = _write(found, kept, plot, output, save_chain)
    best = None if kept is None else kept[spent.longest]
    if as_json:
        print(json.dumps(_told(found, best)))
    else:
        _print(found, best, chain or source, written)


def _read(path: Path) -> Chain:
    from tempriv.correlation.chain import read_chain

    require(path.exists(), f"{path}: no such file", DataError)
    return read_chain(path)


def _refuse_file(path: Path | None, endings: tuple[str, ...], force: bool) -> None:
    if path is None:
        return
    require(path.suffix.lower() in endings, f"{path}: must end in {' or '.join(endings)}")
    require(path.parent.is_dir(), f"{path.parent}: no such directory")
    require(
        force or not path.exists(),
        f"{path}: exists already; choose another name, or replace it with --force",
        TemprivError,
    )


def _require_method(method: str | None, spent: ReadingBudgets) -> None:
    require(
        method is None or spent.have_landmarks,
        f"--method {method}: is for landmarks, and these budgets have none",
    )


@contextmanager
def _working() -> Iterator[Callable[[str], None]]:
    """What is being done, on a terminal; quiet in a pipe."""
    if not sys.stderr.isatty():
        yield lambda words: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield status.update


def _estimated(
    source: Path,
    release: Path | None,
    how: tuple[str | None, str | None, int | None, str | None, float],
    layout: dict[str, Any],
) -> Chain:
    """A chain from a private table; of what is not said, what the release says."""
    from tempriv.data.series import SeriesTable
    from tempriv.leakage.leakage import estimate_chain, require_same_step
    from tempriv.releases.description import read_about, value_spec

    value, edges, states, listed, pseudocount = how
    require(source.exists(), f"{source}: no such file", DataError)
    grid = layout["grid"]
    require(grid in ("regular", "index"), f"--grid {grid}: must be regular or index")
    bounds = None if edges is None else pair("--bounds", edges)
    categories = None if listed is None else names(listed)
    about = None
    if release is not None:
        about = read_about(release)
        columns, made = about["columns"], value_spec(about)
        alone = len(columns["values"]) == 1
        value = value or (columns["values"][0] if alone else None)
        layout["time"] = layout["time"] or "+".join(columns["time"] or []) or None
        layout["series"] = layout["series"] or columns["series"]
        if alone and categories is None and bounds is None:
            if "categories" in made and states is None:
                categories = tuple(made["categories"][0])
            elif "bounds" in made:
                low, high = made["bounds"][0]
                bounds = low, high
    require(value is not None, "--from needs --value, the column that the chain is of")
    assert value is not None
    table = SeriesTable(source, values=(value,), gaps="null", **cast(Any, layout))
    chain, (clock, step) = estimate_chain(table, bounds, states, categories, pseudocount)
    if about is not None and grid == "regular":
        require_same_step(about, clock, step)
    return chain


def _write(
    found: Leakage,
    kept: dict[int, Allocation] | None,
    plot: Path | None,
    output: Path | None,
    save_chain: Path | None,
) -> list[tuple[str, Path]]:
    """Files that were asked for; what is private can be read by its owner only."""
    from tempriv.data.files import follow_umask, write_durably

    written = []
    if output is not None:
        from tempriv.data.csv import csv_line, csv_rows
        from tempriv.leakage.leakage import leakage_table

        table = leakage_table(found, kept)
        parts = [csv_line(table.column_names), *map(csv_rows, table.to_batches())]
        write_durably(output, b"".join(map(bytes, parts)))
        written.append(("table", output))
    if plot is not None:
        from tempriv.report.plots.budget import drawn
        from tempriv.report.plots.leakage import plot_leakage

        write_durably(plot, drawn(plot_leakage(found), plot.suffix[1:].lower()))
        written.append(("picture", plot))
    if not found.private:
        for _, path in written:
            follow_umask(path)
    if save_chain is not None:
        from tempriv.correlation.chain import write_chain

        write_chain(found.chain, save_chain)
        written.append(("chain", save_chain))
    return written


def _print(
    found: Leakage, kept: Allocation | None, chain: Path | None, written: list[tuple[str, Path]]
) -> None:
    from tempriv.correlation.growth import shown

    spent, total = found.budgets, found.worst()
    rows = sum(len(one.budgets) for one in spent.spending)
    many = f" in {len(spent.spending):,} series" if len(spent.spending) > 1 else ""
    print(f"{rows:,} readings{many}, and a chain of {found.chain.states} states, {chain}")
    print(f"  in short  {found.sentence}")
    print(f"  total     {shown(total.loss)}, first at {total.words}")
    for side, words in (("backward", "up to a reading"), ("forward", "from a reading on")):
        place = found.worst(side)
        much = shown(place.loss)
        print(f"  {side:<9} {much} by releases {words}, first at {place.words}")
    if found.forever:
        print(f"  for ever  {found.forever}")
    print(f"  chances   {found.chances}")
    if found.methods:
        print(
            f"  landmarks together with any one other reading: {shown(found.apart)} if "
            "readings were independent; under this chain"
        )
    for method in found.methods:
        joint = found.together(method)
        if joint is None:
            print(f"    {method:<12} not found: {found.why_not(method)}")
        else:
            print(f"    {method:<12} {shown(joint.loss)}, with {joint.words} ({OF_METHOD[method]})")
    if kept is not None:
        _print_kept(kept)
    for remark in spent.remarks:
        print(f"  mind      {remark}")
    if found.private:
        print(f"  mind      {PRIVATE}")
    for what, path in written:
        print(f"  {what:<9} {path}")


def _print_kept(kept: Allocation) -> None:
    from tempriv.leakage.budgets import rounded_down

    first, last, length = kept.quantified[0], kept.quantified[-1], len(kept.quantified)
    said = f"epsilon {rounded_down(first)}"
    if length > 1:
        said += f" at the first reading, {rounded_down(last)} at the last"
    if length > 2:
        said += f", {rounded_down(kept.quantified[1])} at each between"
    print(f"  target    to keep every reading of {length:,} at {kept.target:g}: {said}")
    if kept.constant is None:
        print(f"            the same at every reading: {kept.why_not}")
    else:
        print(
            f"            or {rounded_down(kept.constant)} at every reading, for a series of any "
            "length"
        )


def _told(found: Leakage, kept: Allocation | None) -> dict[str, Any]:
    spent, limit = found.budgets, found.limit
    told: dict[str, Any] = {
        "private": found.private,
        "sentence": found.sentence,
        "states": found.chain.states,
        "series": len(spent.spending),
        "readings": sum(len(one.budgets) for one in spent.spending),
        "epsilon": spent.constant,
        **{side: _placed(found.worst(side)) for side in ("total", "backward", "forward")},
        # JSON has no infinity
        "supremum": None if limit is None or math.isinf(limit) else limit,
        "unbounded": limit is not None and math.isinf(limit),
        "remarks": spent.remarks,
    }
    if found.methods:
        told["landmarks"] = {"independent": found.apart}
        for method in found.methods:
            joint = found.together(method)
            told["landmarks"][method] = (
                {"refused": found.why_not(method)} if joint is None else _placed(joint)
            )
    if kept is not None:
        told["target"] = {
            "loss": kept.target,
            "quantified": {
                "first": kept.quantified[0],
                "middle": kept.quantified[len(kept.quantified) // 2],
                "last": kept.quantified[-1],
                "readings": len(kept.quantified),
            },
            "upper_bound": kept.constant,
            "why_not": kept.why_not or None,
        }
    return told


def _placed(place: ReadingRef) -> dict[str, Any]:
    one = place.leak.spending
    when = None if one.times is None else one.times[place.step].as_py()
    return {"loss": place.loss, "series": one.series, "reading": place.step + 1, "time": when}
