"""Counting people's events: the definition, what one person changes, and what is refused."""

from __future__ import annotations

import contextlib
import datetime
import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tempriv.data import duckdb
from tempriv.data.aggregate import MAX_COUNT, CountTable, aggregate
from tempriv.errors import DataError, UsageError
from tempriv.privacy.units import Contribution, Event, WholeSeries, Window

quick = settings(
    max_examples=7,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)

STEPS = 4
SPAN = {"person": "who", "time": "when", "every": "3", "start": 0, "end": 12}
KINDS = {
    "count": {},
    "sum": {"sum": "kwh", "bounds": (0, 2), "resolution": 0.5},
    "signed sum": {"sum": "kwh", "bounds": (-1, 2), "resolution": 0.5},
    "negative sum": {"sum": "kwh", "bounds": (-2, 0), "resolution": 0.5},
    "histogram": {"by": "room", "categories": ("a", "b")},
}
LIMITS = {
    "a person, 2 in all": {"max_per_person": 2},
    "a person, 1 in a step, 3 in all": {"max_per_step": 1, "max_per_person": 3},
    "a person, 2 in a step": {"max_per_step": 2},
    "a step, 2 in it": {"max_per_step": 2, "each": Event()},
    "two steps, 1 in each": {"max_per_step": 1, "each": Window(2)},
}

rows = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "cy"]),
        st.integers(-2, 13),
        st.sampled_from([-9.0, -0.7, -0.5, 0.0, 0.4, 1.0, 1.26, 7.0]),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=14,
)


@pytest.fixture(autouse=True)
def one_database(monkeypatch):
    """Thousands of small tables; a database and a spill directory for each would take minutes."""
    with duckdb.connection() as con:
        monkeypatch.setattr(duckdb, "connection", lambda: contextlib.nullcontext(con))
        yield


def table_of(events):
    names, kinds = (
        ("who", "when", "kwh", "room"),
        (pa.string(), pa.int64(), pa.float64(), pa.string()),
    )
    columns = list(zip(*events, strict=True)) or [()] * 4
    return pa.table({n: pa.array(c, type=k) for n, c, k in zip(names, columns, kinds, strict=True)})


def counted(events, **how):
    return aggregate(table_of(events), **{**SPAN, "missing": "drop", **how})


def series_of(found: CountTable):
    """As the unit sees it: a tuple of rows, each a tuple of its cells."""
    columns = [found.table.column(name).to_pylist() for name in found.columns]
    return tuple(zip(*columns, strict=True))


def by_definition(
    events,
    *,
    sum=None,
    bounds=None,
    resolution=1,
    by=None,
    categories=("count",),
    max_per_person=math.inf,
    max_per_step=math.inf,
    each=None,
):
    """In plain Python: go through a person's events in time and stop at either limit."""
    cells = [Counter() for _ in range(STEPS)]
    kept, kept_in_step = Counter(), Counter()

    def part(event):
        """What an event adds, and to which cell."""
        if sum is None:
            return 1, event[3] if by else "count"
        grid = Fraction(resolution)
        low, high = (round(Fraction(edge) / grid) for edge in bounds)
        steps = Fraction(event[2]) / grid
        nearest = math.floor(abs(steps) + Fraction(1, 2)) * (1 if steps >= 0 else -1)
        return min(max(nearest, low), high) * grid, "count"

    inside = [
        event for event in events if 0 <= event[1] < 12 and (not by or event[3] in categories)
    ]
    for event in sorted(inside, key=lambda e: (e[0], e[1], part(e)[1], part(e)[0])):
        who, step = event[0], event[1] // 3
        if kept_in_step[who, step] < max_per_step:
            kept_in_step[who, step] += 1
            if kept[who] < max_per_person:
                kept[who] += 1
                added, cell = part(event)
                cells[step][cell] += added
    return tuple(tuple(step[name] for name in categories) for step in cells)


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_counts_are_what_the_definition_says(kind, limits):
    @quick
    @given(rows)
    def holds(events):
        found = counted(events, **kind, **limits)
        assert series_of(found) == by_definition(events, **kind, **limits)
        assert found.table.column("when").to_pylist() == [0, 3, 6, 9]

    holds()


