"""Broken ways to share epsilon over landmarks and any one other reading, beside ``mutants.value``.

The schemes check as they run that no more than epsilon is spent. Most mutants have that check
switched off, so that it is the enumeration that finds them; ``seen_as_it_runs`` are those that the
check itself must find.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from unittest import mock

import numpy as np

from tempriv.data.series import REPEATED
from tempriv.mechanisms.landmarks import budget
from tempriv.mechanisms.landmarks._kernels import CERTAIN, SLOTS
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.base import landmarks_of, marks_of
from tempriv.mechanisms.landmarks.budget import WHOLE, spend
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.privacy.guarantees import Guarantee
from tempriv.sampling import distributions
from tempriv.sampling._kernels import UNDECIDED, above, laplace
from tests.conformance.cases.landmark import (
    more_landmarks_are_refused,
    no_row_passes_its_part,
    skipped_parts_stay_within_epsilon,
)
from tests.conformance.distribution_checks import the_promise_holds
from tests.conformance.key_checks import seeded_keys_promise_nothing
from tests.conformance.stream_checks import (
    compiled_and_plain_and_reference_agree,
    same_bits_for_any_cutting,
)
from tests.mutants.value import broken


@contextlib.contextmanager
def unchecked():
    """Nothing stops a scheme that spends too much."""
    with mock.patch.object(budget, "count_spending", lambda *_: True):
        yield


def spend_freely(scheme, readings, units, noise, state):
    with unchecked():
        units = np.asarray(units, dtype=np.int64)
        return spend(scheme.over, readings, units, marks_of(state, readings), noise, state)


# fixed parts


def landmarks(state, readings):
    """How many, for each row."""
    return landmarks_of(state, marks_of(state, readings), None)[0][state.which]


@broken(
    "parts by the landmarks alone",
    "uniform landmarks, bits",
    the_promise_holds,
    compiled_and_plain_and_reference_agree,
)
class NoPartForAnother(UniformLandmarks):
    def perturb(self, readings, noise, state):
        parts = WHOLE // np.maximum(landmarks(state, readings), 1)
        return spend_freely(self, readings, parts, noise, state)


@broken("parts by the landmarks alone, of answers", "uniform landmarks, answers", the_promise_holds)
class NoPartForAnotherAnswer(NoPartForAnother):
    pass


@broken("parts by the landmarks alone, of places", "uniform landmarks, places", the_promise_holds)
class NoPartForAnotherPlace(NoPartForAnother):
    pass


class RoundedUp(UniformLandmarks):
    """By a unit of 2^-40, which only sums show."""

    def perturb(self, readings, noise, state):
        parts = -(-WHOLE // (landmarks(state, readings) + 1))
        marks = marks_of(state, readings)
        return spend(self.over, readings, parts, marks, noise, state)


broken("a part rounded up", "uniform landmarks, bits", the_promise_holds)(RoundedUp)


@broken("every column has all of the part", "uniform landmarks, two columns", the_promise_holds)
class ColumnsDoNotShare(UniformLandmarks):
    def perturb(self, readings, noise, state):
        each = UniformLandmarks(over=replace(self.over, per_column=True))
        return each.perturb(readings, noise, state)


@broken(
    "marks in what comes out",
    "uniform landmarks, fine grid",
    compiled_and_plain_and_reference_agree,
)
class MarksComeOut(UniformLandmarks):
    def perturb(self, readings, noise, state):
        return super().perturb(readings, noise, state) + 100 * readings[:, -1:]


@broken("landmarks beyond the bound", "uniform landmarks, stream", more_landmarks_are_refused)
class NeverFull(UniformLandmarks):
    def require_room(self, block, memory):
        pass

    def perturb(self, readings, noise, state):
        parts = np.full(len(readings), WHOLE // (self.count + 1))
        return spend_freely(self, readings, parts, noise, state)


@broken(
    "landmarks are counted for each block", "uniform landmarks, stream", more_landmarks_are_refused
)
class CountsAnew(UniformLandmarks):
    def require_room(self, block, memory):
        pass

    def perturb(self, readings, noise, state):
        state.memory[:, -SLOTS:] = 0
        return super().perturb(readings, noise, state)


@broken(
    "a guarantee for landmarks chosen by their values",
    "uniform landmarks, chosen by their values",
    seeded_keys_promise_nothing,
)
class PromisesAnyway(UniformLandmarks):
    @property
    def guarantee(self):
        return Guarantee(self.over.guarantee.loss, self.unit)


@broken("landmarks are released too", "skip landmarks, bits", the_promise_holds)
class SkipsNothing(SkipLandmarks):
    def perturb(self, readings, noise, state):
        return spend_freely(self, readings, np.full(len(readings), WHOLE), noise, state)


@broken(
    "the last noise again where a release is repeated", "skip landmarks, bits", the_promise_holds
)
class RepeatsTheNoise(SkipLandmarks):
    def perturb(self, readings, noise, state):
        out = super().perturb(readings, noise, state)
        for row in np.flatnonzero(state.status == REPEATED).tolist():
            if row:
                out[row] = readings[row, :-1] + out[row - 1] - readings[row - 1, :-1]
        return out


@broken("a reading stands before the first release", "skip landmarks, bits", the_promise_holds)
class BeginsOpenly(SkipLandmarks):
    def perturb(self, readings, noise, state):
        out = super().perturb(readings, noise, state)
        for row in range(len(out)):
            if not readings[row, -1]:
                break
            out[row] = readings[row, :-1]
        return out


@broken(
    "others have what is left beside all landmarks but one",
    "split landmarks, bits",
    the_promise_holds,
)
class OneLandmarkForgotten(SplitLandmarks):
    def perturb(self, readings, noise, state):
        count, rows = landmarks(state, readings), len(readings)
        each = np.array([self.parts(n, rows - n)[0] for n in count.tolist()])
        other = WHOLE - np.maximum(count - 1, 0) * each
        parts = np.where(readings[:, -1] == 1, each, other)
        return spend_freely(self, readings, parts, noise, state)


@broken(
    "marks change what a bound gives",
    "bounded landmarks, chosen by their values",
    the_promise_holds,
)
class MarksMatter(CountBoundLandmarks):
    def perturb(self, readings, noise, state):
        parts = (WHOLE // (self.count + 1)) >> readings[:, -1]
        return spend_freely(self, readings, parts, noise, state)


@broken(
    "calibrated for as many readings as the bound, not one more",
    "bounded landmarks, two answers",
    the_promise_holds,
)
class OneReadingShort(CountBoundLandmarks):
    def perturb(self, readings, noise, state):
        parts = np.full(len(readings), WHOLE // self.count)
        return spend_freely(self, readings, parts, noise, state)


class BoundTooSmall(CountBoundLandmarks):
    """Noise without anything that keeps it from falling below the number of landmarks."""

    def _drawn_bounds(self, counts, noise, state):
        law = distributions.DiscreteLaplace(1 / distributions.Fraction(self.count_epsilon))
        return np.maximum(counts + noise(law, "count", np.zeros(1, dtype=np.int64)), 0)


@broken(
    "a drawn bound below the number of landmarks",
    "bounded landmarks, a drawn bound for answers",
    no_row_passes_its_part,
)
class UncheckedBoundTooSmall(BoundTooSmall):
    def perturb(self, readings, noise, state):
        with unchecked():
            return super().perturb(readings, noise, state)


# sampled where releases change


class Plainly(AdaptiveLandmarks):
    """A plain loop over the rows of one series of one column, and nobody checks what it spends."""

    def perturb(self, readings, noise, state):
        marks, others = marks_of(state, readings), int(readings[:, -1].min(initial=1) == 0)
        coins = noise.each(distributions.UniformChoice(CERTAIN), "sampling")
        source = noise.scalable("column 0")
        top = WHOLE * self.over.domain.widths[0] / self.over.reading_share
        later = int(marks.sum())
        reserved, rate, last = WHOLE // (later + others), CERTAIN, None
        out = np.zeros((len(readings), 1), dtype=np.int64)
        for row, reading in enumerate(readings[:, 0].tolist()):
            later -= int(marks[row])
            cut = self.cut(rate, reading, last)
            if last is None or cut >= CERTAIN or not above(coins, row, cut - 1):
                scale = float(top / reserved)
                drawn = laplace(source.words, row, scale)
                if drawn == UNDECIDED:
                    source.settle(row, scale)
                    drawn = laplace(source.words, row, scale)
                out[row] = reading + drawn
                before = self.compared(last, readings, row)
                if last is not None and abs(int(out[row, 0]) - before) / scale > self.kappa:
                    rate += int((CERTAIN - rate) * self.increase)
                elif last is not None:
                    rate = max(int(self.least * CERTAIN), rate - int(rate * self.decrease))
                last = int(out[row, 0])
            else:
                out[row], state.status[row] = self.repeated(last, reading), REPEATED
                if marks[row]:
                    reserved += reserved // (later + others) if later + others else 0
        return out

    def cut(self, rate, reading, last):
        return rate

    def compared(self, last, readings, row):
        return last

    def repeated(self, last, reading):
        return last


@broken(
    "a release is compared with the reading before", "adaptive landmarks, bits", the_promise_holds
)
class ComparedWithTheReading(Plainly):
    def compared(self, last, readings, row):
        return int(readings[row - 1, 0])


@broken(
    "sampled where the reading is another than the release",
    "adaptive landmarks, bits",
    the_promise_holds,
)
class CoinByReading(Plainly):
    def cut(self, rate, reading, last):
        return CERTAIN if reading != last else rate


@broken("what is skipped comes out as it is", "adaptive landmarks, bits", the_promise_holds)
class NotRepeated(Plainly):
    def repeated(self, last, reading):
        return reading


@broken(
    "sampling never gets rarer", "adaptive landmarks, bits", compiled_and_plain_and_reference_agree
)
class AlwaysSampled(Plainly):
    def cut(self, rate, reading, last):
        return CERTAIN


@broken(
    "a block begins with a new budget",
    "adaptive landmarks, two columns, stream",
    same_bits_for_any_cutting,
)
class ForgetsAtEachBlock(AdaptiveLandmarks):
    def perturb(self, readings, noise, state):
        state.memory[:, -SLOTS:] = 0
        return super().perturb(readings, noise, state)


class InTheKernel(AdaptiveLandmarks):
    """The scheme's own kernel as plain Python, where it calls another function than its own."""

    change = ("", None)

    def perturb(self, readings, noise, state):
        kernel = getattr(budget.adaptive, "py_func", budget.adaptive)
        name, other = self.change
        with (
            mock.patch.object(budget, "adaptive", kernel),
            mock.patch.dict(kernel.__globals__, {name: other}),
        ):
            return super().perturb(readings, noise, state)


