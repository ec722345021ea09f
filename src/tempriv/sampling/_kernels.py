"""Compiled loops. Each also runs as plain Python (NUMBA_DISABLE_JIT=1) and gives the same result.

No random numbers are made here: words come in as arrays. No fastmath.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

Array = Any  # numba takes its types from the calls


@njit(cache=True, nogil=True)
def digit_sums(
    words: Array, tables: Array, shifts: Array, coin: int, sums: Array, unsure: Array
) -> int:
    """Add up the digits that 16 bits each decide; the top 16 bits, if above the coin, say minus.

    Minus stands for -1 - sum. Lists in ``unsure`` row * 4 + level for digits (level 3: the sign)
    that 16 bits of the ``words`` do not decide; such a row of the ``sums`` is left unfinished and
    without its sign. ``tables`` and ``shifts`` are those of the digits.
    """
    doubtful = 0
    mask = np.uint64(0xFFFF)
    for i in range(words.size):
        word = words[i]
        first = tables[0, word & mask]
        second = tables[1, (word >> np.uint64(16)) & mask]
        third = tables[2, (word >> np.uint64(32)) & mask]
        toss = np.int64(word >> np.uint64(48))
        minus = np.int64(toss > coin)
        if (first | second | third) < 0 or toss == coin:
            minus = np.int64(0)
            if first < 0:
                unsure[doubtful] = 4 * i
                doubtful += 1
                first = np.int16(0)
            if second < 0:
                unsure[doubtful] = 4 * i + 1
                doubtful += 1
                second = np.int16(0)
            if third < 0:
                unsure[doubtful] = 4 * i + 2
                doubtful += 1
                third = np.int16(0)
            if toss == coin:
                unsure[doubtful] = 4 * i + 3
                doubtful += 1
        total = np.int64(first) + (np.int64(second) << shifts[1]) + (np.int64(third) << shifts[2])
        sums[i] = total ^ -minus
    return doubtful


@njit(cache=True, nogil=True)
def finish_sums(
    words: Array, unsure: Array, cells: Array, shifts: Array, coin: int, sums: Array
) -> None:
    """Put digits that were looked up, and then the sign, into the ``sums`` left unfinished.

    ``cells`` are the digits of the ``unsure`` rows; ``words``, ``shifts``, ``coin`` are as above.
    """
    at = 0
    while at < unsure.size:
        i = unsure[at] >> 2
        minus = np.int64(np.int64(words[i] >> np.uint64(48)) > coin)
        total = sums[i]
        while at < unsure.size and unsure[at] >> 2 == i:
            level = unsure[at] & 3
            if level == 3:
                minus = cells[at]
            else:
                total += cells[at] << shifts[level]
            at += 1
        sums[i] = total ^ -minus


@njit(cache=True, nogil=True)
def cells_and_ties(
    floors: Array, starts: Array, tables: Array, words: Array, cells: Array, ties: Array
) -> int:
    """Count in ``cells`` the cuts at or below each of the ``words``; list ``ties`` with a cut.

    ``floors`` holds several tables of cuts one after the other; table t begins at ``starts[t]``;
    ``tables`` says which is meant for each word.
    """
    tied = 0
    for i in range(words.size):
        word = words[i]
        begin = starts[tables[i]]
        low = begin
        high = starts[tables[i] + 1]
        while low < high:
            middle = (low + high) >> 1
            if floors[middle] <= word:
                low = middle + 1
            else:
                high = middle
        cells[i] = low - begin
        # a cut lies in [floor, floor + 2)
        if low > begin and word - floors[low - 1] <= np.uint64(1):
            ties[tied] = i
            tied += 1
    return tied


@njit(cache=True, nogil=True)
def floor_if_certain(word: Any, scale: float) -> Any:
    """floor(-scale * ln U) for U in (word, word + 1) / 2^63, the word's first 63 bits; or -1.

    The margin is a thousand times the error of the logarithm, so the floor is exact where it is
    taken, on any machine.
    """
    digits = float(word >> np.uint64(1))
    if digits == 0.0:
        return -1  # a word of zeros leaves U without a lower bound
    x = -scale * math.log((digits + 0.5) * 2.0**-63)
    margin = scale * (1.0 / (digits + 0.25) + 2.0**-42 * 44.0)
    low = math.floor(x - margin)
    return low if low == math.floor(x + margin) else -1


@njit(cache=True, nogil=True)
def geometric_by_log(words: Array, scales: Array, out: Array, unsure: Array) -> int:
    """``floor_if_certain`` of ``words`` at their ``scales`` into ``out``; lists the ``unsure``."""
    doubtful = 0
    for i in range(words.size):
        low = floor_if_certain(words[i], scales[i])
        if low < 0:
            unsure[doubtful] = i
            doubtful += 1
        else:
            out[i] = low
    return doubtful


UNDECIDED = -(1 << 62)
"""Stands for a draw that floating point does not settle: stop, settle it exactly, go on there."""

MARGIN = 2.0**-40  # thousands of times the error of exp and log in double precision


class Scalable(NamedTuple):
    """Words for one Laplace draw a row, whose scale is known only when the row is reached."""

    sizes: Array  # a word each for the size
    signs: Array  # and one for the sign
    settled: Array  # draws that had to be settled exactly, UNDECIDED elsewhere

    def laplace(self, row: int, scale: float) -> int:
        """The draw of a ``row`` at a ``scale``, or UNDECIDED."""
        return int(_laplace(self, row, scale))


def _laplace(noise: Any, row: int, scale: float) -> Any:
    """Discrete Laplace noise: plus a geometric number, or minus one more than it.

    The size is floor(-scale ln U); plus has probability 1 / (1 + e^(-1 / scale)).
    """
    if noise.settled[row] != UNDECIDED:
        return noise.settled[row]
    size = floor_if_certain(noise.sizes[row], scale)
    toss = float(noise.signs[row] >> np.uint64(11)) * 2.0**-53
    plus = 1.0 / (1.0 + math.exp(-1.0 / scale))
    if size < 0 or abs(toss - plus) <= MARGIN:
        return np.int64(UNDECIDED)
    return np.int64(size) if toss < plus else np.int64(-1 - size)


def laplace(noise: Any, row: int, scale: float) -> int:
    """The Laplace draw of a ``row`` at a ``scale``; ``noise`` is keyed, or an audit's list."""
    drawn: int = noise.laplace(row, scale)
    return drawn


