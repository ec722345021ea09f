"""Charges add up where they touch the same data: against brute force, and in the ledger."""

from __future__ import annotations

import itertools
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tempriv.accounting.filters import Cost, Total, order_of, worst_total
from tempriv.accounting.renyi import epsilon_of_rho
from tempriv.errors import BudgetError, UsageError
from tempriv.ledger.ledger import Ledger
from tempriv.ledger.scope import (
    EARLIEST,
    LATEST,
    Scope,
    ScopedCost,
    member_classes,
    total_costs,
)
from tempriv.privacy.guarantees import Approximate, Concentrated, Guarantee, Pure
from tempriv.privacy.units import Event, Person, Unit, WholeSeries, Window, WithinDistance
from tests.support.ledgers import HALF, span

DELTA = 1e-6
DAY = 24 * 60 * 60 * 1_000_000  # in microseconds


def spent(ledger: Ledger, *scopes: Scope, unit: Unit, promise: Guarantee = HALF) -> float:
    """The total for the unit once each scope is charged."""
    ledger.create_dataset("meters", unit=unit, epsilon=1e6, delta=1e-6)
    for number, scope in enumerate(scopes):
        ledger.charge("meters", promise, scope, f"release {number}")
    (total,) = ledger.show("meters").totals
    assert total.by_sum is not None
    return total.by_sum


