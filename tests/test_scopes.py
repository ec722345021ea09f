"""Charges add up where they touch the same data: against brute force, and in the ledger."""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tempriv.errors import BudgetRefusal, UsageRefusal
from tempriv.guarantees import Approximate, Concentrated, Guarantee, Pure
from tempriv.ledger import Ledger, Scope
from tempriv.renyi import epsilon_of_rho
from tempriv.scopes import EARLIEST, LATEST, Share, betrayed, member_classes, totals, widths
from tempriv.totals import NOTHING, Cost, Total, order_of, worst
from tempriv.units import (
    BlockSwap,
    Event,
    Near,
    Person,
    SlotOrigin,
    Swap,
    Unit,
    WholeSeries,
    Window,
)
from tests.ledgers import HALF, span

DELTA = 1e-6


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
        ([span(0, 9, "7"), Scope(members=np.array([7]), start=0, end=9)], Event(), 1.0),
        # disjoint times do not add for single readings
        ([span(0, 9), span(10, 19)], Event(), 0.5),
        ([span(0, 9), span(10, 19)], Near(5.0), 0.5),
        ([span(0, 9), span(9, 19)], Event(), 1.0),
        ([span(0, 9), Scope(start=10)], Event(), 0.5),
        ([span(0, 9), Scope(end=0)], Event(), 1.0),
        ([span(0, 9), Scope()], Event(), 1.0),
        # a window of 3 steps touches both where at most one step lies between
        ([span(0, 9), span(11, 19)], Window(3), 3.0),
        ([span(0, 9), span(12, 19)], Window(3), 1.5),
        ([span(11, 19), span(0, 9)], Window(3), 3.0),
        ([span(12, 19), span(0, 9)], Window(3), 1.5),
        ([span(0, 90, step=10), span(110, 190, step=10)], Window(3), 3.0),
        ([span(0, 90, step=10), span(111, 190, step=10)], Window(3), 1.5),
        # the widest step counts, also when it comes later, on other members
        ([span(0, 9), span(12, 19), span(0, 9, "a", step=60)], Window(3), 4.5),
        ([span(0, 9, "a"), span(12, 19, "a"), span(900, 960, "b", step=60)], Window(3), 3.0),
        ([span(0, 9), span(12, 19, step=None)], Window(3), 3.0),
        ([span(0, 9), span(12, 19, step=None)], Event(), 0.5),
        # the time of whole series does not matter
        ([span(0, 2), span(100, 102)], WholeSeries(3), 3.0),
        ([span(0, 9, "a", kind="series home"), span(0, 9, "b", kind="series meter")], Event(), 1.0),
        ([span(0, 9, "a", kind="series home"), span(0, 9, "b", kind="series home")], Event(), 0.5),
        ([span(0, 9, clock="integer t"), span(50, 59, clock="integer t2")], Event(), 1.0),
        ([span(0, 9, clock="datetime t"), span(50, 59, clock="datetime UTC t")], Event(), 1.0),
        # times of different clocks, series and persons are not told apart
        ([span(0, 9), span(20, 29, clock="date")], Event(), 1.0),
        ([span(0, 9, clock="index"), span(20, 29, clock="index")], Event(), 0.5),
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
    with pytest.raises(UsageRefusal):
        Scope(**wrong)


def test_the_ends_of_time_do_not_overflow(ledger):
    last = 2**63 - 1
    late = span(last - 5, last, step=last)
    assert spent(ledger, span(-(2**63), 0), late, unit=Window(9)) == 9.0


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
        ledger.create_dataset("meters", unit=unit, epsilon=1e6, delta=1e-3)
        for number, (promise, scope) in enumerate(charges):
            try:
                expected = ledger.check("meters", promise, scope)
                assert ledger.charge("meters", promise, scope, str(number)).totals == expected
            except BudgetRefusal as refusal:
                # longer series than the limit's, or deltas that a large unit makes too large
                assert "unbounded" in str(refusal) or "set a limit for series" in str(refusal)
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


