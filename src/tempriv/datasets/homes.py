"""Hourly electricity readings of 600 made-up homes over four weeks of winter.

How many people live in a home and when they are up, at work and back; weekends, cold days, homes
that are left for days, and a few that use very much. Nothing was taken from real readings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.datasets.draws import (
    Floats,
    Integers,
    choose,
    happens,
    lognormal,
    normal,
    uniform,
)
from tempriv.sampling.keys import Generator, Key, simulation

HOMES, DAYS, HOURS = 600, 28, 24
START = np.datetime64("2026-01-05T00:00:00", "s")  # a Monday
BOUNDS = (0.0, 10.0)
"""What a reading can be, known without looking at the table, in kWh."""
MOST = 8.0  # what the main fuse of these homes lets through in an hour
HEATED_BELOW = 15.0  # degrees Celsius outside
HEATING, REGIONS = ("gas", "electric"), ("south", "north")
PEOPLE = (0.34, 0.33, 0.14, 0.13, 0.06)  # shares of homes with one to five people

Flags = npt.NDArray[np.bool_]
DAYS_OF_WEEK = np.arange(DAYS) % 7
HOUR = np.arange(HOURS, dtype=np.float64)


@dataclass(frozen=True)
class _Households:
    """What stays the same of each home."""

    people: Integers
    electric: Flags
    north: Flags
    at_work: Flags
    wakes: Floats
    dines: Floats
    use: Floats
    standby: Floats
    per_degree: Floats
    charges_car: Flags


def homes() -> pa.Table:
    """The table ``homes``: home, time, kWh, heating and region, a row for each reading.

    >>> homes().num_rows
    403200
    """
    generator = simulation(Key.from_seed(2026), "homes")
    households = _households(generator)
    used = _appliances(households, generator) + _heating(households, generator)
    present = _present(households, generator)
    used = used * present + households.standby[:, None, None] * (1 - 0.6 * present)
    used += _cars(households, generator) * present
    used *= lognormal(generator, 0.3, HOMES, DAYS, HOURS)
    kwh: Floats = np.minimum(used, MOST).round(3)
    return _table(households, kwh)


def _households(generator: Generator) -> _Households:
    people = 1 + choose(generator, PEOPLE, HOMES)
    great = happens(generator, 0.02, HOMES)  # a workshop, a sauna, a server in the cellar
    use = lognormal(generator, 0.4, HOMES) * np.where(great, 4.0, 1.0)
    electric = happens(generator, 0.3, HOMES)
    per_degree = uniform(generator, 0.02, 0.06, HOMES) * lognormal(generator, 0.3, HOMES)
    return _Households(
        people=people,
        electric=electric,
        north=happens(generator, 0.45, HOMES),
        at_work=happens(generator, 0.62, HOMES),
        wakes=normal(generator, 6.8, 0.8, HOMES),
        dines=normal(generator, 19.0, 0.9, HOMES),
        use=use,
        standby=uniform(generator, 0.02, 0.09, HOMES) * use,
        # pumps and fans of gas heating use some, too
        per_degree=per_degree * np.where(electric, 0.8 + 0.15 * people, 0.06),
        charges_car=happens(generator, 0.06, HOMES),
    )


def _bump(center: Floats, width: float) -> Floats:
    """A rise and fall around an hour of the day, which may pass midnight."""
    apart = np.abs(HOUR - center[..., None])
    rise: Floats = np.exp(-(np.minimum(apart, HOURS - apart) ** 2) / (2 * width**2))
    return rise


def _appliances(households: _Households, generator: Generator) -> Floats:
    """Light, kitchen, screens and washing: a morning and an evening peak, more at weekends."""
    weekend = (DAYS_OF_WEEK >= 5)[None, :]
    late = lognormal(generator, 0.05, HOMES, DAYS)  # no day is quite like another
    morning = _bump(households.wakes[:, None] + 0.7 + 1.6 * weekend, 1.1)
    dinner = _bump(households.dines[:, None] * late, 1.2)
    evening = _bump(households.dines[:, None] * late + 1.5, 2.2)
    out = households.at_work[:, None] & ~weekend
    midday = _bump(np.full((HOMES, DAYS), 13.0), 2.6) * np.where(out, 0.15, 0.9)[..., None]
    of_day = 0.5 * morning + 0.75 * dinner + 0.45 * evening + 0.35 * midday + 0.12
    size = households.use * (0.35 + 0.22 * households.people)
    busy = lognormal(generator, 0.2, HOMES, DAYS)
    machine = happens(generator, 0.025, HOMES, DAYS, HOURS) & (HOUR >= 8) & (HOUR <= 21)
    washing = machine * uniform(generator, 0.6, 2.2, HOMES, DAYS, HOURS)
    return (size[:, None] * busy)[..., None] * of_day + washing


def _heating(households: _Households, generator: Generator) -> Floats:
    """Use for each degree that it is too cold; less at night."""
    day = _weather(generator)[None, :] - 2.5 * households.north[:, None]
    outside = day[..., None] - 3.0 * np.cos(2 * np.pi * (HOUR - 3.0) / HOURS)
    night = np.where((HOUR < 5.5) | (HOUR > 22), 0.55, 1.0)
    back = 1.0 + 0.25 * _bump(households.dines, 2.0)[:, None, :]
    return (
        households.per_degree[:, None, None] * np.maximum(HEATED_BELOW - outside, 0) * night * back
    )


def _weather(generator: Generator) -> Floats:
    """The mean temperature of each day, which the next day mostly keeps; one week is cold."""
    moves = normal(generator, 0.0, 1.8, DAYS)
    degrees = np.empty(DAYS)
    for day in range(DAYS):
        before = degrees[day - 1] if day else 4.0
        degrees[day] = 4.0 + 0.75 * (before - 4.0) + moves[day]
    degrees[12:18] -= 6.0
    return degrees


def _present(households: _Households, generator: Generator) -> Floats:
    """1 where somebody lives in the home, 0 while it is left for a weekend, a trip, or all year."""
    present = np.ones((HOMES, DAYS, HOURS))
    trip = happens(generator, 0.2, HOMES)
    first = choose(generator, np.ones(DAYS), HOMES)
    last = first + 2 + choose(generator, np.ones(9), HOMES)
    day = np.arange(DAYS)
    present[trip[:, None] & (day >= first[:, None]) & (day <= last[:, None])] = 0.0
    away = np.repeat(happens(generator, 0.07, HOMES, DAYS // 7), 7, axis=1)
    present[away & (DAYS_OF_WEEK >= 5)] = 0.0
    present[happens(generator, 0.015, HOMES)] = 0.0
    return present


def _cars(households: _Households, generator: Generator) -> Floats:
    """Charging at home, for some hours of some nights."""
    night = households.charges_car[:, None] & happens(generator, 0.35, HOMES, DAYS)
    lasts = 2 + choose(generator, np.ones(4), HOMES, DAYS)
    charging = night[..., None] & (lasts[..., None] > HOUR)
    return charging * uniform(generator, 3.2, 6.8, HOMES)[:, None, None]


def _table(households: _Households, used: Floats) -> pa.Table:
    """One home after the other, the hours of each in order."""
    rows = DAYS * HOURS
    hours = START + np.arange(rows) * np.timedelta64(3600, "s")
    each = np.repeat(np.arange(HOMES), rows)
    names = np.array([f"home-{number:03d}" for number in range(1, HOMES + 1)])
    return pa.table(
        {
            "home": names[each],
            "time": np.tile(hours, HOMES),
            "kWh": used.ravel(),
            "heating": np.array(HEATING)[households.electric.astype(int)][each],
            "region": np.array(REGIONS)[households.north.astype(int)][each],
        }
    )
