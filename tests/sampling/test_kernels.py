"""Kernels give the same compiled and plain, and what they give is what they say."""

from fractions import Fraction

import numpy as np
import pytest

from tempriv.sampling import _kernels
from tempriv.sampling.geometric import DIGIT_BITS, LEVELS, NO_SIGN, SIGN, geometric_table
from tests.support.scripted import ONES
from tests.support.statistics import COMPILED

pytest_plugins = ["tests.support.statistics"]


def plain(kernel):
    """The kernel as plain Python; with NUMBA_DISABLE_JIT=1 it is so already."""
    return getattr(kernel, "py_func", kernel)


def test_kernels_are_compiled_unless_numba_is_switched_off():
    loops = [  # each has a test below, or is a mechanism's and has its conformance
        _kernels.digit_sums,
        _kernels.finish_sums,
        _kernels.cells_and_ties,
        _kernels.floor_if_certain,
        _kernels.geometric_by_log,
        _kernels.cells_per_digit,
        _kernels.all_cells,
        _kernels.sparse_vector,
    ]
    assert all((plain(kernel) is not kernel) == COMPILED for kernel in loops)
    own = [f for f in vars(_kernels).values() if getattr(f, "__module__", "") == _kernels.__name__]
    compiled = [kernel for kernel in own if hasattr(kernel, "py_func")]
    assert compiled == (loops if COMPILED else [])


@pytest.mark.parametrize("scale", [Fraction(1, 20), Fraction(7, 3), Fraction(2**20)], ids=str)
@pytest.mark.parametrize("is_signed", [False, True], ids=["size", "signed"])
def test_sums_of_digits_are_the_same_compiled_and_plain_and_right(scale, is_signed, rng):
    table = geometric_table(scale)
    coin = table.coin if is_signed else NO_SIGN
    words = rng.integers(0, 2**64, 5000, dtype=np.uint64)
    words[:8] = [0, ONES, 1 << 63, 0xFFFF, 0xFFFF << 16, 0xFFFF << 32, (1 << 63) - 1, 1]
    # rows with any of their digits and the sign open, the last row with all of them
    opened = [int(np.flatnonzero(t < 0)[0]) if (t < 0).any() else 0 for t in table.tables]
    opened.append(table.coin)
    for subset in range(1 << LEVELS):
        first = [opened[level] << DIGIT_BITS * level for level in range(LEVELS)]
        words[8 + subset] = sum(first[level] for level in range(LEVELS) if subset >> level & 1)
    words[-1] = words[8 + (1 << LEVELS) - 1]
    cells = rng.integers(0, 2**15, LEVELS * len(words))
    results = []
    for digit_sums, finish_sums in [
        (_kernels.digit_sums, _kernels.finish_sums),
        (plain(_kernels.digit_sums), plain(_kernels.finish_sums)),
    ]:
        sums = np.full(len(words), -99, dtype=np.int64)
        unsure = np.full(LEVELS * len(words), -99, dtype=np.intp)
        found = digit_sums(words, table.tables, table.shifts, coin, sums, unsure)
        begun = sums.copy()
        looked_up = np.where(unsure[:found] & 3 == SIGN, cells[:found] % 2, cells[:found])
        finish_sums(words, unsure[:found], looked_up, table.shifts, coin, sums)
        results.append((begun, unsure, sums))
    for compiled, other in zip(*results, strict=True):
        np.testing.assert_array_equal(compiled, other)

    # what both say, from the definition
    begun, unsure, sums = results[0]
    answers, listed = iter(cells.tolist()), []
    for row, word in enumerate(words.tolist()):
        fields = [word >> DIGIT_BITS * level & 0xFFFF for level in range(LEVELS)]
        digits = [int(table.tables[level][fields[level]]) for level in range(SIGN)]
        size, minus = 0, fields[SIGN] > coin
        before = len(listed)
        for level, digit in enumerate(digits):
            if digit < 0:
                listed.append(4 * row + level)
                digit = next(answers)
            size += digit << int(table.shifts[level])
        if fields[SIGN] == coin:
            listed.append(4 * row + SIGN)
            minus = next(answers) % 2 == 1
        assert sums[row] == (-1 - size if minus else size)
        if len(listed) == before:
            assert begun[row] == sums[row]
    assert unsure[: len(listed)].tolist() == listed
    assert (unsure[len(listed) :] == -99).all()


