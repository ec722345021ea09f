"""Geometric variables: every entry of a table, every open digit and every floor is exact."""

import bisect
import decimal
import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tempriv.sampling import _kernels, geometric
from tempriv.sampling.distributions import DiscreteLaplace
from tempriv.sampling.exact_compare import ExactReal, Thresholds, decimal_of
from tempriv.sampling.geometric import (
    DIGIT_BITS,
    LEVELS,
    NO_SIGN,
    SIGN,
    TOP,
    GeometricTable,
    geometric_table,
)
from tempriv.sampling.keys import EPOCH
from tempriv.sampling.keystream import Keystream
from tests.reference import noise as reference
from tests.support.scripted import ONES, run, scripted, split, write
from tests.support.statistics import COMPILED, DRAWS, assert_proportion, assert_rare, stated

pytest_plugins = ["tests.support.statistics"]

ENTRIES = 1 << DIGIT_BITS
TABLE_SCALES = [
    Fraction(1, 20),
    Fraction(1, 2),
    Fraction(1),
    Fraction(7, 3),
    Fraction(40),
    Fraction(1000, 7),
    Fraction(5000),
]


def exact_cuts(table, scale, level, bits):
    """Enclosures of the cuts of one digit or of the sign, from the definition."""
    base = 1 << int(table.shifts[1])
    if level == SIGN:
        return [reference.sign_cut(1 / scale, bits)]
    if level == TOP:
        cells = len(table.cuts[TOP].reals)
        return [reference.top_digit_cut(i, base**TOP / scale, bits) for i in range(1, cells + 1)]
    rate = base**level / scale
    return [reference.low_digit_cut(i, rate, base, bits) for i in range(1, base)]


def signed(size, minus):
    return -1 - size if minus else size


# tables


@pytest.mark.parametrize("scale", TABLE_SCALES, ids=str)
@pytest.mark.parametrize("level", range(SIGN))
def test_every_entry_of_a_table_is_decided_rightly_or_left_open_for_a_reason(scale, level):
    table = geometric_table(scale)
    assert table.tables.shape == (SIGN, ENTRIES)
    cuts = exact_cuts(table, scale, level, 200)
    cut_entries = [low >> (200 - DIGIT_BITS) for low, _ in cuts]
    assert cut_entries == [high >> (200 - DIGIT_BITS) for _, high in cuts]
    expected = np.searchsorted(np.array(cut_entries), np.arange(ENTRIES), side="left")
    if cut_entries:
        expected[cut_entries] = -1
    if level == TOP:
        # beyond the last cut the law starts anew
        expected[np.arange(ENTRIES) >= cut_entries[-1]] = -1
    np.testing.assert_array_equal(table.tables[level], expected)
    # and the first 64 digits of each cut are those of the definition
    floors = [low >> (200 - 64) for low, _ in cuts]
    assert np.array_equal(table.cuts[level].floors, np.array(floors, dtype=np.uint64))


def digit_sums(table, words, coin):
    sums = np.empty(len(words), dtype=np.int64)
    unsure = np.empty(LEVELS * len(words), dtype=np.intp)
    found = _kernels.digit_sums(words, table.tables, table.shifts, coin, sums, unsure)
    return sums, unsure[:found].tolist()


@pytest.mark.parametrize("scale", [Fraction(1, 1000), *TABLE_SCALES, Fraction(2**20)], ids=str)
def test_the_sign_is_open_for_the_16_bits_that_hold_its_cut_and_no_others(scale):
    table = geometric_table(scale)
    bits = 200 + 2 * math.ceil(1 / scale)  # so that the cut of a tiny scale is not 1
    low, high = reference.sign_cut(1 / scale, bits)
    assert table.coin == low >> (bits - DIGIT_BITS) == high >> (bits - DIGIT_BITS)
    assert table.cuts[SIGN].floors.tolist() == [low >> (bits - 64)]
    assert len(table.cuts) == LEVELS and len(table.cuts[SIGN].reals) == 1
    tosses = np.arange(ENTRIES, dtype=np.uint64) << np.uint64(DIGIT_BITS * SIGN)
    sums, unsure = digit_sums(table, tosses, table.coin)
    assert unsure == [4 * table.coin + SIGN]
    # zero bits are a digit of zero, and minus stands for -1 minus that
    assert not sums[: table.coin].any() and (sums[table.coin + 1 :] == -1).all()
    # without a sign no toss counts
    sums, unsure = digit_sums(table, tosses, NO_SIGN)
    assert unsure == [] and not sums.any()


