"""Broken groups and broken smoothing, beside ``tests.mutants.value``."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tempriv.mechanisms.adaptive._pegasus_kernels import group_and_smooth
from tempriv.mechanisms.adaptive.pegasus import PeGaSus
from tempriv.sampling import distributions
from tempriv.sampling._kernels import above, at
from tests.conformance.cases.pegasus import hard_groups_are_hidden
from tests.conformance.distribution_checks import the_promise_holds
from tests.conformance.stream_checks import (
    compiled_and_plain_and_reference_agree,
    same_bits_for_any_cutting,
    the_past_does_not_move,
)
from tests.mutants.value import broken

# what is spent


@broken("grouping is not paid for", "pegasus, event", the_promise_holds)
class GroupsForNothing(PeGaSus):
    @property
    def _budgets(self):
        epsilon = Fraction(self.epsilon)
        return epsilon, epsilon * Fraction(self.share)


@broken("noise and grouping have all of epsilon each", "pegasus, event", the_promise_holds)
class NothingSplit(PeGaSus):
    @property
    def _budgets(self):
        return (Fraction(self.epsilon),) * 2


@broken("each reading of a window has all of epsilon", "pegasus, window", the_promise_holds)
class WholeAtEachReading(PeGaSus):
    @property
    def changes(self):
        return [change / self.unit.readings for change in super().changes]


@broken(
    "columns of numbers do not share what they group and smooth with",
    "pegasus, numbers in unlike columns",
    compiled_and_plain_and_reference_agree,
)
class ColumnsEachHaveAll(PeGaSus):
    @property
    def changes(self):
        return [change / len(self.bounds) for change in super().changes]


# noise on groups


def less_noise(mechanism, threshold, test):
    return [
        (
            distributions.DiscreteLaplace(one.scale * threshold),
            distributions.DiscreteLaplace(other.scale * test),
        )
        for one, other in mechanism
    ]


HARDLY = Fraction(1, 1000)


@broken("groups by a threshold without noise", "pegasus, hard counts", hard_groups_are_hidden)
class OpenThreshold(PeGaSus):
    @property
    def grouping_distributions(self):
        return less_noise(super().grouping_distributions, HARDLY, 1)


@broken("groups by the true distances", "pegasus, hard counts", hard_groups_are_hidden)
class LooksClosely(PeGaSus):
    @property
    def grouping_distributions(self):
        return less_noise(super().grouping_distributions, 1, HARDLY)


@broken(
    # no groups are known that tell more than their part of epsilon then, but none are proven not to
    "half the noise on tests",
    "pegasus, hard counts",
    compiled_and_plain_and_reference_agree,
)
class HalfTested(PeGaSus):
    @property
    def grouping_distributions(self):
        return less_noise(super().grouping_distributions, 1, Fraction(1, 2))


# one row at a time, with a hand in the memory


class Later:
    """Draws of a later row as if they were of the first."""

    def __init__(self, source, row):
        self.source, self.row = source, row

    def at(self, row):
        return at(self.source, self.row + row)

    def above(self, row, cut):
        return above(self.source, self.row + row, cut)


class RowByRow(PeGaSus):
    """One column of one series; ``before`` and ``after`` see the memory, and draws of the row."""

    def perturb(self, readings, noise, state):
        (plan,) = self.plans
        group = plan.group
        drawn = noise(plan.noise, "column 0")
        limits = noise.each(plan.limit, "threshold 0")
        tests = noise.each(plan.test, "test 0")
        outputs = np.zeros(len(readings), dtype=np.int64)
        kernel = getattr(group_and_smooth, "py_func", group_and_smooth)
        for row, series in enumerate(state.which):
            own, here = state.memory[series : series + 1], slice(row, row + 1)
            reading, there = readings[row, 0], not state.missing[row, 0]
            if there:
                self.before(own[0], Later(limits, row), group)
            kernel(
                group,
                readings[here, 0],
                state.missing[here, 0],
                np.ones(1, dtype=np.int64),
                drawn[here],
                Later(limits, row),
                Later(tests, row),
                own,
                outputs[here],
            )
            if there:
                noisy = reading - group.low + drawn[row]
                self.after(own[0], reading - group.low, noisy, group)
        return outputs[:, None]

    def before(self, own, limits, group):
        pass

    def after(self, own, reading, noisy, group):
        pass


@broken("a new threshold for each test", "pegasus, hard counts", hard_groups_are_hidden)
class Resamples(RowByRow):
    def before(self, own, limits, group):
        if own[0] > 1:  # the kernel draws for the first test
            own[1] = group.theta + limits.at(0)


@broken(
    "the reading that closes a group opens the next",
    "pegasus, counts",
    compiled_and_plain_and_reference_agree,
)
class ClosesAndOpens(RowByRow):
    def after(self, own, reading, noisy, group):
        if own[0] == 0:
            own[0], own[2], own[5], own[6], own[7] = 1, reading, reading, group.width + 1, noisy
            own[8] = reading


# smoothing


class Silent:
    """The source without noise on readings."""

    def __init__(self, noise):
        self.each, self.draw = noise.each, noise

    def __call__(self, law, purpose, rows=None):
        return np.zeros_like(self.draw(law, purpose, rows))


@broken("smooths readings, not what noise made of them", "pegasus, event", the_promise_holds)
class SmoothsReadings(PeGaSus):
    def perturb(self, readings, noise, state):
        return super().perturb(readings, Silent(noise), state)


@broken(
    "groups from the last reading of a block to the first",
    "pegasus, counts",
    the_past_does_not_move,
    same_bits_for_any_cutting,
)
class LooksAhead(PeGaSus):
    def perturb(self, readings, noise, state):
        state.missing = state.missing[::-1]
        return super().perturb(readings[::-1], noise, state)[::-1]


@broken("a group ends with its block", "pegasus, counts", same_bits_for_any_cutting)
class ForgetsAtEachBlock(PeGaSus):
    def perturb(self, readings, noise, state):
        state.memory[:] = 0
        return super().perturb(readings, noise, state)