def share_strategy(kinds: list[str], clocks: list[str]) -> st.SearchStrategy[Share]:
    bounds = st.tuples(st.integers(0, 11), st.integers(0, 11)).map(sorted)
    return st.builds(
        lambda kind, members, clock, span, open_ends, cost: Share(
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


def holds(share: Share, member: int) -> bool:
    return share.members is None or member in SETS[share.members]


def spent_on(shares: list[Share]) -> float:
    """The epsilon at DELTA of charges that all apply, by the better of both rules."""
    epsilon = math.fsum(share.cost.epsilon for share in shares)
    delta = math.fsum(share.cost.delta for share in shares)
    rho = math.fsum(share.cost.rho for share in shares)
    if delta > DELTA / 2 * (1 + 1e-9):
        return math.inf
    return min(epsilon, epsilon_of_rho(rho, DELTA / 2, order_of(1.0, DELTA)))


def brute_force(shares: list[Share], unit: Unit, step: int) -> float:
    """The worst of one series, one person and one moment of each clock, one by one."""
    each = unit.each if isinstance(unit, Person) else unit
    length = (each.length - 1) * step if isinstance(each, Window) else 0
    slots = unit.max_series if isinstance(unit, Person) else 1
    clocks = sorted({share.clock for share in shares})
    everyone = [*MEMBERS, STRANGER]

    def touched(share: Share, moment: int) -> bool:
        always = isinstance(each, WholeSeries)
        return always or (share.start <= moment + length and share.end >= moment)

    # what differs: in each of a person's series some moment, told on every clock
    moments = list(itertools.product(TIMES, repeat=len(clocks)))
    changes = list(itertools.product(everyone, moments))
    most = 0.0
    seen = set()
    for person in everyone:
        for chosen in itertools.combinations_with_replacement(changes, slots):
            covered = tuple(
                any(
                    touched(share, moment[clocks.index(share.clock)])
                    and holds(share, series if share.kind == "series" else person)
                    for series, moment in chosen
                )
                for share in shares
            )
            if covered not in seen:
                seen.add(covered)
                most = max(most, spent_on(list(itertools.compress(shares, covered))))
    return most


def spent_by_sweep(shares: list[Share], unit: Unit, step: int) -> float:
    steps = dict.fromkeys(("integer", "date"), step)
    ids = {key: np.array(sorted(members), dtype=np.uint64) for key, members in SETS.items()}
    costs = totals(shares, ids.__getitem__, unit, widths(unit, steps))
    spent = worst(costs, unit, 1.0, DELTA).spent
    return math.inf if spent is None else spent


SINGLE = [Event(), Near(3.0), Window(2), Window(4), WholeSeries(9), Person(1, Event())]


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
    days = [Share("person", None, "date", day, day, COSTS[1]) for day in range(5)]
    for count, expected in ((1, 1.0), (2, 2.0), (5, 2.0)):
        costs = totals(
            days[:count], dict[bytes, None]().__getitem__, Person(2, Event()), {"date": 0}
        )
        assert costs[:, 0].max() == expected


# exact readings in another order: releases of unlike readings have no bound together


UNBOUNDED = None
SORTED = Guarantee(loss=Pure(0.5), unit=Swap(3))
SHUFFLED = Guarantee(loss=Pure(0.5), unit=BlockSwap(4))
GLIMPSED = Guarantee(loss=Pure(0.5), unit=SlotOrigin(3))
HOMES = ("a", "b")


def panel(start: int, end: int, even: bool | None, *members: str) -> Scope:
    return Scope(members=members, start=start, end=end, step=1, even=even)


CASES = [
    # the same readings add up
    (Swap(3), [(SORTED, span(0, 9))] * 3, 1.5),
    (Swap(3), [(SORTED, span(0, 9, "a")), (SORTED, span(0, 9, "a"))], 1.0),
    (Swap(3), [(SORTED, span(0, 90, step=10))] * 2, 1.0),
    (BlockSwap(4), [(SHUFFLED, span(0, 9))] * 2, 1.0),
    # other ranges that overlap, touch, or come within two steps do not
    (Swap(3), [(SORTED, span(0, 9)), (SORTED, span(0, 10))], UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 10)), (SORTED, span(0, 9))], UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 9)), (SORTED, span(3, 7))], UNBOUNDED),
    (Swap(3), [(SORTED, span(3, 7)), (SORTED, span(0, 9))], UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 9)), (SORTED, span(10, 19))], UNBOUNDED),
    (Swap(3), [(SORTED, span(10, 19)), (SORTED, span(0, 9))], UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 9)), (SORTED, span(11, 19))], UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 90, step=10)), (SORTED, span(110, 190, step=10))], UNBOUNDED),
    # farther ones and other series are apart: the worst counts
    (Swap(3), [(SORTED, span(0, 9)), (SORTED, span(12, 19))], 0.5),
    (Swap(3), [(SORTED, span(12, 19)), (SORTED, span(0, 9)), (SORTED, span(0, 9))], 1.0),
    (Swap(3), [(SORTED, span(0, 90, step=10)), (SORTED, span(111, 191, step=10))], 0.5),
    (Swap(3), [(SORTED, span(0, 9, "a")), (SORTED, span(5, 14, "b"))], 0.5),
    (Swap(3), [(SORTED, span(0, 9, "a")), (SORTED, span(5, 14))], UNBOUNDED),
    (Swap(3), [(SORTED, panel(0, 9, True, *"ab")), (SORTED, panel(5, 14, True, *"cd"))], 0.5),
    (Swap(3), [(SORTED, panel(0, 9, True, *"ab")), (SORTED, panel(5, 14, True, *"bc"))], UNBOUNDED),
    (Swap(3), [(SORTED, panel(0, 9, True, *"ab")), (SORTED, panel(0, 9, True, *"bc"))], 1.0),
    # another series' wider step moves no border here
    (
        Swap(3),
        [(SORTED, span(0, 9, "a")), (SORTED, span(12, 19, "a")), (HALF, span(0, 60, "b", step=60))],
        1.0,
    ),
    # what is not known to be the same readings is not the same
    (Swap(3), [(SORTED, Scope())], 0.5),
    (Swap(3), [(SORTED, Scope())] * 2, UNBOUNDED),
    (Swap(3), [(SORTED, Scope()), (HALF, span(0, 9))], UNBOUNDED),
    (Swap(3), [(HALF, Scope()), (SORTED, span(0, 9))], UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 9, step=None))] * 2, UNBOUNDED),
    (Swap(3), [(SORTED, Scope(start=0, step=1))] * 2, UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 8)), (SORTED, span(0, 8, step=2))], UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 8, step=2)), (SORTED, span(1, 9, step=2))], UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 9)), (SORTED, span(0, 9, clock="date"))], UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 9, clock="index"))] * 2, UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 9, clock="index")), (HALF, span(0, 9, clock="index"))], UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 9, clock="index"))], 0.5),
    # the range of a table is that of each series only if all are as long
    (Swap(3), [(SORTED, panel(0, 9, False, *HOMES))], 0.5),
    (Swap(3), [(SORTED, panel(0, 9, False, *HOMES))] * 2, UNBOUNDED),
    (Swap(3), [(SORTED, panel(0, 9, None, *HOMES))] * 2, UNBOUNDED),
    (Swap(3), [(SORTED, panel(0, 9, True, *HOMES))] * 2, 1.0),
    (Swap(3), [(SORTED, Scope(start=0, end=9, step=1, longest=7))] * 2, UNBOUNDED),
    (Swap(3), [(SORTED, Scope(start=0, end=9, step=2))] * 2, UNBOUNDED),
    # a person may have several series, of unlike ranges
    (Swap(3), [(SORTED, span(0, 9, "p", kind="person"))] * 2, UNBOUNDED),
    # noisy values count twice, anywhere within what is exact, and nowhere beyond it
    (Swap(3), [(HALF, span(0, 9))], 1.0),
    (Swap(3), [(HALF, span(0, 9)), (HALF, span(5, 30))], 2.0),
    (Swap(3), [(SORTED, span(0, 9)), (HALF, span(0, 9))], 1.5),
    (Swap(3), [(SORTED, span(0, 9)), (HALF, span(4, 6))], 1.5),
    (Swap(3), [(HALF, span(4, 6)), (SORTED, span(0, 9))], 1.5),
    (Swap(3), [(SORTED, span(0, 9)), (HALF, span(4, 10))], UNBOUNDED),
    (Swap(3), [(HALF, span(4, 10)), (SORTED, span(0, 9))], UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 9)), (HALF, span(11, 12))], UNBOUNDED),
    (Swap(3), [(SORTED, span(0, 9)), (HALF, span(12, 30))], 1.0),
    (Swap(3), [(SORTED, span(0, 9)), (Guarantee(Pure(0.5), Window(3)), span(0, 9))], 1.0),
    # a longer swap by a chain of short ones
    (Swap(5), [(SORTED, span(0, 9))], 1.5),
    (Swap(2), [(SORTED, span(0, 9)), (SORTED, span(11, 19))], 0.5),
    # whole blocks are apart, and a longer release has the same ones
    (BlockSwap(4), [(SHUFFLED, span(0, 7)), (SHUFFLED, span(8, 15))], 0.5),
    (BlockSwap(4), [(SHUFFLED, span(8, 15)), (SHUFFLED, span(0, 7))], 0.5),
    (BlockSwap(4), [(SHUFFLED, span(0, 70, step=10)), (SHUFFLED, span(80, 150, step=10))], 0.5),
    (BlockSwap(4), [(SHUFFLED, span(0, 7)), (SHUFFLED, span(0, 15))], 1.0),
    (BlockSwap(4), [(SHUFFLED, span(0, 70, step=10)), (SHUFFLED, span(0, 150, step=10))], 1.0),
    (BlockSwap(4), [(SHUFFLED, span(0, 15)), (SHUFFLED, span(8, 15))], 1.0),
    (BlockSwap(4), [(SHUFFLED, span(0, 8)), (SHUFFLED, span(9, 15))], UNBOUNDED),
    (BlockSwap(4), [(SHUFFLED, span(0, 8)), (SHUFFLED, span(12, 15))], 0.5),
    (BlockSwap(4), [(SHUFFLED, span(0, 7)), (SHUFFLED, span(2, 9))], UNBOUNDED),
    (BlockSwap(4), [(SHUFFLED, span(0, 8)), (SHUFFLED, span(0, 9))], UNBOUNDED),
    (BlockSwap(4), [(SHUFFLED, span(0, 7)), (HALF, span(6, 15))], 1.5),
    (BlockSwap(4), [(SHUFFLED, span(0, 8)), (HALF, span(6, 15))], UNBOUNDED),
    # one row by itself: once
    (SlotOrigin(3), [(GLIMPSED, span(0, 9))], 0.5),
    (SlotOrigin(3), [(GLIMPSED, span(0, 9))] * 2, UNBOUNDED),
    (SlotOrigin(3), [(GLIMPSED, span(0, 9, "a")), (GLIMPSED, span(0, 9, "b"))], 0.5),
    (SlotOrigin(3), [(GLIMPSED, span(0, 9)), (GLIMPSED, span(12, 19))], 0.5),
    (SlotOrigin(3), [(GLIMPSED, span(0, 9)), (GLIMPSED, span(11, 19))], UNBOUNDED),
    (SlotOrigin(3), [(GLIMPSED, span(0, 9)), (SORTED, span(0, 9))], 1.0),
    (SlotOrigin(3), [(GLIMPSED, span(0, 9)), (SORTED, span(0, 9)), (SORTED, span(0, 9))], 1.5),
    (SlotOrigin(3), [(GLIMPSED, span(0, 9)), (HALF, span(0, 9))], 1.5),
    (SlotOrigin(3), [(p, span(0, 9)) for p in (GLIMPSED, HALF, GLIMPSED)], UNBOUNDED),
]  # fmt: skip