def test_a_cut_of_the_sign_at_the_edge_of_16_bits_is_met():
    # as the next test for digits: a scale whose cut lies past an edge by less than can be told
    # from 64 digits; the sign is then open in the cell past the edge, not only before it
    edge = 50_000
    with decimal.localcontext(prec=80):
        rate = (Decimal(edge) / Decimal(ENTRIES - edge)).ln()
        rate = Fraction(rate.quantize(Decimal(10) ** -45, rounding=decimal.ROUND_CEILING))
    low, high = reference.sign_cut(rate, 256)
    assert edge == low >> (256 - DIGIT_BITS) == high >> (256 - DIGIT_BITS)
    script = {}
    for row, word in enumerate([0, ONES]):
        write(script, (), 0, row, edge << DIGIT_BITS * SIGN)
        write(script, (SIGN,), 0, row, word)
        for stream in range(3):  # the two differ from the cut some 150 digits in
            write(script, (SIGN, 0), stream, row, word)
    assert GeometricTable(1 / rate).sample_signed(scripted(2, script)).tolist() == [0, -1]


@pytest.mark.parametrize("open_ended", [False, True])
def test_a_cut_at_the_edge_of_an_entry_leaves_it_open(open_ended):
    # the first cut lies in entry 5 by so little that its first 64 digits may be those before it
    barely = Fraction(5, ENTRIES) + Fraction(1, 10**41)
    cuts = Thresholds(
        [ExactReal(lambda: decimal_of(barely)), ExactReal(lambda: decimal_of(Fraction(1, 2)))]
    )
    assert cuts.floors.tolist() == [(5 << 48) - 1, (1 << 63) - 1]
    half = ENTRIES // 2
    expected = np.repeat([0, 1, 2], [5, half - 5, half])
    expected[[4, 5, half - 1, half]] = -1
    if open_ended:
        expected[half:] = -1
    np.testing.assert_array_equal(geometric._first_level(cuts, open_ended), expected)


@pytest.mark.parametrize("scale", [*TABLE_SCALES, Fraction(2**20), Fraction(2**30)], ids=str)
def test_the_digits_of_a_table_reach_every_integer_once(scale):
    table = geometric_table(scale)
    bits = table.shifts[1]
    assert table.shifts.tolist() == [0, bits, 2 * bits]
    assert [len(table.cuts[level].reals) for level in range(TOP)] == [(1 << bits) - 1] * TOP
    # a table holds digits of its level only, and one for each integer below the end
    assert table.tables[:TOP].max() == (1 << bits) - 1
    assert table.tables[TOP].max() < len(table.cuts[TOP].reals) < 2**15
    assert len(table.cuts[TOP].reals) >= 40 * scale / 4 ** int(bits)
    assert 0 <= table.coin < NO_SIGN


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(1000, 7)], ids=str)
def test_the_two_signs_make_one_distribution(scale):
    # plus with G, else minus with -1 - G, weighs e^(-|k| / scale) over its sum, to 24 places
    bits = 160
    plus = Fraction(reference.sign_cut(1 / scale, bits)[0], 1 << bits)
    points = [0, 1, 2, 7, math.ceil(5 * scale)]
    masses = reference.discrete_laplace(scale, [*points, *(-1 - g for g in points)])
    for g in points:
        reached = [Fraction(reference.exp_minus(x / scale, bits)[0], 1 << bits) for x in (g, g + 1)]
        mass = reached[0] - reached[1]
        assert abs(plus * mass - Fraction(masses[g])) < Fraction(1, 10**24)
        assert abs((1 - plus) * mass - Fraction(masses[-1 - g])) < Fraction(1, 10**24)


# open digits


