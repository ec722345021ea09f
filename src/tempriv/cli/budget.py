"""``tempriv budget``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempriv.cli import _options
from tempriv.cli._options import Json, LedgerOption
from tempriv.cli._output import alarm, table
from tempriv.cli.app import budget
from tempriv.cli.mechanism_options import make_unit
from tempriv.errors import TemprivError, UsageError, require

if TYPE_CHECKING:
    from tempriv.ledger.ledger import Ledger
    from tempriv.privacy.units import Unit

CREATE = """
[bold]Example[/bold]: at most epsilon 3 for any day of a meter

  tempriv budget create meters --epsilon 3 --unit window --window 24

[bold]Example[/bold]: counts of visits, at most 1 an hour and 10 in a week of 168 hours by a person

  tempriv budget create visits --epsilon 1 --unit person --length 168 --per-step 1 --total 10

[bold]Example[/bold]: values kept exact, and which of two readings within 10 steps came first hidden

  tempriv budget create trades --epsilon 2 --unit swap --window 10
"""


MERGE = """
[bold]Example[/bold]: a copy with other ids was charged under a name of its own

  tempriv budget merge meters.csv renamed.csv --because "same meters, ids replaced"
"""

FORGET = """
[bold]Example[/bold]: a release that was deleted before anyone saw it

  tempriv budget forget 12 --because "deleted, never handed out"

[bold]Example[/bold]: two tables were taken for the same and are not

  tempriv budget forget meters.csv other.csv --because "made-up data, alike by design"
"""


AnyDataset = Annotated[str | None, typer.Argument(help="Name of the dataset; all by default.")]


def _open(path: Path | None) -> Ledger:
    book = _options.existing_ledger(path, False)
    if book is None:
        raise UsageError("there is no ledger yet; tempriv budget create makes one")
    return book


def _name(dataset: str) -> str:
    """A dataset by its name; a file that exists goes by its file name, as releases name it."""
    path = Path(dataset)
    return path.name if path.is_file() else dataset


@budget.command(epilog=CREATE)
def create(
    dataset: Annotated[str, typer.Argument(help="Name of the dataset, or its file.")],
    epsilon: Annotated[float, typer.Option(help="The most that may be spent.")],
    delta: Annotated[float, typer.Option(help="Tiny chance, needed for Gaussian noise.")] = 0.0,
    unit: Annotated[
        str,
        typer.Option(
            metavar="event|window|series|near|landmarks|moment|person|presence|swap|block|origin|pace"
            "|times",
            help="What the limit is for: readings of a series, places, all landmarks of a series "
            "and any one other reading (landmarks), whether any one moment is a landmark (moment), "
            "what one person adds to counts (tempriv count), or that a person is in a table at all "
            "(presence: tempriv summarize). For values that are moved in time and kept exact: that "
            "two readings traded places (swap), that two of a block did (block), or where a single "
            "output row came from (origin). Where times are the secret: the pace of readings in a "
            "row (pace), or when they happened (times).",
        ),
    ] = "event",
    window: Annotated[
        int | None,
        typer.Option(
            help="Steps in a row, for --unit window, swap, origin, pace and times; or for any so "
            "many of a person."
        ),
    ] = None,
    block: Annotated[int | None, typer.Option(help="Steps of a block, for --unit block.")] = None,
    offset: Annotated[
        int | None, typer.Option(help="For --unit block: steps before the first whole block.")
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(help="Readings, for --unit series; or steps, for all of a person's events."),
    ] = None,
    meters: Annotated[
        float | None,
        typer.Option("--meters", "--metres", help="For --unit near, and for landmarks of places."),
    ] = None,
    tau: Annotated[
        float | None, typer.Option(help="For --unit pace and times: within what times are hidden.")
    ] = None,
    per_step: Annotated[
        float | None,
        typer.Option(help="For --unit person: the most that one adds in a step; 1 by default."),
    ] = None,
    total: Annotated[
        float | None, typer.Option(help="For --unit person: the most that one adds in all.")
    ] = None,
    signed: Annotated[
        bool,
        typer.Option("--signed", help="For --unit person: for sums that can go up and down."),
    ] = False,
    max_series_per_person: Annotated[
        int | None, typer.Option(metavar="N", help="For a limit on a person's series together.")
    ] = None,
    about: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="What all its releases say: curator, contact, license and more (see tempriv "
            "budget about).",
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Change a limit that is set.")] = False,
    ledger: LedgerOption = None,
) -> None:
    """Set a limit for a dataset; the ledger is made if there is none."""
    from tempriv.ledger.database import default_path
    from tempriv.ledger.ledger import Ledger
    from tempriv.privacy.units import WithinDistance
    from tempriv.privacy.units.landmarks import Landmarks, MarkedMoment
    from tempriv.privacy.units.order import BlockSwap, SlotOrigin, Swap
    from tempriv.privacy.units.time import Pace, Timestamps

    covered: Unit
    require(block is None or unit == "block", "--block goes with --unit block")
    require(offset is None or unit == "block", "--offset goes with --unit block")
    require(
        (tau is not None) == (unit in ("pace", "times")),
        "--tau goes with --unit pace or times, which need it: within what times are hidden",
    )
    if unit in ("swap", "block", "origin", "pace", "times", "landmarks", "moment", "presence"):
        require(
            length is None and max_series_per_person is None,
            f"--unit {unit}: goes without --length and --max-series-per-person",
        )
    for name, option in (
        ("--per-step", per_step),
        ("--total", total),
        ("--signed", signed or None),
    ):
        require(option is None or unit == "person", f"{name}: goes with --unit person only")
    require(
        meters is None or unit in ("near", "landmarks"),
        "--meters goes with --unit near or landmarks",
    )
    if unit == "person":
        require(max_series_per_person is None, "--max-series-per-person: not for --unit person")
        covered = _make_contribution(window, length, per_step or 1, total, signed)
    elif unit in ("landmarks", "moment"):
        require(window is None, f"--unit {unit}: goes without --window")
        covered = Landmarks(meters=meters) if unit == "landmarks" else MarkedMoment()
    elif unit == "presence":
        from tempriv.privacy.units import Presence

        require(window is None, "--unit presence: goes without --window")
        covered = Presence()
    elif unit == "near":
        require(meters is not None, "--unit near needs --meters")
        covered = WithinDistance(meters or 0)
    elif unit in ("swap", "origin"):
        require(window is not None, f"--unit {unit} needs --window: over how many steps")
        covered = Swap(window or 0) if unit == "swap" else SlotOrigin(window or 0)
    elif unit in ("pace", "times"):
        require(window is not None, f"--unit {unit} needs --window: for how many readings in a row")
        both = tau or 0, window or 0
        covered = Pace(*both, aligned=False) if unit == "pace" else Timestamps(*both)
    elif unit == "block":
        require(block is not None and window is None, "--unit block needs --block, and no --window")
        covered = BlockSwap(block or 0, offset or 0)
    else:
        covered = make_unit(unit, window, length, max_series_per_person)
    statements = _options.statements(about)
    with Ledger.create(ledger or default_path()) as book:
        book.create_dataset(
            _name(dataset), unit=covered, epsilon=epsilon, delta=delta, replace=replace
        )
        if statements is not None:
            book.set_statements(_name(dataset), statements)
        for line in _options.standing(book.show(_name(dataset))):
            print(line)
    from tempriv.privacy.guarantees import WEAK_EPSILON

    if epsilon > WEAK_EPSILON:
        alarm(
            f"tempriv: WARNING: a limit of epsilon = {epsilon:g} lets releases through that "
            "together protect practically nothing"
        )


ABOUT = """
[bold]Example[/bold]: say once who releases a dataset, where questions go, and under which license

  tempriv budget about --template > about.toml

  tempriv budget about meters about.toml