@pytest.mark.parametrize(("unit", "charges", "expected"), CASES)
def test_exact_releases_add_up_if_they_are_of_the_same_readings(ledger, unit, charges, expected):
    ledger.ensure_dataset("meters")
    for number, (promise, scope) in enumerate(charges):
        ledger.charge("meters", promise, scope, f"release {number}")
    shown = {total.unit: total for total in ledger.show("meters").totals}
    total = ledger.create_dataset("meters", unit=unit, epsilon=9.0, delta=1e-6)
    assert total.by_sum == expected == shown.get(unit, total).by_sum
    assert total.exceeded == (expected is UNBOUNDED)

    # with the limit there first, what would have no bound is refused and spends nothing
    ledger.create_dataset("limited", unit=unit, epsilon=9.0, delta=1e-6)
    for number, (promise, scope) in enumerate(charges[:-1]):
        ledger.charge("limited", promise, scope, f"limited {number}")
    before = ledger.show("limited").totals
    promise, scope = charges[-1]
    if expected is UNBOUNDED:
        with pytest.raises(BudgetRefusal, match="with this release nothing could be promised"):
            ledger.charge("limited", promise, scope, "last")
        assert ledger.show("limited").totals == before
    else:
        assert ledger.charge("limited", promise, scope, "last").totals[0].by_sum == expected


