"""Broken alerts, broken budgets over a window and broken filters, beside ``tests.mutants``."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np

from tempriv import noise
from tempriv.kernels import above, at, suited
from tempriv.kernels_budgets import publish_or_repeat
from tempriv.mechanisms import (
    BudgetAbsorption,
    BudgetDistribution,
    Fast,
    SampleOnce,
    SparseVector,
    UniformBudget,
)
from tempriv.mechanisms.budgets import _origin, _publish_or_repeat
from tempriv.series import EMPTY, REPEATED
from tempriv.units import Window
from tests.cases.sparse import hard_streams_are_hidden
from tests.conformance import (
    compiled_and_plain_and_reference_agree,
    same_bits_for_any_cutting,
    the_promise_holds,
)
from tests.mutants import broken

# alerts


class Alerting(SparseVector):
    """A plain loop over rows; ``answer`` says what comes out, given the noisy threshold."""

    def perturb(self, readings, draw, track):
        once, each = self.laws
        limits, values = draw.each(once, "threshold"), draw.each(each, "values")
        out = np.zeros(len(readings), dtype=np.int64)
        alerts = threshold = 0
        for row, value in enumerate(readings[:, 0].tolist()):
            if self.halts and alerts == self.most:
                track.status[row] = EMPTY
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


@broken("a new threshold after each alert, not paid", "alerts, signed sums",
        hard_streams_are_hidden)  # fmt: skip
class Resamples(Alerting):
    resamples = True


@broken("alerts without end", "alerts, one of signed sums", hard_streams_are_hidden)
class NeverHalts(Alerting):
    halts = False


@broken("noise for monotone values on others", "alerts, signed sums", hard_streams_are_hidden)
class HalfTheNoise(SparseVector):
    @property
    def laws(self):
        once, each = super().laws
        return once, noise.DiscreteLaplace(each.scale / 2)


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
    def laws(self):
        return [noise.DiscreteLaplace(law.scale / self.unit.readings) for law in super().laws]


def instead(mechanism, window=None, laws=None, plan=None):
    """What the common code looks at, with something else in its place."""
    return SimpleNamespace(
        plan=plan or mechanism.plan,
        unit=mechanism.unit if window is None else Window(window),
        laws=laws or mechanism.laws,
        form=mechanism.form,
    )


@broken("once in w - 1 steps", "once, window", the_promise_holds)
class SamplesTooSoon(SampleOnce):
    def perturb(self, readings, draw, track):
        sooner = SampleOnce(epsilon=self.epsilon, bounds=self.bounds, unit=Window(1), grid=1)
        return sooner.perturb(readings, draw, track)


@broken("columns of numbers do not share", "once, unlike columns", the_promise_holds)
class ColumnsEachHaveAll(SampleOnce):
    @property
    def laws(self):
        return [noise.DiscreteLaplace(law.scale / len(self.bounds)) for law in super().laws]


@broken(
    "budget back after w - 1 steps",
    "distribution, three steps",
    the_promise_holds,
    compiled_and_plain_and_reference_agree,
)
class ReturnedTooSoon(BudgetDistribution):
    def perturb(self, readings, draw, track):
        sooner = instead(self, window=self.unit.readings - 1)
        return _publish_or_repeat(sooner, readings, draw, track, absorbing=False)


@broken(
    "budget never comes back",
    "distribution, fine grid",
    compiled_and_plain_and_reference_agree,
)
class NeverReturned(BudgetDistribution):
    @property
    def slots(self):
        return 2 + 10**5

    def perturb(self, readings, draw, track):
        return _publish_or_repeat(
            instead(self, window=10**5), readings, draw, track, absorbing=False
        )


def halved(plan):
    return replace(plan, changes=[change / 2 for change in plan.changes])


@broken("half the noise on what is published", "distribution, window", the_promise_holds)
class HalfPublished(BudgetDistribution):
    def perturb(self, readings, draw, track):
        less = instead(self, plan=halved(self.plan))
        return _publish_or_repeat(less, readings, draw, track, absorbing=False)


@broken("half the noise on what is published after a pause", "absorption, window",
        the_promise_holds)  # fmt: skip
class HalfAbsorbed(BudgetAbsorption):
    def perturb(self, readings, draw, track):
        less = instead(self, plan=halved(self.plan))
        return _publish_or_repeat(less, readings, draw, track, absorbing=True)


@broken("looking is measured for one step", "absorption, window", the_promise_holds)
class LooksOnce(BudgetAbsorption):
    @property
    def laws(self):
        (law,) = super().laws
        return [noise.DiscreteLaplace(law.scale / self.unit.readings)]


@broken("looking has all of epsilon too", "absorption, window", the_promise_holds)
class LooksForAll(BudgetAbsorption):
    @property
    def laws(self):
        (law,) = super().laws
        return [noise.DiscreteLaplace(law.scale * Fraction(1, 2))]


class Certain:
    """The keyed source, or the audit's, without noise for looking."""

    def __init__(self, draw, rows):
        self.scalable, self.rows = draw.scalable, rows

    def each(self, law, purpose):
        return np.zeros(self.rows, dtype=np.int64)


