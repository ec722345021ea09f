"""Options that several commands share: how they are typed, and the values they stand for."""

from __future__ import annotations

import glob
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempriv.errors import DataError, TemprivError, require

if TYPE_CHECKING:
    from tempriv.ledger.ledger import Budget, Ledger
    from tempriv.mechanisms.base import Mechanism
    from tempriv.privacy.guarantees import Guarantee, NoGuarantee
    from tempriv.releases.signature import SigningKey

PAIR_OPTIONS = ("--bounds", "--origin", "--clamp", "--stays")
OTHER_NAMES = {
    "averaged": ("average-over",),
    "chosen_from_values": ("landmarks-from-values",),
    "empty": ("empty-cost",),
    "epsilon": ("claim",),
    "epsilon_forever": ("epsilon",),
    "grid": ("resolution",),
    "longest": ("longest-group",),
    "missing": ("missing-cost",),
    "most": ("alerts",),
    "noise": ("order-noise",),
    "port": ("metrics",),
    "repeated": ("repeated-cost",),
    "seen": ("as",),
    "share": ("grouping-share",),
    "threshold": ("free-slots",),
    "value": ("value-of-interest",),
    "window": ("span", "smooth"),
}
"""The options that fill an argument where they have another name."""


# panels of the help of commands that release
TABLE, PROTECTION, BUDGET, OUTPUT = "Table", "Protection", "Budget", "Output"
table_option = partial(typer.Option, rich_help_panel=TABLE)
protection_option = partial(typer.Option, rich_help_panel=PROTECTION)
budget_option = partial(typer.Option, rich_help_panel=BUDGET)
output_option = partial(typer.Option, rich_help_panel=OUTPUT)

Source = Annotated[Path, typer.Argument(metavar="INPUT", help="Table, .csv or .parquet.")]
Output = Annotated[Path, typer.Argument(metavar="OUTPUT", help="Where to, .csv or .parquet.")]

TimeColumn = Annotated[
    str | None, table_option(metavar="COLUMN", help="Time column, or two as date+hour.")
]
SeriesColumn = Annotated[
    str | None, table_option(metavar="COLUMN", help="Column with the series id.")
]
Step = Annotated[
    str | None, table_option(metavar="TIME", help="Step of a regular grid, such as 15min.")
]
Gaps = Annotated[
    str,
    table_option(
        metavar="KIND",
        help="Missing steps: refuse (default), or null, left empty.",
        show_default=False,
    ),
]
Duplicates = Annotated[
    str,
    table_option(
        metavar="KIND",
        help="Two at one time: refuse (default), or keep the first.",
        show_default=False,
    ),
]

LedgerOption = Annotated[
    Path | None,
    budget_option("--ledger", metavar="FILE", help="File of the ledger; your own by default."),
]
NoLedger = Annotated[
    bool, budget_option("--no-ledger", help="Charge no ledger; the release says so.")
]
Dataset = Annotated[
    str | None,
    budget_option(
        "--dataset",
        metavar="NAME",
        help="The dataset's name in the ledger; that of the file by default.",
    ),
]
OtherData = Annotated[
    list[str] | None,
    budget_option(
        "--other-data",
        metavar="NAME",
        help="The table holds other data than this dataset.",
        hidden=True,
    ),
]
TargetError = Annotated[
    float | None,
    budget_option(metavar="X", help="Instead of a budget: the expected error of a value."),
]

