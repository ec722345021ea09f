"""Loops over the rows of a table that pick, by keyed hashes, which of them a sketch keeps.

Each also runs as plain Python (NUMBA_DISABLE_JIT=1) and gives the same result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = Any  # numba takes its types from the calls


@njit(cache=True, nogil=True, inline="always")
def mixed(word: Any) -> Any:
    """All bits of a ``word`` depend on all others (the finalizer of MurmurHash3)."""
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xFF51AFD7ED558CCD)
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


@njit(cache=True, nogil=True)
def pick_rows(
    names: Array, ends: Array, ticks: Array, keys: Array, most: Any, hashes: Array, rows: Array
) -> int:
    """Pick rows whose hash of series and time is small; how many there are.

    Series number i ends before row ``ends[i]`` and has the hash ``names[i]``; ``ticks`` are the
    times of its rows. Hashes under the ``keys`` of at ``most`` so much go to ``hashes``, the
    numbers of their rows to ``rows``.
    """
    count, row = 0, 0
    factor = keys[2] | np.uint64(1)
    for i in range(len(ends)):
        name = names[i] ^ keys[0]
        while row < ends[i]:
            word = mixed((np.uint64(ticks[row]) ^ keys[1]) * factor ^ name)
            if word <= most:
                hashes[count] = word
                rows[count] = row
                count += 1
            row += 1
    return count


@njit(cache=True, nogil=True)
def pick_sequences(
    bits: Array,
    values: Array,
    missing: Array,
    ends: Array,
    keys: Array,
    most: Array,
    short: Array,
    long: Array,
    smallest: Array,
) -> tuple[int, int]:
    """Pick sequences of 8 runs and of 24 whose hash is small; how many there are of each.

    ``bits`` tell values apart, and ``values`` are what they are as numbers; those that are
    ``missing`` are passed over. Series number i ends before row ``ends[i]``. Hashes are made under
    the ``keys``. A run is one value as often as it comes in a row. The first and the last run of a
    series may be cut and are left out, and so are sequences that are mostly straight, such as a
    counter. Hashes up to ``most[0]`` go to ``short``, those up to ``most[1]`` to ``long``;
    ``smallest`` takes the smallest of both kinds of each series.
    """
    shorts, longs, row = 0, 0, 0
    ring, bent = np.zeros(32, dtype=np.uint64), np.zeros(32, dtype=np.int64)
    factor = keys[0] | np.uint64(1)
    top = factor
    for _ in range(3):
        top *= top
    tops = top, top * top * top
    for i in range(len(ends)):
        total, longer, filled = np.uint64(0), np.uint64(0), 0
        bends, more_bends, run, runs = 0, 0, 0, 0
        current, now, before, slope = np.uint64(0), 0.0, 0.0, 0.0
        while row < ends[i]:
            if missing[row]:
                row += 1
                continue
            word = np.uint64(bits[row])
            if run > 0 and word == current:
                run += 1
                row += 1
                continue
            if runs > 1:
                token = mixed(current * keys[1] + np.uint64(run))
                rise = now - before
                bend = np.int64(abs(rise - slope) > 1e-3 * max(abs(rise), abs(slope)))
                slope = rise
                # empty places of the rings are zero
                last, later = (filled - 8) & 31, (filled - 24) & 31
                total = total * factor + token - ring[last] * tops[0]
                longer = longer * factor + token - ring[later] * tops[1]
                bends += bend - bent[last]
                more_bends += bend - bent[later]
                ring[filled & 31], bent[filled & 31] = token, bend
                filled += 1
                if filled >= 8 and bends >= 4:
                    picked = mixed(total ^ keys[2])
                    if picked <= most[0]:
                        short[shorts] = picked
                        shorts += 1
                    if picked < smallest[i, 0, 3]:
                        _keep_smallest(smallest[i, 0], picked)
                if filled >= 24 and more_bends >= 12:
                    picked = mixed(longer ^ keys[3])
                    if picked <= most[1]:
                        long[longs] = picked
                        longs += 1
                    if picked < smallest[i, 1, 3]:
                        _keep_smallest(smallest[i, 1], picked)
            before = now
            current, now, run = word, np.float64(values[row]), 1
            runs += 1
            row += 1
        ring[:] = 0
        bent[:] = 0
    return shorts, longs


@njit(cache=True, nogil=True)
def _keep_smallest(kept: Array, word: Any) -> None:
    """Put a ``word`` in its place among those ``kept``, each once, in order."""
    last = len(kept) - 1
    place = last
    while place > 0 and word < kept[place - 1]:
        place -= 1
    if place > 0 and kept[place - 1] == word:
        return
    for i in range(last, place, -1):
        kept[i] = kept[i - 1]
    kept[place] = word
