"""Options that several commands share, and the values they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempriv.errors import TemprivError, require

if TYPE_CHECKING:
    from tempriv.ledger.ledger import Budget, Ledger
    from tempriv.mechanisms.base import Mechanism

# panels of the help of commands that release
TABLE, PROTECTION, BUDGET, OUTPUT = "Table", "Protection", "Budget", "Output"

LedgerOption = Annotated[
    Path | None,
    typer.Option(
        "--ledger", metavar="FILE", help="Ledger; yours by default.", rich_help_panel=BUDGET
    ),
]
NoLedger = Annotated[
    bool,
    typer.Option(
        "--no-ledger", help="Charge nothing; the release says so.", rich_help_panel=BUDGET
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="NAME",
        help="Dataset to charge; the input file by default.",
        rich_help_panel=BUDGET,
    ),
]
KeySeed = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Noise that anyone can make again, for experiments.",
        rich_help_panel=OUTPUT,
    ),
]
NotPrivate = Annotated[
    bool,
    typer.Option(
        "--not-private",
        help="You know that a seeded release, or forward, protects nothing.",
        rich_help_panel=OUTPUT,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON for machines.", rich_help_panel=OUTPUT)
]


def _show_help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        print(context.get_help())
        raise typer.Exit


# in the panel of output instead of one of its own
Help = Annotated[
    bool,
    typer.Option(
        "--help",
        help="Show this message and exit.",
        is_eager=True,
        callback=_show_help,
        rich_help_panel=OUTPUT,
    ),
]


def open_ledger(path: Path | None, no_ledger: bool, make: bool = True) -> Ledger | None:
    """The ledger to charge: the one named, none, or the user's own."""
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
    """The ledger for a release, with the dataset in it; one that was not named is only recorded."""
    ledger = open_ledger(path, no_ledger)
    if ledger is None:
        yield None
        return
    with ledger:
        if unnamed:
            ledger.ensure_dataset(dataset)
        yield ledger


def existing_ledger(path: Path | None, no_ledger: bool) -> Ledger | None:
    """The ledger to look at, if there is one; nothing is made."""
    from tempriv.ledger.database import default_path

    if no_ledger or (path is None and not default_path().exists()):
        return None
    return open_ledger(path, no_ledger, make=False)


def refuse_pages(pages: list[Path | None], force: bool) -> None:
    """Everything that could keep a report from being written, before anything is paid for."""
    given = [page for page in pages if page is not None]
    for page in given:
        require(page.suffix.lower() in (".html", ".htm"), f"{page}: a report ends in .html")
        require(page.parent.is_dir(), f"{page.parent}: no such directory")
        require(not page.is_dir(), f"{page}: is a directory")
        require(
            force or not page.exists(),
            f"{page}: exists already; choose another name, or replace it with --force",
            TemprivError,
        )
    require(
        len({page.resolve() for page in given}) == len(given),
        "the public and the private report must be two files",
    )


def refuse_unprotected(mechanism: Mechanism, seed: int | None, not_private: bool) -> None:
    """What guarantees nothing has to be asked for, whether the seed or the mechanism is why."""
    from tempriv.privacy.guarantees import NoGuarantee

    promise = mechanism.guarantee
    if seed is not None or not isinstance(promise, NoGuarantee):
        refuse_seed(seed, not_private)
        return
    require(
        not_private,
        f"{type(mechanism).__name__} guarantees nothing: {promise.reason}; take another mechanism, "
        "or for an experiment say so with --not-private",
    )


def refuse_seed(seed: int | None, not_private: bool) -> None:
    require(
        seed is None or not_private,
        f"--key-seed {seed}: anyone can make this noise again and take it off; for an experiment "
        "say so with --not-private",
    )
    require(seed is not None or not not_private, "--not-private goes with --key-seed")


def standing(budget: Budget | None) -> list[str]:
    """How a dataset stands, a line for each limit."""
    if budget is None:
        return ["not charged to a ledger: whoever adds up what was spent must count it by hand"]
    if budget.no_guarantee is not None:
        return [f"{budget.dataset}: no guarantee is left ({budget.no_guarantee})"]
    lines = []
    for total in budget.totals:
        spent = "more than can be said" if total.spent is None else f"{total.spent:.4g}"
        at = f" at delta {total.delta:g}" if total.delta else ""
        if total.limit is None:
            lines.append(
                f"epsilon {spent}{at} spent so far on {total.unit.sentence} (no limit "
                "set: tempriv budget create sets one)"
            )
        else:
            lines.append(
                f"epsilon {spent} of {total.limit:g}{at} spent on {total.unit.sentence}, "
                f"{total.remaining:.4g} left"
            )
    return lines
