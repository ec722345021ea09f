"""Whether a table that was read to its end is one that a mechanism can keep its promise for."""

from __future__ import annotations

from tempriv import units
from tempriv.errors import DataRefusal, require
from tempriv.reading import Facts
from tempriv.series import Series


def require_long_enough(unit: units.Unit, longest: int) -> None:
    """Rows cannot be moved about within a window that no series fills."""
    if isinstance(unit, units.ORDER):
        name = "block" if isinstance(unit, units.BlockSwap) else "window"
        require(
            longest > unit.span,
            f"the longest series has {longest} reading{'s'[: longest != 1]}, fewer than the "
            f"{name} of {unit.span + 1}: take a smaller {name}",
            DataRefusal,
        )


def require_untold(unit: units.Unit, series: Series, facts: Facts) -> None:
    """Times are published as they are; where they are the secret, only a count may stand there."""
    count = facts.clock == "integer" and facts.step in (None, 1) and not facts.filled
    require(
        not isinstance(unit, units.TIME)
        or series.time is None
        or (count and series.grid == "regular"),
        f"the time column {series.time!r} is published as it is, and would tell what is to be "
        "hidden: leave it out, or give the number of the reading (0, 1, 2, ...) instead",
        DataRefusal,
    )
