"""Broken running sums, for ``test_mutants``: one thing wrong in each."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tempriv.mechanisms.counting.binned import Binned
from tempriv.mechanisms.counting.matrix_factorization import SquareRoot
from tempriv.mechanisms.counting.running_count import RunningCount
from tempriv.mechanisms.counting.tree import EpochNoise, Epochs, Tree
from tempriv.sampling import distributions
from tests.conformance.distribution_checks import the_promise_holds
from tests.conformance.key_checks import every_number_varies_with_key_and_place
from tests.conformance.stream_checks import (
    compiled_and_plain_and_reference_agree,
    same_bits_for_any_cutting,
)
from tests.mutants.value import broken


def settings(plan):
    return {name: getattr(plan, name) for name in plan.__match_args__}


def planned(kind):
    """Plans of a broken kind in the place of the right ones."""

    def plans(self):
        return tuple(kind(**settings(plan)) for plan in RunningCount.plans.func(self))

    return functools.cached_property(plans)


def levels_of(state, branching):
    """How many zeros each count of steps ends in."""
    found = []
    for count in (state.steps + 1).tolist():
        level = 0
        while count % branching == 0:
            count, level = count // branching, level + 1
        found.append(level)
    return np.array(found)


# trees


@dataclass(frozen=True)
class OneLevelPaid(Tree):
    @property
    def noise(self):
        return distributions.DiscreteLaplace(super().noise.scale / len(self.sizes))


@broken("a tree paid for as one level", "tree, three steps", the_promise_holds)
class PaysForOneLevel(RunningCount):
    plans = planned(OneLevelPaid)


@dataclass(frozen=True)
class OneFewer(Tree):
    @property
    def noise(self):
        levels = len(self.sizes)
        return distributions.DiscreteLaplace(super().noise.scale * (levels - 1) / levels)


@broken("a tree paid for with a level too few", "tree, event", the_promise_holds)
class PaysForOneFewer(RunningCount):
    plans = planned(OneFewer)


class Altered:
    """A draw whose numbers are changed on their way to the tree."""

    def __init__(self, noise, change):
        self.draw, self.change = noise, change

    def __call__(self, law, purpose):
        return self.change(self.draw(law, purpose))


@dataclass(frozen=True)
class BareLeaves(Tree):
    def sums(self, increments, noise, purpose, state, first):
        levels = levels_of(state, self.branching)
        bare = Altered(noise, lambda drawn: np.where(levels == 0, 0, drawn))
        return super().sums(increments, bare, purpose, state, first)


@broken("the lowest level without noise", "tree, three steps", the_promise_holds)
class NoNoiseOnLeaves(RunningCount):
    plans = planned(BareLeaves)


@dataclass(frozen=True)
class BareRoot(Tree):
    def sums(self, increments, noise, purpose, state, first):
        levels = levels_of(state, self.branching)
        bare = Altered(noise, lambda drawn: np.where(levels == len(self.sizes) - 1, 0, drawn))
        return super().sums(increments, bare, purpose, state, first)


@broken("the highest level without noise", "tree, three steps", the_promise_holds)
class NoNoiseOnTop(RunningCount):
    plans = planned(BareRoot)


@dataclass(frozen=True)
class DrawnOnce(Tree):
    def sums(self, increments, noise, purpose, state, first):
        levels = levels_of(state, self.branching)

        def repeated(drawn):
            return np.array([drawn[np.flatnonzero(levels == level)[0]] for level in levels])

        return super().sums(increments, Altered(noise, repeated), purpose, state, first)


@broken(
    "noise drawn once for a level",
    "tree, three steps",
    the_promise_holds,
    same_bits_for_any_cutting,
)
class OneDrawForALevel(RunningCount):
    plans = planned(DrawnOnce)


@dataclass(frozen=True)
class NoisedAgain(Tree):
    def sums(self, increments, noise, purpose, state, first):
        return np.cumsum(increments) + noise(self.noise, purpose)


@broken("a node gets fresh noise at each use", "tree, event", the_promise_holds)
class FreshNoise(RunningCount):
    plans = planned(NoisedAgain)


@dataclass(frozen=True)
class AsEvent(Tree):
    @property
    def noise(self):
        one = replace(self.changes, steps=1, window=1, total=self.changes.each)
        return Tree(**{**settings(self), "changes": one}).noise


@broken("a tree calibrated for one reading", "tree, whole series", the_promise_holds)
class TreeForEvent(RunningCount):
    plans = planned(AsEvent)


@dataclass(frozen=True)
class Shuffled(Tree):
    """Remembers in the first slots whichever column it is."""

    def sums(self, increments, noise, purpose, state, first):
        return super().sums(increments, noise, purpose, state, 0)


@broken("columns share their memory", "tree, two columns", compiled_and_plain_and_reference_agree)
class SharesMemory(RunningCount):
    plans = planned(Shuffled)


# the square root


@dataclass(frozen=True)
class OnlyDiagonal(SquareRoot):
    @property
    def noise(self):
        first = int(self.factors.strategy[0])
        return distributions.DiscreteGaussian(self.changes.each**2 * first**2 / (2 * self.rho))


@broken("the sensitivity of C forgotten", "square root, event", the_promise_holds)
class ForgetsFactor(RunningCount):
    plans = planned(OnlyDiagonal)


@dataclass(frozen=True)
class Orthogonal(SquareRoot):
    """As if columns of C that change together were at right angles."""

    @property
    def noise(self):
        one = replace(self.changes, steps=1)
        apart = SquareRoot(**{**settings(self), "changes": one}).noise
        return distributions.DiscreteGaussian(apart.variance * self.changes.steps)


@broken("columns of C taken for orthogonal", "square root, whole series", the_promise_holds)
class NoCrossTerms(RunningCount):
    plans = planned(Orthogonal)


@dataclass(frozen=True)
class OneDraw(SquareRoot):
    def sums(self, increments, noise, purpose, state, first):
        same = Altered(noise, lambda drawn: np.full_like(drawn, drawn[:1].sum()))
        return super().sums(increments, same, purpose, state, first)


@broken(
    "one draw for all strategy values",
    "square root, event",
    the_promise_holds,
    same_bits_for_any_cutting,
)
class OneDrawForAll(RunningCount):
    plans = planned(OneDraw)


@dataclass(frozen=True)
class LastUnnoised(SquareRoot):
    def sums(self, increments, noise, purpose, state, first):
        last = state.steps == self.horizon - 1
        bare = Altered(noise, lambda drawn: np.where(last, 0, drawn))
        return super().sums(increments, bare, purpose, state, first)


@broken("the last strategy value without noise", "square root, event", the_promise_holds)
class LastBare(RunningCount):
    plans = planned(LastUnnoised)


@dataclass(frozen=True)
class UnnamedColumns(SquareRoot):
    def sums(self, increments, noise, purpose, state, first):
        return super().sums(increments, noise, "noise", state, first)


@broken("one noise for two columns", "square root, two columns", the_promise_holds)
class SharesNoise(RunningCount):
    plans = planned(UnnamedColumns)


# epochs


@dataclass(frozen=True)
class FreeTotals(Epochs):
    def _noise(self, epoch):
        nodes, total = super()._noise(epoch)
        whole = (self.levels(epoch) + self.weight) / Fraction(self.levels(epoch))
        return EpochNoise(distributions.DiscreteLaplace(nodes.scale / whole), total)


@broken("totals of epochs not paid for", "endless, event", the_promise_holds)
class TotalsForFree(RunningCount):
    plans = planned(FreeTotals)


@dataclass(frozen=True)
class BareTotals(Epochs):
    def sums(self, increments, noise, purpose, state, first):
        class Source:
            def each(self, law, name):
                return np.zeros_like(increments) if "total" in name else noise.each(law, name)

        return super().sums(increments, Source(), purpose, state, first)


@broken(
    "totals of epochs without noise",
    "endless, event",
    the_promise_holds,
    every_number_varies_with_key_and_place,
)
class TotalsBare(RunningCount):
    plans = planned(BareTotals)


@dataclass(frozen=True)
class KeepsLevels(Epochs):
    def levels(self, epoch):
        return 1


@broken(
    "later epochs paid for as the first",
    "running sum, endless",
    compiled_and_plain_and_reference_agree,
)
class FirstEpochForAll(RunningCount):
    plans = planned(KeepsLevels)


# bins


@dataclass(frozen=True)
class FirstOnly(Binned):
    @property
    def noise(self):
        return distributions.DiscreteGaussian(self.changes.each**2 * 4**self.bits / (2 * self.rho))


@broken("bins paid for at one step", "binned, event", the_promise_holds)
class ForgetsLaterSteps(RunningCount):
    plans = planned(FirstOnly)


@dataclass(frozen=True)
class OneOfAWindow(Binned):
    @property
    def noise(self):
        one = replace(self.changes, steps=1)
        return Binned(**{**settings(self), "changes": one}).noise


@broken("bins calibrated for one reading", "binned, window", the_promise_holds)
class BinsForEvent(RunningCount):
    plans = planned(OneOfAWindow)


@dataclass(frozen=True)
class BareBins(Binned):
    def sums(self, increments, noise, purpose, state, first):
        bare = Altered(noise, lambda drawn: np.where(state.steps > 1, 0, drawn))
        return super().sums(increments, bare, purpose, state, first)


@broken("later strategy values of bins without noise", "binned, endless", the_promise_holds)
class NoNoiseLater(RunningCount):
    plans = planned(BareBins)