@pytest.mark.parametrize(
    ("scopes", "unit", "expected"),
    [
        # disjoint members never add
        ([span(0, 9, "a"), span(0, 9, "b")], Event(), 0.5),
        ([span(0, 1, "a"), span(0, 1, "b")], WholeSeries(2), 1.0),
        ([span(0, 9, "a", "b"), span(0, 9, "b", "c")], Event(), 1.0),
        ([span(0, 9, "a"), span(0, 9)], Event(), 1.0),
        ([span(0, 9, "7"), Scope(members=np.array([7]), start=0, end=9, step=1)], Event(), 1.0),
        # disjoint times do not add for single readings
        ([span(0, 9), span(10, 19)], Event(), 0.5),
        ([span(0, 9), span(10, 19)], WithinDistance(5.0), 0.5),
        ([span(0, 9), span(9, 19)], Event(), 1.0),
        ([span(0, 9), Scope(start=10, step=1)], Event(), 0.5),
        ([span(0, 9), Scope(end=0, step=1)], Event(), 1.0),
        ([span(0, 9), Scope(step=1)], Event(), 1.0),
        # a window of 3 steps touches both where at most one step lies between
        ([span(0, 9), span(11, 19)], Window(3), 3.0),
        ([span(0, 9), span(12, 19)], Window(3), 1.5),
        ([span(11, 19), span(0, 9)], Window(3), 3.0),
        ([span(12, 19), span(0, 9)], Window(3), 1.5),
        ([span(0, 90, step=10), span(110, 190, step=10)], Window(3), 3.0),
        ([span(0, 90, step=10), span(120, 190, step=10)], Window(3), 1.5),
        # between the first release's steps three of them reach into four, and one into two
        ([span(0, 90, step=10), span(111, 190, step=10)], Window(3), 3.5),
        ([span(0, 90, step=10), span(115, 190, step=10)], Event(), 1.0),
        ([span(0, 90, step=10), span(99, 190, step=10)], Event(), 1.5),
        # a reading stands for the whole of its step
        ([span(0, 90, step=10), span(95, 98, step=1)], Event(), 5.5),
        ([span(0, 90, step=10), span(100, 109, step=1)], Event(), 5.0),
        # the first steps of a dataset are those of its limits, whatever comes later
        ([span(0, 9), span(12, 19), span(0, 9, "a", step=60)], Window(3), 2.5),
        ([span(0, 9, "a"), span(12, 19, "a"), span(900, 960, "b", step=60)], Window(3), 1.5),
        ([span(0, 60, "b", step=60), span(0, 9, "a")], Window(3), 90.0),
        ([span(0, 9, step=None), span(12, 19, step=None)], Window(3), 3.0),
        ([span(0, 9, step=None), span(12, 19, step=None)], Event(), 0.5),
        # the time of whole series does not matter
        ([span(0, 2), span(100, 102)], WholeSeries(3), 3.0),
        ([span(0, 9, "a", kind="series home"), span(0, 9, "b", kind="series meter")], Event(), 1.0),
        ([span(0, 9, "a", kind="series home"), span(0, 9, "b", kind="series home")], Event(), 0.5),
        # times of different columns, series and persons are not told apart
        ([span(0, 9, clock="date t"), span(50, 59, clock="date t2")], Event(), 1.5),
        ([span(0, 9, clock="date"), span(20, 29, step=DAY, clock="datetime")], Event(), 1.5),
        ([span(0, 9, clock="date"), span(20, 29, step=DAY // 2, clock="datetime")], Event(), 2.0),
        ([span(0, 9, clock="index"), span(20, 29, clock="index")], Event(), 0.5),
        ([span(0, 9, clock="index"), span(20, 29, step=None)], Event(), 1.0),
        ([span(0, 9, "a"), span(0, 9, "b", kind="person")], Event(), 1.0),
        ([span(0, 9, "a", kind="person"), span(0, 9, "b", kind="person")], Event(), 0.5),
        # a person follows what is covered in each series
        ([span(0, 9), span(10, 19)], Person(1, Event()), 0.5),
        ([span(0, 9), span(11, 19)], Person(1, Window(3)), 3.0),
        # who has two series may change in one now and in the other later
        ([span(0, 9), span(10, 19)], Person(2, Event()), 2.0),
        ([span(0, 9, "a"), span(0, 9, "b")], Person(2, Event()), 2.0),
        (
            [span(0, 9, "a", kind="person"), span(0, 9, "b", kind="person")],
            Person(2, Event()),
            1.0,
        ),
    ],
)
def test_charges_add_up_where_they_touch_the_same_data(ledger, scopes, unit, expected):
    assert spent(ledger, *scopes, unit=unit) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (span(0, 9), span(12, 19, step=None)),
        (span(0, 9, step=None), span(12, 19)),
        (span(0, 9), Scope(clock="index")),
        (span(0, 9, clock="integer t"), span(50, 59, clock="integer t2")),
        (span(0, 9, clock="datetime t"), span(50, 59, clock="datetime UTC t")),
        (span(0, 9), span(20, 29, clock="date")),
    ],
)
def test_steps_that_cannot_be_compared_are_refused(ledger, first, second):
    ledger.create_dataset("meters", unit=Person(2, Event()), epsilon=1e6)
    ledger.create_dataset("meters", epsilon=1e6)
    ledger.charge("meters", HALF, first, "first")
    before = ledger.show("meters").totals
    with pytest.raises(BudgetError, match="how many readings of one belong to a reading of the"):
        ledger.charge("meters", HALF, second, "second")
    assert ledger.show("meters").totals == before
    # recorded without a limit, they have no bound
    ledger.ensure_dataset("unlimited")
    for number, scope in enumerate((first, second)):
        ledger.charge("unlimited", HALF, scope, f"unlimited {number}")
    assert ledger.show("unlimited").totals[0].spent is None
    assert ledger.create_dataset("unlimited", unit=WholeSeries(10), epsilon=9.0).spent == 10.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "thing"},
        {"clock": "sundial"},
        {"members": "abc"},
        {"members": (1.5,)},
        {"start": 1.5},
        {"start": 5, "end": 4},
        {"end": 2**63},
        {"step": 0},
        {"even": 1.0},
    ],
)
def test_an_impossible_scope_is_refused(wrong):
    with pytest.raises(UsageError):
        Scope(**wrong)


def test_the_ends_of_time_do_not_overflow(ledger):
    last = 2**63 - 1
    late = span(last - 5, last, step=last)
    # two steps of the second, which no step of the first meets on its grid
    assert spent(ledger, span(-(2**63), 0), late, unit=Window(9)) == 4.5


def losses() -> st.SearchStrategy[Guarantee]:
    loss = [Pure(0.25), Pure(1.0), Approximate(0.5, 1e-8), Concentrated(0.01)]
    unit = [Event(), Window(2), WholeSeries(4), Person(2, Event())]
    return st.builds(
        lambda loss, unit: Guarantee(loss=loss, unit=unit), *map(st.sampled_from, (loss, unit))
    )