def test_a_value_limit_has_no_bound_where_readings_were_published(ledger):
    ledger.ensure_dataset("meters")
    ledger.charge("meters", SORTED, span(0, 9), "one")
    ledger.charge("meters", HALF, span(20, 29), "two")
    spent = {total.unit: total.spent for total in ledger.show("meters").totals}
    assert spent == {Swap(3): 1.0, Event(): UNBOUNDED}


# by brute force: every series, every two readings of it


def readings_of(share: Share) -> set[int]:
    return set(range(share.start, share.end + 1, share.step or 1))


def block_of(share: Share, unit: BlockSwap, moment: int) -> int:
    assert share.step is not None
    return (moment - share.start - unit.offset * share.step) // (unit.block * share.step)


def traded(share: Share, unit: Unit, pair: tuple[int, int]) -> float:
    """What a share tells of two readings that trade places, in epsilon."""
    inside = [moment in readings_of(share) for moment in pair]
    if not any(inside):
        return 0.0
    if not share.exact:
        return share.cost.epsilon
    apart = isinstance(unit, BlockSwap) and len({block_of(share, unit, m) for m in pair}) > 1
    return math.inf if apart or not all(inside) else share.cost.epsilon


def neighbouring(shares: list[Share], unit: Unit, step: int, pair: tuple[int, int]) -> bool:
    if pair[1] - pair[0] > unit.span * step:
        return False
    if not isinstance(unit, BlockSwap):
        return True
    # a block of any exact release that has one of the two
    return any(
        share.exact
        and readings_of(share) & set(pair)
        and len({block_of(share, unit, moment) for moment in pair}) == 1
        for share in shares
    )