Every later release of the dataset says so in its description; tempriv release --about FILE.toml
adds to it, or says something else for one release.
"""


@budget.command(epilog=ABOUT)
def about(
    dataset: Annotated[
        str | None, typer.Argument(help="Name of the dataset, or its file.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE.toml", help="What to say; replaces all that was said."),
    ] = None,
    template: Annotated[
        bool, typer.Option("--template", help="Print a file with everything that can be said.")
    ] = False,
    ledger: LedgerOption = None,
    as_json: Json = False,
) -> None:
    """What all releases of a dataset say of themselves: curator, contact, license and more."""
    if template:
        from tempriv.releases import evidence

        require(dataset is None and file is None, "--template: goes without a dataset and a file")
        print(evidence.template())
        return
    require(dataset is not None, "name a dataset, or ask for --template")
    statements, name = _options.statements(file), _name(dataset or "")
    with _open(ledger) as book:
        require(name in book.datasets(), f"dataset {name!r}: not in the ledger {book.path}")
        if statements is not None:
            book.set_statements(name, statements)
        stated = book.statements(name)
    if as_json:
        print(json.dumps(stated))
        return
    for key, text in stated.items():
        print(f"{key:<13} {text}")
    if not stated:
        print(f"nothing is said about {name} yet")


@budget.command()
def show(
    dataset: AnyDataset = None,
    ledger: LedgerOption = None,
    as_json: Json = False,
) -> None:
    """What was spent and what is left."""
    from tempriv.privacy import serialization

    with _open(ledger) as book:
        names = book.datasets() if dataset is None else (_name(dataset),)
        shown = [book.show(name) for name in names]
    if as_json:
        print(json.dumps([_told(serialization.encode(one), "records") for one in shown]))
        return
    table(
        [
            *("dataset", "releases", "what is protected", "limit", "spent by sum", "by zCDP"),
            *("had all been fixed in advance", "left"),
        ],
        [
            [
                state.dataset,
                str(state.charges),
                total.unit.sentence,
                "none"
                if total.limit is None
                else f"{total.limit:g}" + (f" at delta {total.delta:g}" if total.delta else ""),
                _number(total.by_sum),
                _number(total.by_zcdp),
                _number(fixed),
                _number(total.remaining),
            ]
            for state in shown
            for total, fixed in zip(state.totals, state.in_advance, strict=True)
        ],
    )
    for state in shown:
        if state.no_guarantee is not None:
            print(f"{state.dataset}: no guarantee is left, {state.no_guarantee}")
    # what concerns two datasets stands with both
    for line in dict.fromkeys(line for state in shown for line in state.records):
        print(TemprivError(line).for_command_line())


@budget.command()
def log(
    dataset: AnyDataset = None,
    ledger: LedgerOption = None,
    as_json: Json = False,
) -> None:
    """Every charge, oldest first."""
    from tempriv.data.clock import describe_tick
    from tempriv.privacy import serialization

    with _open(ledger) as book:
        entries = book.log(None if dataset is None else _name(dataset))
    if as_json:
        print(json.dumps([_told(serialization.encode(one), "remark") for one in entries]))
        return

    def span(entry: object) -> str:
        ends = [getattr(entry, end) for end in ("start", "end")]
        clock = getattr(entry, "clock", "index")
        # so long ago that it stands for any time
        told = [None if end is not None and abs(end) > 1 << 62 else end for end in ends]
        return " to ".join("…" if end is None else describe_tick(clock, end) for end in told)

    table(
        ["charge", "when", "dataset", "loss", "series", "times", "output", "state", "remark"],
        [
            [
                str(e.charge),
                e.recorded,
                e.dataset,
                str(getattr(e.guarantee, "loss", "none")),
                "any" if e.members is None else f"{e.members:,}",
                span(e),
                e.note or "",
                e.state,
                e.remark or "",
            ]
            for e in entries
        ],
    )


@budget.command(epilog=MERGE)
def merge(
    dataset: Annotated[str, typer.Argument(help="Name of a dataset, or its file.")],
    other: Annotated[str, typer.Argument(help="Name of another one with the same data.")],
    spelled_alike: Annotated[
        bool,
        typer.Option(
            "--spelled-alike",
            help="Ids and times are written alike in both. Otherwise a charge of one counts for "
            "all of the other.",
        ),
    ] = False,
    because: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why, for the record.")
    ] = None,
    ledger: LedgerOption = None,
) -> None:
    """Let all charges of two datasets count for both: they hold the same data."""
    with _open(ledger) as book:
        names = _name(dataset), _name(other)
        book.merge(*names, spelled_alike=spelled_alike, reason=because)
        for name in names:
            for line in _options.standing(book.show(name)):
                print(f"{name}: {line}")


@budget.command(epilog=FORGET)
def forget(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="CHARGE | DATASET DATASET",
            help="A charge by its number in the log, or two datasets that do not hold the same "
            "data after all.",
        ),
    ],
    because: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why totals become smaller; recorded.")
    ] = None,
    ledger: LedgerOption = None,
) -> None:
    """Take back a charge, or that two datasets hold the same data; the log keeps all of it."""
    require(
        because is not None,
        "[[because]]: say why; it is recorded, as totals become smaller",
    )
    require(
        len(what) == 2 or (len(what) == 1 and what[0].isdecimal()),
        f"{' '.join(what)}: must be the number of a charge (tempriv budget log shows them), or the "
        "names of two datasets",
    )
    with _open(ledger) as book:
        if len(what) == 1:
            release = book.forget(int(what[0]), because or "")
            print(f"Forgot charge {what[0]}, of release {release}")
            return
        first, second = map(_name, what)
        count = book.separate(first, second, because or "")
        charges = "1 charge is" if count == 1 else f"{count:,} charges are"
        print(f"{first} and {second} count apart from now on; {charges} forgotten")
        for name in (first, second):
            for line in _options.standing(book.show(name)):
                print(f"{name}: {line}")


def _told(encoded: dict[str, Any], name: str) -> dict[str, Any]:
    """A document without what it has nothing to say of."""
    return {key: value for key, value in encoded.items() if key != name or value}


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.4g}"


def _make_contribution(
    window: int | None, length: int | None, per_step: float, total: float | None, signed: bool
) -> Unit:
    """What one person adds to counts: in all, in any so many steps in a row, or in any one."""
    from tempriv.privacy.units import Contribution, Event, WholeSeries, Window

    require(window is None or length is None, "--window and --length: give one of them, or none")
    each: Event | Window | WholeSeries = Event()
    if window is not None:
        each = Window(window)
    elif length is not None:
        each = WholeSeries(length)
    return Contribution(each, per_step, total, signed)
