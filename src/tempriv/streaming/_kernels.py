"""Loops of keyed streams: which readings go on, and marks of the text that they hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Integers = npt.NDArray[np.int64]

# what becomes of a reading
TAKEN, LATE, REPEATED, BEYOND_LENGTH, BEYOND_LANDMARKS, NOT_COUNTED = 0, 1, 2, 3, 4, 5

NEVER = -(1 << 62)
"""Before every time: a series that has had no reading yet."""

PRIME = (1 << 31) - 1


@njit(cache=True, nogil=True)
def admit_readings(
    codes: Integers,
    ticks: Integers,
    marks: npt.NDArray[np.bool_],
    last: Integers,
    first: Integers,
    taken: Integers,
    landmarks: Integers,
    most: int,
    most_landmarks: int,
    counted: bool,
    verdicts: npt.NDArray[np.int8],
) -> None:
    """One reading after the other, as they came: each must be later than all of its series.

    Of a series the arrays say the last time, the first that was taken, and how many were,
    landmarks among them; they are brought up to date. ``most`` readings are guaranteed of a series,
    and ``most_landmarks``; with ``counted`` times must be numbers that rise by one from 0 or 1.
    """
    for row in range(len(codes)):
        one, tick = codes[row], ticks[row]
        if tick <= last[one]:
            verdicts[row] = REPEATED if tick == last[one] else LATE
            continue
        if counted:
            fresh = last[one] == NEVER
            if (fresh and tick != 0 and tick != 1) or (not fresh and tick != last[one] + 1):
                verdicts[row] = NOT_COUNTED
                return
        if taken[one] == 0:
            first[one] = tick
        last[one] = tick
        if taken[one] >= most:
            verdicts[row] = BEYOND_LENGTH
        elif marks[row] and landmarks[one] >= most_landmarks:
            verdicts[row] = BEYOND_LANDMARKS
        else:
            verdicts[row] = TAKEN
            taken[one] += 1
            landmarks[one] += marks[row]


@njit(cache=True, nogil=True)
def match_replayed(
    codes: Integers,
    ticks: Integers,
    marks: npt.NDArray[np.bool_],
    first: Integers,
    wanted: Integers,
    most_landmarks: int,
    again: Integers,
    again_last: Integers,
    again_landmarks: Integers,
    places: Integers,
) -> None:
    """Which readings are sent again from the start of their series, and in which place.

    ``wanted`` says how many a series had consumed; a place of -1 is none.
    """
    for row in range(len(codes)):
        one, tick = codes[row], ticks[row]
        places[row] = -1
        if again[one] < 0:
            if tick != first[one]:
                continue
            again[one] = 0
        elif tick <= again_last[one]:
            continue
        again_last[one] = tick
        if marks[row] and again_landmarks[one] >= most_landmarks:
            continue
        again_landmarks[one] += marks[row]
        if again[one] < wanted[one]:
            places[row] = again[one]
            again[one] += 1


@njit(cache=True, nogil=True)
def text_fingerprints(
    ends: npt.NDArray[np.int32],
    letters: npt.NDArray[np.uint8],
    missing: npt.NDArray[np.bool_],
    one: int,
    other: int,
    marks: npt.NDArray[np.uint64],
) -> None:
    """64 bits for each text: two polynomials in its letters at secret points, modulo 2^31 - 1.

    Two texts of n letters agree by chance with at most (n / 2^31)^2. Nothing has bits of its own.
    """
    for row in range(len(marks)):
        if missing[row]:
            marks[row] = np.uint64(0xFFFFFFFFFFFFFFFF)
            continue
        high, low = np.int64(1), np.int64(1)
        for at in range(ends[row], ends[row + 1]):
            letter = np.int64(letters[at]) + 1
            high = (high * one + letter) % PRIME
            low = (low * other + letter) % PRIME
        marks[row] = (np.uint64(high) << np.uint64(32)) | np.uint64(low)


@njit(cache=True, nogil=True)
def copy_texts(
    letters: npt.NDArray[np.uint8],
    at: Integers,
    lengths: npt.NDArray[np.int32],
    ends: Integers,
    target: npt.NDArray[np.uint8],
) -> None:
    """Texts from anywhere, one after the other; ``ends`` has where each begins there."""
    for row in range(len(at)):
        place, source = ends[row], at[row]
        for k in range(lengths[row]):
            target[place + k] = letters[source + k]


@njit(cache=True, nogil=True)
def group(codes: Integers, edges: Integers, order: Integers) -> None:
    """Rows by their codes, those of a code as they came.

    ``edges`` has room for one more than there are codes and says where each begins.
    """
    edges[:] = 0
    for row in range(len(codes)):
        edges[codes[row] + 1] += 1
    for code in range(1, len(edges)):
        edges[code] += edges[code - 1]
    free = edges.copy()
    for row in range(len(codes)):
        order[free[codes[row]]] = row
        free[codes[row]] += 1