def parts_of(events, each):
    """What the unit lets be left out: a person's events, all or those of some steps in a row."""
    seen = [events]  # who had nothing there changes nothing
    for who in {event[0] for event in events}:
        for start in range(1 if each is None else STEPS):
            steps = range(3 * start, 3 * (start + each.readings)) if each else None
            rest = [
                event for event in events if event[0] != who or (each and event[1] not in steps)
            ]
            if rest not in seen:
                seen.append(rest)
                yield rest


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("tables", [5, pytest.param(20, marks=pytest.mark.long)])
def test_whoever_leaves_changes_the_counts_by_no_more_than_the_unit_says(kind, limits, tables):
    @settings(quick, max_examples=tables)
    @given(rows)
    def holds(events):
        whole = counted(events, **kind, **limits)
        before = series_of(whole)
        for rest in parts_of(events, limits.get("each")):
            after = series_of(counted(rest, **kind, **limits))
            assert whole.unit.are_neighbors(before, after), (before, after)

    holds()

    unit = counted([], **kind, **limits).unit

    @settings(quick, max_examples=8 * tables)
    @given(rows)
    def holds_by_definition(events):
        """The same of the plain definition, which is quicker to ask."""
        before = by_definition(events, **kind, **limits)
        for rest in parts_of(events, limits.get("each")):
            assert unit.are_neighbors(before, by_definition(rest, **kind, **limits))

    holds_by_definition()


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_the_unit_says_no_more_than_is_needed(kind, limits):
    """Somebody with many large events changes the counts by all that is guaranteed."""
    value = {"sum": 7.0, "signed sum": 7.0, "negative sum": -9.0}
    name = next(one for one, how in KINDS.items() if how is kind)
    events = [("ann", t, value.get(name, 0.0), "a") for t in range(12) for _ in range(3)]
    found = counted(events, **kind, **limits)
    each = limits.get("each") or WholeSeries(STEPS)
    reached = [abs(row[0]) for row in series_of(found)][: each.readings]
    assert max(reached) == found.unit.per_step
    assert sum(reached) == found.unit.most


def test_a_limit_on_the_whole_would_tie_steps_to_each_other():
    """Why single steps have no such limit: who leaves one of them is counted later instead."""
    events = [("ann", 0, 0.0, "a"), ("ann", 5, 0.0, "a")]
    before, after = (by_definition(one, max_per_person=1) for one in (events, events[1:]))
    assert not Contribution(Event(), per_step=1).are_neighbors(before, after)


@quick
@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(events, random):
    mixed = list(events)
    random.shuffle(mixed)
    for kind in KINDS.values():
        first, other = (counted(one, **kind, max_per_person=2) for one in (events, mixed))
        assert first.table.equals(other.table)


def test_units_of_each_kind():
    events = [("ann", 1, 1.0, "a")]
    assert counted(events, max_per_person=5).unit == Contribution(WholeSeries(4), 5, 5)
    assert counted(events, max_per_step=1, max_per_person=5).unit == Contribution(
        WholeSeries(4), 1, 5
    )
    assert counted(events, max_per_step=2, each=Window(3)).unit == Contribution(Window(3), 2)
    found = counted(events, **KINDS["signed sum"], max_per_step=2, max_per_person=3)
    assert found.unit == Contribution(WholeSeries(4), 4.0, 6.0, signed=True)
    assert found.bounds == ((-1.0 * MAX_COUNT, 2.0 * MAX_COUNT),) and found.grid == 0.5
    assert not counted(events, **KINDS["negative sum"], max_per_step=2).unit.signed
    assert counted(events, **KINDS["negative sum"], max_per_step=2).bounds == (
        (-2.0 * MAX_COUNT, 0.0),
    )


