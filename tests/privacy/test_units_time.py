"""Units of times: their neighbors and conversions, against the words of the definitions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempriv.errors import TemprivError
from tempriv.privacy import guarantees, serialization, units
from tempriv.privacy.units import Event, Person, Unit, WholeSeries, Window, conversion_factor
from tempriv.privacy.units.time import Pace, Timestamps
from tests.conformance.case_checks import quick
from tests.privacy.test_units import (
    ANSWERS,
    CONTRIBUTIONS,
    ORDERS,
    PERSONS,
    SINGLE,
    assert_enumeration_agrees,
    inputs,
    longest_chain,
)

STAMPS = [Timestamps(1.0), Timestamps(1.0, 2), Timestamps(2.5, 3)]
ALIGNED = [Pace(1.0, 1), Pace(1.0, 2), Pace(2.5, 3)]
UNALIGNED = [unit.unaligned() for unit in ALIGNED]
SHIFTED = [Pace(1.0, 2, shift=1.0), Pace(0.5, 2, shift=2.0, aligned=False)]
TIMES = [*STAMPS, *ALIGNED, *UNALIGNED, *SHIFTED]


def windows(unit: Unit, length: int) -> list[set[int]]:
    """The rows whose times may change together."""
    if isinstance(unit, Timestamps):  # Definition 5 of the paper: any so many in a row
        firsts = range(length)
    elif unit.aligned:
        firsts = range(1, length, unit.window)
    else:
        firsts = range(1, length)
    return [set(range(first, first + unit.window)) for first in firsts]


def by_definition(unit: Unit, one: tuple, other: tuple) -> bool:
    """The same values by index, and times that differ in one window only, each by so much."""
    if len(one) != len(other):
        return False
    limits = [unit.tau] if isinstance(unit, Timestamps) else list(unit.limits)
    for a, b in zip(one, other, strict=True):
        a, b = ((x,) if not isinstance(x, tuple) else x for x in (a, b))
        if a[: -len(limits)] != b[: -len(limits)]:
            return False
        pairs = zip(a[-len(limits) :], b[-len(limits) :], limits, strict=True)
        if any(abs(Fraction(x) - Fraction(y)) > Fraction(limit) for x, y, limit in pairs):
            return False
    changed = {i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b}
    return not changed or any(changed <= rows for rows in windows(unit, len(one)))


def alphabets(unit: Unit) -> list[tuple]:
    if getattr(unit, "shift", None) is not None:
        return [tuple(itertools.product((0.0, 1.5), (1.0, 1.5)))]
    return [(0.0, 1.0), (0.0, 2.5, 5.0), tuple(itertools.product("ab", (0.0, 1.0)))]


@pytest.mark.parametrize("unit", TIMES, ids=str)
def test_neighbors_of_times(unit):
    for alphabet in alphabets(unit):
        examples = inputs(alphabet, range(5 if len(alphabet) == 2 else 4))
        assert_enumeration_agrees(unit, examples, alphabet)
        for one, other in itertools.product(examples, repeat=2):
            assert unit.are_neighbors(one, other) == by_definition(unit, one, other)


@pytest.mark.parametrize("unit", [*ALIGNED, *UNALIGNED, *STAMPS], ids=str)
def test_windows_are_where_they_should_be_in_longer_series(unit):
    examples = inputs((0.0, 1.0), [8])
    zeros = (0.0,) * 8
    for other in examples:
        assert unit.are_neighbors(zeros, other) == by_definition(unit, zeros, other)
    assert len(set(unit.neighbors(zeros, (0.0, 1.0)))) == sum(
        other != zeros and by_definition(unit, zeros, other) for other in examples
    )


@quick
@given(st.floats(1e-3, 1e3), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_a_time_is_within_tau_exactly(tau, one, other):
    near = abs(Fraction(one) - Fraction(other)) <= Fraction(tau)
    assert Timestamps(tau).are_neighbors((one,), (other,)) == near
    assert Pace(tau, 3).are_neighbors((("x", 0.0), ("y", one)), (("x", 0.0), ("y", other))) == near


def test_a_value_and_the_step_before_the_first_reading_never_change():
    for unit in TIMES:
        wide = getattr(unit, "shift", None) is not None
        rows = (("x", 0.0, 1.0), ("y", 0.0, 1.0)) if wide else (("x", 1.0), ("y", 1.0))
        for i in range(2):
            other = tuple(("z", *row[1:]) if i == k else row for k, row in enumerate(rows))
            assert not unit.are_neighbors(rows, other)
        first = ((*rows[0][:-1], 1.5), rows[1])
        assert unit.are_neighbors(rows, first) == isinstance(unit, Timestamps)


# conversions


def chain(have: Unit, want: Unit, length: int, times: tuple) -> float:
    """From times that are all the same: to those of a window as far away as they can be."""
    return longest_chain(have, want, [((times[0],) * length,)], times)


def fewest(have: Unit, want: Unit, length: int) -> int:
    """The most windows of the one that it takes to cover a window of the other."""
    there = [rows & set(range(length)) for rows in windows(have, length)]
    worst = 0
    for rows in windows(want, length):
        asked = rows & set(range(length))
        covers = (
            count
            for count in range(length + 1)
            for some in itertools.combinations([one for one in there if one & asked], count)
            if asked <= set().union(*some)
        )
        worst = max(worst, next(covers))
    return worst


@pytest.mark.parametrize("aligned", list(itertools.product((True, False), repeat=2)), ids=str)
def test_a_window_of_one_length_reaches_into_so_many_of_another(aligned):
    """In series long enough for windows to fall anyhow."""
    for lengths in itertools.product(range(1, 6), repeat=2):
        have, want = (Pace(1.0, n, aligned=a) for n, a in zip(lengths, aligned, strict=True))
        assert fewest(have, want, 22) == conversion_factor(have, want), (have, want)
    for lengths in ((2, 3), (3, 2), (1, 2)):
        have, want = (Pace(1.0, n, aligned=a) for n, a in zip(lengths, aligned, strict=True))
        assert chain(have, want, 6, (0.0, 1.0)) == conversion_factor(have, want), (
            "and by all chains"
        )


def test_any_readings_in_a_row_are_covered_by_so_many_of_fewer():
    for have, want in itertools.product((1, 2, 3), (1, 2, 3, 4)):
        found = chain(Timestamps(1.0, have), Timestamps(1.0, want), 5, (0.0, 1.0))
        assert found == conversion_factor(Timestamps(1.0, have), Timestamps(1.0, want))


@pytest.mark.parametrize("have", [1.0, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("want", [0.5, 1.0, 2.5, 4.0])
def test_far_times_are_reached_by_short_moves(have, want):
    line = tuple(0.25 * i for i in range(17))
    kinds = (
        lambda tau, window: Timestamps(tau, window),
        lambda tau, window: Pace(tau, window),
        lambda tau, window: Pace(tau, window, aligned=False),
    )
    for kind in kinds:
        one, other = kind(have, 1), kind(want, 1)
        assert chain(one, other, 2, line) == conversion_factor(one, other) == math.ceil(want / have)
    # windows and distances together
    few = (0.0, 1.0, 2.0)
    for kind in kinds:
        assert (
            chain(kind(1.0, 1), kind(2.0, 2), 3, few)
            == conversion_factor(kind(1.0, 1), kind(2.0, 2))
            == 4
        )


def test_a_shift_goes_with_the_pace_and_is_never_reached_without():
    rows = tuple(itertools.product((0.0, 1.0, 2.0), (0.0, 1.0, 2.0)))
    for have, want in (
        (Pace(1.0, 1, shift=1.0), Pace(1.0, 1, shift=2.0)),
        (Pace(1.0, 1, shift=2.0), Pace(2.0, 1, shift=1.0)),
        (Pace(1.0, 1, shift=1.0), Pace(2.0, 2, shift=2.0)),
        (Pace(2.0, 2, shift=1.0), Pace(2.0, 2, shift=2.0)),
    ):
        assert chain(have, want, 3, rows) == conversion_factor(have, want)
    assert conversion_factor(Pace(1.0, 2), Pace(1.0, 2, shift=1.0)) is None
    assert chain(Pace(1.0, 2), Pace(1.0, 2, shift=1.0), 3, rows) == math.inf
    assert conversion_factor(Pace(1.0, 2, shift=5.0), Pace(2.0, 2)) == 2


def test_windows_anywhere_cover_those_that_are_aligned():
    for length in range(1, 9):
        unit = Pace(1.0, length)
        assert conversion_factor(unit.unaligned(), unit) == 1
        assert conversion_factor(unit, unit.unaligned()) == (1 if length == 1 else 2)
        assert unit.unaligned().unaligned() == unit.unaligned()


@quick
@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.integers(1, 1000))
def test_steps_of_times_are_never_too_few(have, want, times):
    for tau in (want, have * times, math.nextafter(have * times, math.inf)):
        for kind in (lambda t: Timestamps(t, 3), lambda t: Pace(t, 3)):
            assert conversion_factor(kind(have), kind(tau)) * Fraction(have) >= Fraction(tau)


def test_steps_of_steps_of_times():
    few = [Timestamps(1.0), Timestamps(2.5, 2), *ALIGNED, *UNALIGNED, *SHIFTED, Pace(1.0, 4)]
    for unit in few:
        assert conversion_factor(unit, unit) == 1
    for a, b, c in itertools.product(few, repeat=3):
        through = conversion_factor(a, b), conversion_factor(b, c)
        if None not in through:
            assert conversion_factor(a, c) is not None and conversion_factor(a, c) <= math.prod(
                through
            )


OTHERS = [*SINGLE, *PERSONS, *CONTRIBUTIONS, *ANSWERS, *ORDERS, units.WithinDistance(5.0)]


@pytest.mark.parametrize("unit", TIMES, ids=str)
def test_times_are_nothing_else(unit):
    """A table publishes its times, so a guarantee for values or places says nothing of them."""
    for other in OTHERS:
        for have, want in ((unit, other), (other, unit)):
            assert conversion_factor(have, want) is None
            restated = guarantees.Guarantee(guarantees.Pure(1.0), have).for_unit(want)
            assert isinstance(restated, guarantees.NoGuarantee)
    for other in TIMES:
        if isinstance(other, Timestamps) != isinstance(unit, Timestamps):
            assert conversion_factor(unit, other) is None
    # no chain of other values by index, nor a value by other times
    alphabet = tuple(itertools.product("xy", (0.0, 1.0)))
    if getattr(unit, "shift", None) is None:
        assert longest_chain(unit, Event(), [((("x", 0.0), ("y", 0.0)),)], alphabet) == math.inf


def test_guarantees_of_times_are_restated_by_their_steps():
    promise = guarantees.Guarantee(guarantees.Pure(0.5), Pace(1.0, 4))
    assert promise.for_unit(Pace(2.0, 4)).loss == guarantees.Pure(1.0)
    assert promise.for_unit(Pace(1.0, 4).unaligned()).loss == guarantees.Pure(1.0)
    assert promise.for_unit(Pace(0.1, 2)).loss == guarantees.Pure(0.5)
    stamps = guarantees.Guarantee(guarantees.Pure(0.5), Timestamps(1.0, 2))
    assert stamps.for_unit(Timestamps(3.0, 3)).loss == guarantees.Pure(3.0)


# words and forms


@pytest.mark.parametrize("unit", TIMES, ids=str)
def test_units_of_times_survive_json_and_can_be_read(unit):
    assert guarantees.decode(serialization.encode(unit)) == unit
    assert isinstance(unit, Unit)
    text = unit.sentence
    assert "\n" not in text and not text.endswith(".")
    assert f"within {unit.tau:g}" in text
    assert unit.window == 1 or str(unit.window) in text
    assert unit.readings == unit.window


def test_unlike_units_of_times_in_unlike_words():
    texts = [unit.sentence for unit in TIMES]
    assert len(set(texts)) == len(texts)


def test_numbers_that_mean_the_same_are_one_unit():
    assert Pace(1, 2) == Pace(1.0, 2) and serialization.digest(Pace(1, 2)) == serialization.digest(
        Pace(1.0, 2)
    )
    assert Pace(1.0, 2, aligned=0) == Pace(1.0, 2, aligned=False)
    assert serialization.digest(Pace(1.0, 2, aligned=1)) == serialization.digest(Pace(1.0, 2))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Timestamps(0), "tau=0: "),
        (lambda: Timestamps(-1.0), "tau=-1.0: "),
        (lambda: Timestamps(math.inf), "tau=inf: "),
        (lambda: Timestamps("1"), "tau=1: "),
        (lambda: Timestamps(True), "tau=True: "),
        (lambda: Timestamps(1.0, 0), "window=0: "),
        (lambda: Timestamps(1.0, 1.5), "window=1.5: "),
        (lambda: Timestamps(1.0, None), "window=None: "),
        (lambda: Pace(math.nan, 2), "tau=nan: "),
        (lambda: Pace(None, 2), "tau=None: "),
        (lambda: Pace(1.0, 0), "window=0: "),
        (lambda: Pace(1.0, True), "window=True: "),
        (lambda: Pace(1.0, 2, shift=0), "shift=0: "),
        (lambda: Pace(1.0, 2, shift=math.nan), "shift=nan: "),
        (lambda: Pace(1.0, 2, aligned=2), "aligned=2: "),
        (lambda: Pace(1.0, 2, aligned=None), "aligned=None: "),
        (lambda: Person(2, Pace(1.0, 2)), "each=Pace("),
        (lambda: Person(2, Timestamps(1.0)), "each=Timestamps("),
        (lambda: units.Contribution(Timestamps(1.0)), "each=Timestamps("),
        (lambda: units.Contribution(Pace(1.0, 2)), "each=Pace("),
    ],
)
def test_bad_parameters_are_refused(make, said):
    with pytest.raises(TemprivError) as refusal:
        make()
    assert said in str(refusal.value)
    assert "must be" in str(refusal.value) or "covered by" in str(refusal.value)


def test_a_mechanism_for_values_takes_no_unit_of_times():
    from tempriv.mechanisms.retime.noisy_curve import NoisyCurve
    from tempriv.mechanisms.value.laplace import Laplace

    for unit in (Timestamps(1.0), Pace(1.0, 2)):
        with pytest.raises(TemprivError, match="unit="):
            Laplace(epsilon=1.0, bounds=(0, 5), unit=unit)
        with pytest.raises(TemprivError, match="unit="):
            NoisyCurve(epsilon=1.0, bounds=(0, 5), window=2, unit=unit)
    assert NoisyCurve(epsilon=1.0, bounds=(0, 5), window=2, unit=WholeSeries(3)).unit.length == 3
    assert NoisyCurve(epsilon=1.0, bounds=(0, 5), window=2, unit=Window(3)).unit.length == 3