DryRun = Annotated[
    bool, output_option("--dry-run", help="Only say what it would cost; looks at no value.")
]
Report = Annotated[
    Path | None, output_option(metavar="FILE.html", help="Report that may be handed out.")
]
PrivateReport = Annotated[
    Path | None,
    output_option(metavar="FILE.html", help="Report with values before and after, for you alone."),
]
Plot = Annotated[
    Path | None, output_option(metavar="FILE.png|.svg|.pdf", help="Draw a picture too.")
]
About = Annotated[
    Path | None,
    output_option(
        metavar="FILE.toml", help="Curator, contact, license and more (budget about --template)."
    ),
]
Sign = Annotated[
    Path | None,
    output_option(metavar="FILE|none", help="Sign with this key, or none; your own by default."),
]
Force = Annotated[bool, output_option("--force", help="Replace files that exist.")]
KeySeed = Annotated[
    int | None,
    output_option(metavar="N", help="Noise that anyone can repeat, for experiments only."),
]
NotPrivate = Annotated[
    bool,
    output_option("--not-private", help="Confirm that --key-seed, or forward, protects nothing."),
]
AcceptWeak = Annotated[
    bool,
    budget_option(
        "--accept-weak",
        help="Confirm an epsilon above 10: it protects practically nothing.",
    ),
]
Json = Annotated[bool, output_option("--json", help="Print JSON for machines.")]


def _show_help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        print(context.get_help())
        raise typer.Exit


# in the panel of output instead of one of its own
Help = Annotated[
    bool,
    output_option("--help", help="Show this message and exit.", is_eager=True, callback=_show_help),
]


def open_ledger(path: Path | None, no_ledger: bool, make: bool = True) -> Ledger | None:
    """The ledger to charge: the one named, none, or the user's own.

    Parameters:
        path: its file, if it was named.
        no_ledger: whether none is to be charged.
        make: whether to make the user's own if there is none yet.
    """
    from tempriv.ledger.database import default_path
    from tempriv.ledger.ledger import Ledger

    if no_ledger:
        require(path is None, "--no-ledger and --ledger contradict each other")
        return None
    if path is not None:
        return Ledger.open(path)
    return Ledger.create(default_path()) if make else Ledger.open(default_path())


@contextmanager
def charging(
    path: Path | None, no_ledger: bool, dataset: str, unnamed: bool
) -> Iterator[Ledger | None]:
    """The ledger for a release, with its dataset in it.

    Parameters:
        path: the file of the ledger, if it was named.
        no_ledger: whether none is to be charged.
        dataset: its name.
        unnamed: whether that is only the name of the input; such a dataset needs no limit.
    """
    ledger = open_ledger(path, no_ledger)
    if ledger is None:
        yield None
        return
    with ledger:
        if unnamed:
            ledger.ensure_dataset(dataset)
        yield ledger


def dataset_of(source: Path, named: str | None, path: Path | None, no_ledger: bool) -> str:
    """The name of the dataset that a release is charged to.

    Parameters:
        source: the file of its table.
        named: the name, if it was given.
        path: the file of the ledger, if it was named.
        no_ledger: whether none is charged.

    Returns:
        As given; else that of the table which the file was made from, if tempriv made it; else the
        name of the file, or this without its ending if only that is a dataset.
    """
    if named is not None:
        return named
    name = source.name
    if any(source.parent.glob(f"{glob.escape(source.name)}.*.json")):
        from tempriv.data.parent import parent_of

        name = parent_of(source) or name
    book = existing_ledger(path, no_ledger)
    if book is None:
        return name
    with book:
        known = book.datasets()
    stem = Path(name).stem
    return stem if name not in known and stem in known else name


def tell_findings(ledger: Ledger | None, release_id: str) -> None:
    """Say which other datasets hold the rows of a release, as the owner has to know.

    Parameters:
        ledger: that was charged.
        release_id: of the release.
    """
    for finding in () if ledger is None else ledger.findings(release_id):
        sentence = TemprivError(finding.sentence).for_command_line()
        print(f"tempriv: {sentence}", file=sys.stderr)


def existing_ledger(path: Path | None, no_ledger: bool) -> Ledger | None:
    """The ledger to look at, if there is one; nothing is made.

    Parameters:
        path: its file, if it was named.
        no_ledger: whether none is to be looked at.
    """
    from tempriv.ledger.database import default_path

    if no_ledger or (path is None and not default_path().exists()):
        return None
    return open_ledger(path, no_ledger, make=False)