@pytest.mark.parametrize("scale", TABLE_SCALES[1:-1], ids=str)
@pytest.mark.parametrize("level", range(LEVELS))
def test_a_digit_on_a_cut_is_decided_by_as_many_digits_as_it_takes(scale, level):
    # the digit reads 16 bits of the first word, then 64 more, then 64 more, ...
    table = geometric_table(scale)
    words = 4
    bits = DIGIT_BITS + 64 * words
    cuts = exact_cuts(table, scale, level, bits)
    anew = int(table.cuts[TOP].floors[0]) + 2
    script, expected = {}, []
    tried = range(len(cuts)) if len(cuts) < 12 else [0, 1, 2, 5, len(cuts) // 2, len(cuts) - 1]
    for i in tried:
        low, high = cuts[i]
        for depth in range(words + 1):
            # agree with the cut in all digits up to this depth, then differ by a little
            unit = 1 << 64 * (words - depth)
            for off in (-2, -1, 0, 1, 2):
                digits = (low // unit + off) * unit + unit // 3
                if not 0 <= digits < 1 << bits:
                    continue
                if digits >= high:
                    cell = sum(1 for _, other in cuts if other <= digits)
                elif digits < low:
                    cell = sum(1 for other, _ in cuts if other <= digits)
                else:
                    continue
                row = len(expected)
                write(script, (), 0, row, (digits >> 64 * words) << DIGIT_BITS * level)
                write_after(script, level, row, split(digits & (1 << 64 * words) - 1, words))
                # past the end the law starts anew with these words: a fresh zero; other digits
                # have no end, though they may be as large, and would show it by a fresh one
                write(script, (TOP, 1), 0, row, 0 if level == TOP else anew)
                expected.append(cell)
    if not cuts:
        return
    assert len(expected) >= 10
    if scale == 40 and level < TOP:
        assert len(table.cuts[TOP].reals) in expected
    source = scripted(len(expected), script)
    # whether or not 16 bits decide it, this is the digit
    unsure = 4 * np.arange(len(expected)) + level
    assert table._cells(unsure, source.read(), source).tolist() == expected
    # the other digits are zero, as 16 zero bits mean
    assert [table.tables[other][0] for other in range(SIGN)] == [0] * SIGN
    if level == SIGN:
        assert set(expected) == {0, 1}
        assert table.sample(source).tolist() == [0] * len(expected)
        assert table.sample_signed(source).tolist() == [-cell for cell in expected]
    else:
        sizes = [cell << int(table.shifts[level]) for cell in expected]
        assert table.sample(source).tolist() == sizes
        assert table.sample_signed(source).tolist() == sizes


def write_after(script, level, row, words):
    """What follows the 16 bits of a digit."""
    write(script, (level,), 0, row, words[0])
    for stream, word in enumerate(words[1:]):
        write(script, (level, 0), stream, row, word)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(40)], ids=str)
@pytest.mark.parametrize("sign", ["none", "plus", "minus", "open plus", "open minus"])
def test_past_the_end_of_the_table_the_distribution_starts_anew(scale, sign):
    table = geometric_table(scale)
    end, shift = len(table.cuts[TOP].reals), int(table.shifts[TOP])
    cuts = exact_cuts(table, scale, TOP, 256)
    # fresh numbers near a cut: told from it by their first word, or by the last of four
    numbers = [cuts[0][0] - (5 << 192), cuts[0][1] + (5 << 192), cuts[3][1] + (5 << 192)]
    numbers += [edge for i in (0, 2, -3) for edge in (cuts[i][0] - 1, cuts[i][1])]
    toss = {"minus": ENTRIES - 1, "open plus": table.coin, "open minus": table.coin}.get(sign, 0)
    script, expected = {}, []
    for number, times in itertools.product(numbers, (1, 2, 3)):  # past the end so many times
        row = len(expected)
        write(script, (), 0, row, 0xFFFF << DIGIT_BITS * TOP | toss << DIGIT_BITS * SIGN)
        write_after(script, SIGN, row, [ONES if sign == "open minus" else 0])
        path = (TOP,)
        for _ in range(times):
            write(script, path, 0, row, ONES)
            write(script, (*path, 0), 0, row, ONES)
            path = (*path, 1)
        for stream, word in enumerate(split(number, 4)):
            write(script, path if stream == 0 else (*path, 0), max(stream - 1, 0), row, word)
        cell = sum(1 for _, high in cuts if high <= number)
        assert cell == sum(1 for low, _ in cuts if low <= number)
        expected.append(signed((times * end + cell) << shift, "minus" in sign))
    source = scripted(len(expected), script)
    values = table.sample(source) if sign == "none" else table.sample_signed(source)
    assert values.tolist() == expected


