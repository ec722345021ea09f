"""Two shortcuts for moving readings in time that do not work, in exact numbers.

Ye et al. 2021 (see ``order_theory``) motivate the Threshold mechanism by what goes wrong without
it (Section IV). Both are small Markov chains over which of the next slots are taken, so nothing is
simulated. They are demonstrations and no mechanisms: neither guarantees anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.mechanisms.reorder import analysis

Floats = npt.NDArray[np.float64]
Step = Callable[[int, int], Iterator[tuple[int | None, float]]]
"""For a pattern and how many slots are free: each lag of a reading (None: lost), its chance."""

MAX_WINDOW = 12  # 2^(window - 1) patterns
ROUNDING = 1e-9


def _require_small(window: int, least: int) -> None:
    analysis.require_window(window, least)
    require(
        window <= MAX_WINDOW,
        f"window={window}: must be at most {MAX_WINDOW}, since 2^(window - 1) patterns are listed",
    )


@dataclass(frozen=True)
class _Chain:
    """Patterns of taken slots: bit j is slot j of the window, and the last slot is always free."""

    window: int
    step: Step

    def options(self, pattern: int) -> Iterator[tuple[int | None, float, int]]:
        """Lag, its chance, and the pattern that the next reading meets."""
        free = self.window - pattern.bit_count()
        for lag, chance in self.step(pattern, free):
            taken = pattern if lag is None else pattern | 1 << lag
            yield lag, chance, taken >> 1

    def matrix(self) -> Floats:
        transitions = np.zeros((1 << self.window - 1,) * 2)
        for pattern in range(len(transitions)):
            for _, chance, after in self.options(pattern):
                transitions[pattern, after] += chance
        return transitions

    def lags(self, patterns: Floats) -> Floats:
        """The chance of each lag if patterns are so distributed; what is missing from 1 is lost."""
        chances = np.zeros(self.window)
        for pattern in np.flatnonzero(patterns).tolist():
            for lag, chance, _ in self.options(pattern):
                if lag is not None:
                    chances[lag] += patterns[pattern] * chance
        return chances


@dataclass(frozen=True)
class Collapse:
    """How a forward dispatch without collisions comes to have no choice.

    For the reading of each step: ``latest`` is the chance that it goes to the last slot of its
    window, ``stuck`` that it and all after it have no other, and ``lags`` (a row for each step)
    the chances of all slots. ``expected_steps`` is how long that takes on average.
    """

    latest: tuple[float, ...]
    stuck: tuple[float, ...]
    lags: tuple[tuple[float, ...], ...]
    expected_steps: float

    @property
    def epsilon(self) -> tuple[float, ...]:
        """Twice the log of the largest odds between two origins, as the paper counts a budget."""
        return tuple(2 * math.log(max(chances) / min(chances)) for chances in self.lags)


def collision_free(epsilon: float, window: int, steps: int) -> Collapse:
    """Forward without collisions: a reading goes to one of the slots that are still free.

    The odds are those of Forward (Equation 4). A slot that passes empty is lost for good, so there
    are ever fewer free ones, until only the last slot of the window is (Section IV-A, Figure 3).

    Parameters:
        epsilon: the budget of Forward.
        window: in time steps.
        steps: how many readings.

    >>> found = collision_free(epsilon=1.0, window=3, steps=50)
    >>> [round(found.latest[step], 3) for step in (0, 1, 2, 10, 49)]
    [0.274, 0.364, 0.474, 0.843, 1.0]
    >>> round(found.expected_steps, 1)
    8.8
    """
    analysis.require_epsilon(epsilon)
    _require_small(window, 2)
    require(steps >= 1, f"steps={steps}: must be a number of time steps >= 1")
    fall = math.exp(-epsilon / 2)

    def step(pattern: int, free: int) -> Iterator[tuple[int | None, float]]:
        """The lags that a ``pattern`` with ``free`` slots leaves, with their chances."""
        at_once = not pattern & 1
        whole = (1.0 if at_once else 0.0) + (free - at_once) * fall
        for lag in range(window):
            if not pattern >> lag & 1:
                yield lag, (1.0 if lag == 0 else fall) / whole

    chain = _Chain(window, step)
    matrix = chain.matrix()
    patterns = np.zeros(len(matrix))
    patterns[0] = 1.0
    seen, stuck = [], []
    for _ in range(steps):
        seen.append(tuple(chain.lags(patterns).tolist()))
        stuck.append(float(patterns[-1]))
        patterns = patterns @ matrix
    # steps spent in the patterns that can still be left
    open_ = np.eye(len(matrix) - 1) - matrix[:-1, :-1]
    expected = float(np.linalg.solve(open_, np.ones(len(open_)))[0])
    return Collapse(tuple(patterns[-1] for patterns in seen), tuple(stuck), tuple(seen), expected)


@dataclass(frozen=True)
class Ignored:
    """What ignoring readings costs and tells, in the long run and for one reading.

    ``lags`` are the chances to come out so many steps later, and ``epsilon`` is twice the log of
    the largest odds among them, as the paper counts a budget. ``dropped`` is the share of readings
    that the (extended) Threshold mechanism loses at that budget; None at a budget of 0.
    """

    missing: float
    empty: float
    delay: float
    lags: tuple[float, ...]
    epsilon: float
    dropped: float | None


def ignore_at(window: int, threshold: int) -> Ignored:
    """Forward without collisions that ignores a reading when only ``threshold`` slots are free.

    The rule that Section IV-B names first and gives up, since it loses readings again. It does,
    and from moderate budgets on more of them than the mechanism that the paper builds instead; at
    small budgets it loses fewer.

    Parameters:
        window: in time steps.
        threshold: how many slots are free when readings are ignored.

    >>> found = ignore_at(window=10, threshold=4)
    >>> round(found.epsilon, 2), round(found.missing, 3), found.dropped
    (3.4, 0.138, 0.0)
    >>> found = ignore_at(window=10, threshold=7)
    >>> round(found.epsilon, 2), round(found.missing, 3), round(found.dropped, 3)
    (0.97, 0.495, 0.555)
    """
    _require_small(window, 3)
    analysis.require_threshold(window, threshold)

    def step(pattern: int, free: int) -> Iterator[tuple[int | None, float]]:
        """The lags that a ``pattern`` with ``free`` slots leaves, with their chances."""
        if free <= threshold:
            yield None, 1.0
            return
        for lag in range(window):
            if not pattern >> lag & 1:
                yield lag, 1 / free

    chain = _Chain(window, step)
    patterns = _stationary(chain.matrix())
    lags = chain.lags(patterns)
    empty = 0.0  # slots that no reading has when their time comes
    for pattern in np.flatnonzero(patterns).tolist():
        for lag, chance, _ in chain.options(pattern):
            empty += patterns[pattern] * chance * (not pattern & 1 and lag != 0)
    epsilon = 2 * math.log(float(lags.max() / lags.min()))
    return Ignored(
        missing=float(1 - lags.sum()),
        empty=float(empty),
        delay=float((np.arange(window) * lags).sum()),
        lags=tuple(lags.tolist()),
        epsilon=epsilon,
        dropped=_dropped(epsilon, window) if epsilon > ROUNDING else None,
    )


def _dropped(epsilon: float, window: int) -> float:
    free = analysis.choose_threshold(epsilon, window).threshold
    keep = analysis.keep_probability(epsilon, window, free)
    return float(analysis.dispatch(window, free)[0]) * float(1 - keep)


def _stationary(matrix: Floats) -> Floats:
    """The stationary distribution of a chain from an empty window; other patterns have chance 0."""
    reached = np.zeros(len(matrix), dtype=np.bool_)
    reached[0] = True
    while True:
        after = reached | (matrix[reached].sum(axis=0) > 0)
        if (after == reached).all():
            break
        reached = after
    states = np.flatnonzero(reached)
    flow = matrix[np.ix_(states, states)].T - np.eye(len(states))
    flow[-1] = 1.0
    right = np.zeros(len(states))
    right[-1] = 1.0
    patterns = np.zeros(len(matrix))
    patterns[states] = np.maximum(np.linalg.solve(flow, right), 0.0)
    return np.asarray(patterns / patterns.sum())
