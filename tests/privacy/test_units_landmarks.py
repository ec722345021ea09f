"""Units of scattered readings: enumerations, tests, conversions and the ledger, by brute force."""

from __future__ import annotations

import itertools
import math

import pytest

from tempriv.errors import BudgetError, TemprivError, UsageError
from tempriv.privacy import guarantees, serialization
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.privacy.units import (
    Answers,
    Contribution,
    Event,
    Person,
    WholeSeries,
    Window,
    WithinDistance,
    conversion_factor,
)
from tempriv.privacy.units.landmarks import Landmarks, Readings
from tempriv.privacy.units.order import Swap
from tests.privacy.test_units import POINTS, assert_enumeration_agrees, inputs, longest_chain
from tests.support.ledgers import EVERYONE, span

MARKED = tuple(itertools.product((0, 1), (0, 1)))  # a value and a mark
GIVEN = [Landmarks(()), Landmarks((0,)), Landmarks((0, 2)), Landmarks((1, 2, 3))]
COUNTED = [*map(Readings, (1, 2, 3, 4))]
SCATTERED = [*GIVEN, *COUNTED]


@pytest.mark.parametrize("unit", SCATTERED, ids=str)
def test_neighbors_are_those_that_are_neighbors(unit):
    assert_enumeration_agrees(unit, inputs((0, 1), range(5)), (0, 1))
    assert_enumeration_agrees(unit, inputs("abc", range(4)), "abc")


def test_neighbors_of_rows_that_say_themselves_what_they_are():
    assert_enumeration_agrees(Landmarks(), inputs(MARKED, range(4)), MARKED)


@pytest.mark.parametrize("meters", [0.5, 1, 5.0, 6.0])
def test_neighbors_of_places(meters):
    for unit in (Landmarks((1,), meters), Readings(2, meters)):
        assert_enumeration_agrees(unit, inputs(POINTS, range(4)), POINTS)
    marked = tuple((*point, mark) for point in POINTS[:3] for mark in (0, 1))
    assert_enumeration_agrees(Landmarks(meters=meters), inputs(marked, range(3)), marked)


def test_neighbors_by_the_words_of_the_definition():
    """Equal outside the landmarks and one more step; marks are the same in both."""
    for one, other in itertools.product(inputs(MARKED, [3]), repeat=2):
        marks = [[mark for _, mark in series] for series in (one, other)]
        changed = {i for i in range(3) if one[i] != other[i]}
        outside = {i for i in changed if not one[i][1]}
        expected = marks[0] == marks[1] and len(outside) <= 1
        assert Landmarks().are_neighbors(one, other) == expected
    for one, other in itertools.product(inputs((0, 1), [4]), repeat=2):
        changed = {i for i in range(4) if one[i] != other[i]}
        assert Readings(2).are_neighbors(one, other) == (len(changed) <= 2)
        assert Landmarks((0, 3)).are_neighbors(one, other) == (len(changed - {0, 3}) <= 1)


def test_series_of_unlike_lengths_are_no_neighbors():
    for unit in SCATTERED:
        assert not unit.are_neighbors((0, 1), (0, 1, 1))
    assert not Landmarks().are_neighbors(((0, 1),), ((0, 1), (0, 1)))


@pytest.mark.parametrize("unit", SCATTERED, ids=str)
def test_readings_is_the_most_that_differ(unit):
    pairs = [(one, other) for one in inputs((0, 1), [5]) for other in unit.neighbors(one, (0, 1))]
    assert unit.readings == max(sum(a != b for a, b in zip(*p, strict=True)) for p in pairs)


def test_how_many_readings_marks_cover_is_not_known_beforehand():
    with pytest.raises(UsageError, match="depends on the series"):
        _ = Landmarks().readings


# conversions

CHAINS = [Event(), Window(2), Window(3), WholeSeries(2)]
LENGTH = 7


@pytest.mark.parametrize("want", [*CHAINS, *SCATTERED], ids=str)
@pytest.mark.parametrize("have", [*CHAINS[:3], *SCATTERED], ids=str)
def test_as_many_steps_reach_every_neighbor(have, want):
    """Two values suffice, and zeros stand for any series; long enough for landmarks to be apart."""
    found = longest_chain(have, want, [((0,) * LENGTH,)], (0, 1))
    promised = conversion_factor(have, want)
    assert found <= promised
    in_a_row = isinstance(want, (Window, WholeSeries)) or (
        # of windows, two scattered readings may share one: then fewer do
        isinstance(have, Window) and isinstance(want, (Landmarks, Readings))
    )
    if not in_a_row:
        assert found == promised, "fewer would do"