def scopes() -> st.SearchStrategy[Scope]:
    members = [None, ("a",), ("b",), ("a", "b"), ("b", "c"), ("d",)]
    spans = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted)
    return st.builds(
        lambda kind, members, span, step, clock: Scope(kind, members, *span, step, clock),
        st.sampled_from(["series"] * 4 + ["person"]),
        st.sampled_from(members),
        spans,
        st.sampled_from([1, 1, 1, 2, None]),
        st.sampled_from(["integer"] * 6 + ["date"]),
    )


def measures(total: Total) -> list[float]:
    values = (total.by_sum, total.by_zcdp, total.spent, total.remaining)
    return [math.inf if value is None else value for value in values]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(losses(), scopes()), min_size=1, max_size=8),
    st.sampled_from([Event(), Window(3), WholeSeries(4), Person(1, Event()), Person(2, Event())]),
)
@example(
    [
        (Guarantee(loss=Pure(0.25), unit=Event()), span(0, 0, clock="date")),
        (Guarantee(loss=Pure(1.0), unit=Event()), span(0, 0)),
        (Guarantee(loss=Concentrated(0.01), unit=Event()), span(5, 5)),
    ],
    Event(),
)
def test_running_totals_are_those_of_the_whole_history(charges, unit):
    """Brute force stands below; here one charge at a time must come to the same."""
    with tempfile.TemporaryDirectory() as folder, Ledger.create(Path(folder, "ledger")) as ledger:
        ledger._file.execute("PRAGMA synchronous = OFF")
        ledger.create_dataset("meters", unit=unit, epsilon=1e6, delta=1e-3)
        for number, (promise, scope) in enumerate(charges):
            try:
                expected = ledger.check("meters", promise, scope)
                assert ledger.charge("meters", promise, scope, str(number)).totals == expected
            except BudgetError as refusal:
                # longer series than the limit's, or deltas that a large unit makes too large
                expected_reasons = ("unbounded", "set a limit for series", "is not known")
                assert any(reason in str(refusal) for reason in expected_reasons)
        (running,) = ledger.show("meters").totals
        whole = ledger.create_dataset("meters", unit=unit, epsilon=1e6, delta=1e-3, replace=True)
    assert measures(running) == pytest.approx(measures(whole), rel=1e-9)


def test_member_classes_are_all_combinations_that_occur():
    ids = [np.array(one, dtype=np.uint64) for one in ([1, 2, 3], [3, 4], [2, 3], [9])]
    expected = {(0,), (0, 2), (0, 1, 2), (1,), (3,)}
    assert {tuple(one) for one in member_classes(ids)} == expected
    assert {tuple(one) for one in member_classes(ids, within=ids[1])} == {(0, 1, 2), (1,)}


# brute force: every member (and one that no set names), every moment, by the definitions

MEMBERS = range(4)
STRANGER = -1
TIMES = range(-8, 20)
SETS = {
    bytes(chosen): frozenset(chosen)
    for n in (1, 2, 3)
    for chosen in itertools.combinations(MEMBERS, n)
}
COSTS = [
    Cost(0.25, 0.0, 0.25**2 / 2),
    Cost(1.0, 0.0, 0.5),
    Cost(0.5, DELTA / 8, math.inf),
    Cost(math.inf, 0.0, 0.01),
    Cost(math.inf, math.inf, math.inf),
]


def share_strategy(kinds: list[str], clocks: list[str]) -> st.SearchStrategy[ScopedCost]:
    bounds = st.tuples(st.integers(0, 11), st.integers(0, 11)).map(sorted)
    return st.builds(
        lambda kind, members, clock, span, open_ends, cost: ScopedCost(
            kind,
            members,
            clock,
            EARLIEST if open_ends[0] else span[0],
            LATEST if open_ends[1] else span[1],
            cost,
        ),
        st.sampled_from(kinds),
        st.sampled_from([None, *SETS]),
        st.sampled_from(clocks),
        bounds,
        st.sampled_from([(False, False)] * 6 + [(True, False), (False, True), (True, True)]),
        st.sampled_from(COSTS[:-1] * 3 + COSTS[-1:]),
    )


