"""``tempriv leakage``: what a release tells of a reading when readings are correlated."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tempriv.cli._options import Force, Json, Plot, refuse_file, refuse_plot
from tempriv.cli._output import progress, save_picture
from tempriv.cli.app import app
from tempriv.errors import DataError, require
from tempriv.mechanisms.options import names, pair

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
            metavar="METERS", help="For places: how far two places of the chain can be apart."
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
    plot: Plot = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write a row for each reading.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """How much a release tells of one reading when readings are correlated."""
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
    for name, option in of_data.items():
        require(option is None or source is not None, f"{name}: goes with --from DATA")
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
    for path, ending in ((output, ".csv"), (save_chain, ".json")):
        if path is not None:
            refuse_file(path, (ending,), force)
    from tempriv.leakage.budgets import budgets_of_release, read_budgets
    from tempriv.leakage.leakage import METHODS, allocate_budgets, compute_leakage

    with progress("reading budgets", spinner=True) as update:
        if release is not None:
            spent = budgets_of_release(release, across)
        else:
            assert budgets is not None
            spent = read_budgets(budgets)
        _require_method(method, spent)
        update(description="reading the chain")
        if chain is not None:
            known = _read(chain)
        else:
            assert source is not None
            layout = {"time": time, "series": series, "grid": grid, "duplicates": duplicates}
            how = (value, bounds, states, categories, pseudocount)
            known = _estimated(source, release, how, layout)
        many = len(spent.spending)
        update(description="computing losses; those of landmarks take longest")
        losses = compute_leakage(
            known,
            spent,
            METHODS if method is None else (method,),
            insist=method is not None,
            progress=lambda done: update(description=f"{done:,} of {many:,} series done"),
        )
        allocations: dict[int, Allocation] | None = None
        if target is not None:
            update(description="looking for budgets")
            lengths = {spent.longest}
            if output is not None:
                lengths |= {len(series_budgets.budgets) for series_budgets in spent.spending}
            allocations = {
                length: allocate_budgets(known, target, length) for length in sorted(lengths)
            }
    written = _write(losses, allocations, plot, output, save_chain)
    best = None if allocations is None else allocations[spent.longest]
    if as_json:
        print(json.dumps(_as_json(losses, best)))
    else:
        _print(losses, best, chain or source, written)


def _read(path: Path) -> Chain:
    from tempriv.correlation.chain import read_chain

    require(path.exists(), f"{path}: no such file", DataError)
    return read_chain(path)


def _require_method(method: str | None, spent: ReadingBudgets) -> None:
    require(
        method is None or spent.have_landmarks,
        f"--method {method}: is for landmarks, and these budgets have none",
    )


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
    bounds = None if edges is None else pair("bounds", edges)
    categories = None if listed is None else names("categories", listed)
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
    losses: Leakage,
    allocations: dict[int, Allocation] | None,
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

        table = leakage_table(losses, allocations)
        parts = [csv_line(table.column_names), *map(csv_rows, table.to_batches())]
        write_durably(output, b"".join(map(bytes, parts)))
        if not losses.private:
            follow_umask(output)
        written.append(("table", output))
    if plot is not None:
        from tempriv.report.plots.leakage import plot_leakage

        save_picture(plot_leakage(losses), plot, losses.private)
        written.append(("picture", plot))
    if save_chain is not None:
        from tempriv.correlation.chain import write_chain

        write_chain(losses.chain, save_chain)
        written.append(("chain", save_chain))
    return written


def _print(
    losses: Leakage,
    allocation: Allocation | None,
    chain: Path | None,
    written: list[tuple[str, Path]],
) -> None:
    from tempriv.correlation.growth import shown

    spent, total = losses.budgets, losses.worst()
    rows = sum(len(series.budgets) for series in spent.spending)
    many = f" in {len(spent.spending):,} series" if len(spent.spending) > 1 else ""
    print(f"{rows:,} readings{many}, and a chain of {losses.chain.states} states, {chain}")
    print(f"  in short  {losses.sentence}")
    print(f"  total     {shown(total.loss)}, first at {total.words}")
    for side, words in (("backward", "up to a reading"), ("forward", "from a reading on")):
        place = losses.worst(side)
        much = shown(place.loss)
        print(f"  {side:<9} {much} by releases {words}, first at {place.words}")
    if losses.forever:
        print(f"  for ever  {losses.forever}")
    print(f"  chances   {losses.chances}")
    if losses.methods:
        print(
            f"  landmarks together with any one other reading: {shown(losses.apart)} if "
            "readings were independent; under this chain"
        )
    for method in losses.methods:
        joint = losses.together(method)
        if joint is None:
            print(f"    {method:<12} not found: {losses.why_not(method)}")
        else:
            print(f"    {method:<12} {shown(joint.loss)}, with {joint.words} ({OF_METHOD[method]})")
    if allocation is not None:
        _print_allocation(allocation)
    for remark in spent.remarks:
        print(f"  mind      {remark}")
    if losses.private:
        print(f"  mind      {PRIVATE}")
    for what, path in written:
        print(f"  {what:<9} {path}")


def _print_allocation(allocation: Allocation) -> None:
    from tempriv.leakage.budgets import rounded_down

    quantified = allocation.quantified
    first, last, length = quantified[0], quantified[-1], len(quantified)
    sentence = f"epsilon {rounded_down(first)}"
    if length > 1:
        sentence += f" at the first reading, {rounded_down(last)} at the last"
    if length > 2:
        sentence += f", {rounded_down(quantified[1])} at each between"
    print(f"  target    to keep every reading of {length:,} at {allocation.target:g}: {sentence}")
    if allocation.constant is None:
        print(f"            the same at every reading: {allocation.why_not}")
    else:
        print(
            f"            or {rounded_down(allocation.constant)} at every reading, for a series of "
            "any length"
        )


def _as_json(losses: Leakage, allocation: Allocation | None) -> dict[str, Any]:
    spent, limit = losses.budgets, losses.limit
    about: dict[str, Any] = {
        "private": losses.private,
        "sentence": losses.sentence,
        "states": losses.chain.states,
        "series": len(spent.spending),
        "readings": sum(len(series.budgets) for series in spent.spending),
        "epsilon": spent.constant,
        **{side: _placed(losses.worst(side)) for side in ("total", "backward", "forward")},
        # JSON has no infinity
        "supremum": None if limit is None or math.isinf(limit) else limit,
        "unbounded": limit is not None and math.isinf(limit),
        "remarks": spent.remarks,
    }
    if losses.methods:
        about["landmarks"] = {"independent": losses.apart}
        for method in losses.methods:
            joint = losses.together(method)
            about["landmarks"][method] = (
                {"refused": losses.why_not(method)} if joint is None else _placed(joint)
            )
    if allocation is not None:
        about["target"] = {
            "loss": allocation.target,
            "quantified": {
                "first": allocation.quantified[0],
                "middle": allocation.quantified[len(allocation.quantified) // 2],
                "last": allocation.quantified[-1],
                "readings": len(allocation.quantified),
            },
            "upper_bound": allocation.constant,
            "why_not": allocation.why_not or None,
        }
    return about


def _placed(place: ReadingRef) -> dict[str, Any]:
    series = place.leak.spending
    when = None if series.times is None else series.times[place.step].as_py()
    return {"loss": place.loss, "series": series.series, "reading": place.step + 1, "time": when}