def test_windows_that_cover_landmarks_side_by_side_are_not_relied_on():
    assert conversion_factor(Window(3), Landmarks((0, 5, 10))) == 4
    assert conversion_factor(Window(100), Readings(3)) == 3
    assert (
        conversion_factor(Readings(3), Window(7)) == 3
        and conversion_factor(Landmarks((0, 1)), Window(7)) == 7
    )


def test_landmarks_of_one_release_cover_those_of_another_where_they_are_the_same():
    assert conversion_factor(Landmarks((0, 1, 2)), Landmarks((1, 2))) == 1
    assert conversion_factor(Landmarks((1, 2)), Landmarks((0, 1, 2))) == 2
    assert conversion_factor(Landmarks((5,)), Landmarks((0, 1, 2))) == 4
    assert conversion_factor(Landmarks(), Landmarks()) == 1


def test_marks_and_steps_do_not_meet():
    """Which rows say that they are landmarks is not known, and there may be any number of them."""
    assert (
        conversion_factor(Landmarks(), Landmarks((0,))) is None
        and conversion_factor(Landmarks((0,)), Landmarks()) is None
    )
    for have in (Event(), Window(9), Readings(9), WholeSeries(9)):
        assert conversion_factor(have, Landmarks()) is None
    assert (
        conversion_factor(Landmarks(), Event()) == 1
        and conversion_factor(Landmarks(), Window(3)) == 3
    )
    with_marks = ((0, 1), (0, 0), (0, 1), (0, 0))
    same_marks = [x for x in inputs(MARKED, [4]) if [m for _, m in x] == [1, 0, 1, 0]]
    for other in same_marks:
        changed = sum(a != b for a, b in zip(with_marks, other, strict=True))
        assert changed > 1 or changed == 0 or Landmarks().are_neighbors(with_marks, other)


def test_places_are_reached_by_short_moves_where_they_are_near():
    line = tuple((float(x), 0.0) for x in range(7))
    for have, want in itertools.product((1, 2, 3), repeat=2):
        for one, other in (
            (Readings(1, have), Readings(2, want)),
            (Readings(2, have), Readings(2, want)),
            (Landmarks((0,), have), Landmarks((0,), want)),
            (Readings(2, have), Landmarks((0,), want)),
            (WithinDistance(have), Readings(2, want)),
            (Readings(2, have), WithinDistance(want)),
        ):
            found = longest_chain(one, other, [((line[0], line[3]),)], line)
            assert found <= conversion_factor(one, other), (one, other)


def test_places_near_each_other_say_nothing_about_places_anywhere():
    far = ((0.0, 0.0), (0.0, 1.0), (50.0, 50.0))
    for have in (Readings(2, 2.0), Landmarks((0,), 2.0)):
        for want in (Event(), Window(2), Readings(1), Landmarks((0,)), WholeSeries(2)):
            assert conversion_factor(have, want) is None
        assert longest_chain(have, Event(), [(far[:2],)], far) == math.inf
    assert (
        conversion_factor(Readings(2), Readings(2, 5.0)) == 1
        and conversion_factor(Event(), Landmarks((1,), 5.0)) == 2
    )


def test_what_scattered_readings_say_about_other_units():
    for have in (Readings(3), Landmarks((0, 1))):
        assert (
            conversion_factor(have, Answers()) is None
            and conversion_factor(Answers(), have) is None
        )
        assert (
            conversion_factor(Swap(3), have) is None
            and conversion_factor(Contribution(), have) is None
        )
        assert conversion_factor(have, Swap(2)) in (1, 2)
        assert (
            conversion_factor(have, Person(2, Event())) == 2
            and conversion_factor(Person(2, Event()), have) == 3
        )
        assert conversion_factor(have, Contribution()) == 1
        restated = Guarantee(Pure(1.0), have).for_unit(Answers())
        assert isinstance(restated, NoGuarantee)
    found = longest_chain(Readings(2), Swap(5), [((0, 1, 2, 3, 4),)], range(5))
    assert found == 1 <= conversion_factor(Readings(2), Swap(5))


