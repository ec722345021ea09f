"""Broken streams along a trend, beside ``tests.mutants``."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

import numpy as np

from tempriv.kernels import suited
from tempriv.kernels_pattern import STANDS, TAKEN, UNITS, sample_the_line
from tempriv.mechanisms import PatternLDP, PatternSampling
from tempriv.series import RELEASED, REPEATED
from tempriv.units import Event, Window
from tests.conformance import (
    compiled_and_plain_and_reference_agree,
    same_bits_for_any_cutting,
    the_promise_holds,
)
from tests.mutants import broken


def original(mutant, **other):
    """What the mutant is made of, with other settings."""
    kind = PatternLDP if isinstance(mutant, PatternLDP) else PatternSampling
    given = {one.name: getattr(mutant, one.name) for one in fields(kind)}
    return kind(**{**given, **other})


def row_by_row(mechanism, readings, draw, track, after):
    """Through the kernel, with a hand in its memory after each row."""
    source, window = draw.scalable("samples"), mechanism.unit.readings
    low, high = mechanism.form.numbers.edges()[0]
    values, outputs = readings[:, 0].copy(), np.zeros(len(readings), dtype=np.int64)
    kernel = suited(sample_the_line, source.words)
    for row in range(len(values)):
        at, scale = row, 0.0
        while at == row:
            at, scale = kernel(
                row, values[: row + 1], track.missing[:, 0], track.which, track.steps, int(low),
                int(high), float(mechanism._top), 1, window, np.array(mechanism.gains),
                source.words, track.memory, track.memory.view(np.float64), outputs, track.status,
            )  # fmt: skip
            if at == row:
                source.settle(row, scale)
        after(track.memory[track.which[row]], int(values[row]))
    return outputs[:, None]


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
    def perturb(self, readings, draw, track):
        moved = np.diff(readings[:, 0], prepend=readings[0, 0] - 1) != 0
        kept, track.missing = track.missing, track.missing | ~moved[:, None]
        out = super().perturb(readings, draw, track)
        track.missing = kept
        return out


@broken("the status tells how far the reading is off", "line, window", the_promise_holds)
class TellsImportance(PatternSampling):
    def perturb(self, readings, draw, track):
        out = super().perturb(readings, draw, track)
        track.status[:] = np.where(readings[:, 0] != out[:, 0], RELEASED, REPEATED)
        return out


@broken("a block begins with a fresh window", "line, important", same_bits_for_any_cutting)
class ForgetsAtEachBlock(PatternSampling):
    def perturb(self, readings, draw, track):
        track.memory[:, TAKEN] = 0
        track.memory[:, UNITS:] = 0
        return super().perturb(readings, draw, track)


@broken("samples do not add up in a window", "line, eager", the_promise_holds)
class ForgetsWhatWasTaken(PatternSampling):
    def perturb(self, readings, draw, track):
        def after(own, reading):
            own[TAKEN] = 0
            own[UNITS:] = 0

        return row_by_row(self, readings, draw, track, after)


@broken("all of epsilon for every sample", "line, eager", the_promise_holds)
class WholeAtEachStep(PatternSampling):
    def perturb(self, readings, draw, track):
        return original(self, unit=Event()).perturb(readings, draw, track)


@broken("the window ends a step early", "line, three steps", the_promise_holds)
class ShortWindow(PatternSampling):
    def perturb(self, readings, draw, track):
        shorter = original(self, unit=Window(2), epsilon=self.epsilon * 2 / 3)
        return shorter.perturb(readings, draw, track)


@broken("the reading stands, not its sample", "line, window", the_promise_holds)
class ReadingsStand(PatternSampling):
    def perturb(self, readings, draw, track):
        def after(own, reading):
            own[STANDS] = reading

        return row_by_row(self, readings, draw, track, after)


# as published: what public code of it has got wrong


@broken("noise of the inverse scale", "breaks", compiled_and_plain_and_reference_agree)
class InverseScale(PatternLDP):
    def perturb(self, readings, draw, track):
        return original(self, epsilon=1 / (9 * self.epsilon)).perturb(readings, draw, track)


@broken("values two steps late", "breaks", compiled_and_plain_and_reference_agree)
class TwoStepsLate(PatternLDP):
    def perturb(self, readings, draw, track):
        return np.roll(super().perturb(readings, draw, track), 2, axis=0)


@broken("what is left of the budget stays", "breaks", compiled_and_plain_and_reference_agree)
class NeverSpent(PatternLDP):
    def perturb(self, readings, draw, track):
        return original(self, window=1).perturb(readings, draw, track)
