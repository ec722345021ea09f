"""Compiled loops of temporal privacy loss (see ``kernels``).

Letters as in Cao et al. 2017: q and d are what two rows of a matrix give to a set of states, and
L(a) is the loss that a loss of ``a`` one step away becomes. Everything is rounded upwards, so that
no loss comes out below the true one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

Array = Any  # numba takes its types from the calls

ROUND_UP = 1.0 + 2.0**-49
"""More than what the few operations of one step of a loss can lose."""
CHUNK_PAIRS = 1 << 15


@njit(cache=True, nogil=True)
def frontier(highs: Array, lows: Array, count: int) -> int:
    """Keep of ``count`` pairs (``highs``, ``lows``) those that none beats; returns how many."""
    order = np.argsort(-highs[:count], kind="mergesort")
    highs[:count], lows[:count] = highs[:count][order], lows[:count][order]
    order = np.argsort(lows[:count], kind="mergesort")
    highs[:count], lows[:count] = highs[:count][order], lows[:count][order]
    kept, most = 0, 0.0
    for i in range(count):
        if highs[i] > most:
            most = highs[i]
            highs[kept], lows[kept] = highs[i], lows[i]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def candidates(rows: Array, possible: Array, slack: float) -> tuple[Array, Array]:
    """The (q, d) over all ordered pairs of rows that can be the best for some loss.

    For one pair the best set of states takes those with q_j > v d_j, v the ratio it reaches (Cao et
    al. 2017): a prefix by falling q_j / d_j. Which prefix depends on the loss; all are kept.
    ``slack`` is how far, relatively, the rows may be off; a row that is not possible is left out.
    """
    n, states = rows.shape
    size = max(CHUNK_PAIRS, 2 * states)
    highs, lows = np.empty(size), np.empty(size)
    ratios, chosen = np.empty(states), np.empty(states, np.int64)
    count = 0
    for row in range(n):
        for other in range(n):
            if row == other or not possible[row] or not possible[other]:
                continue
            above = 0
            for j in range(states):
                if rows[row, j] > rows[other, j]:
                    d = rows[other, j]
                    ratios[above] = -rows[row, j] / d if d > 0.0 else -math.inf
                    chosen[above] = j
                    above += 1
            if count + above > size:
                count = frontier(highs, lows, count)
                if count + above > size:  # a frontier as long as the room: more room
                    wider = np.empty(2 * size)
                    wider[:size] = highs
                    highs = wider
                    wider = np.empty(2 * size)
                    wider[:size] = lows
                    lows = wider
                    size *= 2
            q = d = 0.0
            order = np.argsort(ratios[:above], kind="mergesort")
            for k in range(above):
                j = chosen[order[k]]
                q += rows[row, j]
                d += rows[other, j]
                highs[count] = min(1.0, q * (1.0 + slack))
                lows[count] = d * (1.0 - slack)
                count += 1
    count = frontier(highs, lows, count)
    return highs[:count].copy(), lows[:count].copy()


@njit(cache=True, nogil=True)
def grown(highs: Array, lows: Array, first: int, last: int, a: float) -> float:
    """L(a) = max of log((q (e^a - 1) + 1) / (d (e^a - 1) + 1)) over the candidates; at most a.

    Candidates (q, d) are in ``highs`` and ``lows`` from ``first`` to before ``last``. In powers of
    e^-a, as e^a overflows; as log1p of a difference, so that small losses are exact.
    """
    if a <= 0.0 or first == last:
        return 0.0
    if lows[first] == 0.0 and highs[first] >= 1.0:
        return a  # two rows without a state in common: nothing is forgotten
    fall, rest = math.exp(-a), -math.expm1(-a)
    best, begin, apart = 0.0, first, 0.0
    if lows[first] == 0.0 and a > 600.0:  # fall / rest is next to nothing and d is nothing
        apart = a + math.log(highs[first] * rest + fall)
        begin += 1
    for i in range(begin, last):
        ratio = (highs[i] - lows[i]) * rest / (lows[i] * rest + fall)
        best = max(best, ratio)
    return min(a, max(math.log1p(best), apart) * ROUND_UP)


@njit(cache=True, nogil=True)
def one_sided(
    highs: Array, lows: Array, bounds: Array, which: Array, budgets: Array, losses: Array
) -> None:
    """a_t = L_t(a_{t-1}) + budget_t into ``losses``, for the ``budgets`` of all steps.

    Step t has the table which[t], whose ``highs`` and ``lows`` lie between two ``bounds``.
    """
    a = 0.0
    for t in range(budgets.size):
        table = which[t]
        a = grown(highs, lows, bounds[table], bounds[table + 1], a) + budgets[t]
        losses[t] = a


@njit(cache=True, nogil=True)
def between(
    highs: Array,
    lows: Array,
    bounds: Array,
    which: Array,
    budgets: Array,
    closed: bool,
    from_first: Array,
    to_last: Array,
) -> None:
    """What the steps between two protected ones add to the loss at the later of them.

    They are those strictly between, and the earlier itself if ``closed``. from_first[j]: between
    the first step and j. to_last[i]: between i and the last step. A pass for every i. ``highs``,
    ``lows``, ``bounds``, ``which`` and ``budgets`` are as in ``one_sided``.
    """
    size = budgets.size
    from_first[0] = to_last[size - 1] = 0.0
    for i in range(size - 1):
        a = budgets[i] if closed else 0.0
        for j in range(i + 1, size):
            table = which[j]
            a = grown(highs, lows, bounds[table], bounds[table + 1], a)
            if i == 0:
                from_first[j] = a
            if j == size - 1:
                to_last[i] = a
            a += budgets[j]


@njit(cache=True, nogil=True)
def bridge_tables(
    matrix: Array, powers: Array, limit: int, slack: float
) -> tuple[Array, Array, Array]:
    """Candidates of the bridge kernels, for each distance r and each fixed end.

    With the far end y fixed, the step from x to m has the distribution
    K(x, m | y) = P(x, m) P^(r-1)(m, y) / P^r(x, y); its rows are compared over x. Table number
    r * n + y; distances 0 and 1 have none. ``powers`` are those of ``matrix`` up to ``limit``, off
    by ``slack`` at most, relatively.
    """
    n = matrix.shape[0]
    bounds = np.zeros((limit + 1) * n + 1, np.int64)
    highs, lows = np.empty(1024), np.empty(1024)
    rows, possible = np.empty((n, n)), np.empty(n, np.bool_)
    for r in range(limit + 1):
        for y in range(n):
            table = r * n + y
            bounds[table + 1] = bounds[table]
            if r < 2:
                continue
            for x in range(n):
                possible[x] = powers[r, x, y] > 0.0
                for m in range(n):
                    top = matrix[x, m] * powers[r - 1, m, y]
                    rows[x, m] = top / powers[r, x, y] if possible[x] else 0.0
            q, d = candidates(rows, possible, slack)
            end = bounds[table] + q.size
            if end > highs.size:
                room = max(2 * highs.size, end)
                wider = np.empty(room)
                wider[: highs.size] = highs
                highs = wider
                wider = np.empty(room)
                wider[: lows.size] = lows
                lows = wider
            highs[bounds[table] : end], lows[bounds[table] : end] = q, d
            bounds[table + 1] = end
    return highs, lows, bounds


@njit(cache=True, nogil=True)
def bridged(
    highs: Array,
    lows: Array,
    bounds: Array,
    n: int,
    trusted: int,
    budgets: Array,
    end: int,
    losses: Array,
) -> None:
    """losses[j]: how much two values at j can differ through the steps up to ``end``, end fixed.

    The recursion a_j = L(a_{j+1} + budget_{j+1}) for each value y at the end, then the largest. Of
    distances beyond ``trusted`` no kernel is known; L(a) <= a always holds. ``highs``, ``lows`` and
    ``bounds`` are of ``bridge_tables`` for n states; ``budgets`` are those of the steps.
    """
    losses[end] = 0.0
    for j in range(end):
        losses[j] = 0.0
    for y in range(n):
        a = 0.0
        for j in range(end - 2, -1, -1):
            a += budgets[j + 1]
            r = end - j
            if r <= trusted:
                a = grown(highs, lows, bounds[r * n + y], bounds[r * n + y + 1], a)
            losses[j] = max(losses[j], a)


@njit(cache=True, nogil=True)
def bridge_gap(
    highs: Array,
    lows: Array,
    bounds: Array,
    n: int,
    trusted: int,
    budgets: Array,
    from_start: Array,
    from_others: Array,
) -> None:
    """For one gap, with ends 0 and the last: the losses of its left part for every cut, and whole.

    from_start[t]: values at the first step, seen through steps up to t. from_others[t]: values at
    t, seen through steps up to the last. ``highs``, ``lows``, ``bounds``, n, ``trusted`` and
    ``budgets`` are as in ``bridged``.
    """
    last = budgets.size - 1
    line = np.zeros(last + 1)
    for end in range(1, last + 1):
        bridged(highs, lows, bounds, n, trusted, budgets, end, line)
        from_start[end] = line[0]
    for t in range(last + 1):
        from_others[t] = line[t]
