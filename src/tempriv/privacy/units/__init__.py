"""What is protected: executable definitions of who or what may differ between two inputs.

Each unit is loaded when first used. ``make generate`` writes ``__init__.pyi``, which names all of
them for type checkers.
"""

from typing import Any

from tempriv.privacy.units.base import (
    Example,
    Pair,
    Unit,
    all_units,
    conversion_factor,
    discover_units,
    unit_entries,
    units_named,
)

__all__ = ["Example", "Pair", "Unit", "all_units", "conversion_factor", "unit_entries"]
__all__ += ["units_named", *(entry.kind for entry in unit_entries())]


def __getattr__(name: str) -> Any:
    # make generate loads new files, whose units are not in the index yet
    for entries in () if name.startswith("_") else (unit_entries, discover_units):
        for entry in entries():
            if entry.kind == name:
                return globals().setdefault(name, entry.load())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