@pytest.mark.parametrize("order", ["mixed", "rising", "falling"])
def test_cells_and_ties_are_the_same_compiled_and_plain_and_right(order, rng):
    # tables one after the other, some empty; where they rise, a word before the first cut of its
    # own table may stand at the last cut of the table before
    sizes = (0, 1, 5, 300, 0, 2)
    starts = np.cumsum([0, *sizes])
    together = rng.integers(0, 2**64, sum(sizes), dtype=np.uint64)
    if order != "mixed":
        together.sort()
    floors = [np.sort(part) for part in np.split(together, starts[1:-1])]
    if order == "falling":
        floors.reverse()
        starts = np.cumsum([0, *reversed(sizes)])
    together = np.concatenate(floors)
    near = np.repeat(together, 4) + np.tile(np.arange(4, dtype=np.uint64), len(together))
    near = np.concatenate([near, together - np.uint64(1), np.array([0, 1, ONES], dtype=np.uint64)])
    # each of them in every table
    words = np.concatenate([rng.integers(0, 2**64, 2000, dtype=np.uint64), np.tile(near, 6)])
    tables = np.concatenate([rng.integers(0, 6, 2000), np.repeat(np.arange(6), len(near))])
    results = []
    for kernel in (_kernels.cells_and_ties, plain(_kernels.cells_and_ties)):
        cells = np.full(len(words), -99, dtype=np.int64)
        ties = np.full(len(words), -99, dtype=np.intp)
        results.append((kernel(together, starts, tables, words, cells, ties), cells, ties))
    (found, cells, ties), (other_found, other_cells, other_ties) = results
    assert found == other_found > 0
    np.testing.assert_array_equal(cells, other_cells)
    np.testing.assert_array_equal(ties, other_ties)
    for table, own in enumerate(floors):
        rows = np.flatnonzero(tables == table)
        np.testing.assert_array_equal(cells[rows], np.searchsorted(own, words[rows], side="right"))
        close = {floor + off for floor in own.tolist() for off in (0, 1)}
        tied = [row for row in rows.tolist() if int(words[row]) in close]
        assert sorted(set(ties[:found].tolist()) & set(rows.tolist())) == tied


def test_logarithms_are_the_same_compiled_and_plain(rng):
    # the two may differ in what they leave open, should their logarithms differ in the last place
    words = rng.integers(0, 2**64, 5000, dtype=np.uint64)
    words[:6] = [0, 1, 2, 3, ONES, ONES - 1]
    scales = np.exp(rng.uniform(-5, 20, len(words)))
    results = []
    for kernel in (_kernels.geometric_by_log, plain(_kernels.geometric_by_log)):
        out = np.full(len(words), -99, dtype=np.int64)
        unsure = np.empty(len(words), dtype=np.intp)
        found = kernel(words, scales, out, unsure)
        assert (out[unsure[:found]] == -99).all()
        results.append(out)
    out, other = results
    both = (out != -99) & (other != -99)
    np.testing.assert_array_equal(out[both], other[both])
    assert both.sum() > 0.9 * len(words)


@pytest.mark.parametrize("first", [0.2, 0.7, 1 - 2**-31], ids=str)
def test_cells_by_half_a_word_are_the_same_compiled_and_plain_and_right(first, rng):
    """All cells but the first are alike: a guess finds them, and a check tells what is in doubt."""
    cuts = [first + i * (1 - first) / 7 for i in range(7)]
    floors = np.array([-1, *(int(cut * 2**32) for cut in cuts), 2**32], dtype=np.int64)
    digits = rng.integers(0, 2**32, 5000, dtype=np.uint32)
    digits[:2] = [0, 2**32 - 1]
    digits[2:9] = floors[1:-1]  # a cut's own digits do not tell the side
    results = []
    for all_cells in (_kernels.all_cells, plain(_kernels.all_cells)):
        cells, unsure = np.full(5000, -99, dtype=np.int64), np.full(5000, -99, dtype=np.intp)
        found = all_cells(digits, floors, cells, unsure)
        results.append((cells, unsure[:found].tolist()))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]
    cells, unsure = results[0]
    sure = np.setdiff1d(np.arange(5000), unsure)
    right = np.searchsorted(floors[1:-1], digits.astype(np.int64), side="right")
    np.testing.assert_array_equal(cells[sure], right[sure])
    assert set(range(2, 9)) <= set(unsure)
    assert first > 0.9 or len(unsure) == 7, "only a cut's own digits are in doubt"
