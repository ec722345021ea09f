"""Loops of keyed streams: which readings go on, and marks of the text that they hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Integers = npt.NDArray[np.int64]

# what becomes of a reading
TAKEN, LATE, REPEATED, BEYOND_LENGTH, BEYOND_LANDMARKS, NOT_COUNTED, OFF_STEP = range(7)

NEVER = -(1 << 62)
"""Before every time: a series that has had no reading yet."""

PRIME = (1 << 31) - 1

QUOTE, COMMA, NEWLINE = ord('"'), ord(","), ord("\n")
# where a letter of CSV stands
CELL_START, IN_CELL, IN_QUOTES, AFTER_QUOTE = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def find_record_ends(letters: npt.NDArray[np.uint8], ends: Integers) -> int:
    """Find where the records of CSV end; a line break within quotes ends none.

    Parameters:
        letters: the text, from the beginning of a record.
        ends: takes the place after each record; as long as there are line breaks.

    Returns:
        How many records end in the text.
    """
    count, place = 0, CELL_START
    for at in range(len(letters)):
        letter = letters[at]
        if place == IN_QUOTES:
            if letter == QUOTE:
                place = AFTER_QUOTE
        elif letter == NEWLINE:
            ends[count] = at + 1
            count += 1
            place = CELL_START
        elif letter == COMMA:
            place = CELL_START
        elif letter == QUOTE and place != IN_CELL:
            place = IN_QUOTES  # opens a cell, or is the second of two that stand for one
        else:
            place = IN_CELL
    return count


@njit(cache=True, nogil=True)
def admit_readings(
    codes: Integers,
    ticks: Integers,
    landmark_flags: npt.NDArray[np.bool_],
    last: Integers,
    first: Integers,
    taken: Integers,
    landmarks: Integers,
    most_readings: int,
    most_landmarks: int,
    counted: bool,
    step: int,
    verdicts: npt.NDArray[np.int8],
) -> None:
    """Decide about each reading as it came: it must be later than all of its series.

    Of a series the arrays say the last time, the first that was taken, and how many were, landmarks
    among them; they are brought up to date. ``most_readings`` readings are guaranteed of a series,
    and ``most_landmarks``; with ``counted`` times must be numbers that rise by one from 0 or 1.

    Parameters:
        codes: the series of each reading.
        ticks: the time of each reading.
        landmark_flags: whether each reading is a landmark.
        last, first, taken, landmarks: of each series the last time, the first one taken, how many
            were taken and how many of them were landmarks; brought up to date.
        most_readings: that are guaranteed for a series.
        most_landmarks: that are guaranteed for a series.
        counted: whether times must be numbers that rise by one from 0 or 1.
        step: of which all times must be multiples, in ticks.
        verdicts: takes what becomes of each reading.
    """
    for row in range(len(codes)):
        series, tick = codes[row], ticks[row]
        if tick <= last[series]:
            verdicts[row] = REPEATED if tick == last[series] else LATE
            continue
        if tick % step != 0:
            verdicts[row] = OFF_STEP
            continue
        if counted:
            is_first = last[series] == NEVER
            if (is_first and tick != 0 and tick != 1) or (
                not is_first and tick != last[series] + 1
            ):
                verdicts[row] = NOT_COUNTED
                return
        if taken[series] == 0:
            first[series] = tick
        last[series] = tick
        if taken[series] >= most_readings:
            verdicts[row] = BEYOND_LENGTH
        elif landmark_flags[row] and landmarks[series] >= most_landmarks:
            verdicts[row] = BEYOND_LANDMARKS
        else:
            verdicts[row] = TAKEN
            taken[series] += 1
            landmarks[series] += landmark_flags[row]


@njit(cache=True, nogil=True)
def match_replayed(
    codes: Integers,
    ticks: Integers,
    landmark_flags: npt.NDArray[np.bool_],
    first: Integers,
    saved_steps: Integers,
    most_landmarks: int,
    replayed: Integers,
    replayed_tick: Integers,
    replayed_landmarks: Integers,
    steps: Integers,
) -> None:
    """Find the readings that are sent again from the start of their series.

    ``saved_steps`` says how many a series had consumed; a place of -1 is none.

    Parameters:
        codes: the series of each reading.
        ticks: the time of each reading.
        landmark_flags: whether each reading is a landmark.
        first: the first time of each series.
        saved_steps: how many readings each series had consumed.
        most_landmarks: that are guaranteed for a series.
        replayed, replayed_tick, replayed_landmarks: how many were sent again of each series, the
            last time and the landmarks among them; brought up to date.
        steps: takes the step of each reading; -1 is none.
    """
    for row in range(len(codes)):
        series, tick = codes[row], ticks[row]
        steps[row] = -1
        if replayed[series] < 0:
            if tick != first[series]:
                continue
            replayed[series] = 0
        elif tick <= replayed_tick[series]:
            continue
        replayed_tick[series] = tick
        if landmark_flags[row] and replayed_landmarks[series] >= most_landmarks:
            continue
        replayed_landmarks[series] += landmark_flags[row]
        if replayed[series] < saved_steps[series]:
            steps[row] = replayed[series]
            replayed[series] += 1


@njit(cache=True, nogil=True)
def text_fingerprints(
    ends: npt.NDArray[np.int32],
    letters: npt.NDArray[np.uint8],
    missing: npt.NDArray[np.bool_],
    first_point: int,
    second_point: int,
    fingerprints: npt.NDArray[np.uint64],
) -> None:
    """64 bits for each text: two polynomials in its letters at secret points, modulo 2^31 - 1.

    Two texts of n letters agree by chance with at most (n / 2^31)^2. Nothing has bits of its own.

    Parameters:
        ends: where each text ends.
        letters: of all texts.
        missing: texts that are none.
        first_point, second_point: the secret points.
        fingerprints: takes the bits.
    """
    for row in range(len(fingerprints)):
        if missing[row]:
            fingerprints[row] = np.uint64(0xFFFFFFFFFFFFFFFF)
            continue
        high, low = np.int64(1), np.int64(1)
        for at in range(ends[row], ends[row + 1]):
            letter = np.int64(letters[at]) + 1
            high = (high * first_point + letter) % PRIME
            low = (low * second_point + letter) % PRIME
        fingerprints[row] = (np.uint64(high) << np.uint64(32)) | np.uint64(low)


@njit(cache=True, nogil=True)
def copy_texts(
    letters: npt.NDArray[np.uint8],
    at: Integers,
    lengths: npt.NDArray[np.int32],
    ends: Integers,
    target: npt.NDArray[np.uint8],
) -> None:
    """Copy texts from anywhere, one after the other.

    Parameters:
        letters: of all texts.
        at, lengths: where each text is.
        ends: where each begins in ``target``, and the end.
        target: takes the letters.
    """
    for row in range(len(at)):
        start, source = ends[row], at[row]
        for k in range(lengths[row]):
            target[start + k] = letters[source + k]


@njit(cache=True, nogil=True)
def group(codes: Integers, edges: Integers, order: Integers) -> None:
    """Sort rows by their codes, those of a code as they came.

    ``edges`` has room for one more than there are codes and says where each begins.

    Parameters:
        codes: of the rows.
        edges: takes where each code begins, and the end.
        order: takes the rows.
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