def signing_key(given: Path | None) -> SigningKey | None:
    """The key that releases are signed with: the one named, or the user's own if there is one.

    Parameters:
        given: its file, if it was named; ``none`` for no key.
    """
    from tempriv.releases.description import default_key_path

    place = given or default_key_path()
    if given == Path("none") or (given is None and not place.exists()):
        return None
    from tempriv.releases.signature import SigningKey

    return SigningKey.load(place)


def statements(about: Path | None) -> dict[str, str] | None:
    """What the curator says of a release.

    Parameters:
        about: the file that says it, if there is one.
    """
    if about is None:
        return None
    from tempriv.releases.evidence import read_statements

    return read_statements(about)


def refuse_pages(report: Path | None, private_report: Path | None, force: bool) -> None:
    """Everything that could keep a report from being written, before anything is paid for.

    Parameters:
        report: the file of the public one.
        private_report: that of the private one.
        force: whether files that exist are replaced.
    """
    for page in (report, private_report):
        if page is not None:
            refuse_file(page, (".html", ".htm"), force, "a report ends in")
    require(
        report is None or private_report is None or report.resolve() != private_report.resolve(),
        "the public and the private report must be two files",
    )


def refuse_input(source: Path, output: Path | None) -> None:
    """Refuse a table that is not there, or that the output would take the place of.

    Parameters:
        source: the file of the table.
        output: what is to be written.

    Raises:
        DataError: there is no such file. UsageError: the output is the input.
    """
    require(source.exists(), f"{source}: no such file", DataError)
    require(
        output is None or source.resolve() != output.resolve(),
        f"{output}: is the input; the private table stays as it is",
    )


def refuse_plot(plot: Path | None, force: bool) -> None:
    """Everything that could keep a picture from being drawn.

    Parameters:
        plot: its file, if one is asked for.
        force: whether a file that exists is replaced.
    """
    if plot is not None:
        refuse_file(plot, (".png", ".svg", ".pdf"), force, "a picture ends in")


def refuse_file(
    path: Path, endings: tuple[str, ...], force: bool, rule: str = "must end in"
) -> None:
    """Everything that could keep a file from being written.

    Parameters:
        path: the file.
        endings: those that its name may have.
        force: whether a file that exists is replaced.
        rule: how the sentence about the endings begins.
    """
    *others, last = endings
    listed = f"{', '.join(others)} or {last}" if others else last
    require(path.suffix.lower() in endings, f"{path}: {rule} {listed}")
    require(path.parent.is_dir(), f"{path.parent}: no such directory")
    require(not path.is_dir(), f"{path}: is a directory")
    require(
        force or not path.exists(),
        f"{path}: exists already; choose another name, or replace it with --force",
        TemprivError,
    )


def refuse_unprotected(mechanism: Mechanism, seed: int | None, not_private: bool) -> None:
    """What guarantees nothing has to be asked for, whether the seed or the mechanism is why.

    Parameters:
        mechanism: what is released through.
        seed: what the key is made from, if it is no secret.
        not_private: whether it was said that nothing is guaranteed.
    """
    from tempriv.privacy.guarantees import NoGuarantee

    guarantee = mechanism.guarantee
    if seed is not None or not isinstance(guarantee, NoGuarantee):
        refuse_seed(seed, not_private)
        return
    require(
        not_private,
        f"{type(mechanism).__name__} guarantees nothing: {guarantee.reason}; take another "
        "mechanism, or for an experiment say so with --not-private",
    )


def refuse_weak(guarantee: Guarantee | NoGuarantee, seed: int | None, accept_weak: bool) -> None:
    """What protects practically nothing has to be asked for, before anything is paid.

    Parameters:
        guarantee: of the release.
        seed: what the key is made from, if it is no secret; then nothing is protected anyway.
        accept_weak: whether it was said that this is meant.
    """
    from tempriv.privacy.guarantees import require_strength

    if seed is None:
        require_strength(guarantee, accept_weak)


