"""Exact readings in another order: releases of unlike ones have no bound together."""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempriv.accounting.filters import ZERO_COST
from tempriv.errors import BudgetError
from tempriv.ledger.ledger import Ledger
from tempriv.ledger.scope import (
    EARLIEST,
    LATEST,
    Scope,
    ScopedCost,
    order_leaks,
    total_costs,
)
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units import Event, Unit, Window
from tempriv.privacy.units.order import BlockSwap, SlotOrigin, Swap
from tests.ledger.test_scopes import COSTS, MEMBERS, SETS, STRANGER, holds, measures
from tests.support.ledgers import HALF, span

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
]


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
        with pytest.raises(BudgetError, match="with this release nothing could be guaranteed"):
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


def readings_of(share: ScopedCost) -> set[int]:
    return set(range(share.start, share.end + 1, share.step or 1))


def block_of(share: ScopedCost, unit: BlockSwap, moment: int) -> int:
    assert share.step is not None
    return (moment - share.start - unit.offset * share.step) // (unit.block * share.step)


def traded(share: ScopedCost, unit: Unit, pair: tuple[int, int]) -> float:
    """What a share tells of two readings that trade places, in epsilon."""
    inside = [moment in readings_of(share) for moment in pair]
    if not any(inside):
        return 0.0
    if not share.exact:
        return share.cost.epsilon
    apart = isinstance(unit, BlockSwap) and len({block_of(share, unit, m) for m in pair}) > 1
    return math.inf if apart or not all(inside) else share.cost.epsilon


def neighboring(shares: list[ScopedCost], unit: Unit, step: int, pair: tuple[int, int]) -> bool:
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


def worst_swap(shares: list[ScopedCost], unit: Unit, step: int) -> float:
    """Over all pairs of released readings of any one series that the unit calls neighbors."""
    most = 0.0
    for member in [*MEMBERS, STRANGER]:
        held = [share for share in shares if holds(share, member)]
        released = sorted(set().union(*map(readings_of, held))) if held else []
        for pair in itertools.combinations(released, 2):
            if neighboring(held, unit, step, pair):
                most = max(most, math.fsum(traded(share, unit, pair) for share in held))
        for one, other in itertools.combinations(held, 2):
            if one.single and other.single and readings_of(one) & readings_of(other):
                most = math.inf
    return most


def exact_shares(step: int) -> st.SearchStrategy[ScopedCost]:
    def build(members, start, count, cost, exact, single):
        end = start + (count - 1) * step
        single = int(exact and single)
        return ScopedCost("series", members, "integer", start, end, cost, step, 1, exact, single)

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
    given = ids.__getitem__, unit, {"integer": None if unit.reach is None else unit.reach * step}
    found = total_costs(shares, *given)[:, 0].max()
    assert math.isinf(found) == math.isinf(expected)
    if np.isfinite(total_costs(shares[:-1], *given)).all():
        # looking at what the last one touches is enough to see whether it is too much
        decided = total_costs(shares, *given, within=shares[-1])[:, 0].max()
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
            except BudgetError:
                assert whole.exceeded


def test_the_ends_of_time_do_not_overflow_for_exact_releases():
    def share(start: int, end: int, step: int) -> ScopedCost:
        return ScopedCost("series", None, "integer", start, end, ZERO_COST, step, 1, 1)

    last = LATEST - 1
    shares = [share(EARLIEST + 1, EARLIEST + 1, 1), share(0, 9, 1), share(last - 9, last, 1)]
    for unit in (Swap(2), Swap(10**6), BlockSwap(3, 1), SlotOrigin(9)):
        assert not order_leaks(shares, unit).any()
        assert order_leaks([*shares, share(5, 14, LATEST)], unit)[1]
    assert order_leaks([share(0, 9, 1), share(last - 9, last, LATEST)], Swap(3)).all()


def test_thousands_of_exact_releases_are_compared_in_no_time():
    """Each with its neighbors only: comparing all pairs would take a thousand times longer."""
    days = [
        ScopedCost("series", None, "date", 24 * n, 24 * n + 23, ZERO_COST, 1, 1, 1)
        for n in range(9999)
    ]
    began = time.process_time()
    assert not order_leaks(days, BlockSwap(24)).any()
    assert order_leaks(days, Swap(2)).all()
    assert time.process_time() - began < 5