def test_steps_of_steps():
    """Going through another unit never takes fewer steps than going straight."""
    known = [*CHAINS[:3], *SCATTERED, Readings(2, 5.0), Landmarks((0,), 9.0), WithinDistance(5.0)]
    for a, b, c in itertools.product(known, repeat=3):
        through = conversion_factor(a, b), conversion_factor(b, c)
        assert conversion_factor(a, a) == 1
        if None not in through:
            assert conversion_factor(a, c) is not None and conversion_factor(a, c) <= math.prod(
                through
            ), (a, b, c)


# words and forms


@pytest.mark.parametrize(
    "unit", [*SCATTERED, Landmarks(), Landmarks(meters=5.0), Readings(2, 7.5)], ids=str
)
def test_units_survive_json_and_can_be_read(unit):
    assert guarantees.decode(serialization.encode(unit)) == unit
    assert "\n" not in unit.sentence and not unit.sentence.endswith(".")
    assert ("landmarks" in unit.sentence) == isinstance(unit, Landmarks)
    assert unit.meters is None or f"{unit.meters:g} meters" in unit.sentence


def test_steps_are_a_set():
    assert Landmarks([3, 1, 3]) == Landmarks((1, 3)) and Landmarks([]).readings == 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Landmarks((-1,)), "steps: must be"),
        (lambda: Landmarks((1.0,)), "steps: must be"),
        (lambda: Landmarks((True,)), "steps: must be"),
        (lambda: Landmarks(3), "steps: must be"),
        (lambda: Landmarks("12"), "steps: must be"),
        (lambda: Landmarks(meters=0), "meters=0: must be"),
        (lambda: Landmarks(meters=math.nan), "meters=nan: must be"),
        (lambda: Readings(0), "count=0: must be"),
        (lambda: Readings(True), "count=True: must be"),
        (lambda: Readings(1.5), "count=1.5: must be"),
        (lambda: Readings(None), "count=None: must be"),
        (lambda: Readings(2, -1.0), "meters=-1.0: must be"),
        (lambda: Readings(2, "far"), "meters=far: must be"),
        (lambda: Person(2, Landmarks()), "each=Landmarks("),
        (lambda: Person(2, Readings(2)), "each=Readings("),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_bad_parameters_are_refused(make, said):
    with pytest.raises(TemprivError) as refusal:
        make()
    assert said in str(refusal.value)


# the ledger


def test_landmarks_of_several_releases_count_as_single_readings(ledger):
    """Another release may have other landmarks, so nothing more is common to them."""
    ledger.create_dataset("meters", epsilon=2.0)
    ledger.create_dataset("meters", unit=Window(3), epsilon=100.0)
    ledger.charge("meters", Guarantee(Pure(0.5), Landmarks()), EVERYONE, "one")
    ledger.charge("meters", Guarantee(Pure(0.5), Event()), EVERYONE, "two")
    spent = {total.unit: total.spent for total in ledger.show("meters").totals}
    assert spent == {Event(): 1.0, Window(3): 3.0}
    with pytest.raises(BudgetError):
        ledger.charge("meters", Guarantee(Pure(1.5), Landmarks()), EVERYONE, "three")


def test_landmarks_of_places_count_as_single_places(ledger):
    ledger.create_dataset("taxis", unit=WithinDistance(50.0), epsilon=2.0)
    ledger.charge("taxis", Guarantee(Pure(1.0), Landmarks(meters=100.0)), EVERYONE, "one")
    assert ledger.show("taxis").totals[0].spent == 1.0
    ledger.create_dataset("anywhere", epsilon=2.0)
    with pytest.raises(BudgetError):
        ledger.charge("anywhere", Guarantee(Pure(1.0), Landmarks(meters=100.0)), EVERYONE, "two")


def test_readings_wherever_they_are_count_for_each_other(ledger):
    ledger.create_dataset("meters", unit=Readings(3), epsilon=5.0)
    ledger.charge("meters", Guarantee(Pure(1.0), Readings(3)), EVERYONE, "one")
    ledger.charge("meters", Guarantee(Pure(1.0), Event()), EVERYONE, "two")
    assert ledger.show("meters").totals[0].spent == 4.0
    with pytest.raises(BudgetError):
        ledger.charge("meters", Guarantee(Pure(1.1), Readings(3)), span(0, 9, "a"), "three")


def test_no_limit_is_for_landmarks_at_given_steps(ledger):
    with pytest.raises(UsageError, match="without steps"):
        ledger.create_dataset("meters", unit=Landmarks((0, 3)), epsilon=1.0)
    assert ledger.datasets() == ()
