"""What a whole output tells of two unlike readings, ``distance`` steps apart, that trade places.

Each function gives (epsilon, delta): epsilon is the largest log-ratio among the outputs that both
orders can give (0 if there are none), delta the chance of an output that only one of them can give.
That is the exact trade-off at that epsilon, the same for both directions, if all readings are
unlike. It is for a series that began long before and goes on long after. Readings that are alike,
and an output that begins or ends, show a part of this, so they tell no more.

Throughout, the readings are a at step i and b at step j = i + d, k is the window, and the other
order has b at i and a at j.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.reorder.analysis import (
    Floats,
    even_lags,
    first_slot,
    require_epsilon,
    require_threshold,
    require_window,
    stirling_ratios,
)
from tempriv.privacy.guarantees import Approximate

NOTHING = Approximate(0.0, 1.0)  # no output is common to both orders

MAX_SHORT_SLOTS = 128  # see _both_at_once


def _require_distance(distance: int) -> None:
    require(
        isinstance(distance, int) and distance >= 1,
        f"distance={distance}: must be a whole number of time steps >= 1",
    )


def _chance(value: float) -> float:
    """A probability again, after rounding errors."""
    return min(max(float(value), 0.0), 1.0)


# Backward and Forward


def backward(epsilon: float, window: int, distance: int) -> Approximate:
    """Backward: slots choose independently, and only slot j sees a ratio other than 1.

    The other order is possible unless a shows before j, or b in the d slots that only b reaches.

    Parameters:
        epsilon: the budget.
        window: time steps.
        distance: time steps between the two readings.

    >>> backward(1.0, 3, 1)
    Approximate(epsilon=0.5, delta=0.602...)
    """
    first, other = even_lags(epsilon, window)
    _require_distance(distance)
    if distance >= window:  # no slot reaches both: both must stay unseen
        return Approximate(0.0, _chance(1 - ((1 - first) * (1 - other) ** (window - 1)) ** 2))
    common = (1 - first) * (1 - other) ** (2 * distance - 1)
    return Approximate(epsilon / 2, _chance(1 - common))


def forward(epsilon: float, window: int, distance: int) -> Approximate:
    """Forward: a reading that is overwritten is unseen, which makes the losses larger.

    An unseen reading at step m went to one of the n_m slots in m+1 .. m+k-1 that show a later one,
    so an output has probability prod p_lag over seen and p_1 n_m over unseen readings. If a is seen
    and b is not, the other order adds the slot of a to n_m of every unseen m between them, and
    n_b itself grows by at most that slot and those of the h seen between them: the ratio is at
    most e^(epsilon/2) 2^(d-1-h) (2+h) <= e^(epsilon/2) 2^d, reached with h = 0. (For d = k-1 the
    slots that may hide b in the two orders are apart, which takes one factor 2 away.) The inverse
    ratio of these outputs is at most d, since n_b loses at most the slots that only step j
    reaches; that of all others is at most e^(epsilon/2).

    Parameters:
        epsilon: the budget.
        window: time steps.
        distance: time steps between the two readings.

    >>> forward(1.0, 3, 1)
    Approximate(epsilon=1.193..., delta=0.541...)
    """
    first, other = even_lags(epsilon, window)
    _require_distance(distance)
    if distance >= window:
        return Approximate(0.0, _chance(1 - ((1 - first) * (1 - other) ** (window - 1)) ** 2))
    stays = 1 - other
    # a is not seen before j; b is not seen in the slots i+k .. j+k-1
    early = (1 - first) * stays ** (distance - 1)
    late = 1 - (1 - first) * (stays ** (window - 1 - distance) - stays ** (window - 1))
    lost = _nowhere_to_hide(first, other, window, distance)
    return Approximate(
        epsilon / 2 + min(distance, window - 2) * math.log(2), _chance(1 - early * late + lost)
    )


def _nowhere_to_hide(first: float, other: float, window: int, distance: int) -> float:
    """The chance that a is unseen, b seen before i+k, and some unseen reading gives it away.

    With b at i, its slot v hides no reading m in (i, j] any more (a itself being at j). m has no
    other slot if all later readings up to m+k-1 went beyond m+k-1, those before j also to v. The
    chance that any m is in this state is found by inclusion and exclusion over sets of them, which
    are chains: a reading is bound by the nearest m before it. Steps are counted from i.
    """
    k, d = window, distance
    # chains[m]: signed sum over sets of states whose least is m, without what is before m
    chains = np.zeros(d + 1)
    for m in range(d, 0, -1):
        between = np.arange(m + 1, d)
        bound = np.append(other * (between - m + 1), 1.0)  # b itself is at v in any case
        beyond = other * np.arange(d - m + 1, k)
        before = np.concatenate([[1.0], np.cumprod(bound)])
        none_later = before[d - m] * beyond.prod()
        some_later = (before[: d - m] * chains[m + 1 :]).sum()
        chains[m] = (other if m < d else 1.0) * (none_later - some_later)
    at = np.arange(1, d + 1)
    seen = chains[1:].sum()  # b at a given v, a anywhere
    # less: a is seen, at u; readings before the chain must not go there
    hidden = np.zeros(k)
    for u in range(k):
        misses = np.where(at < u, 1 - other, np.where(at == u, 1 - first, 1.0))
        free = np.concatenate([[1.0], np.cumprod(misses[:-1])])
        hidden[u] = (first if u == 0 else other) * (free * chains[1:]).sum()
    lost = 0.0
    for v in range(d, k):
        lost += (first if v == d else other) * (seen - hidden.sum() + hidden[v])
    return float(lost)


# Threshold and its dual


def threshold(window: int, free: int, keep: float | Fraction, distance: int) -> Approximate:
    """Threshold; with ``keep`` < 1 the extended mechanism.

    Both orders are possible if the slots of a and b both lie in j .. i+k-1. The ratio is then 1,
    or c0 keep or its inverse where b or a comes out in slot j: one order has no choice there. With
    dropping, both orders can also drop both, with ratio 1. Exact, except that delta = 1 is only a
    bound for the extended mechanism at distances of k and more.

    Parameters:
        window: time steps.
        free: slots to choose from.
        keep: the part of readings in the likeliest place that is not dropped.
        distance: time steps between the two readings.

    >>> [round(threshold(5, 3, 1, distance).delta, 6) for distance in (1, 2, 3, 4)]
    [0.44, 0.653333, 0.84, 1.0]
    >>> threshold(6, 4, 0.5, 5).delta < threshold(6, 4, 1, 5).delta == 1.0
    True
    """
    require_threshold(window, free)
    require(0 < keep <= 1, f"keep={keep}: must be a probability > 0")
    _require_distance(distance)
    if distance >= window:
        return NOTHING
    kept = float(keep)
    epsilon, common = 0.0, 0.0
    if distance < window - 1:  # at k-1 the two would have to share one slot
        at_once, later = _in_both_reaches(window, free, distance)
        epsilon, common = abs(math.log(free * kept)), kept * at_once + later
    if kept < 1:
        common += (1 - kept) ** 2 * _both_at_once(window, free, distance)
    return Approximate(epsilon, _chance(1 - common))


def dual(window: int, free: int, keep: float | Fraction, distance: int) -> Approximate:
    """DualThreshold: the same numbers as Threshold.

    Both are distributions of bijections from steps to slots with weight 1/c0 for each choice that
    is not forced. Exchanging steps and slots and turning time round takes one to the other, and
    outputs that both orders can give to such outputs.

    Parameters:
        window: time steps.
        free: readings in the pool.
        keep: the part of readings in the likeliest place that is not dropped.
        distance: time steps between the two readings.

    >>> dual(5, 3, 1, 1) == threshold(5, 3, 1, 1)
    True
    """
    return threshold(window, free, keep, distance)


class _Passing:
    """The slots i+1 .. j-1 as steps pass them, by how many of them are free.

    With n of these slots left, r of them free, and c0 - r free ones beyond, their arrangement x
    has a probability in proportion to w(x; c0-r), the product over taken slots of #(free to its
    right among them) + c0 - r. One step takes or passes the first slot. A free first slot, and a
    choice among the others, give together sum over y of w(y; c0-r) + sum over o of w(y+o; c0-r) =
    w(y; c0-(r-1)), since the sums telescope; a choice beyond leaves w(y; c0-r). So the
    distribution keeps its form, and the number r alone is a Markov chain: sums of states that have
    no closed form need not be enumerated.

    w(.; c0-r) sums to h(n, r) = h(n-1, r-1) + (c0-r) h(n-1, r) over the arrangements, and the
    ratios h(n, r-1)/h(n, r) have a recurrence like that of the Stirling numbers.
    """

    def __init__(self, window: int, free: int, distance: int):
        self.count = n = distance - 1
        self.most = most = min(n, free)
        self.beyond = free - np.arange(most + 1.0)
        rho = np.full((n + 1, most + 1), np.inf)
        rho[:, 0] = 0.0
        for m in range(1, n + 1):
            top = min(m - 1, most)
            above, beyond = rho[m - 1, 1 : top + 1], self.beyond[1 : top + 1]
            rho[m, 1 : top + 1] = above * (beyond + 1 + rho[m - 1, :top]) / (beyond + above)
            if m <= most:
                rho[m, m] = m * (2 * free - m + 1) / 2
        self.rho = rho
        self.ratios = stirling_ratios(window, free)
        # how likely each r is when slot i is taken: what is right of it is a window of k-1 slots
        chances = np.zeros(free + 1)  # by how many free ones are left
        chances[free] = 1.0
        for passed in range(n):
            empty, taken = first_slot(self.ratios[window - 2 - passed])
            empty *= chances
            chances *= taken
            chances[:-1] += empty[1:]
        self.chances = chances[::-1][: most + 1]

    def step(self, left: int) -> tuple[Floats, Floats]:
        """With so many slots left, for each r: that it falls by one; that one slot beyond is hit.

        The second is for each single slot beyond, the same for all of them.
        """
        above = self.rho[left - 1]
        hit = 1 / (self.beyond + above)
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(above), 1.0, above * hit), hit


def _falling(values: Floats, fall: Floats) -> Floats:
    """What moves from r to r - 1."""
    moved = np.zeros_like(values)
    moved[:-1] = (values * fall)[1:]
    return moved


def _in_both_reaches(window: int, free: int, distance: int) -> tuple[float, float]:
    """Chances that a goes to j .. i+k-1, and then b to slot j, or b to j+1 .. i+k-1.

    Slot j and the slots up to i+k-1 are beyond those that pass. For b only this matters: whether
    slot j is free, and if not, how many of the m others are, so first moments will do.
    """
    passing = _Passing(window, free, distance)
    beyond = passing.beyond
    index = free - np.arange(passing.most + 1)
    open_j, _ = first_slot(passing.ratios[window - distance - 1])
    open_j = open_j[index]
    # slot i is taken and a goes to any one free slot: (1 - p_0) / c0
    chances = passing.chances / (free + passing.ratios[window - 1, free])
    is_open = chances * open_j * (beyond - 1)  # E[slot j free]
    both = is_open * (beyond - 2)  # E[m; slot j free]
    others = chances * (beyond - 1) * (open_j + (1 - open_j) * beyond)  # E[m; slot j taken]
    for left in range(passing.count, 0, -1):
        fall, hit = passing.step(left)
        others = (others * (beyond - 1) + both) * hit + _falling(others, fall)
        both = both * np.maximum(beyond - 2, 0) * hit + _falling(both, fall)
        is_open = is_open * (beyond - 1) * hit + _falling(is_open, fall)
    return float(is_open[0]), float(others[0] / free)


def _both_at_once(window: int, free: int, distance: int) -> float:
    """The chance that slots i and j are both free when their own step comes.

    If slot i is free, the passing slots have weights w(.; c0-r-s) with s = 1, not w(.; c0-r).
    A step takes that to s again, or with chance s/c0, where r falls, to s+1: so (r, s) is a chain.
    s beyond 128 is left out: that weighs less than 1e-20, and makes delta larger, not smaller.
    """
    passing = _Passing(window, free, distance)
    n, most, beyond = passing.count, passing.most, passing.beyond
    last = 1 / (free + passing.ratios[window - 1, free])  # p_{k-1}
    start = np.zeros(most + 1)
    # h(n, r) S(k-d, c0-1-r) / S(k, c0), by the next r, or at r = n by the ratio of S
    start[:most] = last * passing.chances[1:] * passing.rho[n, 1:]
    if n < free:
        start[n] = last * passing.chances[n] * passing.ratios[window - distance, free - n]
    open_j, _ = first_slot(passing.ratios[window - distance - 1])
    index = free - 1 - np.arange(most + 1)
    start *= np.where(index >= 0, open_j[np.maximum(index, 0)], 0.0)
    short = np.arange(1.0, min(free, MAX_SHORT_SLOTS) + 1) / free
    weights = np.zeros((most + 1, len(short)))
    weights[:, 0] = start
    for left in range(n, 0, -1):
        fall, hit = passing.step(left)
        moved = _falling(weights, fall[:, None])
        weights = (weights * (hit * np.maximum(beyond - 1, 0))[:, None] + moved) * (1 - short)
        weights[:, 1:] += (moved * short)[:, :-1]
    return float(weights[0].sum())


# BlockShuffle and NoisyOrder


def block_shuffle(epsilon: float, block: int, distance: int, *, same_block: bool) -> Approximate:
    """BlockShuffle: readings of one block are covered, those of two blocks not at all.

    A swap changes the number of cycles of the permutation by one, so every ratio is e^(+-epsilon).

    Parameters:
        epsilon: the budget.
        block: time steps.
        distance: time steps between the two readings.
        same_block: whether they are in one block.

    >>> block_shuffle(1.0, 10, 2, same_block=True), block_shuffle(1.0, 10, 2, same_block=False)
    (Approximate(epsilon=1.0, delta=0.0), Approximate(epsilon=0.0, delta=1.0))
    """
    require_epsilon(epsilon)
    _require_distance(distance)
    require(
        not same_block or distance < block,
        f"distance={distance}: must be less than {block} within a block of {block}",
    )
    return Approximate(epsilon, 0.0) if same_block else NOTHING


def random_offset(epsilon: float, block: int, distance: int) -> Approximate:
    """BlockShuffle for readings anywhere, if its offset is public and was drawn uniformly.

    Parameters:
        epsilon: the budget.
        block: time steps.
        distance: time steps between the two readings.

    >>> random_offset(1.0, 10, 2)
    Approximate(epsilon=1.0, delta=0.2)
    """
    require_epsilon(epsilon)
    _require_distance(distance)
    return Approximate(epsilon, distance / block) if distance < block else NOTHING


def noisy_order(epsilon: float, window: int, distance: int, noise: str) -> float:
    """NoisyOrder: the loss of the two keys that move. Sorting by them loses no more, or less.

    A key may lose epsilon/2 over a shift of k-1. With Laplace noise a shorter shift loses less;
    the staircase has steps of k-1, so that any shift within loses all of it.

    Parameters:
        epsilon: the budget.
        window: time steps.
        distance: time steps between the two readings.
        noise: ``staircase`` or ``laplace``.

    >>> noisy_order(2.0, 5, 2, "laplace"), noisy_order(2.0, 5, 2, "staircase")
    (1.0, 2.0)
    """
    require_epsilon(epsilon)
    require_window(window, 2)
    _require_distance(distance)
    require(noise in ("staircase", "laplace"), f"noise={noise!r}: must be 'staircase' or 'laplace'")
    steps = Fraction(distance, window - 1)
    return epsilon * (float(steps) if noise == "laplace" else math.ceil(steps))


def cut_noise(masses: Floats, distance: int) -> float:
    """The delta of noise cut at +-reach: that one of two keys shows that it cannot be the other.

    A key gives itself away in the last points of its reach, on one side.

    Parameters:
        masses: the chances of 0 .. reach, of a distribution symmetric about 0.
        distance: how many points, which is how far the two readings are apart.

    >>> cut_noise(np.array([0.4, 0.2, 0.1]), 1)
    0.19
    """
    _require_distance(distance)
    whole = np.concatenate([masses[:0:-1], masses])
    require(
        bool((whole >= 0).all()) and math.isclose(float(whole.sum()), 1.0, rel_tol=1e-9),
        "masses: must be chances of 0, 1 .. that sum to 1 with those of -1, -2 ..",
    )
    tail = float(whole[-distance:].sum())
    return _chance(tail * (2 - tail))