def worst_swap(shares: list[Share], unit: Unit, step: int) -> float:
    """Over all pairs of released readings of any one series that the unit calls neighbours."""
    most = 0.0
    for member in [*MEMBERS, STRANGER]:
        held = [share for share in shares if holds(share, member)]
        released = sorted(set().union(*map(readings_of, held))) if held else []
        for pair in itertools.combinations(released, 2):
            if neighbouring(held, unit, step, pair):
                most = max(most, math.fsum(traded(share, unit, pair) for share in held))
        for one, other in itertools.combinations(held, 2):
            if one.single and other.single and readings_of(one) & readings_of(other):
                most = math.inf
    return most


def exact_shares(step: int) -> st.SearchStrategy[Share]:
    def build(members, start, count, cost, exact, single):
        end = start + (count - 1) * step
        single = int(exact and single)
        return Share("series", members, "integer", start, end, cost, step, 1, exact, single)

    return st.builds(
        build,
        st.sampled_from([None, *SETS]),
        st.integers(0, 9),
        st.integers(2, 8),
        st.sampled_from(COSTS[:2]),
        st.sampled_from([1, 1, 1, 0]),
        st.booleans(),
    )


ORDERS = [Swap(2), Swap(3), Swap(5), SlotOrigin(3), BlockSwap(2), BlockSwap(3), BlockSwap(4, 1)]


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    st.integers(1, 2).flatmap(
        lambda step: st.tuples(st.just(step), st.lists(exact_shares(step), min_size=1, max_size=4))
    ),
    st.sampled_from(ORDERS),
)
def test_the_rule_for_exact_releases_finds_every_swap_that_shows(case, unit):
    """Unbounded where a swap shows for certain, and nowhere else; never below the truth."""
    step, shares = case
    if not isinstance(unit, SlotOrigin):
        shares = [share._replace(single=0) for share in shares]
    expected = worst_swap(shares, unit, step)
    ids = {key: np.array(sorted(members), dtype=np.uint64) for key, members in SETS.items()}
    given = ids.__getitem__, unit, widths(unit, {"integer": step})
    found = totals(shares, *given)[:, 0].max()
    assert math.isinf(found) == math.isinf(expected)
    if np.isfinite(totals(shares[:-1], *given)).all():
        # looking at what the last one touches is enough to see whether it is too much
        decided = totals(shares, *given, within=shares[-1])[:, 0].max()
        assert math.isinf(decided) == math.isinf(expected)
    assert found >= expected * (1 - 1e-12)
    # readings alone in their block have nothing to trade places with
    whole = not isinstance(unit, BlockSwap) or (
        unit.offset == 0 and not any(len(readings_of(share)) % unit.block for share in shares)
    )
    if whole and all(share.exact for share in shares) and math.isfinite(found):
        assert found == expected, "the same readings add up, and what is apart does not"


