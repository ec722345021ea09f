"""Order mechanisms from their definitions, with lists. Nothing here uses the package.

Each function gives the step of the row in every output slot (None: no row), from the same draws.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

Sources = list[int | None]

RELEASED, REPEATED, EMPTY = 0, 1, 2


def backward(lags: Sequence[int]) -> Sources:
    """Slot t shows the row of so many steps before; before the first step there are none."""
    return [step - lag if step >= lag else None for step, lag in enumerate(lags)]


def forward(lags: Sequence[int]) -> Sources:
    """Row t goes to the slot so many steps ahead, and the last one sent there stays."""
    slots: dict[int, int] = {}
    for step, lag in enumerate(lags):
        slots[step + lag] = step
    return [slots.get(slot) for slot in range(len(lags))]


def threshold(
    taken: Sequence[int], places: Sequence[int], keeps: Sequence[int] | None = None
) -> Sources:
    """Algorithm 1 with c = c0, from a given pattern of the first window of slots.

    Free slots are numbered; the slot that opens has the number of the one that was taken.
    """
    window = len(taken)
    free = [slot for slot in range(window) if not taken[slot]]
    slots: dict[int, int] = {}
    for step, place in enumerate(places):
        number = free.index(step) if step in free else place
        if step not in free or keeps is None or keeps[step]:
            slots[free[number]] = step
        free[number] = step + window
    return [slots.get(slot) for slot in range(len(places))]


def dual(
    taken: Sequence[int], places: Sequence[int], keeps: Sequence[int] | None = None
) -> Sources:
    """A pool of rows, the oldest due at age window - 1, else any one of them; steps < 0 are none.

    What is a free slot j steps ahead for Threshold is a row of age window - 1 - j in the pool,
    and they are numbered from the newest to the oldest, the newest of all last.
    """
    window = len(taken)
    pool = [slot - window + 1 for slot in range(window - 2, -1, -1) if not taken[slot]]
    pool.append(0)
    out: Sources = []
    for step, place in enumerate(places):
        oldest = step - window + 1
        number = pool.index(oldest) if oldest in pool else place
        dropped = oldest in pool and keeps is not None and not keeps[step]
        out.append(pool[number] if pool[number] >= 0 and not dropped else None)
        pool[number] = step + 1
    return out


def shuffled(joins: Sequence[int], block: int, offset: int) -> Sources:
    """Each block is permuted: row n of it opens a cycle (0) or comes in before row m (m + 1)."""
    out: Sources = []
    bounds = [0, *range(offset or block, len(joins), block), len(joins)]
    for low, high in itertools.pairwise(bounds):
        order: list[int] = []
        for number, joined in enumerate(joins[low:high]):
            if joined == 0:
                order.append(number)
            else:
                order.append(order[joined - 1])
                order[joined - 1] = number
        out += [low + number for number in order]
    return out


def sorted_by_key(noise: Sequence[int], ties: Sequence[int]) -> Sources:
    """Rows in the order of their noisy times; equal ones in the order of their random words."""
    times = [step + moved for step, moved in enumerate(noise)]
    return sorted(range(len(noise)), key=lambda step: (times[step], ties[step]))


def statuses(sources: Sources) -> list[int]:
    """A row that came out before is repeated."""
    seen: set[int] = set()
    found = []
    for source in sources:
        found.append(EMPTY if source is None else REPEATED if source in seen else RELEASED)
        if source is not None:
            seen.add(source)
    return found


def staircase_weight(place: int, rate: float, width: int, inner: int) -> float:
    """Unscaled: it falls by e^-rate at distance inner from 0, and at every ``width`` from there."""
    far = abs(place)
    return math.exp(-rate * (far // width + (far % width >= inner)))


def best_inner(epsilon: float, window: int) -> int:
    """Where the staircase with odds e^(epsilon/2) over window - 1 has the least mean magnitude."""
    width, rate = window - 1, epsilon / 2
    reach = math.ceil(width * (40 / rate + 2))

    def magnitude(inner: int) -> float:
        weights = [staircase_weight(x, rate, width, inner) for x in range(reach + 1)]
        total = 2 * math.fsum(weights) - weights[0]
        return 2 * math.fsum(x * w for x, w in enumerate(weights)) / total

    return min(range(1, width + 1), key=magnitude)


def free_slots(window: int, free: int) -> dict[tuple[int, ...], Fraction]:
    """Which of the next slots are taken (1) once Algorithm 1 has c = c0: its stationary law.

    By solving for the chain that the algorithm makes of these patterns, in rationals.
    """
    chain: dict[tuple[int, ...], dict[tuple[int, ...], Fraction]] = {}
    start = (0,) * free if window == free else (1,) * (window - free) + (0,) * free
    left = [start]
    while left:
        now = left.pop()
        if now in chain:
            continue
        open_ = [0] if now[0] == 0 else [slot for slot in range(window) if now[slot] == 0]
        chain[now] = {}
        for slot in open_:
            after = (*now[1:slot], *(1,) * (slot > 0), *now[slot + 1 :], 0)
            chain[now][after] = chain[now].get(after, Fraction(0)) + Fraction(1, len(open_))
            left.append(after)
    return _stationary(chain)


def _stationary(
    chain: dict[tuple[int, ...], dict[tuple[int, ...], Fraction]],
) -> dict[tuple[int, ...], Fraction]:
    """Gauss and Jordan: flow in equals flow out of every state, and all sum to 1."""
    states = sorted(chain)
    size = len(states)
    rows = [[chain[one].get(to, Fraction(0)) - (one == to) for one in states] for to in states]
    rows = [[*row, Fraction(0)] for row in rows[:-1]] + [[Fraction(1)] * (size + 1)]
    for column in range(size):
        pivot = next(i for i in range(column, size) if rows[i][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        scale = rows[column][column]
        rows[column] = [x / scale for x in rows[column]]
        for i in range(size):
            if i != column and rows[i][column]:
                factor = rows[i][column]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[column], strict=True)]
    return {state: row[-1] for state, row in zip(states, rows, strict=True)}


def stirling(n: int, r: int) -> int:
    """How many ways there are to put n things into r groups."""
    row = [1]
    for size in range(1, n + 1):
        row = [0, *(c * row[c] + row[c - 1] for c in range(1, size)), 1]
    return row[r] if 0 <= r < len(row) else 0


def lags(window: int, free: int) -> list[Fraction]:
    """The law of a row's delay under Algorithm 1, by its stationary law."""
    found = [Fraction(0)] * window
    for taken, mass in free_slots(window, free).items():
        open_ = [0] if taken[0] == 0 else [slot for slot in range(window) if taken[slot] == 0]
        for slot in open_:
            found[slot] += mass / len(open_)
    return found


def keep(epsilon: float, window: int, free: int) -> Fraction:
    """Section IV-E: p_0 comes down to e^(epsilon/2) p_1; in parts of 2^-32, from below."""
    ratio = Fraction(stirling(window - 2, free - 1), stirling(window - 1, free - 1))  # p_1 / p_0
    return min(Fraction(math.floor(math.exp(epsilon / 2) * ratio * 2**32), 2**32), Fraction(1))
