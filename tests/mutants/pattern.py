"""Broken streams along a trend, beside ``tests.mutants.value``."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

import numpy as np

from tempriv.data.series import RELEASED, REPEATED
from tempriv.mechanisms.adaptive._pattern_kernels import (
    STANDS,
    TAKEN,
    UNITS,
    LinePlan,
    sample_the_line,
)
from tempriv.mechanisms.adaptive.pattern import PatternLDP, PatternSampling
from tempriv.privacy.units import Event, Window
from tempriv.sampling._kernels import suited
from tests.conformance.distribution_checks import the_promise_holds
from tests.conformance.stream_checks import (
    compiled_and_plain_and_reference_agree,
    same_bits_for_any_cutting,
)
from tests.mutants.value import broken


def original(mutant, **other):
    """What the mutant is made of, with other settings."""
    kind = PatternLDP if isinstance(mutant, PatternLDP) else PatternSampling
    given = {one.name: getattr(mutant, one.name) for one in fields(kind)}
    return kind(**{**given, **other})


def row_by_row(mechanism, readings, noise, state, after):
    """Through the kernel, with a hand in its memory after each row."""
    source, window = noise.scalable("samples"), mechanism.unit.readings
    low, high = mechanism.numbers.edges()[0].tolist()
    plan = LinePlan(low, high, float(mechanism._top), 1, window, np.array(mechanism.gains))
    rows = state.kernel_rows(readings)
    kernel = suited(sample_the_line, source.words)
    for row, reading in enumerate(readings[:, 0].tolist()):
        begin = row
        while begin == row:
            until = rows._replace(readings=rows.readings[: row + 1])
            begin, place, scale = kernel(row, until, plan, source.words)
            if begin == row:
                source.settle(place, scale)
        after(state.memory[state.which[row]], reading)
    return rows.outputs


@broken("half the noise", "line, window", the_promise_holds)
class HalfTheNoise(PatternSampling):
    @property
    def _top(self):
        return super()._top / 2


@broken("a tenth of a per cent less noise", "line, event", the_promise_holds)
class HardlyLess(PatternSampling):
    @property
    def _top(self):
        return super()._top * Fraction(999, 1000)


@broken("samples only where the reading has moved", "line, window", the_promise_holds)
class LooksAtReadings(PatternSampling):
    def perturb(self, readings, noise, state):
        moved = np.diff(readings[:, 0], prepend=readings[0, 0] - 1) != 0
        kept, state.missing = state.missing, state.missing | ~moved[:, None]
        out = super().perturb(readings, noise, state)
        state.missing = kept
        return out


@broken("the status tells how far the reading is off", "line, window", the_promise_holds)
class TellsImportance(PatternSampling):
    def perturb(self, readings, noise, state):
        out = super().perturb(readings, noise, state)
        state.status[:] = np.where(readings[:, 0] != out[:, 0], RELEASED, REPEATED)
        return out


@broken("a block begins with a fresh window", "line, important", same_bits_for_any_cutting)
class ForgetsAtEachBlock(PatternSampling):
    def perturb(self, readings, noise, state):
        state.memory[:, TAKEN] = 0
        state.memory[:, UNITS:] = 0
        return super().perturb(readings, noise, state)


@broken("samples do not add up in a window", "line, eager", the_promise_holds)
class ForgetsWhatWasTaken(PatternSampling):
    def perturb(self, readings, noise, state):
        def after(own, reading):
            own[TAKEN] = 0
            own[UNITS:] = 0

        return row_by_row(self, readings, noise, state, after)


@broken("all of epsilon for every sample", "line, eager", the_promise_holds)
class WholeAtEachStep(PatternSampling):
    def perturb(self, readings, noise, state):
        return original(self, unit=Event()).perturb(readings, noise, state)


@broken("the window ends a step early", "line, three steps", the_promise_holds)
class ShortWindow(PatternSampling):
    def perturb(self, readings, noise, state):
        shorter = original(self, unit=Window(2), epsilon=self.epsilon * 2 / 3)
        return shorter.perturb(readings, noise, state)


@broken("the reading stands, not its sample", "line, window", the_promise_holds)
class ReadingsStand(PatternSampling):
    def perturb(self, readings, noise, state):
        def after(own, reading):
            own[STANDS] = reading

        return row_by_row(self, readings, noise, state, after)


# as published: what public code of it has got wrong


@broken("noise of the inverse scale", "breaks", compiled_and_plain_and_reference_agree)
class InverseScale(PatternLDP):
    def perturb(self, readings, noise, state):
        return original(self, epsilon=1 / (9 * self.epsilon)).perturb(readings, noise, state)


@broken("values two steps late", "breaks", compiled_and_plain_and_reference_agree)
class TwoStepsLate(PatternLDP):
    def perturb(self, readings, noise, state):
        return np.roll(super().perturb(readings, noise, state), 2, axis=0)


@broken("what is left of the budget stays", "breaks", compiled_and_plain_and_reference_agree)
class NeverSpent(PatternLDP):
    def perturb(self, readings, noise, state):
        return original(self, window=1).perturb(readings, noise, state)
