"""Words against real numbers: the enclosure holds, and no comparison is ever rounded."""

import decimal
import functools
import hashlib
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempriv.sampling import geometric
from tempriv.sampling.exact_compare import (
    GUARD_DIGITS,
    ExactReal,
    Thresholds,
    cells_of,
    decimal_of,
    exp_minus,
    is_below,
)
from tests.reference import noise as reference

pytest_plugins = ["tests.support.statistics"]

exactly = settings(derandomize=True, deadline=None, max_examples=200)

ONES = (1 << 64) - 1
BITS = [1, 16, 63, 64, 128, 320]

proper_fractions = st.tuples(st.integers(1, 10**30), st.integers(1, 10**30)).map(
    lambda pair: Fraction(min(pair), sum(pair))
)
dyadic_fractions = st.tuples(st.integers(1, 200), st.integers(0)).map(
    lambda pair: Fraction(2 * (pair[1] % 2 ** (pair[0] - 1)) + 1, 2 ** pair[0])
)
reals = st.one_of(proper_fractions, dyadic_fractions)


def real_of(fraction):
    return ExactReal(lambda: decimal_of(fraction))


def later_digits(salt, depth):
    """Digits that go on for ever and repeat nowhere."""
    name = f"{salt} {depth}".encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")


def uniform(words, more):
    """The number whose digits are read, cut after twelve words: too far to matter."""
    digits = words
    for depth in range(12):
        digits = digits << 64 | more(depth)
    return Fraction(digits, 2 ** (64 * 13))


# enclosures


@exactly
@given(reals, st.sampled_from(BITS))
def test_bounds_enclose_a_fraction_and_are_tight(fraction, bits):
    low, high = real_of(fraction).bounds(bits)
    assert 0 <= low <= fraction * 2**bits <= high <= 2**bits
    # no more than the integers on either side, unless the number is as good as one of them
    assert high - low <= 2
    nearest = abs(fraction * 2**bits - round(fraction * 2**bits))
    if nearest > Fraction(1, 10**10):
        assert high - low == 1


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize(
    "rate",
    [Fraction(1, 10**12), Fraction(1, 3), Fraction(22, 7), Fraction(40), Fraction(1000)],
    ids=str,
)
def test_bounds_enclose_the_exponential_and_are_tight(rate, bits):
    low, high = exp_minus(rate).bounds(bits)
    fine_low, fine_high = reference.exp_minus(rate, bits + 100)
    assert low << 100 <= fine_low <= fine_high <= high << 100
    assert high - low == 1