def apart(cuts, unit, rest, open_ended):
    """Cuts that have no other so close, nor the edge of 16 bits; the last one may end the table."""
    found = []
    for i, (low, high) in enumerate(cuts[: len(cuts) - open_ended]):
        before = i == 0 or cuts[i - 1][1] < low - unit
        after = i + 1 == len(cuts) or high + unit < cuts[i + 1][0]
        if before and after and (low - unit) >> rest == (high + unit) >> rest:
            found.append(i)
    return found


CERTAIN = "certain"
SHALLOW = (CERTAIN, "below", "above")  # on a cut by 16 bits, told from it by the next 48
DEEP = (CERTAIN, "just below", "just above")  # told from it by the last of 256 more
STATES = [
    *itertools.product(SHALLOW, repeat=LEVELS),
    *itertools.product(DEEP, repeat=LEVELS),
    *itertools.product(SHALLOW[1:], DEEP[1:], repeat=LEVELS // 2),
]


@pytest.mark.parametrize("scale", [Fraction(7, 3), Fraction(40), Fraction(1000, 7)], ids=str)
def test_a_row_is_put_together_from_all_that_its_16_bits_left_open(scale, rng):
    # any of the digits and the sign may be open, and each then falls on either side of its cut
    table = geometric_table(scale)
    words = 4
    bits = DIGIT_BITS + 64 * words
    every = [exact_cuts(table, scale, level, bits) for level in range(LEVELS)]
    tosses = [0, table.coin - 1, table.coin + 1, ENTRIES - 1]
    script, sizes, minus = {}, [], []
    for row, state in enumerate(STATES):
        first, cells = 0, []
        for level, (where, cuts) in enumerate(zip(state, every, strict=True)):
            if where == CERTAIN and level == SIGN:
                entry = tosses[row // 3 % 4]
                cells.append(int(entry > table.coin))
            elif where == CERTAIN:
                entry = int(rng.choice(np.flatnonzero(table.tables[level] >= 0)))
                cells.append(int(table.tables[level][entry]))
            else:
                unit = 1 if "just" in where else 1 << bits - 48
                cut = int(rng.choice(apart(cuts, unit, 64 * words, level == TOP)))
                low, high = cuts[cut]
                number = low - unit if "below" in where else high + unit - 1
                entry = number >> 64 * words
                write_after(script, level, row, split(number & (1 << 64 * words) - 1, words))
                cells.append(cut + ("above" in where))
                assert entry == low >> 64 * words
                assert cells[-1] == sum(1 for _, other in cuts if other <= number)
            first |= entry << DIGIT_BITS * level
        write(script, (), 0, row, first)
        sizes.append(sum(cells[level] << int(table.shifts[level]) for level in range(SIGN)))
        minus.append(cells[SIGN] == 1)
    source = scripted(len(STATES), script)
    # what is open is listed once, in the order of rows and then of levels
    opened = [
        4 * row + level
        for row, state in enumerate(STATES)
        for level, where in enumerate(state)
        if where != CERTAIN
    ]
    assert digit_sums(table, source.read(), table.coin)[1] == opened
    expected = [signed(size, sign) for size, sign in zip(sizes, minus, strict=True)]
    assert table.sample_signed(source).tolist() == expected
    assert DiscreteLaplace(scale).sample(source).tolist() == expected
    assert table.sample(source).tolist() == sizes
    # substreams from LEVELS on are left to others
    assert {path[0] for path, _ in source.taken if path} == set(range(LEVELS))


def test_zero_comes_from_plus_alone_whether_its_digits_were_certain_or_not():
    scale = Fraction(7, 3)
    table = geometric_table(scale)
    # the first cuts of the two low digits, which 16 bits leave open; zeros then fall below, ones
    # above, and so with the sign
    lowest, second = (exact_cuts(table, scale, level, 80)[0][0] >> 64 for level in (0, 1))
    assert table.tables[0][lowest] == table.tables[1][second] == -1
    both = lowest | second << DIGIT_BITS
    coin, minus = table.coin << DIGIT_BITS * SIGN, 0xFFFF << DIGIT_BITS * SIGN
    rows = [
        (0, 0, 0, 0),
        (minus, 0, 0, -1),
        (minus | lowest, 0, 0, -1),
        (minus | lowest, ONES, 0, -2),
        (lowest, 0, 0, 0),
        (lowest, ONES, 0, 1),
        (minus | both, 0, 0, -1),
        (both, 0, 0, 0),
        (coin, 0, 0, 0),
        (coin, 0, ONES, -1),
        (coin | both, 0, 0, 0),
        (coin | both, 0, ONES, -1),
        (coin | lowest, ONES, 0, 1),
        (coin | lowest, ONES, ONES, -2),
        (coin - (1 << 48), 0, 0, 0),
        (coin + (1 << 48), 0, 0, -1),
    ]
    script = {}
    for row, (first, more, sign, _) in enumerate(rows):
        write(script, (), 0, row, first)
        for level, word in ((0, more), (1, more), (SIGN, sign)):
            write(script, (level,), 0, row, word)
    source = scripted(len(rows), script)
    assert DiscreteLaplace(scale).sample(source).tolist() == [value for *_, value in rows]


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(40), Fraction(5000)], ids=str)
def test_keyed_words_give_what_the_definition_says_of_them(scale):
    # of many rows all those that 16 bits leave open, and some others, digit by digit
    table = geometric_table(scale)
    words = Keystream([run(3, 30_000, start=EPOCH - 9999)], "noise")
    first = words.read()
    drawn = table.sample_signed(words)
    opened = {place >> 2 for place in digit_sums(table, first, table.coin)[1]}
    rows = np.array(sorted(opened | set(range(0, len(first), 100))))
    assert len(opened) >= 3
    bits = DIGIT_BITS + 64 * 3
    cells = []
    for level in range(LEVELS):
        cuts = exact_cuts(table, scale, level, bits)
        lows, highs = [low for low, _ in cuts], [high for _, high in cuts]
        substream = words.substream(level)
        later = [substream.read(), substream.substream(0).read(0), substream.substream(0).read(1)]
        found = []
        for row in rows.tolist():
            number = int(first[row]) >> DIGIT_BITS * level & 0xFFFF
            for more in later:
                number = number << 64 | int(more[row])
            found.append(bisect.bisect_right(lows, number))
            assert found[-1] == bisect.bisect_right(highs, number)  # no enclosure is hit
        cells.append(found)
    sizes = [
        sum(cells[level][i] << int(table.shifts[level]) for level in range(SIGN))
        for i in range(len(rows))
    ]
    expected = [signed(size, minus) for size, minus in zip(sizes, cells[SIGN], strict=True)]
    assert drawn[rows].tolist() == expected
    assert table.sample_signed(words.rows(rows)).tolist() == expected
    assert table.sample(words.rows(rows)).tolist() == sizes