@broken("looking without noise", "distribution, window", the_promise_holds)
class LooksClosely(BudgetDistribution):
    def perturb(self, readings, draw, track):
        return super().perturb(readings, Certain(draw, len(readings)), track)


def row_by_row(mechanism, readings, draw, track, absorbing, after):
    """One column through the common kernel, with a hand in its memory after each row."""
    plan, origin = mechanism.plan, _origin(mechanism)
    looks, source = draw.each(mechanism.laws[0], "dissimilarity"), draw.scalable("column 0")
    kernel = suited(publish_or_repeat, looks, source.words)
    outputs, moved = np.zeros_like(readings), readings - origin
    for row in range(len(readings)):
        at_row = row
        while at_row == row:
            at_row, place, scale = kernel(
                row, moved[: row + 1], track.missing, track.which, track.steps, plan.weights,
                plan.tops, plan.least, plan.whole, mechanism.unit.readings, absorbing, looks,
                source.words, track.memory, outputs, track.status,
            )  # fmt: skip
            if at_row == row:
                source.settle(place, scale)
        after(row, track.memory[track.which[row]], moved[row, 0])
    return outputs + origin


@broken(
    "no step is left out after one that absorbed",
    "absorption, window",
    the_promise_holds,
)
class NothingLeftOut(BudgetAbsorption):
    def perturb(self, readings, draw, track):
        steps = track.steps

        def after(row, own, reading):
            own[1] = min(own[1], steps[row] + 1)

        return row_by_row(self, readings, draw, track, True, after)


@broken("the reading is repeated, not its release", "absorption, window", the_promise_holds)
class RepeatsTheReading(BudgetAbsorption):
    def perturb(self, readings, draw, track):
        def after(row, own, reading):
            if track.status[row] != REPEATED:
                own[0] = reading

        return row_by_row(self, readings, draw, track, True, after)


@broken(
    "a block begins with all of its budget",
    "distribution, fine grid",
    same_bits_for_any_cutting,
)
class ForgetsAtEachBlock(BudgetDistribution):
    def perturb(self, readings, draw, track):
        track.memory[:, 1:] = 0
        return super().perturb(readings, draw, track)


# samples


@broken("more samples than paid for", "fast, few bits", the_promise_holds)
class SamplesMore(Fast):
    def perturb(self, readings, draw, track):
        more = Fast(epsilon=1.5 * self.epsilon, bounds=self.bounds, samples=3, wander=self.wander,
                    unit=self.unit, grid=self.grid, stretch=1e-9)  # fmt: skip
        return more.perturb(readings, draw, track)


@broken("samples only where there is something", "fast, few bits", the_promise_holds)
class SamplesByValue(Fast):
    def perturb(self, readings, draw, track):
        kept, track.missing = track.missing, track.missing | (readings == 0)
        out = super().perturb(readings, draw, track)
        track.missing = kept
        return out


@broken("the reading itself between samples", "fast, few bits", the_promise_holds)
class OpenBetweenSamples(Fast):
    def perturb(self, readings, draw, track):
        out = super().perturb(readings, draw, track)
        return np.where((track.status == REPEATED)[:, None], readings, out)