def refuse_seed(seed: int | None, not_private: bool) -> None:
    """Noise that can be repeated has to be asked for as such.

    Parameters:
        seed: what the key is made from, if it is no secret.
        not_private: whether it was said that nothing is guaranteed.
    """
    require(
        seed is None or not_private,
        f"--key-seed {seed}: anyone can make this noise again and take it off; for an experiment "
        "say so with --not-private",
    )
    require(seed is not None or not not_private, "--not-private goes with --key-seed")


def standing(budget: Budget | None) -> list[str]:
    """How a dataset stands, a line for each limit of its ``budget``."""
    if budget is None:
        return ["not charged to a ledger: whoever adds up what was spent must count it by hand"]
    if budget.no_guarantee is not None:
        return [f"{budget.dataset}: no guarantee is left ({budget.no_guarantee})"]
    lines = []
    for total in budget.totals:
        spent = "more than can be said" if total.spent is None else f"{total.spent:.4g}"
        at = f" at delta {total.delta:g}" if total.delta else ""
        if total.limit is None:
            alone = "; all rows of a release together tell more" * total.unit.single_rows
            so_far = (
                f"nothing can be guaranteed any more about {total.unit.sentence}"
                if total.spent is None
                else f"epsilon {spent}{at} spent so far on {total.unit.sentence}{alone}"
            )
            lines.append(f"{so_far} (no limit set: tempriv budget create sets one)")
        else:
            lines.append(
                f"epsilon {spent} of {total.limit:g}{at} spent on {total.unit.sentence}, "
                f"{total.remaining:.4g} left"
            )
    return lines


# how options are typed


def join_pairs(arguments: list[str]) -> list[str]:
    """Options that take two words, written as one: ``--bounds 0 5`` becomes ``--bounds=0,5``.

    Parameters:
        arguments: the words of a command line.

    >>> join_pairs(["--bounds", "-1", "5", "--grid", "calendar", "days.csv"])
    ['--bounds=-1,5', '--grid=calendar', '--calendar=days.csv']
    """
    joined: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in PAIR_OPTIONS and len(rest) >= 2 and _is_number(rest[0]) and _is_number(rest[1]):
            joined.append(f"{word}={rest.pop(0)},{rest.pop(0)}")
        elif word == "--grid" and rest[:1] == ["calendar"] and "--calendar" not in arguments:
            rest.pop(0)
            joined.append("--grid=calendar")
            if rest and not rest[0].startswith("-"):
                joined.append(f"--calendar={rest.pop(0)}")
        else:
            joined.append(word)
    return joined


def typed_option(arguments: list[str]) -> Callable[[str, str], str | None]:
    """What gives the option, as it was typed, that filled an argument with a value.

    Parameters:
        arguments: the words of a command line.

    >>> typed = typed_option(["laplace", "--resolution", "0.30", "--bounds=5,1"])
    >>> typed("grid", "0.3"), typed("bounds", "5 1"), typed("epsilon", "0.3")
    ('--resolution 0.30', '--bounds 5 1', None)
    """
    options: dict[str, list[str]] = {}
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, joined, text = word.partition("=")
        if word.startswith("--"):
            options.setdefault(name, []).append(text.replace(",", " ") if joined else following)

    def find(argument: str, value: str) -> str | None:
        for name in (argument.replace("_", "-"), *OTHER_NAMES.get(argument, ())):
            for text in options.get(f"--{name}", []):
                if text == value or _numbers(text) == _numbers(value):
                    return f"--{name} {text}"
        return None

    return find


def _numbers(text: str) -> list[float | str]:
    """The words of a text, numbers as such, so that 0.30 is 0.3."""
    return [float(word) if _is_number(word) else word for word in text.split()]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
