"""Broken orders, beside ``mutants.value``: they move rows in time, and tell too much or forget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tempriv.data.series import REPEATED, joined
from tempriv.mechanisms.reorder import analysis
from tempriv.mechanisms.reorder._kernels import Slots, by_key
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.carry import to_state
from tempriv.mechanisms.reorder.distributions import (
    FreeSlotDistribution,
    FreeSlots,
    LagDistribution,
    TieDistribution,
    WindowDistribution,
)
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold, WithThreshold
from tempriv.mechanisms.stream import Stream
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units.order import BlockSwap, SlotOrigin, Swap
from tempriv.sampling import distributions
from tempriv.sampling._kernels import at
from tests.conformance.cases.order import (
    every_row_comes_out_once,
    slots_have_the_stated_lags,
    the_budget_is_kept_at_least_delay,
)
from tests.conformance.distribution_checks import samplers_follow_their_laws, the_promise_holds
from tests.conformance.key_checks import seeded_keys_promise_nothing
from tests.conformance.stream_checks import (
    compiled_and_plain_and_reference_agree,
    resume_from_any_state,
    shape_is_free_of_values,
)
from tests.mutants.value import KeepOfTwo, broken, streaming


class Instead:
    """Draws from other laws than the mechanism asks for."""

    def __init__(self, noise, change):
        self.draw, self.change = noise, change

    def __call__(self, law, purpose, rows=None):
        return self.draw(self.change(law), purpose, rows)

    def each(self, law, purpose):
        return self.draw.each(self.change(law), purpose)


# too much said, or too little done


@broken(
    "all of epsilon for one of two readings",
    "backward",
    the_promise_holds,
    slots_have_the_stated_lags,
)
class WholeEpsilon(Backward):
    def perturb(self, readings, noise, state):
        twice = Instead(noise, lambda law: LagDistribution(2 * law.epsilon, law.window))
        return super().perturb(readings, twice, state)


@broken(
    "the odds of sending called those of what stays",
    "forward",
    the_promise_holds,
    seeded_keys_promise_nothing,
)
class ForwardPromises(Forward):
    @property
    def guarantee(self):
        return Guarantee(Pure(self.epsilon / 2), SlotOrigin(self.window))


@broken("one slot guaranteed, all of them claimed", "threshold", the_promise_holds)
class ClaimsASwap(Threshold):
    """Definition 2.2, as the paper claims it."""

    @property
    def guarantee(self):
        return Guarantee(Pure(self.epsilon), Swap(self.window))


@broken("swaps across blocks claimed", "shuffled blocks", the_promise_holds)
class ClaimsTwoBlocks(BlockShuffle):
    @property
    def guarantee(self):
        return Guarantee(Pure(self.epsilon), BlockSwap(2 * self.block, self.offset))


@broken("neighbors of two blocks claimed", "shuffled blocks, offset", the_promise_holds)
class ClaimsNeighbors(BlockShuffle):
    @property
    def guarantee(self):
        return Guarantee(Pure(self.epsilon), Swap(2))


@broken("blocks that begin elsewhere than guaranteed", "shuffled blocks, offset", the_promise_holds)
class IgnoresOffset(BlockShuffle):
    def perturb(self, readings, noise, state):
        elsewhere = BlockShuffle(epsilon=self.epsilon, block=self.block)
        return elsewhere.perturb(readings, noise, state)


@broken("noise cut off, and called pure", "noisy order, latency of two", the_promise_holds)
class CutAndPure(NoisyOrder):
    @property
    def guarantee(self):
        return Guarantee(Pure(self.epsilon), self.unit)


# thresholds


def chosen(choice):
    """A threshold chosen anew, whatever was given."""

    def choose(self):
        object.__setattr__(self, "threshold", choice(self.epsilon, self.window))
        WithThreshold.__post_init__(self)

    return choose


@broken("the threshold of Algorithm 2 as printed", "threshold", the_budget_is_kept_at_least_delay)
class AsPrinted(Threshold):
    __post_init__ = chosen(lambda e, k: analysis.algorithm_2(e, k).threshold)


@broken(
    "dropping where Algorithm 2 ends",
    "threshold, extended, wide",
    the_budget_is_kept_at_least_delay,
)
class DropsAsPrinted(Threshold):
    __post_init__ = chosen(lambda e, k: analysis.algorithm_2(e, k).threshold)


@broken("one free slot too many", "threshold, seven free", the_budget_is_kept_at_least_delay)
class OneTooMany(Threshold):
    __post_init__ = chosen(lambda e, k: analysis.choose_threshold(e, k).threshold + 1)


@broken(
    "one free slot too many, and nothing dropped",
    "threshold, seven free",
    the_budget_is_kept_at_least_delay,
)
class OneTooManyKept(Threshold):
    __post_init__ = OneTooMany.__post_init__
    keep = property(lambda self: 1.0)


def never_drops(law):
    return distributions.Bernoulli(Fraction(1)) if isinstance(law, distributions.Bernoulli) else law


def drops_less(law):
    if not isinstance(law, distributions.Bernoulli):
        return law
    return distributions.Bernoulli(Fraction(-(-law.probability * 8 // 1), 8))


@broken(
    "what is to be dropped is kept",
    "threshold, extended",
    the_promise_holds,
    slots_have_the_stated_lags,
)
class DropsNothing(Threshold):
    def perturb(self, readings, noise, state):
        return super().perturb(readings, Instead(noise, never_drops), state)


@broken(
    "the kept part rounded up to eighths",
    "threshold, extended",
    the_promise_holds,
    slots_have_the_stated_lags,
)
class KeepsMore(Threshold):
    def perturb(self, readings, noise, state):
        return super().perturb(readings, Instead(noise, drops_less), state)


@broken(
    "what is to be dropped is kept in the pool's turn",
    "dual threshold, extended",
    the_promise_holds,
)
class DualDropsNothing(DualThreshold):
    def perturb(self, readings, noise, state):
        return super().perturb(readings, Instead(noise, never_drops), state)


@dataclass(frozen=True)
class FirstSlotsTaken(FreeSlots):
    """As if a series that has just begun had filled its first slots."""

    def outcomes(self, tail):
        taken = self.window - self.free
        return [((1,) * taken + (0,) * self.free, 1.0)]


def cold(law):
    return FirstSlotsTaken(law.window, law.free) if isinstance(law, FreeSlots) else law


@broken(
    "a start with the first slots taken called stationary",
    "threshold",
    the_promise_holds,
    slots_have_the_stated_lags,
)
class StartsFull(Threshold):
    def perturb(self, readings, noise, state):
        return super().perturb(readings, Instead(noise, cold), state)


@broken("a cold start called stationary", "threshold", slots_have_the_stated_lags)
class StartsCold(Threshold):
    """Algorithm 1 from its first line: all slots are free."""

    def perturb(self, readings, noise, state):
        rows, taken = len(state.missing), {}
        choices = {
            n: noise.each(FreeSlotDistribution(n), f"of {n}")
            for n in range(self.free, self.window + 1)
        }
        for row in range(rows):
            free = [slot for slot in range(row, row + self.window) if slot not in taken]
            due = len(free) == self.free and free[0] == row
            taken[row if due else free[at(choices[len(free)], row)]] = row
        ages = [row - taken[row] if row in taken else -1 for row in range(rows)]
        return np.array(ages)[:, None]


@broken("the next free slot instead of any", "threshold", the_promise_holds)
class TakesTheNext(Threshold):
    def perturb(self, readings, noise, state):
        (taken,) = noise(FreeSlots(self.window, self.free), "start", np.array([0])).tolist()
        free, slots = [slot for slot in range(self.window) if not taken[slot]], {}
        for row in range(len(state.missing)):
            slots[free.pop(0)] = row
            free.append(row + self.window)
        ages = [row - slots[row] if row in slots else -1 for row in range(len(state.missing))]
        return np.array(ages)[:, None]


@broken("the newest of the pool instead of any", "dual threshold", the_promise_holds)
class NewestFirst(DualThreshold):
    def perturb(self, readings, noise, state):
        (taken,) = noise(FreeSlots(self.window, self.free), "start", np.array([0])).tolist()
        pool = [slot - self.window + 1 for slot in range(self.window - 1) if not taken[slot]]
        ages = []
        for row in range(len(state.missing)):
            pool.append(row)
            oldest = row - self.window + 1
            out = oldest if oldest in pool else max(pool)
            pool.remove(out)
            ages.append(row - out if out >= 0 else -1)
        return np.array(ages)[:, None]


# permutations


@dataclass(frozen=True)
class JoinsTheFirst(distributions.CategoryFlip):
    """Opens a cycle as often as it should, and joins the first one otherwise."""

    def outcomes(self, tail):
        return [(0, self.keep), (1, 1 - self.keep)]


@broken("rows join the first cycle only", "shuffled blocks", the_promise_holds)
class BiasedInsertion(BlockShuffle):
    def perturb(self, readings, noise, state):
        first = Instead(noise, lambda law: JoinsTheFirst(law.epsilon, law.choices))
        return super().perturb(readings, first, state)


@broken("cycles opened as among two rows", "shuffled blocks", the_promise_holds)
class OpensTooOften(BlockShuffle):
    def perturb(self, readings, noise, state):
        # e^epsilon n to 1 for the n-th row, where it should be e^epsilon
        def often(law):
            return KeepOfTwo(law.epsilon, law.choices)

        return super().perturb(readings, Instead(noise, often), state)


@broken(
    "the status says which rows kept their slot",
    "shuffled blocks",
    the_promise_holds,
    compiled_and_plain_and_reference_agree,
)
class TellsWhatStayed(BlockShuffle):
    def perturb(self, readings, noise, state):
        ages = super().perturb(readings, noise, state)
        state.status[ages[:, 0] == self.latency] = REPEATED
        return ages


@broken("the last row of a block stays where it is", "shuffled blocks", the_promise_holds)
class LastOfBlockStays(BlockShuffle):
    def perturb(self, readings, noise, state):
        def stays(law):
            return Stays(law.epsilon, law.choices) if law.choices == self.block else law

        return super().perturb(readings, Instead(noise, stays), state)


@dataclass(frozen=True)
class Stays(distributions.CategoryFlip):
    def outcomes(self, tail):
        return [(0, 1.0)]


# keys


@broken(
    "ties broken by arrival",
    "noisy order, whole, three rows",
    the_promise_holds,
    compiled_and_plain_and_reference_agree,
)
class StableSort(NoisyOrder):
    def perturb(self, readings, noise, state):
        return NoisyOrder.perturb(self, readings, ByArrival(noise), state)


class ByArrival:
    """In the place of random words, the number of the row."""

    def __init__(self, noise):
        self.draw = noise

    def __call__(self, law, purpose, rows=None):
        return rows if isinstance(law, TieDistribution) else self.draw(law, purpose, rows)


@broken(
    "ties of a stream broken by arrival",
    "noisy order, latency",
    compiled_and_plain_and_reference_agree,
)
class StableStream(NoisyOrder):
    perturb = StableSort.perturb


@broken(
    "the words of a key for its tie too",
    "noisy order, whole, three rows",
    the_promise_holds,
    compiled_and_plain_and_reference_agree,
)
class OneWordForBoth(NoisyOrder):
    def perturb(self, readings, noise, state):
        return super().perturb(readings, ByOneName(noise), state)


class ByOneName:
    """All that is drawn, for one purpose."""

    def __init__(self, noise):
        self.draw = noise

    def __call__(self, law, purpose, rows=None):
        return self.draw(law, "key", rows)


@broken("half the noise on times", "noisy order, whole, three rows", the_promise_holds)
class HalfTheKey(NoisyOrder):
    @property
    def distribution(self):
        full = super().distribution
        return distributions.DiscreteLaplace(full.scale / 2)


@broken("the last row of a series stays where it is", "noisy order, whole", the_promise_holds)
class LastStays(NoisyOrder):
    def perturb(self, readings, noise, state):
        ages = super().perturb(readings, noise, state)[:, 0]
        ends = np.cumsum(state.counts)
        for low, high in zip(ends - state.counts, ends, strict=True):
            own = ages[low:high]
            ages[low:high] = np.append(own[own != 0], 0)
        return ages[:, None]


@dataclass(frozen=True)
class Clipped(WindowDistribution):
    """What is beyond the reach becomes the reach, and the law says nothing of it."""

    def sample(self, words):
        return np.clip(self.uncut.sample(words), -self.reach, self.reach)


@broken(
    "noise clipped instead of drawn again",
    "noisy order, latency of two",
    samplers_follow_their_laws,
)
class ClipsTheKey(NoisyOrder):
    @property
    def distribution(self):
        return Clipped(super().distribution.uncut, self.latency // 2)


@broken("steps past the end count as rows", "noisy order, latency of two", every_row_comes_out_once)
class PastTheEnd(NoisyOrder):
    def perturb(self, readings, noise, state):
        there = np.arange(len(state.missing))
        keys, ties = noise(self.distribution, "key", there), noise(TieDistribution(), "tie", there)
        ages = np.empty((len(keys), 1), dtype=np.int64)
        nobody = np.zeros(len(keys), dtype=np.bool_)
        slots = Slots(state.counts, state.starts, state.memory, ages[:, 0])
        by_key(slots, nobody, self.latency, keys, ties)
        absent = state.steps[state.missing[:, 0]].tolist()
        gone = np.isin(state.steps - ages[:, 0], absent)
        ages[gone] = -1
        return ages


# streams


class TornRows(Stream):
    """The second column one row later than the first."""

    def push_block(self, block):
        out = super().push_block(block)
        values, missing = out.values.copy(), out.missing.copy()
        values[:, 1], missing[:, 1] = np.roll(values[:, 1], 1), np.roll(missing[:, 1], 1)
        return replace(out, values=values, missing=missing)


@broken(
    "the columns of a row moved apart",
    "backward, two columns",
    shape_is_free_of_values,
    compiled_and_plain_and_reference_agree,
)
class TearsRows(Backward):
    start = streaming(TornRows)


class ForgetsRows(Stream):
    """A state in which the rows that wait are there and have nothing in them."""

    def _held_back(self):
        if not self._held:
            return []
        held = joined(self._held, self.series, None)
        return to_state(replace(held, missing=np.ones_like(held.missing)))


@broken("a state forgets the rows that wait", "threshold", resume_from_any_state)
class StateWithoutRows(Threshold):
    start = streaming(ForgetsRows)


@broken("a state forgets the rows of an open block", "shuffled blocks", resume_from_any_state)
class StateWithoutBlock(BlockShuffle):
    start = streaming(ForgetsRows)


class ChangesRows(Stream):
    def push_block(self, block):
        out = super().push_block(block)
        return replace(out, values=np.rint(out.values * 2**20) / 2**20)


@broken(
    "values rounded on their way",
    "forward",
    compiled_and_plain_and_reference_agree,
    shape_is_free_of_values,
)
class RoundsRows(Forward):
    start = streaming(ChangesRows)
