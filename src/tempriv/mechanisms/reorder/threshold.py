"""Threshold: every reading comes out once, in a slot drawn among enough free ones."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, NoiseSource, SeriesState
from tempriv.mechanisms.domains import Floats, Integers, positive
from tempriv.mechanisms.options import WINDOW, option, shared
from tempriv.mechanisms.reorder import analysis, shares
from tempriv.mechanisms.reorder import loss as order_losses
from tempriv.mechanisms.reorder._kernels import dual, threshold
from tempriv.mechanisms.reorder.backward_forward import (
    DELAY,
    TLDP,
    decided,
    is_pending,
    unmet_claim,
)
from tempriv.mechanisms.reorder.base import ReorderMechanism
from tempriv.mechanisms.reorder.distributions import FreeSlotDistribution, FreeSlots
from tempriv.privacy.guarantees import Approximate, Guarantee, Published, Pure
from tempriv.privacy.units.order import SlotOrigin
from tempriv.sampling._kernels import parts, suited
from tempriv.sampling.distributions import Bernoulli

ONCE = "Every reading comes out once, and past the start of a series no row is empty."
DROPPED = "Some readings were dropped at random, and as many rows are empty."


def settle(mechanism: Any, choose: Any) -> None:
    """Check the parameters, and fill in the threshold where none is given."""
    epsilon, window, given = mechanism.epsilon, mechanism.window, mechanism.threshold
    positive("epsilon", epsilon)
    analysis.require_window(window, 3, analysis.LARGEST_WINDOW)
    if given is None:
        given = choose(epsilon, window).threshold
    analysis.require_threshold(window, given)
    least = float(analysis.budgets(window).last[given - 2])
    require(
        least <= epsilon * (1 + 1e-12),
        f"threshold={given}: needs epsilon >= {least:.4g} with a window of {window}, or leave the "
        "threshold out",
    )
    object.__setattr__(mechanism, "threshold", given)
    kept_part(epsilon, window, given)  # refused if it cannot be drawn


@functools.lru_cache(maxsize=64)
def kept_part(epsilon: float, window: int, free: int) -> Fraction:
    return analysis.keep_probability(epsilon, window, free)


@functools.lru_cache(maxsize=64)
def lags(epsilon: float, window: int, free: int) -> Floats:
    """Threshold's law of a reading's delay; what is dropped is missing from the first."""
    found = analysis.dispatch(window, free).copy()
    found[0] *= float(kept_part(epsilon, window, free))
    found.flags.writeable = False
    return found


# what Threshold and its dual have in common


def unit_of(mechanism: Threshold | DualThreshold) -> SlotOrigin:
    return SlotOrigin(mechanism.window)


def fate_of(mechanism: Threshold | DualThreshold) -> str:
    return DROPPED if mechanism.extended else ONCE


def free_of(mechanism: Any) -> int:
    """The threshold, once it is settled."""
    return int(mechanism.threshold)


def slots_of(mechanism: Any) -> int:
    return int(mechanism.window) - 1


def keep_of(mechanism: Any) -> float:
    """The part of the readings in the likeliest place that is not dropped; 1 unless extended."""
    return float(kept_part(mechanism.epsilon, mechanism.window, mechanism.free))


def is_extended(mechanism: Any) -> bool:
    """Whether readings are dropped, because no threshold reaches the budget by itself."""
    return bool(mechanism.keep < 1)


def derived_epsilon_of(mechanism: Any) -> float:
    """What is spent as the paper counts it: twice the log of the largest odds (Theorem 4.3)."""
    if not mechanism.extended:
        return analysis.derived_epsilon(mechanism.window, mechanism.free)
    p = mechanism.probabilities
    return 2 * math.log(float(p.max() / p.min()))


def errors_of(mechanism: Any) -> tuple[float, ...]:
    p = mechanism.probabilities
    return (float((np.arange(mechanism.window) * p).sum() / p.sum()),)


def guarantee_of(mechanism: Any) -> Guarantee:
    # the odds are floats: their own error is added
    loss = mechanism.derived_epsilon / 2 * (1 + 1e-12)
    return Guarantee(Pure(loss), mechanism.unit)


def under_way(
    window: int, free: int, noise: NoiseSource, state: SeriesState
) -> tuple[Integers, Integers]:
    """The series that begin, and which slots are taken as if they had begun long before."""
    new = np.flatnonzero((state.starts == 0) & (state.counts > 0))
    if not len(new):
        return new, np.zeros((0, window), dtype=np.int64)
    rows = (np.cumsum(state.counts) - state.counts)[new]
    return new, noise(FreeSlots(window, free), "start", rows)


def kept(mechanism: Any, noise: NoiseSource) -> Any:
    """Whether to keep what is due, where that is asked."""
    keep = kept_part(mechanism.epsilon, mechanism.window, mechanism.free)
    return noise.each(Bernoulli(keep), "keep") if keep < 1 else None


@dataclass(frozen=True, kw_only=True)
class Threshold(ReorderMechanism):
    """Every reading comes out exactly once, in one of the next ``window`` slots.

    A slot that would pass empty takes the reading of its own time; otherwise a reading goes to one
    of ``threshold`` free slots. Below the budget that any threshold reaches, a reading that would
    come out at once is dropped with probability 1 - ``keep`` (the extended mechanism).

    Guarantees:
        - a released row is an input row, unchanged, at most ``window`` - 1 steps late; without
          dropping none is lost or repeated and no slot is empty, past the start of a series;
        - the values of one output row tell two origins apart by e^(derived_epsilon/2) at most. All
          rows together tell more: see ``loss_at``.

    The series starts as if it had begun long before: slots that an earlier reading would have
    taken stay empty.

    >>> mechanism = Threshold(epsilon=5.0, window=10)
    >>> mechanism.threshold, mechanism.extended, round(mechanism.derived_epsilon, 3)
    (7, False, 4.595)
    """

    epsilon: float
    window: int = shared(WINDOW)
    threshold: int | None = option(
        "--free-slots",
        "How many free slots a reading has to choose from (dual-threshold: a "
        "slot, readings); the least delay within --epsilon by default.",
        default=None,
        type=int,
    )

    command = CommandLine(
        name="threshold",
        hides="order",
        purpose="exact rows of any kind, each once, in a later slot; hides when, of one "
        "row by itself",
        example="--epsilon 5 --window 20 --value pulse",
        units=(),
        on_times="moves readings in time and keeps their values as they are",
        rank=16,
    )

    error_name: ClassVar[str] = DELAY

    free = property(free_of)
    memory_size = property(slots_of)
    unit = property(unit_of)
    fate = property(fate_of)
    keep = property(keep_of)
    extended = property(is_extended)
    derived_epsilon = property(derived_epsilon_of)
    errors = property(errors_of)
    guarantee = property(guarantee_of)

    def __post_init__(self) -> None:
        settle(self, analysis.choose_threshold)

    @property
    def probabilities(self) -> Floats:
        """That a reading comes out so many steps later."""
        return lags(self.epsilon, self.window, self.free)

    @property
    def done(self) -> str:
        dropped = ", or dropped" if self.extended else ""
        return (
            f"each reading was put into one of {self.window} rows, its own and those after it, at "
            f"random{dropped}"
        )

    @property
    def empty_rows(self) -> tuple[int | None, int | None]:
        """See the base.

        >>> Threshold(epsilon=5.0, window=10, threshold=7).empty_rows
        (9, 3)
        """
        return (None, None) if self.extended else (self.window - 1, self.window - self.free)

    @property
    def published(self) -> Published:
        return unmet_claim(
            f"Theorem {'4.5' if self.extended else '4.3'}",
            "What holds is that a single output row tells two possible origins apart by "
            "e^(epsilon/2) at most.",
        )

    def expected_shares(self) -> shares.Shares:
        """What to expect of a reading in the middle of a long stream."""
        return shares.threshold(self.window, self.free, self.keep)

    def loss_at(self, distance: int) -> Approximate:
        return order_losses.threshold(self.window, self.free, self.keep, distance)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        new, taken = under_way(self.window, self.free, noise, state)
        # taken by rows from before the series, or free and in the list by their order
        numbers = np.cumsum(1 - taken, axis=1) - 1
        state.memory[new] = np.where(taken == 1, -1, -2 - numbers)[:, :-1]
        keeps = kept(self, noise)

        def decide(choices: Any) -> tuple[Integers, int]:
            ages = np.empty(len(state.missing) + self.window - 1, dtype=np.int64)
            unsure = suited(threshold, choices)(
                state.counts,
                self.window,
                self.free,
                *parts(choices),
                keeps,
                state.memory,
                ages,
                *state.carriage,
            )
            return ages, unsure

        return decided(decide, FreeSlotDistribution(self.free), "place", noise, state)

    def could_remember(self, memory: Integers, step: int) -> bool:
        free = -2 - memory[memory < -1]
        rest = (memory < 0) | is_pending(memory, self.window, step)
        return bool(rest.all()) and are_all_but_one(free, self.free)


def are_all_but_one(numbers: Integers, count: int) -> bool:
    """Whether they are places in a list of so many, each once, but for one."""
    inside = bool(((numbers >= 0) & (numbers < count)).all())
    return inside and len(np.unique(numbers)) == len(numbers) == count - 1


@dataclass(frozen=True, kw_only=True)
class DualThreshold(ReorderMechanism):
    """Threshold with readings and slots exchanged: every slot draws from a pool of readings.

    The pool holds ``threshold`` readings. One that has grown ``window`` - 1 steps old comes out
    (or is dropped with probability 1 - ``keep``, where no threshold reaches the budget by itself);
    otherwise one of the pool does, each equally likely.

    Guarantees:
        - as for Threshold, whose delays it has the other way round: where that delays much, this
          delays little.

    >>> late, soon = Threshold(epsilon=8.0, window=200), DualThreshold(epsilon=8.0, window=200)
    >>> round(late.errors[0]), round(soon.errors[0])
    (146, 49)
    """

    epsilon: float
    window: int = shared(WINDOW)
    threshold: int | None = option(
        "--free-slots",
        "How many free slots a reading has to choose from (dual-threshold: a "
        "slot, readings); the least delay within --epsilon by default.",
        default=None,
        type=int,
    )

    command = CommandLine(
        name="dual-threshold",
        hides="order",
        purpose="the same with other delays, less of them in long windows at small budgets",
        example="--epsilon 5 --window 20 --value pulse",
        units=(),
        on_times="moves readings in time and keeps their values as they are",
        rank=17,
    )

    error_name: ClassVar[str] = DELAY

    free = property(free_of)
    memory_size = property(slots_of)
    unit = property(unit_of)
    fate = property(fate_of)
    keep = property(keep_of)
    extended = property(is_extended)
    derived_epsilon = property(derived_epsilon_of)
    errors = property(errors_of)
    guarantee = property(guarantee_of)

    def __post_init__(self) -> None:
        settle(self, analysis.choose_dual)

    @property
    def probabilities(self) -> Floats:
        """That a reading comes out so many steps later."""
        return lags(self.epsilon, self.window, self.free)[::-1]

    @property
    def done(self) -> str:
        dropped = ", or dropped" if self.extended else ""
        return (
            f"each row took one of {self.free} readings that were waiting, at random, at most "
            f"{self.window} rows from its own{dropped}"
        )

    @property
    def empty_rows(self) -> tuple[int | None, int | None]:
        return (None, None) if self.extended else (self.window - 1, self.free - 1)

    @property
    def published(self) -> Published:
        return Published(
            claim="None: the mechanism is our own, made of the Threshold mechanism by exchanging "
            "readings and slots",
            source=f"after {TLDP}, Algorithm 1",
            holds=True,
            remark="It has the delays of Threshold the other way round, so the same odds.",
        )

    def expected_shares(self) -> shares.Shares:
        """What to expect of a reading in the middle of a long stream."""
        return shares.dual(self.window, self.free, self.keep)

    def loss_at(self, distance: int) -> Approximate:
        return order_losses.dual(self.window, self.free, self.keep, distance)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        new, taken = under_way(self.window, self.free, noise, state)
        # slot j of Threshold is age window - 1 - j here; the newest row is yet to come
        pool = 1 - taken[:, -2::-1]
        state.memory[new] = pool * np.cumsum(pool, axis=1)
        keeps = kept(self, noise)

        def decide(choices: Any) -> tuple[Integers, int]:
            ages = np.empty(len(state.missing), dtype=np.int64)
            unsure = suited(dual, choices)(
                state.counts,
                state.starts,
                self.window,
                self.free,
                *parts(choices),
                keeps,
                state.memory,
                ages,
                *state.carriage,
            )
            return ages, unsure

        return decided(decide, FreeSlotDistribution(self.free), "place", noise, state)

    def could_remember(self, memory: Integers, step: int) -> bool:
        return are_all_but_one(memory[memory != 0] - 1, self.free)
