"""What is protected: the enumerations, the tests and the conversions of units, by brute force."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempriv.errors import TemprivError
from tempriv.privacy import guarantees, serialization, units
from tempriv.privacy.units import (
    Answers,
    Contribution,
    Event,
    Person,
    Unit,
    WholeSeries,
    Window,
    WithinDistance,
    conversion_factor,
)
from tempriv.privacy.units.order import BlockSwap, SlotOrigin, Swap
from tempriv.privacy.units.replacement import Replacement
from tests.conformance.case_checks import quick

SINGLE = [Event(), *map(Window, (1, 2, 3, 5)), *map(WholeSeries, (1, 2, 3, 5))]
PERSONS = [
    Person(max_series, each)
    for max_series in (1, 2)
    for each in (Event(), Window(2), WholeSeries(2), WholeSeries(3))
]
CONTRIBUTIONS = [
    Contribution(),
    Contribution(Event(), per_step=2),
    Contribution(Window(2)),
    Contribution(Window(2), signed=True),
    Contribution(Window(3), per_step=2, total=3),
    Contribution(WholeSeries(3), total=2),
    Contribution(WholeSeries(3), total=2, signed=True),
]
ANSWERS = [Answers(), *map(Answers, (2, 3, 4))]
SWAPS = [*map(Swap, (2, 3, 5))]
BLOCKS = [BlockSwap(2), BlockSwap(3), BlockSwap(3, 1), BlockSwap(4, 3), BlockSwap(6, 1)]
ORIGINS = [*map(SlotOrigin, (2, 3, 5))]
ORDERS = [*SWAPS, *BLOCKS, *ORIGINS]
POINTS = ((0.0, 0.0), (3.0, 4.0), (0.0, 1.0), (6.0, 8.0))


def inputs(alphabet, lengths):
    return [x for n in lengths for x in itertools.product(alphabet, repeat=n)]


def assert_enumeration_agrees(unit, examples, alphabet):
    for one in examples:
        listed = list(unit.neighbors(one, alphabet))
        assert len(set(listed)) == len(listed), "a neighbor is listed twice"
        expected = {other for other in examples if other != one and unit.are_neighbors(one, other)}
        assert set(listed) == expected
        assert all(unit.are_neighbors(other, one) for other in listed), "not symmetric"


@pytest.mark.parametrize("unit", SINGLE, ids=str)
def test_neighbors_are_those_that_are_neighbors(unit):
    assert_enumeration_agrees(unit, inputs((0, 1), range(5)), (0, 1))
    assert_enumeration_agrees(unit, inputs("abc", range(4)), "abc")


@pytest.mark.parametrize("unit", PERSONS, ids=str)
def test_neighbors_of_persons(unit):
    series = inputs((0, 1), range(4))
    people = [(one,) for one in series]
    if unit.max_series == 2:
        people += itertools.product([s for s in series if len(s) in (2, 3)], repeat=2)
    assert_enumeration_agrees(unit, people, (0, 1))


@pytest.mark.parametrize("unit", CONTRIBUTIONS, ids=str)
def test_neighbors_of_counts(unit):
    assert_enumeration_agrees(unit, inputs((0, 1, 2), range(4)), (0, 1, 2))
    cells = tuple(itertools.product((0, 1), repeat=2))
    assert_enumeration_agrees(unit, inputs(cells, range(3)), cells)


@pytest.mark.parametrize("unit", CONTRIBUTIONS, ids=str)
def test_what_a_person_adds_is_the_largest_difference_between_neighbors(unit):
    """By both norms: the maximum over all neighbors is what the unit says of itself."""
    pairs = [
        [abs(a - b) for a, b in zip(one, other, strict=True)]
        for one in inputs((0, 1, 2), [3])
        for other in unit.neighbors(one, (0, 1, 2))
    ]
    assert max(sum(pair) for pair in pairs) == unit.most
    assert max(sum(d * d for d in pair) for pair in pairs) == unit.square


def changes(example):
    """Which pairs of steps have the same answer."""
    return [(i, j) for i, a in enumerate(example) for j, b in enumerate(example) if a == b]


@pytest.mark.parametrize("unit", ANSWERS, ids=str)
def test_neighbors_of_answers(unit):
    """By what each pair of steps shows: answers change, and come back, at the same steps."""
    examples = inputs("abc", range(5))
    assert_enumeration_agrees(unit, examples, "abc")
    assert_enumeration_agrees(unit, inputs("ab", range(6)), "ab")
    for one, other in itertools.product(examples, repeat=2):
        alike = len(one) == len(other) and changes(one) == changes(other)
        assert unit.are_neighbors(one, other) == (alike and len(set(one)) <= unit.distinct)


def blocks(unit: BlockSwap, length: int) -> list[set[int]]:
    """The first block ends before the offset, the last where the series does."""
    edges = sorted({0, *range(unit.offset, length, unit.block), length})
    return [set(range(first, end)) for first, end in itertools.pairwise(edges)]


def covered_places(unit: Unit, length: int) -> set[tuple[int, int]]:
    """The places that may be exchanged, from the words of the definitions."""
    pairs = itertools.combinations(range(length), 2)
    if isinstance(unit, BlockSwap):
        return {p for p in pairs if any(set(p) <= block for block in blocks(unit, length))}
    return {(i, j) for i, j in pairs if j - i < unit.window}


@pytest.mark.parametrize("unit", ORDERS, ids=str)
def test_neighbors_of_orders(unit):
    assert_enumeration_agrees(unit, inputs((0, 1), range(6)), (0, 1))
    assert_enumeration_agrees(unit, inputs("abc", range(5)), "abc")
    for length in range(9):
        example = tuple(range(length))
        found = {
            tuple(i for i in example if other[i] != i) for other in unit.neighbors(example, ())
        }
        assert found == covered_places(unit, length)
        for other in unit.neighbors(example, ()):
            assert sorted(other) == list(example), "nothing is replaced, only exchanged"


@pytest.mark.parametrize("unit", ORIGINS, ids=str)
def test_an_origin_is_asked_for_where_both_places_can_have_come_out(unit):
    example = tuple(range(8))
    for other in unit.neighbors(example, ()):
        i, j = (k for k in example if other[k] != k)
        late = [slot for slot in example if max(slot - i, slot - j) < unit.window]
        assert unit.slots(example, other) == [slot for slot in late if slot >= max(i, j)]
    assert unit.slots(example, example) == []


@pytest.mark.parametrize("meters", [0.5, 1, 5.0, 6.0, 10.0])
def test_neighbors_of_places(meters):
    assert_enumeration_agrees(WithinDistance(meters), inputs(POINTS, range(4)), POINTS)


@pytest.mark.parametrize("unit", [*SINGLE, WithinDistance(5.0)], ids=str)
def test_readings_is_the_most_that_differ(unit):
    alphabet = POINTS if isinstance(unit, WithinDistance) else (0, 1)
    pairs = (
        (one, other)
        for one in inputs(alphabet, range(6 if len(alphabet) == 2 else 3))
        for other in unit.neighbors(one, alphabet)
    )
    most = max(sum(a != b for a, b in zip(*pair, strict=True)) for pair in pairs)
    assert most == unit.readings


def test_a_person_with_more_series_than_declared_is_refused():
    with pytest.raises(TemprivError, match="3 series: this person unit covers at most 2"):
        list(Person(2, Event()).neighbors(((0,), (0,), (0,)), (0, 1)))
    assert not Person(2, Event()).are_neighbors(((0,),) * 3, ((0,),) * 3)


# conversions


@functools.cache
def linked(unit: Unit, person: tuple, alphabet) -> set:
    """All inputs one link away: a unit of one series acts on any one series of a person, a person
    unit on any group of series that it covers."""
    found = set()
    if isinstance(unit, Person):
        for size in range(1, min(unit.max_series, len(person)) + 1):
            for group in itertools.combinations(range(len(person)), size):
                for changed in unit.neighbors(tuple(person[i] for i in group), alphabet):
                    other = list(person)
                    for i, series in zip(group, changed, strict=True):
                        other[i] = series
                    found.add(tuple(other))
        return found
    for i, series in enumerate(person):
        for changed in unit.neighbors(series, alphabet):
            found.add((*person[:i], changed, *person[i + 1 :]))
    return found


@functools.cache
def distances(have: Unit, start: tuple, alphabet) -> dict:
    """How many links it takes to each input that can be reached at all."""
    found, front = {start: 0}, {start}
    while front:
        front = set().union(*(linked(have, x, alphabet) for x in front)) - found.keys()
        distance = max(found.values()) + 1
        found.update(dict.fromkeys(front, distance))
    return found


def longest_chain(have: Unit, want: Unit, starts, alphabet) -> float:
    """The most links that a neighbor by ``want`` takes; infinite if one is never reached."""
    worst = 0.0
    for start in starts:
        reached = distances(have, start, alphabet)
        if isinstance(want, Person):
            others = set(want.neighbors(start, alphabet))
        else:
            others = {(other,) for other in want.neighbors(start[0], alphabet)}
        worst = max([worst, *(reached.get(other, math.inf) for other in others)])
    return worst


def people(have, want, most):
    """Inputs that ``have`` speaks of: a whole-series mechanism takes no longer series."""
    each = have.each if isinstance(have, Person) else have
    length = min(most, each.length) if isinstance(each, WholeSeries) else most
    count = want.max_series if isinstance(want, Person) else 1
    # every input looks like any other to these units, so the one of zeros stands for all
    return [((0,) * n,) * count for n in range(1, length + 1)]


CHAINS = [Event(), Window(2), Window(3), WholeSeries(2), WholeSeries(4)]
PERSON_CHAINS = [Person(2, Event()), Person(2, Window(2)), Person(3, Event())]


@pytest.mark.parametrize("want", CHAINS, ids=str)
@pytest.mark.parametrize("have", [*CHAINS, *PERSON_CHAINS], ids=str)
def test_as_many_steps_reach_every_neighbor(have, want):
    found = longest_chain(have, want, people(have, want, 5), (0, 1))
    each = have.each if isinstance(have, Person) else have
    assert found <= conversion_factor(have, want)
    if not isinstance(each, WholeSeries):
        assert found == conversion_factor(have, want), "fewer would do"


@pytest.mark.parametrize("want", PERSON_CHAINS, ids=str)
@pytest.mark.parametrize("have", [*CHAINS, *PERSON_CHAINS], ids=str)
def test_as_many_steps_reach_every_neighbor_of_a_person(have, want):
    most = 2 if want.max_series == 3 else 3
    found = longest_chain(have, want, people(have, want, most), (0, 1))
    promised = conversion_factor(have, want)
    assert found <= promised
    covered = not isinstance(have, Person) or have.max_series >= want.max_series
    if covered and most >= want.each.readings and not isinstance(have, WholeSeries):
        assert found == promised, "fewer would do"


@pytest.mark.parametrize("want", CONTRIBUTIONS, ids=str)
@pytest.mark.parametrize("have", [*CONTRIBUTIONS, Event(), Window(2)], ids=str)
def test_as_many_steps_reach_every_neighboring_count(have, want):
    starts = [(x,) for x in inputs((0, 1, 2), [1, 2, 3])]
    assert longest_chain(have, want, starts, (0, 1, 2)) <= conversion_factor(have, want)


def test_what_a_person_adds_says_nothing_about_replaced_readings():
    for want in (Event(), Window(2), WholeSeries(2), Person(2, Event()), WithinDistance(1.0)):
        assert conversion_factor(Contribution(WholeSeries(5)), want) is None
    assert conversion_factor(WithinDistance(1.0), Contribution()) is None


@pytest.mark.parametrize("want", ANSWERS, ids=str)
@pytest.mark.parametrize("have", ANSWERS, ids=str)
def test_more_answers_cover_fewer_and_never_the_reverse(have, want):
    found = longest_chain(have, want, [(x,) for x in inputs("abcd", [4])], "abcd")
    promised = conversion_factor(have, want)
    assert found == (math.inf if promised is None else promised)


@pytest.mark.parametrize("unit", [*SINGLE, *PERSONS, *CONTRIBUTIONS, WithinDistance(5.0)], ids=str)
def test_answers_are_no_readings(unit):
    """No number of changed readings bounds an answer, and no answers reach a changed reading."""
    for answers in ANSWERS:
        assert conversion_factor(answers, unit) is None and conversion_factor(unit, answers) is None
        for have, want in ((answers, unit), (unit, answers)):
            restated = guarantees.Guarantee(guarantees.Pure(1.0), have).for_unit(want)
            assert isinstance(restated, guarantees.NoGuarantee)
        with pytest.raises(TemprivError, match="cannot be restated for other units"):
            _ = answers.readings


def test_a_changed_reading_is_never_reached_by_answers():
    for answers in ANSWERS:
        assert longest_chain(answers, Event(), [(("a", "a"),)], "abc") == math.inf
    # and ever more readings are needed for an answer, the longer it stays
    long = [longest_chain(Event(), Answers(), [(("a",) * n,)], "ab") for n in (1, 2, 5)]
    assert long == [1, 2, 5]


def test_whole_series_cover_what_is_no_longer_and_count_for_windows_where_it_is():
    for want in (Event(), Window(3), WholeSeries(2), WholeSeries(3)):
        assert conversion_factor(WholeSeries(3), want) == 1
    for want in (Window(4), WholeSeries(6)):
        assert conversion_factor(WholeSeries(3), want) == 2
    assert conversion_factor(WholeSeries(3), Person(2, WholeSeries(3))) == 2


def test_places_of_any_distance_are_reached_from_anywhere_by_short_moves():
    line = tuple((float(x), 0.0) for x in range(13))
    for have, want in itertools.product((1, 2, 3, 4, 6), repeat=2):
        promised = conversion_factor(WithinDistance(have), WithinDistance(want))
        found = longest_chain(
            WithinDistance(have), WithinDistance(want), [((p,),) for p in line], line
        )
        assert found == promised


# orders


def distinct(length: int) -> list[tuple]:
    """Readings that all differ show the most: with equal ones fewer swaps will do."""
    return [(tuple(range(length)),)]


@pytest.mark.parametrize("far", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("near", [1, 2, 3, 4, 5])
def test_a_far_swap_is_a_product_of_near_ones_and_of_no_fewer(near, far):
    """By all permutations; room on either side of the two readings does not help."""
    for length in {far + 1, min(far + 2, 6)}:
        found = longest_chain(Swap(near + 1), Swap(far + 1), distinct(length), ())
        assert (
            found
            == conversion_factor(Swap(near + 1), Swap(far + 1))
            == 2 * math.ceil(far / near) - 1
        )


@pytest.mark.parametrize(
    "want", [*BLOCKS[:3], BlockSwap(5, 1), SlotOrigin(2), SlotOrigin(4)], ids=str
)
@pytest.mark.parametrize("have", SWAPS, ids=str)
def test_swaps_cover_blocks_and_origins(have, want):
    found = longest_chain(have, want, distinct(6), ())
    assert found == conversion_factor(have, want)


def test_a_swap_of_any_distance_needs_whole_numbers_only():
    assert conversion_factor(Swap(2), Swap(10**17 + 2)) == 2 * (10**17 + 1) - 1


@pytest.mark.parametrize("want", [Swap(2), Swap(4), BlockSwap(3, 1), SlotOrigin(3)], ids=str)
@pytest.mark.parametrize(
    "have",
    [Event(), *map(Window, (1, 2, 3, 4)), *map(WholeSeries, (2, 3, 4)), Person(2, Event())],
    ids=str,
)
def test_what_covers_a_value_covers_its_place(have, want):
    """Theorem 2.3 of Ye et al.: twice, or once if both places are within what is replaced."""
    each = have.each if isinstance(have, Person) else have
    lengths = range(2, each.length + 1) if isinstance(each, WholeSeries) else [4]
    found = max(longest_chain(have, want, distinct(n), range(n)) for n in lengths)
    assert found <= conversion_factor(have, want) <= 2
    if not isinstance(each, WholeSeries):
        assert found == conversion_factor(have, want), "fewer would do"


@pytest.mark.parametrize("have", ORDERS, ids=str)
def test_an_order_says_nothing_about_values(have):
    """Readings are published as they are, so no loss whatever covers another value."""
    for want in [*SINGLE, *PERSONS, *CONTRIBUTIONS, *ANSWERS, WithinDistance(5.0)]:
        assert conversion_factor(have, want) is None
    for want in (Event(), Window(3), WholeSeries(4), Person(1, Event())):
        assert longest_chain(have, want, distinct(4), range(5)) == math.inf


@pytest.mark.parametrize("want", ORDERS, ids=str)
def test_what_moves_a_value_a_little_says_nothing_about_orders(want):
    for have in (*CONTRIBUTIONS, *ANSWERS, WithinDistance(1e6)):
        assert conversion_factor(have, want) is None


def test_no_chain_of_swaps_leaves_a_block():
    for have in BLOCKS:
        for want in (*SWAPS, *ORIGINS):
            assert conversion_factor(have, want) is None
        assert longest_chain(have, Swap(2), distinct(6), ()) == math.inf
    every = [BlockSwap(size, first) for size in (2, 3, 4, 6) for first in range(size)]
    places = {unit: covered_places(unit, 20) for unit in every}
    for have, want in itertools.product(every, repeat=2):
        covered = places[want] <= places[have]
        assert conversion_factor(have, want) == (1 if covered else None)


def test_one_row_by_itself_never_becomes_the_whole_output():
    for have in ORIGINS:
        assert all(conversion_factor(have, want) is None for want in (*SWAPS, *BLOCKS))
        for want in ORIGINS:
            assert conversion_factor(have, want) == (1 if want.window <= have.window else None)


def test_steps_of_steps_of_orders():
    for a, b, c in itertools.product([Event(), Window(2), Window(3), *ORDERS], repeat=3):
        through = conversion_factor(a, b), conversion_factor(b, c)
        if None not in through:
            assert conversion_factor(a, c) <= math.prod(through)


def test_what_is_never_reached_has_no_steps():
    far = ((0.0, 0.0), (0.0, 1.0), (50.0, 50.0))
    for want in (Event(), Window(2), WholeSeries(1), Person(1, Event()), Person(2, Window(2))):
        assert conversion_factor(WithinDistance(2.0), want) is None
    assert longest_chain(WithinDistance(2.0), Event(), [(far[:1],)], far) == math.inf
    # no number of short moves reaches arbitrarily far, and the plane has no end
    assert (
        longest_chain(WithinDistance(2.0), WithinDistance(1.0), [(far[:1],)], far)
        == 1
        == conversion_factor(WithinDistance(2.0), WithinDistance(1.0))
    )


@pytest.mark.parametrize("have", [Event(), Window(3), WholeSeries(4), Person(2, Event())], ids=str)
def test_a_reading_covers_a_place(have):
    assert conversion_factor(have, WithinDistance(100.0)) == 1
    assert longest_chain(have, WithinDistance(6.0), [((POINTS[0],),)], POINTS) == 1


points = st.tuples(*[st.floats(-1e3, 1e3)] * 2)


@quick
@given(points, points, points)
def test_near_obeys_the_triangle(a, b, c):
    first, second = math.dist(a, b), math.dist(b, c)
    if min(first, second) > 0:
        total = (first + second) * (1 + 1e-12)
        assert WithinDistance(first).are_neighbors((a,), (b,)) and WithinDistance(
            second
        ).are_neighbors((b,), (c,))
        assert WithinDistance(total).are_neighbors((a,), (c,))
        assert (
            conversion_factor(WithinDistance(max(first, second)), WithinDistance(first + second))
            <= 3
        )


@quick
@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.integers(1, 1000))
def test_steps_of_places_are_never_too_few(have, want, times):
    for meters in (want, have * times, math.nextafter(have * times, math.inf)):
        assert conversion_factor(WithinDistance(have), WithinDistance(meters)) * Fraction(
            have
        ) >= Fraction(meters)


@pytest.mark.parametrize("a", [*CHAINS[:3], *PERSON_CHAINS], ids=str)
def test_steps_of_steps(a):
    """Going through another unit never takes fewer steps than going straight."""
    for b, c in itertools.product([*CHAINS[:3], *PERSON_CHAINS], repeat=2):
        assert conversion_factor(a, a) == 1
        assert conversion_factor(a, c) <= conversion_factor(a, b) * conversion_factor(b, c)


# words and forms


PARTS = ("readings", "sentence", "neighbors", "are_neighbors")


@pytest.mark.parametrize(
    "unit", [*SINGLE, *PERSONS, *CONTRIBUTIONS, *ANSWERS, *ORDERS, WithinDistance(12.5)], ids=str
)
def test_units_survive_json(unit):
    assert guarantees.decode(serialization.encode(unit)) == unit
    # by the class, as some have no number of readings to tell
    assert all(hasattr(type(unit), part) for part in PARTS)
    assert all(hasattr(Unit, part) for part in PARTS)


@pytest.mark.parametrize("unit", ANSWERS, ids=str)
def test_answers_can_be_read(unit):
    assert "any number of reports" in unit.sentence
    assert ("stays the same" if unit.distinct == 1 else f"{unit.distinct} different") in (
        unit.sentence
    )
    assert "\n" not in unit.sentence and not unit.sentence.endswith(".")


@pytest.mark.parametrize("unit", [*SINGLE, *PERSONS, WithinDistance(12.5)], ids=str)
def test_units_can_be_read(unit):
    assert isinstance(unit, Unit)
    each = unit.each if isinstance(unit, Person) else unit
    numbers = [v for v in (getattr(unit, "max_series", 1),) if v > 1]
    numbers += [] if isinstance(each, Event) else [getattr(each, "length", None) or each.meters]
    assert all(str(number) in unit.sentence for number in numbers)
    assert "\n" not in unit.sentence and not unit.sentence.endswith(".")


def test_orders_can_be_read():
    """Unlike units in unlike words, which follow 'protects' and 'bets on'."""
    texts = [unit.sentence for unit in ORDERS]
    assert len(set(texts)) == len(texts)
    for unit, text in zip(ORDERS, texts, strict=True):
        assert isinstance(unit, Unit)
        assert text.startswith("whether ") and "\n" not in text and not text.endswith(".")
        assert "1 time steps" not in text
        assert unit.readings == 2
    assert "by themselves" in SlotOrigin(4).sentence


def test_every_kind_of_unit_is_listed():
    samples = [*SINGLE, *PERSONS, *CONTRIBUTIONS, *ANSWERS, *ORDERS, WithinDistance(1.0)]
    kinds = {type(unit) for unit in samples}
    # for those of times see test_units_time, for scattered readings test_units_landmarks
    kinds |= {units.Landmarks, units.Pace, units.Readings, units.Timestamps}
    assert len(kinds) == 14 and kinds <= set(units.all_units())


def test_a_unit_is_found_from_its_class():
    class Pair(Window):
        """Two readings next to each other."""

    assert Pair in units.all_units()
    assert Replacement not in units.all_units()
    assert "Pair" in [entry.kind for entry in units.unit_entries()]
    assert guarantees.decode({"is": "Pair", "length": 2}) == Pair(2)
    assert conversion_factor(Pair(2), Event()) == 1 and conversion_factor(Event(), Pair(2)) == 2


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Window(0), "window=0: "),
        (lambda: Window(-3), "window=-3: "),
        (lambda: Window(1.5), "window=1.5: "),
        (lambda: Window("2"), "window=2: "),
        (lambda: Window(None), "window=None: "),
        (lambda: Contribution(Person(1, Event())), "each=Person("),
        (lambda: Contribution(per_step=0), "per_step=0: "),
        (lambda: Contribution(per_step=None), "per_step=None: "),
        (lambda: Contribution(per_step=3, total=2), "total=2: "),
        (lambda: Contribution(total=math.inf), "total=inf: "),
        (lambda: Contribution(signed=2), "signed=2: "),
        (lambda: Contribution(signed=None), "signed=None: "),
        (lambda: Answers(0), "distinct=0: "),
        (lambda: Answers(-1), "distinct=-1: "),
        (lambda: Answers(1.5), "distinct=1.5: "),
        (lambda: Answers(None), "distinct=None: "),
        (lambda: Swap(1), "window=1: "),
        (lambda: Swap(2.0), "window=2.0: "),
        (lambda: Swap(None), "window=None: "),
        (lambda: SlotOrigin(1), "window=1: "),
        (lambda: SlotOrigin(True), "window=True: "),
        (lambda: BlockSwap(1), "block=1: "),
        (lambda: BlockSwap(3, -1), "offset=-1: "),
        (lambda: BlockSwap(3, 3), "offset=3: "),
        (lambda: BlockSwap(3, 0.5), "offset=0.5: "),
        (lambda: Person(2, Swap(3)), "each=Swap("),
        (lambda: Contribution(SlotOrigin(3)), "each=SlotOrigin("),
        (lambda: WholeSeries(0), "length=0: "),
        (lambda: WholeSeries(math.inf), "length=inf: "),
        (lambda: Person(0, Event()), "max_series=0: "),
        (lambda: Person(2.0, Event()), "max_series=2.0: "),
        (lambda: Person(2, WithinDistance(5.0)), "each=WithinDistance(meters=5.0): "),
        (lambda: Person(2, Person(2, Event())), "each=Person("),
        (lambda: Person(2, "event"), "each='event': "),
        (lambda: WithinDistance(0), "meters=0: "),
        (lambda: WithinDistance(-1.0), "meters=-1.0: "),
        (lambda: WithinDistance(math.nan), "meters=nan: "),
        (lambda: WithinDistance(math.inf), "meters=inf: "),
        (lambda: WithinDistance("far"), "meters=far: "),
    ],
)
def test_bad_parameters_are_refused(make, said):
    with pytest.raises(TemprivError) as refusal:
        make()
    assert said in str(refusal.value)
    assert "must be" in str(refusal.value) or "covered by" in str(refusal.value)