@pytest.mark.parametrize("scale", [Fraction(1, 20), Fraction(1, 16)], ids=["1/20", "1/16"])
@pytest.mark.parametrize("level", [TOP, SIGN], ids=["size", "sign"])
def test_the_tail_of_a_tiny_scale_is_right_given_that_the_first_bits_do_not_decide(
    scale, level, seed
):
    # the first 16 bits are all ones in every row, so P(G >= 1) is e^(-1 / scale) 2^16, and the
    # chance of minus is the same but for a ten millionth of it
    count = DRAWS
    table = geometric_table(scale)
    first = np.full(count, 0xFFFF << DIGIT_BITS * level, dtype=np.uint64)
    digits = table._cells(
        4 * np.arange(count) + level, first, Keystream([run(seed, count)], "noise")
    )
    probability = math.exp(-1 / scale) * 2**16
    nonzero = np.count_nonzero(digits)
    if COMPILED or scale > Fraction(1, 18):
        detects = stated(0.1) if scale > Fraction(1, 18) else 0.9
        assert_proportion(nonzero, count, probability, detects=detects)
    else:  # too few draws to tell too seldom
        assert_rare(nonzero, count, probability, detects=3e-3)


# the certified logarithm


LOG_SCALES = [1e-3, 0.01, 0.02, 0.1, 0.5, 1.0, 3.7, 1000.25, 2.0**20.5, 2.0**33, 2.0**39.9]