def test_sums_lie_on_the_grid_to_the_last_bit():
    rng = np.random.default_rng(8)
    events = [(f"p{i}", int(i % 12), float(x), "a") for i, x in enumerate(rng.normal(0, 1, 500))]
    found = counted(events, sum="kwh", bounds=(-3, 3), max_per_person=1)
    assert found.grid == 2.0**-9
    values = found.table.column("kwh").to_numpy()
    assert (values / found.grid == np.rint(values / found.grid)).all()
    assert (
        np.abs(
            values - np.array([sum(e[2] for e in events if e[1] // 3 == s) for s in range(4)])
        ).max()
        < 1
    )


# times


def moments(kind, hours):
    start = datetime.datetime(2026, 3, 1)
    found = [start + datetime.timedelta(hours=h) for h in hours]
    zone = "UTC" if kind == "zone" else None
    return pa.array(found, type=pa.timestamp("us", zone))


@pytest.mark.parametrize("kind", ["plain", "zone"])
def test_datetimes(kind):
    events = pa.table({"who": [1, 2, 3, 4], "t": moments(kind, [0, 25.5, 47.99, 48])})
    found = aggregate(
        events,
        person="who",
        time="t",
        every="1d",
        start="2026-03-01",
        end="2026-03-03 00:00",
        max_per_person=1,
    )
    assert found.table.column("count").to_pylist() == [1, 2]
    first = found.table.column("t").to_pylist()[0]
    assert str(first).startswith("2026-03-01 00:00:00")
    assert found.table.column("t").type == events.column("t").type


def test_dates_and_hours_beside_them():
    events = pa.table(
        {"who": [1, 2], "day": pa.array([datetime.date(2026, 3, 1)] * 2), "hour": [23, 5]}
    )
    daily = aggregate(
        events,
        person="who",
        time="day",
        every="1d",
        start="2026-02-28",
        end=datetime.date(2026, 3, 2),
        max_per_person=1,
    )
    assert daily.table.column("count").to_pylist() == [0, 2]
    assert daily.table.column("day").to_pylist()[0] == datetime.date(2026, 2, 28)
    hourly = aggregate(
        events,
        person="who",
        time="day+hour",
        every="12h",
        start="2026-03-01",
        end="2026-03-02",
        max_per_person=1,
    )
    assert hourly.time == "time" and hourly.table.column("count").to_pylist() == [1, 1]


def test_time_zones_of_declared_moments():
    events = pa.table({"who": [1], "t": moments("zone", [1])})
    how = {"person": "who", "time": "t", "every": "1h", "max_per_person": 1}
    found = aggregate(events, start="2026-03-01T02:00+01:00", end="2026-03-01T03:00+01:00", **how)
    assert found.table.column("count").to_pylist() == [1]
    plain = pa.table({"who": [1], "t": moments("plain", [1])})
    with pytest.raises(UsageError, match="without a time zone"):
        aggregate(plain, start="2026-03-01T02:00+01:00", end="2026-03-02", **how)


# tables


def test_any_kind_of_table_gives_the_same(tmp_path):
    table = table_of([("ann", 1, 1.0, "a"), ("bob", 1, 2.0, "b"), ("bob", 7, 2.0, "a")])
    pa.csv.write_csv(table, tmp_path / "events.csv")
    pa.parquet.write_table(table, tmp_path / "events.parquet")
    sources = [
        tmp_path / "events.csv",
        str(tmp_path / "events.parquet"),
        table,
        polars.from_arrow(table),
        pandas.DataFrame(table.to_pydict()),
    ]
    found = [
        aggregate(one, **SPAN, by="room", categories=["b", "a"], max_per_person=2)
        for one in sources
    ]
    assert {tuple(map(tuple, one.table.to_pydict().values())) for one in found} == {
        ((0, 3, 6, 9), (1, 0, 0, 0), (1, 0, 1, 0))
    }
    assert all(one.columns == ("b", "a") for one in found)


def test_an_empty_table_has_zeros():
    found = counted([], max_per_person=1)
    assert series_of(found) == ((0,),) * STEPS


def test_a_dry_run_looks_at_no_event():
    """Not even at what is missing; everything but the counts is as it will be."""
    found = aggregate(MISSING, **SPAN, max_per_person=3, dry=True)
    assert series_of(found) == ((0,),) * STEPS and found.steps == STEPS
    real = aggregate(MISSING, **SPAN, max_per_person=3, missing="drop")
    assert (found.unit, found.settings, found.columns) == (real.unit, real.settings, real.columns)


def test_nothing_private_is_shown():
    found = counted([("ann", 1, 1.0, "a")], max_per_person=1)
    assert "ann" not in repr(found) and "[1" not in repr(found)
    assert found.settings == {"unit": found.unit, "bounds": found.bounds, "grid": found.grid}
    assert "3 time units" in found.how[0] and "1 in all" in found.how[1]


MISSING = pa.table(
    {
        "who": pa.array(["ann", None, "bob", "bob", "bob"]),
        "when": pa.array([1, 1, None, 1, 2]),
        "kwh": pa.array([1.0, 1.0, 1.0, None, math.nan]),
        "room": pa.array(["a", "a", "a", None, "z"]),
    }
)


@pytest.mark.parametrize("kind", ["count", "sum", "histogram"])
def test_rows_that_lack_something_are_refused_or_left_out(kind):
    how = {**SPAN, **KINDS[kind], "max_per_person": 9}
    with pytest.raises(DataError) as refusal:
        aggregate(MISSING, **how)
    said = str(refusal.value).splitlines()
    assert said[0].startswith("1 row without a person in 'who'; leave such rows out")
    assert said[1].startswith("1 row without a time")
    assert len(said) == (2 if kind == "count" else 3)
    if kind != "count":
        assert said[2].startswith("2 rows without ")
    found = aggregate(MISSING, **how, missing="drop")
    assert series_of(found)[0][0] == {"count": 3, "sum": 1.0, "histogram": 1}[kind]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"start": None}, "start and end: must be declared"),
        ({"end": None}, "start and end: must be declared"),
        ({"start": 12}, "the start must be before the end"),
        ({"start": "noon"}, "start=noon: must be a whole number"),
        ({"every": "5"}, "every=5: must divide the time"),
        ({"every": "1h"}, "step='1h': must be a whole number"),
        ({"every": "0"}, "step='0'"),
        ({"end": 10**9, "every": "1"}, "cells"),
        ({"max_per_person": None}, "max_per_person: must be given"),
        ({"max_per_person": 0}, "max_per_person=0: "),
        ({"max_per_person": 1.5}, "max_per_person=1.5: "),
        ({"max_per_step": -1}, "max_per_step=-1: "),
        ({"max_per_step": 9}, "max_per_step=9: must be at most max_per_person=3"),
        ({"each": Event()}, "without max_per_person"),
        ({"each": Window(2), "max_per_person": None}, "must come with max_per_step"),
        ({"each": WholeSeries(4)}, "each=WholeSeries"),
        ({"missing": "guess"}, "missing='guess': "),
        ({"by": "room"}, "categories of 'room': must be declared"),
        ({"by": "room", "categories": "abc"}, "categories of 'room'"),
        ({"by": "room", "categories": ("a", "a")}, "name each only once"),
        ({"by": "room", "categories": ("a", "when")}, "column 'when': choose another name"),
        ({"by": "room", "categories": ("a",), "sum": "kwh"}, "sum and by: "),
        ({"categories": ("a",)}, "must be left out without by"),
        ({"bounds": (0, 1)}, "must be left out without sum"),
        ({"sum": "kwh"}, "bounds=None: must be declared for a sum"),
        ({"sum": "kwh", "bounds": (1, 0)}, "bounds=(1, 0): "),
        ({"sum": "kwh", "bounds": (0, math.inf)}, "bounds=(0, inf): "),
        ({"sum": "kwh", "bounds": (0, 1), "resolution": 0.3}, "resolution=0.3: "),
        ({"sum": "kwh", "bounds": (0, 1), "resolution": 8}, "resolution=8: must be finer"),
        ({"sum": "kwh", "bounds": (0, 1), "resolution": 2.0**-40}, "must be coarser"),
    ],
)
def test_refusals(changed, said):
    how = {**SPAN, "max_per_person": 3, **changed}
    with pytest.raises(UsageError, match=re.escape(said)) as refusal:
        aggregate(table_of([("ann", 1, 1.0, "a")]), **how)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"person": "whom"}, "no column 'whom'; the columns are who, when, kwh, room"),
        ({"time": "clock"}, "no column 'clock'"),
        ({"person": "kwh"}, "holds fractions"),
        ({"time": "room"}, "times must be"),
        ({"sum": "room", "bounds": (0, 1)}, "not numbers"),
    ],
)
def test_tables_that_do_not_fit(changed, said):
    with pytest.raises(DataError, match=re.escape(said)):
        aggregate(table_of([("ann", 1, 1.0, "a")]), **{**SPAN, "max_per_person": 3, **changed})


def test_what_is_no_table_is_refused():
    with pytest.raises(UsageError, match="data: must be"):
        aggregate([1, 2], **SPAN, max_per_person=1)
