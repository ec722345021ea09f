"""What is protected, as options say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempriv.errors import require

if TYPE_CHECKING:
    from tempriv.privacy.units import Unit


def make_unit(
    unit: str, window: int | None, length: int | None, max_series: int | None = None
) -> Unit:
    from tempriv.privacy.units import Event, Person, WholeSeries, Window

    require(
        unit in ("event", "window", "series"), f"--unit {unit}: must be event, window or series"
    )
    for name, given, wanted in (("--window", window, "window"), ("--length", length, "series")):
        require(given is None or unit == wanted, f"{name} {given}: goes with --unit {wanted} only")
        require(
            given is not None or unit != wanted,
            f"--unit {unit} needs {name}: how many readings in a row it covers",
        )
    each: Any = Event()
    if unit == "window":
        each = Window(window or 0)
    elif unit == "series":
        each = WholeSeries(length or 0)
    return each if max_series is None else Person(max_series, each)


def make_contribution(
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