def adversarial_words(scale, rng):
    """The 63 leading bits: tiny, at the ends, and around the boundaries e^(-g / scale)."""
    exact = Fraction(scale)
    words = [*range(20), *(2**b + d for b in range(5, 63, 4) for d in (-1, 0, 1))]
    words += [2**63 - 1 - i for i in range(20)]
    most = math.floor(43 * scale)
    for g in {1, 2, 3, *rng.integers(1, max(2, most + 1), 20).tolist(), most, most + 1}:
        if g / exact < 60:
            near = reference.exp_minus(g / exact, 63)[0]
            words += [near + d for d in (-1000, -3, -2, -1, 0, 1, 2, 3, 1000)]
    words += rng.integers(0, 2**63, 50).tolist()
    return sorted({word for word in words if 0 <= word < 2**63})


@pytest.mark.parametrize("scale", LOG_SCALES)
def test_a_floor_that_the_logarithm_decides_is_the_exact_one(scale, rng):
    leading = adversarial_words(scale, rng)
    words = np.array([word << 1 for word in leading], dtype=np.uint64)
    out = np.empty(len(words), dtype=np.int64)
    unsure = np.empty(len(words), dtype=np.intp)
    found = _kernels.geometric_by_log(words, np.full(len(words), scale), out, unsure)
    undecided = set(unsure[:found].tolist())
    for i, word in enumerate(leading):
        if i not in undecided:
            assert out[i] == reference.geometric_floor(word, 63, Fraction(scale)), (word, scale)
    # it does decide, up to scales whose margin is as wide as a step
    if scale < 2**30:
        chosen = rng.integers(0, 2**64, 10_000, dtype=np.uint64)
        out, unsure = np.empty(10_000, dtype=np.int64), np.empty(10_000, dtype=np.intp)
        found = _kernels.geometric_by_log(chosen, np.full(10_000, scale), out, unsure)
        assert found < 10_000 * (1e-3 + 4e-11 * scale)


@pytest.mark.parametrize("scale", LOG_SCALES)
def test_a_floor_on_a_boundary_is_decided_by_as_many_digits_as_it_takes(scale, rng):
    exact = Fraction(scale)
    deeper = 3
    bits = 63 + 64 * deeper
    written, expected, rows_scales = {}, [], []
    numbers = [1, 2, 2**64 + 1, 2**bits - 1, 2**bits - 2**64, 2**bits - 2 ** (64 * deeper) + 1]
    for g in {1, 2, 3, *rng.integers(1, math.floor(43 * scale) + 2, 10).tolist()}:
        if g / exact > 120:
            continue
        low, high = reference.exp_minus(g / exact, bits)
        for depth in range(deeper + 1):
            unit = 1 << 64 * depth
            numbers += [low - unit, low - 2 * unit, high + unit, high + 2 * unit, high + unit // 7]
    for number in numbers:
        if not 0 <= number < 1 << bits:
            continue
        floor = reference.geometric_floor(number, bits, exact)
        if floor is None:
            continue
        for minus in (0, 1):
            row = len(expected)
            write(written, (), 0, row, (number >> 64 * deeper) << 1 | minus)
            for stream, word in enumerate(split(number & (1 << 64 * deeper) - 1, deeper)):
                write(written, (0,), stream, row, word)
            expected.append(-floor if minus else floor)
            rows_scales.append(scale)
    assert len(expected) >= 6
    values, again = geometric.geometric_varying_signed(
        np.array(rows_scales), scripted(len(expected), written)
    )
    assert values.tolist() == expected
    zeros = [i for i, value in enumerate(expected) if value == 0 and i % 2 == 1]
    assert again.tolist() == zeros


def test_the_distribution_of_a_row_has_no_end_even_where_its_scale_is_tiny():
    # 63 zero bits leave the size open: at scale 0.01 they are followed by the digits that decide
    written = {}
    digits, bits = 1, 63 + 64 * 3  # U = 2^-255, so G = floor(0.01 * 176.75) = 1
    write(written, (), 0, 0, 0)
    for stream, word in enumerate(split(digits, 3)):
        write(written, (0,), stream, 0, word)
    assert reference.geometric_floor(digits, bits, Fraction(0.01)) == 1
    values, _ = geometric.geometric_varying_signed(np.array([0.01]), scripted(1, written))
    assert values.tolist() == [1]