@pytest.mark.parametrize("bits", [64, 128, 320])
@pytest.mark.parametrize(
    ("scale", "base"),
    [(Fraction(1, 20), 2), (Fraction(7, 3), 4), (Fraction(500 * 4**14), 1 << 14)],
    ids=["small", "middle", "largest"],
)
def test_bounds_hold_where_the_formula_loses_digits(scale, base, bits):
    # 1 - e^-rate of a tiny rate cancels eleven of the digits; the guard is sixteen
    for i in {1, 2, base // 2, base - 1} - {base}:
        low, high = geometric._low_digit(1 / scale, base).reals[i - 1].bounds(bits)
        fine_low, fine_high = reference.low_digit_cut(i, 1 / scale, base, bits + 100)
        assert low << 100 <= fine_low <= fine_high <= high << 100
        assert high - low == 1


def test_the_guard_digits_cover_what_the_formula_of_the_largest_table_loses():
    # enclosures are of whole numbers and seldom tell; so the error itself is measured
    base = 1 << (geometric.DIGIT_BITS - 2)
    scale = Fraction(geometric.MAX_TOP_SCALE * base**2)
    precision, lost = 80, []
    for i in (1, 2, 3, 1000, base - 1):
        real = geometric._low_digit(1 / scale, base).reals[i - 1]
        with decimal.localcontext(prec=precision):
            computed = Fraction(real.formula())
        truth = Fraction(reference.low_digit_cut(i, 1 / scale, base, 600)[0], 2**600)
        lost.append(abs(computed - truth) / truth * 10**precision)
    assert 10**9 < max(lost) < 10 ** (GUARD_DIGITS - 1)


def test_bounds_at_the_ends():
    for bits in BITS:
        assert ExactReal(lambda: Decimal(1)).bounds(bits) == (2**bits - 1, 2**bits)
        tiny = ExactReal(lambda: Decimal(10) ** -5000)
        assert tiny.bounds(bits) == (0, 1)


def test_bounds_do_not_depend_on_the_context_of_the_caller():
    expected = exp_minus(Fraction(1, 3)).bounds(256)
    with decimal.localcontext(decimal.Context(prec=3, Emin=-2, Emax=2)):
        assert exp_minus(Fraction(1, 3)).bounds(256) == expected
    before = decimal.getcontext().prec
    exp_minus(Fraction(1, 3)).bounds(256)
    assert decimal.getcontext().prec == before


# one threshold


@exactly
@given(reals, st.integers(-2, 2), st.integers(0, 3), st.integers(0))
def test_a_number_close_to_a_threshold_falls_on_the_right_side(fraction, off, depth, salt):
    # the digits of the threshold itself down to some depth, then a little off, then any
    words = depth + 1
    digits = math.floor(fraction * 2 ** (64 * words)) + off
    digits = min(max(digits, 0), 2 ** (64 * words) - 1)
    given_words = [digits >> 64 * (words - 1 - i) & ONES for i in range(words)]

    def more(place):
        return given_words[place + 1] if place < depth else later_digits(salt, place)

    below = is_below(given_words[0], more, real_of(fraction))
    assert below == (uniform(given_words[0], more) < fraction)


def test_a_clear_word_asks_for_no_more_digits():
    def never(depth):
        raise AssertionError("asked for more digits")

    third = real_of(Fraction(1, 3))
    floor = 2**64 // 3
    assert is_below(floor - 1, never, third)
    assert not is_below(floor + 1, never, third)
    asked = []
    is_below(floor, lambda depth: asked.append(depth) or 0, third)
    assert asked == [0]


def test_a_tie_asks_for_digits_in_order_until_they_differ():
    asked = []

    def more(depth):
        asked.append(depth)
        return 0x5555555555555555 if depth < 5 else 0

    assert is_below(0x5555555555555555, more, real_of(Fraction(1, 3)))
    assert asked == [0, 1, 2, 3, 4, 5]


def test_a_number_equal_to_a_dyadic_threshold_so_far_is_not_below_it():
    half = real_of(Fraction(1, 2))
    assert not is_below(1 << 63, lambda depth: int(depth == 3), half)
    assert is_below((1 << 63) - 1, lambda depth: ONES - (depth == 3), half)


# many thresholds


@exactly
@given(
    st.lists(reals, min_size=0, max_size=6, unique=True),
    st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), max_size=8),
    st.lists(st.integers(0, ONES), max_size=5),
    st.integers(0),
)
def test_the_cell_of_a_word_is_the_number_of_cuts_at_or_below_it(cuts, near, anywhere, salt):
    cuts = sorted(cuts)
    words = [*anywhere, 0, 1, ONES - 1, ONES]
    words += [math.floor(cuts[i % len(cuts)] * 2**64) + off for i, off in near if cuts]
    words = np.array([min(max(word, 0), ONES) for word in words], dtype=np.uint64)

    def more(i, depth):
        return later_digits((salt, i), depth)

    table = Thresholds([real_of(cut) for cut in cuts])
    cells = table.cells(words, more)
    for i, word in enumerate(words.tolist()):
        number = uniform(word, functools.partial(more, i))
        assert cells[i] == sum(1 for cut in cuts if cut <= number)
        assert table.decide(word, functools.partial(more, i)) == cells[i]


@exactly
@given(
    st.lists(st.lists(reals, max_size=4, unique=True), min_size=1, max_size=5),
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3), st.integers(-2, 2)),
        max_size=12,
    ),
    st.integers(0),
)
def test_each_word_falls_among_the_cuts_of_its_own_table(tables, near, salt):
    # words near a cut of any table, looked up in any table
    tables = [sorted(cuts) for cuts in tables]
    which, words = [], []
    for place, source, i, off in near:
        cuts = tables[source % len(tables)] or [Fraction(1, 2)]
        which.append(place % len(tables))
        words.append(min(max(math.floor(cuts[i % len(cuts)] * 2**64) + off, 0), ONES))

    def more(i, depth):
        return later_digits((salt, i), depth)

    cells = cells_of(
        [Thresholds([real_of(cut) for cut in cuts]) for cuts in tables],
        np.array(which, dtype=np.int64),
        np.array(words, dtype=np.uint64),
        more,
    )
    assert cells.dtype == np.int64 and len(cells) == len(words)
    for i, (table, word) in enumerate(zip(which, words, strict=True)):
        number = uniform(word, functools.partial(more, i))
        assert cells[i] == sum(1 for cut in tables[table] if cut <= number)


