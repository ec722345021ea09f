"""Broken alerts, broken budgets over a window and broken filters, beside ``mutants.value``."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction

import numpy as np

from tempriv.data.series import EMPTY, REPEATED
from tempriv.mechanisms.adaptive.fast import Fast
from tempriv.mechanisms.sparse_vector import SparseVector
from tempriv.mechanisms.w_event._kernels import publish_or_repeat
from tempriv.mechanisms.w_event.absorption import BudgetAbsorption
from tempriv.mechanisms.w_event.base import origin_of, publish_on_change
from tempriv.mechanisms.w_event.distribution import BudgetDistribution
from tempriv.mechanisms.w_event.sample import SampleOnce
from tempriv.mechanisms.w_event.uniform import UniformBudget
from tempriv.privacy.units import Window
from tempriv.sampling import distributions
from tempriv.sampling._kernels import above, at, suited
from tests.conformance.cases.sparse import hard_streams_are_hidden
from tests.conformance.distribution_checks import the_promise_holds
from tests.conformance.stream_checks import (
    compiled_and_plain_and_reference_agree,
    same_bits_for_any_cutting,
)
from tests.mutants.value import broken

# alerts


class Alerting(SparseVector):
    """A plain loop over rows; ``answer`` says what comes out, given the noisy threshold."""

    def perturb(self, readings, noise, state):
        once, each = self.distributions
        limits, values = noise.each(once, "threshold"), noise.each(each, "values")
        out = np.zeros(len(readings), dtype=np.int64)
        alerts = threshold = 0
        for row, value in enumerate(readings[:, 0].tolist()):
            if self.halts and alerts == self.most:
                state.status[row] = EMPTY
                continue
            if row == 0 or (self.resamples and self.alerted):
                threshold = self._limit + at(limits, row)
            out[row] = self.answer(values, row, value, threshold)
            object.__setattr__(self, "alerted", out[row] != 0)
            alerts += int(self.alerted)
        return out[:, None]

    halts, resamples, alerted = True, False, False

    def answer(self, values, row, value, threshold):
        return above(values, row, threshold - value - 1)


@broken(
    "a new threshold after each alert, not paid", "alerts, signed sums", hard_streams_are_hidden
)
class Resamples(Alerting):
    resamples = True


@broken("alerts without end", "alerts, one of signed sums", hard_streams_are_hidden)
class NeverHalts(Alerting):
    halts = False


@broken("noise for monotone values on others", "alerts, signed sums", hard_streams_are_hidden)
class HalfTheNoise(SparseVector):
    @property
    def distributions(self):
        once, each = super().distributions
        return once, distributions.DiscreteLaplace(each.scale / 2)


@broken("the noisy value beside the alert", "alerts, one of signed sums", hard_streams_are_hidden)
class TellsTheValue(Alerting):
    def answer(self, values, row, value, threshold):
        noisy = value + at(values, row)
        return noisy + 100 if noisy >= threshold else 0


@broken("one noise for all values", "alerts, signed sums", the_promise_holds)
class SameNoise(Alerting):
    def answer(self, values, row, value, threshold):
        if row == 0:
            object.__setattr__(self, "drawn", at(values, row))
        return int(value + self.drawn >= threshold)


@broken("a threshold without noise", "alerts, signed sums", hard_streams_are_hidden)
class OpenThreshold(Alerting):
    def answer(self, values, row, value, threshold):
        return above(values, row, self._limit - value - 1)


# what is spent


@broken("all of epsilon at every step", "uniform, window", the_promise_holds)
class WholeAtEachStep(UniformBudget):
    @property
    def distributions(self):
        return [
            distributions.DiscreteLaplace(law.scale / self.unit.readings)
            for law in super().distributions
        ]


def published(mechanism, readings, noise, state, *, window=None, spending=None):
    """By the code of the mechanism, with something else in its place."""
    kind = BudgetAbsorption if isinstance(mechanism, BudgetAbsorption) else BudgetDistribution
    given = {field.name: getattr(mechanism, field.name) for field in fields(kind)}
    other = kind(**given) if window is None else kind(**{**given, "unit": Window(window)})
    absorbing, spending = kind is BudgetAbsorption, spending or mechanism.spending
    return publish_on_change(other, spending, absorbing, readings, noise, state)


@broken("once in w - 1 steps", "once, window", the_promise_holds)
class SamplesTooSoon(SampleOnce):
    def perturb(self, readings, noise, state):
        sooner = SampleOnce(epsilon=self.epsilon, bounds=self.bounds, unit=Window(1), grid=1)
        return sooner.perturb(readings, noise, state)


@broken("columns of numbers do not share", "once, unlike columns", the_promise_holds)
class ColumnsEachHaveAll(SampleOnce):
    @property
    def distributions(self):
        return [
            distributions.DiscreteLaplace(law.scale / len(self.bounds))
            for law in super().distributions
        ]


@broken(
    "budget back after w - 1 steps",
    "distribution, three steps",
    the_promise_holds,
    compiled_and_plain_and_reference_agree,
)
class ReturnedTooSoon(BudgetDistribution):
    def perturb(self, readings, noise, state):
        return published(self, readings, noise, state, window=self.unit.readings - 1)


@broken(
    "budget never comes back",
    "distribution, fine grid",
    compiled_and_plain_and_reference_agree,
)
class NeverReturned(BudgetDistribution):
    @property
    def memory_size(self):
        return 2 + 10**5

    def perturb(self, readings, noise, state):
        return published(self, readings, noise, state, window=10**5)


def looking(spending, factor):
    """With other noise on the distance from the last release."""
    less = distributions.DiscreteLaplace(spending.looking.scale * factor)
    return replace(spending, looking=less)


def halved(spending):
    return replace(spending, changes=[change / 2 for change in spending.changes])


@broken("half the noise on what is published", "distribution, window", the_promise_holds)
class HalfPublished(BudgetDistribution):
    def perturb(self, readings, noise, state):
        return published(self, readings, noise, state, spending=halved(self.spending))


@broken(
    "half the noise on what is published after a pause", "absorption, window", the_promise_holds
)
class HalfAbsorbed(BudgetAbsorption):
    def perturb(self, readings, noise, state):
        return published(self, readings, noise, state, spending=halved(self.spending))


@broken("looking is measured for one step", "absorption, window", the_promise_holds)
class LooksOnce(BudgetAbsorption):
    @property
    def spending(self):
        return looking(super().spending, 1 / Fraction(self.unit.readings))


@broken("looking has all of epsilon too", "absorption, window", the_promise_holds)
class LooksForAll(BudgetAbsorption):
    @property
    def spending(self):
        return looking(super().spending, Fraction(1, 2))


class Certain:
    """The keyed source, or the audit's, without noise for looking."""

    def __init__(self, noise, rows):
        self.scalable, self.rows = noise.scalable, rows

    def each(self, law, purpose):
        return np.zeros(self.rows, dtype=np.int64)


