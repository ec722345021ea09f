"""What commands print: tables that fit the screen, or a fixed width in a pipe."""

from __future__ import annotations

from pathlib import Path

from tempriv.errors import TemprivError, require


def table(names: list[str], rows: list[list[str]]) -> None:
    """Rows under their names."""
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


def refuse_plot(plot: Path | None, force: bool) -> None:
    if plot is None:
        return
    require(
        plot.suffix.lower() in (".png", ".svg", ".pdf"),
        f"{plot}: a picture ends in .png, .svg or .pdf",
    )
    require(plot.parent.is_dir(), f"{plot.parent}: no such directory")
    require(
        force or not plot.exists(),
        f"{plot}: exists already; choose another name, or replace it with --force",
        TemprivError,
    )