def order_charges() -> st.SearchStrategy[tuple[Guarantee, Scope]]:
    promises = [SORTED, SORTED, SHUFFLED, GLIMPSED, HALF, Guarantee(Pure(0.3), Swap(2))]
    starts = st.sampled_from([0, 0, 0, 4, 8, 14, 20])
    return st.builds(
        lambda promise, members, start, length, step, clock, even: (
            promise,
            Scope("series", members, start, start + length * (step or 1), step, clock, even=even),
        ),
        st.sampled_from(promises),
        st.sampled_from([None, ("a",), ("a",), ("b",), ("a", "b"), ("c",)]),
        starts,
        st.sampled_from([3, 3, 3, 7, 5]),
        st.sampled_from([1] * 12 + [2, None]),
        st.sampled_from(["integer"] * 20 + ["date"]),
        st.sampled_from([True] * 9 + [None]),
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(order_charges(), min_size=2, max_size=6),
    st.sampled_from([Swap(3), Swap(2), BlockSwap(4), SlotOrigin(3), SlotOrigin(2)]),
)
def test_a_charge_is_refused_just_if_the_whole_history_with_it_would_be(charges, unit):
    """One by one under a limit, against all at once from the charges themselves."""
    with tempfile.TemporaryDirectory() as folder, Ledger.create(Path(folder, "ledger")) as ledger:
        ledger._file.execute("PRAGMA synchronous = OFF")
        ledger.create_dataset("meters", unit=unit, epsilon=1.6)
        accepted: list[tuple[Guarantee, Scope]] = []
        for number, (promise, scope) in enumerate(charges):
            history = f"history {number}"
            ledger.ensure_dataset(history)
            for i, one in enumerate([*accepted, (promise, scope)]):
                ledger.charge(history, *one, f"{number} {i}")
            whole = ledger.create_dataset(history, unit=unit, epsilon=1.6)
            try:
                expected = ledger.check("meters", promise, scope)
                assert ledger.charge("meters", promise, scope, str(number)).totals == expected
                accepted.append((promise, scope))
                assert measures(expected[0]) == pytest.approx(measures(whole), rel=1e-9)
            except BudgetRefusal:
                assert whole.exceeded


def test_the_ends_of_time_do_not_overflow_for_exact_releases():
    def share(start: int, end: int, step: int) -> Share:
        return Share("series", None, "integer", start, end, NOTHING, step, 1, 1)

    last = LATEST - 1
    shares = [share(EARLIEST + 1, EARLIEST + 1, 1), share(0, 9, 1), share(last - 9, last, 1)]
    for unit in (Swap(2), Swap(10**6), BlockSwap(3, 1), SlotOrigin(9)):
        assert not betrayed(shares, unit).any()
        assert betrayed([*shares, share(5, 14, LATEST)], unit)[1]
    assert betrayed([share(0, 9, 1), share(last - 9, last, LATEST)], Swap(3)).all()


def test_thousands_of_exact_releases_are_compared_in_no_time():
    """Each with its neighbours only: comparing all pairs would take a thousand times longer."""
    days = [
        Share("series", None, "date", 24 * n, 24 * n + 23, NOTHING, 1, 1, 1) for n in range(9999)
    ]
    began = time.process_time()
    assert not betrayed(days, BlockSwap(24)).any()
    assert betrayed(days, Swap(2)).all()
    assert time.process_time() - began < 5