def above(noise: Any, row: int, cut: int) -> bool:
    """Whether the draw of a ``row`` exceeds the ``cut``; ``noise`` is drawn, or an audit's list."""
    return bool(noise[row] > cut) if isinstance(noise, np.ndarray) else noise.above(row, cut)


def at(noise: Any, row: Any) -> int:
    """The draw of a ``row``; ``noise`` is drawn numbers, or an audit's list."""
    return int(noise[row] if isinstance(noise, np.ndarray) else noise.at(row))


class Halves(NamedTuple):
    """The first 32 digits of a uniform number a row, and the cells that they fall into.

    Cell c lies between the cuts whose digits are ``floors[c]`` and ``floors[c + 1]``; all cells but
    the first are alike. So a cell is guessed, which costs less than a search, and then checked.
    """

    digits: Array
    floors: Array


def parts(noise: Any) -> tuple[Any, Any]:
    """The ``noise`` as a kernel takes it: halves and floors, or drawn numbers and no floors."""
    return noise if isinstance(noise, Halves) else (noise, None)


@njit(cache=True, nogil=True)
def cells_per_digit(floors: Array) -> float:
    """How the cells after the first follow each other; without floors, nothing."""
    if floors is None:
        return 0.0
    return float((floors.size - 2) / (floors[floors.size - 1] - floors[1]))


def suited(kernel: Any, *noise: Any) -> Any:
    """The compiled kernel for drawn numbers and words; its plain Python for an audit's outcomes."""
    if all(isinstance(source, (np.ndarray, Scalable, Halves)) for source in noise):
        return kernel
    return getattr(kernel, "py_func", kernel)


# compiled, they take arrays; as plain Python they take whatever has their methods


@overload(laplace, strict=False)
def _compile_laplace(noise: Any, row: Any, scale: Any) -> Any:
    return _laplace


@overload(above, strict=False)
def _compile_above(noise: Any, row: Any, cut: Any) -> Any:
    return lambda noise, row, cut: noise[row] > cut


@overload(at, strict=False)
def _compile_at(noise: Any, row: Any) -> Any:
    return lambda noise, row: noise[row]


@njit(cache=True, nogil=True)
def all_cells(digits: Array, floors: Array, cells: Array, unsure: Array) -> int:
    """The ``cells`` that the ``digits`` fall into between ``floors``; lists the ``unsure``."""
    rate = cells_per_digit(floors)
    position = 0
    for row in range(cells.size):
        number = np.int64(digits[row])
        cell = max(0, int((number - floors[1]) * rate + 1.0))
        cells[row] = cell
        if not (floors[cell] < number and number < floors[cell + 1]):
            unsure[position] = row
            position += 1
    return position


@njit(cache=True, nogil=True)
def sparse_vector(
    readings: Array,
    missing: Array,
    which: Array,
    threshold: int,
    most: int,
    limits: Array,
    noise: Array,
    memory: Array,
    alerts: Array,
    status: Array,
) -> None:
    """Alerts of the sparse vector technique, at most ``most`` for each series.

    Slots of the ``memory`` of a series: 0 whether begun, 1 the noisy threshold, 2 how many alerts.
    ``which`` is the series of each of the ``readings``, ``missing`` marks those to skip, ``limits``
    and ``noise`` are the draws for the ``threshold`` and for the readings; ``alerts`` and
    ``status`` are written.
    """
    for row in range(readings.size):
        series = memory[which[row]]
        if series[0] == 0:
            series[0] = 1
            series[1] = threshold + at(limits, row)
        if series[2] == most:
            status[row] = 2
        elif not missing[row] and above(noise, row, series[1] - readings[row] - 1):
            alerts[row] = 1
            series[2] += 1
