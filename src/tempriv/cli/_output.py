"""What commands print and write: tables, how far they are, pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any


def alarm(sentence: str, to_errors: bool = True) -> None:
    """Print a sentence in red, where a terminal shows it.

    Parameters:
        sentence: plain text.
        to_errors: whether it goes to standard error.
    """
    stream = sys.stderr if to_errors else sys.stdout
    if not stream.isatty():
        print(sentence, file=stream)
        return
    from rich.console import Console
    from rich.text import Text

    Console(file=stream).print(Text(sentence, style="bold red"), soft_wrap=True)


def table(names: list[str], rows: list[list[str]]) -> None:
    """Print a table that fits the screen, or a fixed width in a pipe.

    Parameters:
        names: the heads of its columns.
        rows: the cells of each row.
    """
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD)
    for name in names:
        shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(*map(escape, row))
    Console(width=None if Console().is_terminal else 160).print(shown)


@contextmanager
def progress(
    doing: str, total: int | None = None, *, spinner: bool = False, counted: bool = False
) -> Iterator[Callable[..., None]]:
    """Say how far a long job is, on a terminal; quiet in a pipe.

    Parameters:
        doing: what is done first.
        total: how much there is to do, if that is known.
        spinner: whether how much there is to do will not be known either.
        counted: whether to show how much is done and how much there is.

    Returns:
        A function that takes ``description``, ``advance``, ``completed`` or ``total``.
    """
    if not sys.stderr.isatty():
        yield lambda **changes: None
        return
    from rich import progress as shown
    from rich.console import Console

    text = shown.TextColumn("{task.description}")
    columns = [shown.SpinnerColumn(), text] if spinner else [text, shown.BarColumn()]
    columns += [shown.MofNCompleteColumn()] if counted else []
    columns.append(shown.TimeElapsedColumn())
    with shown.Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield partial(bars.update, bars.add_task(doing, total=total))


@contextmanager
def counting(doing: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Say how much of a job is done.

    Parameters:
        doing: what is done.
        total: how much there is to do; None: that is not known.

    Returns:
        A function that takes how much more was done.
    """
    with progress(doing, total) as update:
        yield lambda done: update(advance=done)


def save_picture(figure: Any, path: Path, private: bool = False) -> None:
    """Write a picture, as png, svg or pdf.

    Parameters:
        figure: of matplotlib.
        path: the file, whose ending says which.
        private: whether only its owner may read it.
    """
    from tempriv.data.files import follow_umask, write_durably
    from tempriv.report.plots.budget import drawn

    write_durably(path, drawn(figure, path.suffix[1:].lower()))
    if not private:
        follow_umask(path)
