"""``tempriv landmarks``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tempriv.cli import _options
from tempriv.cli._options import Force, Json, KeySeed, NotPrivate, SeriesColumn, Source, TimeColumn
from tempriv.cli.app import app
from tempriv.errors import require
from tempriv.mechanisms.options import names, pair

EXAMPLE = """
[bold]Example[/bold]: the moments when somebody was at home, from a column that says so

  tempriv landmarks meters.csv marked.csv --column at_home --time time --series home

  tempriv release marked.csv private.csv --mechanism uniform-landmarks --epsilon 1 --bounds 0 5
  --landmarks landmark --time time --value energy_kWh --series home
"""


@app.command("landmarks", epilog=EXAMPLE)
def choose(
    source: Source,
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="A copy with marks, as private as INPUT.")
    ],
    column: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="A column that says which they are: 0/1, false/true or no/yes."
        ),
    ] = None,
    times: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A table of their times, or of series and times, in columns named as in INPUT.",
        ),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column for --below, --above or --among."),
    ] = None,
    below: Annotated[float | None, typer.Option(help="Values less than this.")] = None,
    above: Annotated[float | None, typer.Option(help="Values greater than this.")] = None,
    among: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Entries that are one of these.")
    ] = None,
    stays: Annotated[
        str | None,
        typer.Option(
            metavar="METERS MINUTES", help="Where someone stayed within a distance for a time."
        ),
    ] = None,
    latitude: Annotated[str | None, typer.Option(metavar="COLUMN", help="For --stays.")] = None,
    longitude: Annotated[str | None, typer.Option(metavar="COLUMN", help="For --stays.")] = None,
    time: TimeColumn = None,
    series: SeriesColumn = None,
    mark: Annotated[str, typer.Option(metavar="NAME", help="Name of the new column.")] = "landmark",
    dummies: Annotated[
        str | None,
        typer.Option(
            metavar="randomized|partitioned|heuristic|optimal",
            help="Mark other moments too. randomized hides which are landmarks (--recall); the "
            "others are published methods that do not.",
        ),
    ] = None,
    dummy_epsilon: Annotated[
        float | None, typer.Option(help="For --dummies: its budget, beside that of the release.")
    ] = None,
    recall: Annotated[
        float | None,
        typer.Option(help="For --dummies randomized: the part of landmarks that stay marked."),
    ] = None,
    force: Force = False,
    key_seed: KeySeed = None,
    not_private: NotPrivate = False,
    as_json: Json = False,
) -> None:
    """Mark the moments to protect most, in one more column of a copy of a private table."""
    from tempriv.landmarks.annotate import Rule, mark_table

    rule = Rule(
        column=column,
        times=times,
        of=of,
        below=below,
        above=above,
        among=None if among is None else names("among", among),
        stays=None if stays is None else pair("stays", stays),
        places=None if latitude is None or longitude is None else (latitude, longitude),
    )
    require(
        (latitude is None) == (longitude is None),
        "--latitude and --longitude: give both, for --stays",
    )
    require(
        key_seed is None or dummies is not None, "--key-seed: goes with --dummies, which draw marks"
    )
    _options.refuse_seed(key_seed, not_private)
    drawing = _drawing(dummies, dummy_epsilon, recall)
    hiding = None if drawing is None else _hiding(drawing, key_seed)
    done = mark_table(
        source,
        output,
        rule,
        time=time,
        series=series,
        name=mark,
        hiding=hiding,
        force=force,
    )
    if as_json:
        print(json.dumps({**vars(done), "column": mark}))
        return
    share = 100 * done.landmarks / done.rows
    print(f"Marked {output}, column {mark}; keep it as private as {source}")
    print(f"  landmarks {done.landmarks:,} of {done.rows:,} readings ({share:.3g} %): {done.how}")
    if hiding is not None:
        print(f"  marks     {done.marks:,} with dummies; {hiding.sentence}")
    print(f"  series    {done.series:,}, with up to {done.most:,} marks each")
    if done.looked_at:
        print(
            f"  careful   they were chosen by looking at {' and '.join(done.looked_at)}: a release "
            "of that column\n            can guarantee something with count-bound-landmarks and a "
            "--count of your own only"
        )


def _drawing(dummies: str | None, epsilon: float | None, recall: float | None) -> Any:
    from tempriv.landmarks.dummies import DummyLandmarks, RandomizedMarks

    for name, value in (("--dummy-epsilon", epsilon), ("--recall", recall)):
        require(value is None or dummies is not None, f"{name}: goes with --dummies")
    if dummies is None:
        return None
    require(epsilon is not None, f"--dummies {dummies} needs --dummy-epsilon, such as 0.1")
    assert epsilon is not None
    if dummies == "randomized":
        require(recall is not None, "--dummies randomized needs --recall, such as 0.95")
        assert recall is not None
        return RandomizedMarks(epsilon=epsilon, recall=recall)
    require(
        dummies in ("partitioned", "heuristic", "optimal"),
        f"--dummies {dummies}: must be randomized, partitioned, heuristic or optimal",
    )
    require(recall is None, "--recall: goes with --dummies randomized")
    distance: Any = "euclidean" if dummies == "partitioned" else "wasserstein"
    return DummyLandmarks(epsilon=epsilon, options=dummies, distance=distance)


def _hiding(drawing: Any, seed: int | None) -> Any:
    """What the marks are drawn with, and what they tell of which moments are landmarks."""
    from tempriv.landmarks.annotate import Hiding
    from tempriv.landmarks.dummies import RandomizedMarks
    from tempriv.privacy.guarantees import Guarantee
    from tempriv.sampling.keys import Key

    key = Key.generate() if seed is None else Key.from_seed(seed)
    guarantee = drawing.guarantee_under(key)
    recall = drawing.recall if isinstance(drawing, RandomizedMarks) else None
    sentence = f"which of them are landmarks is not hidden: {getattr(guarantee, 'reason', '')}"
    epsilon = drawing.epsilon if isinstance(guarantee, Guarantee) else None
    if isinstance(guarantee, Guarantee):
        sentence = f"whether any one moment is a landmark: {guarantee.loss}"
    if recall is not None:
        sentence += (
            f"; about {100 * (1 - recall):.3g} % of landmarks have no mark and are protected like "
            "other moments only"
        )
    return Hiding(
        lambda marks, whose: drawing.select(marks, key, whose).marks,
        sentence,
        recall,
        epsilon,
        key.release_id,
    )
