"""What commands print: tables that fit the screen, or a fixed width in a pipe."""

from __future__ import annotations


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