@broken("looking without noise", "distribution, window", the_promise_holds)
class LooksClosely(BudgetDistribution):
    def perturb(self, readings, noise, state):
        return super().perturb(readings, Certain(noise, len(readings)), state)


def row_by_row(mechanism, readings, noise, state, after):
    """One column through the common kernel, with a hand in its memory after each row."""
    absorbing = isinstance(mechanism, BudgetAbsorption)
    plan = mechanism.spending.plan(mechanism.unit.readings, absorbing)
    looks, source = (
        noise.each(mechanism.spending.looking, "dissimilarity"),
        noise.scalable("column 0"),
    )
    kernel = suited(publish_or_repeat, looks, source.words)
    moved = readings - origin_of(mechanism)
    rows = state.kernel_rows(moved)
    for row in range(len(readings)):
        begin = row
        while begin == row:
            until = rows._replace(readings=moved[: row + 1])
            begin, place, scale = kernel(row, until, plan, looks, source.words)
            if begin == row:
                source.settle(place, scale)
        after(row, state.memory[state.which[row]], moved[row, 0])
    return rows.outputs + origin_of(mechanism)


@broken(
    "no step is left out after one that absorbed",
    "absorption, window",
    the_promise_holds,
)
class NothingLeftOut(BudgetAbsorption):
    def perturb(self, readings, noise, state):
        steps = state.steps

        def after(row, own, reading):
            own[1] = min(own[1], steps[row] + 1)

        return row_by_row(self, readings, noise, state, after)


@broken("the reading is repeated, not its release", "absorption, window", the_promise_holds)
class RepeatsTheReading(BudgetAbsorption):
    def perturb(self, readings, noise, state):
        def after(row, own, reading):
            if state.status[row] != REPEATED:
                own[0] = reading

        return row_by_row(self, readings, noise, state, after)


@broken(
    "a block begins with all of its budget",
    "distribution, fine grid",
    same_bits_for_any_cutting,
)
class ForgetsAtEachBlock(BudgetDistribution):
    def perturb(self, readings, noise, state):
        state.memory[:, 1:] = 0
        return super().perturb(readings, noise, state)


# samples


@broken("more samples than paid for", "fast, few bits", the_promise_holds)
class SamplesMore(Fast):
    def perturb(self, readings, noise, state):
        more = Fast(
            epsilon=1.5 * self.epsilon,
            bounds=self.bounds,
            samples=3,
            wander=self.wander,
            unit=self.unit,
            grid=self.grid,
            stretch=1e-9,
        )
        return more.perturb(readings, noise, state)


@broken("samples only where there is something", "fast, few bits", the_promise_holds)
class SamplesByValue(Fast):
    def perturb(self, readings, noise, state):
        kept, state.missing = state.missing, state.missing | (readings == 0)
        out = super().perturb(readings, noise, state)
        state.missing = kept
        return out


@broken("the reading itself between samples", "fast, few bits", the_promise_holds)
class OpenBetweenSamples(Fast):
    def perturb(self, readings, noise, state):
        out = super().perturb(readings, noise, state)
        return np.where((state.status == REPEATED)[:, None], readings, out)
