"""Visits of people to a made-up clinic over four weeks, one row for each.

Most people come once or twice, some every other day. The clinic is open on weekdays, is emptier at
noon, and has an emergency ward that never closes. Nothing was taken from real visits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tempriv.datasets.draws import Floats, Integers, choose, happens, uniform
from tempriv.sampling.keys import Generator, Key, simulation

PEOPLE, DAYS, HOURS = 5_000, 28, 24
START = np.datetime64("2026-03-02T00:00:00", "s")  # a Monday

# from midnight on: open from 7 to 18, most before noon, few while people eat
OPEN = (*(0,) * 7, 4, 9, 11, 10, 8, 3, 6, 8, 7, 5, 2, *(0,) * 6)
ALWAYS = (2, 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6, 7, 7, 6, 5, 4, 3)
WEEKDAYS = (6, 5, 4, 5, 4, 0, 0)
EVERY_DAY = (5, 4, 4, 4, 5, 6, 6)


@dataclass(frozen=True)
class _Reason:
    """Why people come, and when; ``visits`` are the least and most of one person."""

    name: str
    ward: str
    people: float
    visits: tuple[int, int]
    days: tuple[int, ...] = WEEKDAYS
    hours: tuple[int, ...] = OPEN


REASONS = (
    _Reason("check-up", "general", 0.48, (1, 2)),
    _Reason("blood test", "laboratory", 0.2, (1, 3)),
    _Reason("injury", "emergency", 0.12, (1, 2), EVERY_DAY, ALWAYS),
    _Reason("exercise", "physiotherapy", 0.15, (3, 9)),
    _Reason("dialysis", "dialysis", 0.05, (10, 13), (1, 1, 1, 1, 1, 1, 0)),
)


def visits() -> pa.Table:
    """The table ``visits``: card, entered, ward and reason, a row for each visit in order of time.

    >>> visits().column_names
    ['card', 'entered', 'ward', 'reason']
    """
    generator = simulation(Key.from_seed(2026), "visits")
    kind = choose(generator, [reason.people for reason in REASONS], PEOPLE)
    parts = [
        _of_reason(reason, np.flatnonzero(kind == k), generator) for k, reason in enumerate(REASONS)
    ]
    person = np.concatenate([people for people, _ in parts])
    second = np.concatenate([seconds for _, seconds in parts])
    place = np.repeat(np.arange(len(parts)), [len(people) for people, _ in parts])
    order = np.lexsort((person, second))
    cards = np.array([f"card-{number:04d}" for number in range(1, PEOPLE + 1)])
    return pa.table(
        {
            "card": cards[person[order]],
            "entered": START + second[order].astype("timedelta64[s]"),
            "ward": np.array([reason.ward for reason in REASONS])[place[order]],
            "reason": np.array([reason.name for reason in REASONS])[place[order]],
        }
    )


def _of_reason(
    reason: _Reason, people: Integers, generator: Generator
) -> tuple[Integers, Integers]:
    """Whose visits, and how many seconds after the start; at most one visit of a person a day."""
    low, high = reason.visits
    times = low + choose(generator, np.ones(high - low + 1), len(people))
    person = np.repeat(people, times)
    day = _days(reason, times, generator)
    # some people have an hour of their own that they mostly keep
    usual = np.repeat(choose(generator, reason.hours, len(people)), times)
    keeps = happens(generator, 0.6, len(person))
    hour = np.where(keeps, usual, choose(generator, reason.hours, len(person)))
    second = np.floor(uniform(generator, 0, 3600, len(person))).astype(np.int64)
    return person, (day * HOURS + hour) * 3600 + second


def _days(reason: _Reason, times: Integers, generator: Generator) -> Integers:
    """Different days for the visits of a person: those with the smallest of weighted draws."""
    weights = np.tile(np.array(reason.days, dtype=np.float64), DAYS // 7)
    open_days = np.flatnonzero(weights)
    draws: Floats = -np.log1p(-generator.random((len(times), len(open_days))))
    ranked = np.argsort(draws / weights[open_days], axis=1, kind="stable")
    wanted = np.arange(len(open_days)) < times[:, None]
    return open_days[ranked[wanted]]