def test_a_cut_of_another_table_is_no_tie():
    asked = []

    def more(i, depth):
        asked.append((i, depth))
        return 0

    # all tables end and begin next to one another's cuts, and one is empty
    low, high = Fraction(1, 3), Fraction(1, 3) + Fraction(5, 2**64)
    tables = [
        Thresholds([real_of(low)]),
        Thresholds([]),
        Thresholds([real_of(high)]),
        Thresholds([real_of(low)]),
    ]
    near_low, near_high = 2**64 // 3, 2**64 // 3 + 5
    words = np.array(
        [near_low, near_low, near_low, near_high, near_high, near_high, near_low], dtype=np.uint64
    )
    which = np.array([2, 1, 0, 0, 1, 2, 3])
    assert cells_of(tables, which, words, more).tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert asked == [(2, 0), (5, 0), (6, 0)]  # each by its own number, and the others not at all


@exactly
@given(
    st.integers(0, ONES),
    st.lists(st.integers(1, 2**32), min_size=2, max_size=9, unique=True),
    st.integers(0),
    st.integers(-1, 2),
)
def test_several_cuts_in_one_word_are_told_apart(word, places, salt, off):
    cuts = sorted(Fraction(word, 2**64) + Fraction(place, 2**97) for place in places)
    reals = [real_of(cut) for cut in cuts]

    # deeper words fall among the cuts too
    def more(i, depth):
        return places[i] << 31 if depth == 0 else later_digits(salt, depth)

    words = np.full(len(places), min(max(word + off, 0), ONES), dtype=np.uint64)
    cells = Thresholds(reals).cells(words, more)
    for i, cell in enumerate(cells.tolist()):
        number = uniform(int(words[i]), functools.partial(more, i))
        assert cell == sum(1 for cut in cuts if cut <= number)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5)], ids=str)
def test_cells_of_exponential_cuts_are_exact_at_floors_and_above(scale, rng):
    count = 30
    cuts = Thresholds(
        [ExactReal(functools.partial(geometric._reached, i / scale)) for i in range(1, count)]
    )
    exact = [reference.top_digit_cut(i, 1 / scale, 256) for i in range(1, count)]
    floors = [low >> 192 for low, _ in exact]
    assert cuts.floors.tolist() == floors
    words = np.array(
        [min(floor + off, ONES) for floor in floors for off in (0, 1, 2)]
        + [floor - 1 for floor in floors],
        dtype=np.uint64,
    )
    later = [rng.integers(0, 2**64, 3, dtype=np.uint64).tolist() for _ in words]
    cells = cuts.cells(words, lambda i, depth: later[i][depth])
    for i, word in enumerate(words.tolist()):
        digits = word << 192 | later[i][0] << 128 | later[i][1] << 64 | later[i][2]
        # no enclosure is hit: 192 random digits are far from it
        assert not any(low <= digits < high for low, high in exact)
        assert cells[i] == sum(1 for _, high in exact if high <= digits)


def test_a_cut_whose_first_digits_are_one_too_low_is_still_met():
    # the floor is computed as 2^63 - 1, but the cut lies past 2^63 by a little
    cut = Fraction(1, 2) + Fraction(1, 10**45)
    cuts = Thresholds([real_of(cut)])
    assert cuts.floors.tolist() == [2**63 - 1]
    words = np.array([2**63, 2**63, 2**63 - 1], dtype=np.uint64)
    digits = [0, 1, ONES]
    assert cuts.cells(words, lambda i, depth: digits[i]).tolist() == [0, 1, 0]


def test_a_word_away_from_cuts_is_decided_at_once():
    def never(i, depth):
        raise AssertionError("asked for more digits")

    cuts = [Fraction(1, 4), Fraction(1, 3), Fraction(1, 2)]
    words = np.array([0, 2**62 - 3, 2**62 + 3, 2**63 + 3, ONES], dtype=np.uint64)
    cells = Thresholds([real_of(cut) for cut in cuts]).cells(words, never)
    assert cells.tolist() == [0, 0, 1, 3, 3]
    assert Thresholds([]).cells(words, never).tolist() == [0] * 5
