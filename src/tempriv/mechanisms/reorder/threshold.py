"""Threshold: every reading comes out once, in a slot drawn among enough free ones."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, NoiseSource, SeriesState
from tempriv.mechanisms.domains import Floats, Integers, positive
from tempriv.mechanisms.options import WINDOW, option, shared
from tempriv.mechanisms.reorder import analysis, loss, shares
from tempriv.mechanisms.reorder._kernels import dual, threshold
from tempriv.mechanisms.reorder.backward_forward import (
    DELAY,
    TLDP,
    decided,
    is_pending,
    unmet_claim,
)
from tempriv.mechanisms.reorder.base import ON_TIMES, ReorderMechanism
from tempriv.mechanisms.reorder.distributions import FreeSlotDistribution, FreeSlots
from tempriv.privacy.guarantees import Approximate, Guarantee, Published, Pure
from tempriv.privacy.units.order import SlotOrigin
from tempriv.sampling.distributions import Bernoulli

ONCE = "Every reading comes out once, and past the start of a series no row is empty."
DROPPED = "Some readings were dropped at random, and as many rows are empty."


@functools.lru_cache(maxsize=64)
def keep_probability(epsilon: float, window: int, free: int) -> Fraction:
    """As ``analysis.keep_probability``, which takes a while.

    Parameters:
        epsilon: the budget.
        window: how many slots a reading can go to.
        free: how many of them are free.
    """
    return analysis.keep_probability(epsilon, window, free)


@functools.lru_cache(maxsize=64)
def delay_probabilities(epsilon: float, window: int, free: int) -> Floats:
    """How likely each delay is with Threshold; what is dropped is missing from the first.

    Parameters:
        epsilon: the budget.
        window: how many slots a reading can go to.
        free: how many of them are free.
    """
    delays = analysis.dispatch(window, free).copy()
    delays[0] *= float(keep_probability(epsilon, window, free))
    delays.flags.writeable = False
    return delays


@dataclass(frozen=True, kw_only=True)
class WithThreshold(ABC):
    """What Threshold and its dual have in common: how a threshold is settled, and what it costs.

    Parameters:
        window: the greatest delay and one, in time steps.
        threshold: how many free slots, or readings, there are to choose from.
    """

    if TYPE_CHECKING:
        epsilon: float

    window: int = shared(WINDOW)
    threshold: int | None = option(
        "--free-slots",
        "How many free slots a reading has to choose from (dual-threshold: a "
        "slot, readings); the least delay within --epsilon by default.",
        default=None,
        type=int,
    )

    error_name: ClassVar[str] = DELAY

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        analysis.require_window(self.window, 3, analysis.MAX_TABLE_WINDOW)
        if self.threshold is None:
            object.__setattr__(self, "threshold", self.choose().threshold)
        analysis.require_threshold(self.window, self.free)
        least = float(analysis.budgets(self.window).last[self.free - 2])
        require(
            least <= self.epsilon * (1 + analysis.FLOAT_ERROR),
            f"threshold={self.free}: needs epsilon >= {least:.4g} with a window of {self.window}, "
            "or leave the threshold out",
        )
        _ = self._keep  # refused if it cannot be drawn

    @abstractmethod
    def choose(self) -> analysis.ThresholdChoice:
        """The threshold of least delay at this epsilon and window."""

    @property
    def free(self) -> int:
        """The threshold, once it is settled."""
        assert self.threshold is not None
        return self.threshold

    @property
    def memory_size(self) -> int:
        return self.window - 1

    @property
    def unit(self) -> SlotOrigin:
        """What is protected."""
        return SlotOrigin(self.window)

    @property
    def fate(self) -> str:
        return DROPPED if self.extended else ONCE

    @property
    def _keep(self) -> Fraction:
        return keep_probability(self.epsilon, self.window, self.free)

    @property
    def keep(self) -> float:
        """The part of readings in the likeliest place that is not dropped; 1 unless extended."""
        return float(self._keep)

    @property
    def extended(self) -> bool:
        """Whether readings are dropped, because no threshold reaches the budget by itself."""
        return self.keep < 1

    @property
    def probabilities(self) -> Floats:
        """That a reading comes out so many steps later."""
        return delay_probabilities(self.epsilon, self.window, self.free)

    @property
    def derived_epsilon(self) -> float:
        """What is spent as the paper counts it: twice the log of the largest odds (Theorem 4.3)."""
        if not self.extended:
            return analysis.derived_epsilon(self.window, self.free)
        p = self.probabilities
        return 2 * math.log(float(p.max() / p.min()))

    @property
    def errors(self) -> tuple[float, ...]:
        p = self.probabilities
        return (float((np.arange(self.window) * p).sum() / p.sum()),)

    @property
    def guarantee(self) -> Guarantee:
        # the odds are floats: their own error is added
        return Guarantee(Pure(self.derived_epsilon / 2 * (1 + analysis.FLOAT_ERROR)), self.unit)

    def _begin(self, noise: NoiseSource, state: SeriesState) -> tuple[Integers, Integers]:
        """The series that begin, and which slots are taken as if they had begun long before."""
        new = np.flatnonzero((state.starts == 0) & (state.counts > 0))
        if not len(new):
            return new, np.zeros((0, self.window), dtype=np.int64)
        rows = (np.cumsum(state.counts) - state.counts)[new]
        return new, noise(FreeSlots(self.window, self.free), "start", rows)

    def _decided(
        self, kernel: Callable[..., int], later: int, noise: NoiseSource, state: SeriesState
    ) -> Integers:
        keeps = noise.each(Bernoulli(self._keep), "keep") if self._keep < 1 else None
        places, settings = FreeSlotDistribution(self.free), (self.window, self.free, keeps)
        return decided(kernel, places, "place", noise, state, *settings, later_slots=later)


@dataclass(frozen=True, kw_only=True)
class Threshold(WithThreshold, ReorderMechanism):
    """Every reading comes out exactly once, in one of the next ``window`` slots.

    A slot that would pass empty takes the reading of its own time; otherwise a reading goes to one
    of ``threshold`` free slots. Below the budget that any threshold reaches, a reading that would
    come out at once is dropped with probability 1 - ``keep`` (the extended mechanism).

    Parameters:
        epsilon: the budget; a released value tells two origins apart by half of it.
        window: how many slots a reading can go to, in time steps.
        threshold: how many of them are free when it chooses; by default the number of least delay.

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

    command = CommandLine(
        name="threshold",
        hides="order",
        purpose="exact rows of any kind, each once, in a later slot; hides when, of one "
        "row by itself",
        example="--epsilon 5 --window 20 --value pulse",
        units=(),
        on_times=ON_TIMES,
        rank=16,
    )

    def choose(self) -> analysis.ThresholdChoice:
        return analysis.choose_threshold(self.epsilon, self.window)

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
        return shares.threshold(self.window, self.free, self.keep)

    def loss_at(self, distance: int) -> Approximate:
        """What the whole output tells of two readings ``distance`` apart that trade places."""
        return loss.threshold(self.window, self.free, self.keep, distance)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The age of the row in each slot, by ``noise`` and ``state`` and not ``readings``."""
        new, taken = self._begin(noise, state)
        # taken by rows from before the series, or free and in the list by their order
        numbers = np.cumsum(1 - taken, axis=1) - 1
        state.memory[new] = np.where(taken == 1, -1, -2 - numbers)[:, :-1]
        return self._decided(threshold, self.window - 1, noise, state)

    def could_remember(self, memory: Integers, step: int) -> bool:
        """Whether ``memory`` has free slots but for one, and rows from before a ``step``."""
        free = -2 - memory[memory < -1]
        rest = (memory < 0) | is_pending(memory, self.window, step)
        return bool(rest.all()) and are_all_but_one(free, self.free)


def are_all_but_one(numbers: Integers, count: int) -> bool:
    """Whether they are places in a list, each once, but for one.

    Parameters:
        numbers: the places.
        count: how many the list has.
    """
    inside = bool(((numbers >= 0) & (numbers < count)).all())
    return inside and len(np.unique(numbers)) == len(numbers) == count - 1


@dataclass(frozen=True, kw_only=True)
class DualThreshold(WithThreshold, ReorderMechanism):
    """Threshold with readings and slots exchanged: every slot draws from a pool of readings.

    The pool holds ``threshold`` readings. One that has grown ``window`` - 1 steps old comes out
    (or is dropped with probability 1 - ``keep``, where no threshold reaches the budget by itself);
    otherwise one of the pool does, each equally likely.

    Parameters:
        epsilon: the budget; a released value tells two origins apart by half of it.
        window: how many readings a slot can come from, in time steps.
        threshold: how many readings the pool holds; by default the number of least delay.

    Guarantees:
        - as for Threshold, whose delays it has the other way round: where that delays much, this
          delays little.

    >>> late, soon = Threshold(epsilon=8.0, window=200), DualThreshold(epsilon=8.0, window=200)
    >>> round(late.errors[0]), round(soon.errors[0])
    (146, 49)
    """

    command = CommandLine(
        name="dual-threshold",
        hides="order",
        purpose="the same with other delays, less of them in long windows at small budgets",
        example="--epsilon 5 --window 20 --value pulse",
        units=(),
        on_times=ON_TIMES,
        rank=17,
    )
    published = Published(
        claim="None: the mechanism is our own, made of the Threshold mechanism by exchanging "
        "readings and slots",
        source=f"after {TLDP}, Algorithm 1",
        holds=True,
        remark="It has the delays of Threshold the other way round, so the same odds.",
    )

    def choose(self) -> analysis.ThresholdChoice:
        return analysis.choose_dual(self.epsilon, self.window)

    @property
    def probabilities(self) -> Floats:
        return super().probabilities[::-1]

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

    def expected_shares(self) -> shares.Shares:
        return shares.dual(self.window, self.free, self.keep)

    def loss_at(self, distance: int) -> Approximate:
        """What the whole output tells of two readings ``distance`` apart that trade places."""
        return loss.dual(self.window, self.free, self.keep, distance)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The age of the row in each slot, by ``noise`` and ``state`` and not ``readings``."""
        new, taken = self._begin(noise, state)
        # slot j of Threshold is age window - 1 - j here; the newest row is yet to come
        pool = 1 - taken[:, -2::-1]
        state.memory[new] = pool * np.cumsum(pool, axis=1)
        return self._decided(dual, 0, noise, state)

    def could_remember(self, memory: Integers, step: int) -> bool:
        """Whether ``memory`` is a pool that lacks one row, whatever the ``step``."""
        return are_all_but_one(memory[memory != 0] - 1, self.free)