class HandsOnAll(InTheKernel):
    change = "share_of_skipped", lambda reserved, later, others: reserved


class HandsOnTooMuch(InTheKernel):
    change = "share_of_skipped", lambda reserved, later, others: reserved // max(later, 1)


def next_digit(units, digits):
    """The units rounded up to so many binary digits."""
    shift = max(0, int(units).bit_length() - digits)
    return -(-int(units) >> shift) << shift


class DigitsRoundedUp(InTheKernel):
    change = "leading", next_digit


@broken(
    "the whole part of a skipped landmark for every later reading",
    "adaptive landmarks, answers",
    skipped_parts_stay_within_epsilon,
    no_row_passes_its_part,
)
class UncheckedHandsOnAll(HandsOnAll):
    def perturb(self, readings, noise, state):
        with unchecked():
            return super().perturb(readings, noise, state)


@broken(
    "a skipped part is shared by landmarks alone",
    "adaptive landmarks, answers",
    skipped_parts_stay_within_epsilon,
)
class UncheckedHandsOnTooMuch(HandsOnTooMuch):
    def perturb(self, readings, noise, state):
        with unchecked():
            return super().perturb(readings, noise, state)


@broken(
    "a skipped part is lost", "adaptive landmarks, answers", compiled_and_plain_and_reference_agree
)
class NothingHandedOn(InTheKernel):
    change = "share_of_skipped", lambda reserved, later, others: 0


@broken(
    "digits of a part rounded up",
    "adaptive landmarks, answers",
    the_promise_holds,
    compiled_and_plain_and_reference_agree,
)
class UncheckedDigitsRoundedUp(DigitsRoundedUp):
    def perturb(self, readings, noise, state):
        with unchecked():
            return super().perturb(readings, noise, state)


SEEN_AS_THEY_RUN = (
    (HandsOnAll, "adaptive landmarks, fine grid"),
    (HandsOnTooMuch, "adaptive landmarks, fine grid"),
    (DigitsRoundedUp, "adaptive landmarks, answers"),
    (RoundedUp, "uniform landmarks, bits"),
    (BoundTooSmall, "bounded landmarks, a drawn bound for answers"),
)
"""Spending that the schemes stop before anything is out."""