def holds(share: ScopedCost, member: int) -> bool:
    return share.members is None or member in SETS[share.members]


def spent_on(shares: list[ScopedCost]) -> float:
    """The epsilon at DELTA of charges that all apply, by the better of both rules."""
    epsilon = math.fsum(share.cost.epsilon for share in shares)
    delta = math.fsum(share.cost.delta for share in shares)
    rho = math.fsum(share.cost.rho for share in shares)
    if delta > DELTA / 2 * (1 + 1e-9):
        return math.inf
    return min(epsilon, epsilon_of_rho(rho, DELTA / 2, order_of(1.0, DELTA)))


def brute_force(shares: list[ScopedCost], unit: Unit, step: int) -> float:
    """The worst of one series, one person and one moment of each clock, one by one."""
    each = unit.each if isinstance(unit, Person) else unit
    length = (each.length - 1) * step if isinstance(each, Window) else 0
    slots = unit.max_series if isinstance(unit, Person) else 1
    clocks = sorted({share.clock for share in shares})
    everyone = [*MEMBERS, STRANGER]

    def touched(share: ScopedCost, moment: int) -> bool:
        always = isinstance(each, WholeSeries)
        return always or (share.start <= moment + length and share.end >= moment)

    def covering(person: int, series: int, moment: tuple[int, ...]) -> frozenset[int]:
        return frozenset(
            number
            for number, share in enumerate(shares)
            if touched(share, moment[clocks.index(share.clock)])
            and holds(share, series if share.kind == "series" else person)
        )

    # what differs: in each of a person's series some moment, told on every clock
    moments = list(itertools.product(TIMES, repeat=len(clocks)))
    seen = set()
    for person in everyone:
        changes = {covering(person, *one) for one in itertools.product(everyone, moments)}
        for chosen in itertools.combinations_with_replacement(changes, slots):
            seen.add(frozenset().union(*chosen))
    return max(spent_on([shares[number] for number in sorted(covered)]) for covered in seen)


def spent_by_sweep(shares: list[ScopedCost], unit: Unit, step: int) -> float:
    width = None if unit.reach is None else unit.reach * step
    widths = dict.fromkeys(("integer", "date"), width)
    ids = {key: np.array(sorted(members), dtype=np.uint64) for key, members in SETS.items()}
    costs = total_costs(shares, ids.__getitem__, unit, widths)
    spent = worst_total(costs, unit, 1.0, DELTA).spent
    return math.inf if spent is None else spent


SINGLE = [Event(), WithinDistance(3.0), Window(2), Window(4), WholeSeries(9), Person(1, Event())]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(share_strategy(["series", "person"], ["integer"]), min_size=1, max_size=6),
    st.sampled_from(SINGLE),
    st.integers(1, 3),
)
def test_the_sweep_finds_the_worst_member_and_moment(shares, unit, step):
    expected = brute_force(shares, unit, step)
    assert spent_by_sweep(shares, unit, step) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.lists(share_strategy(["series"], ["integer", "date"]), min_size=1, max_size=5),
    st.sampled_from([Event(), Window(3)]),
)
def test_scopes_of_different_clocks_overlap(shares, unit):
    assert spent_by_sweep(shares, unit, 1) >= brute_force(shares, unit, 1) * (1 - 1e-9)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.lists(share_strategy(["series", "person"], ["integer"]), min_size=1, max_size=4),
    st.sampled_from([Event(), Window(2), WholeSeries(9)]),
)
def test_all_series_of_a_person_count_though_they_change_at_different_moments(shares, each):
    unit = Person(max_series=2, each=each)
    assert spent_by_sweep(shares, unit, 1) >= brute_force(shares, unit, 1) * (1 - 1e-9)


def test_two_moments_of_a_person_with_two_series_add_and_a_third_does_not():
    days = [ScopedCost("person", None, "date", day, day, COSTS[1]) for day in range(5)]
    for count, expected in ((1, 1.0), (2, 2.0), (5, 2.0)):
        costs = total_costs(
            days[:count], dict[bytes, None]().__getitem__, Person(2, Event()), {"date": 0}
        )
        assert costs[:, 0].max() == expected
