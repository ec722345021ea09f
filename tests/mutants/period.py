"""Broken paces, broken curves through noisy values and broken times, beside ``mutants.value``."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tempriv.data.series import RELEASED
from tempriv.mechanisms.base import SeriesState
from tempriv.mechanisms.retime.domains import as_bits
from tempriv.mechanisms.retime.interpolation import Windows
from tempriv.mechanisms.retime.noisy_curve import NoisyCurve
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.sampling import distributions
from tests.conformance.cases.period import curves_tell_no_more_than_noisy_values
from tests.conformance.distribution_checks import the_promise_holds
from tests.conformance.key_checks import seeded_keys_promise_nothing
from tests.conformance.stream_checks import (
    compiled_and_plain_and_reference_agree,
    same_bits_for_any_cutting,
    shape_is_free_of_values,
)
from tests.mutants.value import broken


class Paced(SamplingPeriod):
    """The mechanism in parts, without a shift; a mutant has another one of them."""

    def perturb(self, readings, noise, state):
        values, times = self._split(readings, state)
        windows = Windows(values, times, state, self.window)
        chosen = self.kept(windows, self.sums(windows, times) + self.noise(windows, noise), times)
        ratios = self.ratios(windows, chosen)
        none = np.zeros(len(windows))
        return windows.read(self.interpolation, none, ratios, chosen[:, None])

    def sums(self, windows, times):
        return windows.sums[:, -1]

    def noise(self, windows, noise):
        return noise(self.distributions[0], "period", windows.ends)

    def kept(self, windows, noisy, times):
        return np.clip(noisy, *self._edges())

    def ratios(self, windows, chosen):
        return chosen * (self._unit / self.period)


@broken("the secret step is the grid of the curve", "pace, few", the_promise_holds)
class SecretGrid(Paced):
    """What is read at T' / T has the same law for every T; beside T' it gives T away."""

    def ratios(self, windows, chosen):
        return chosen / windows.sums[:, -1]


@broken("half the noise on the pace", "pace, few", the_promise_holds)
class HalfTheNoise(SamplingPeriod):
    @property
    def distributions(self):
        whole = super().distributions
        return tuple(distributions.DiscreteLaplace(noise.scale / 2) for noise in whole)


@broken("too much noise on the pace", "pace, few", the_promise_holds)
class TwiceTheNoise(SamplingPeriod):
    @property
    def distributions(self):
        whole = super().distributions
        return tuple(distributions.DiscreteLaplace(noise.scale * 2) for noise in whole)


@broken("one noise for all windows", "pace, few", the_promise_holds)
class OneNoiseForAll(Paced):
    def noise(self, windows, noise):
        if not len(windows):
            return 0
        return noise(self.distributions[0], "period", windows.ends[:1])


@broken("clamped to the steps of the window", "pace, few", the_promise_holds)
class OwnClamp(Paced):
    def kept(self, windows, noisy, times):
        room = int(times.max(initial=0)) * self.window
        return np.clip(noisy, -room, room)


@broken(
    "the first reading comes out",
    "pace",
    compiled_and_plain_and_reference_agree,
    shape_is_free_of_values,
)
class FirstComesOut(SamplingPeriod):
    def perturb(self, readings, noise, state):
        out = super().perturb(readings, noise, state)
        row = self.window - int(state.starts[0])
        if row >= 0 and len(state.counts) == 1 and len(out) > row and not state.starts[0]:
            out[row], state.status[row] = readings[0], RELEASED
        return out


@broken("what is left is read without noise", "pace, few", the_promise_holds)
class OpenRemainder(Paced):
    def noise(self, windows, noise):
        return np.where(windows.sizes == self.window + 2, super().noise(windows, noise), 0)


@broken("what is left is not clamped", "pace", compiled_and_plain_and_reference_agree)
class WildRemainder(Paced):
    def kept(self, windows, noisy, times):
        return np.where(
            windows.sizes == self.window + 2, super().kept(windows, noisy, times), noisy
        )


@broken("the steps of all readings of a window", "pace, few", the_promise_holds)
class SumsTooMany(Paced):
    """Windows overlap by two readings, so a step counts in two of them."""

    def sums(self, windows, times):
        firsts = windows.ends - self.window - 1  # of a series that came in at once
        rows = [range(at, at + size) for at, size in zip(firsts, windows.sizes, strict=True)]
        return np.array([times[list(some), -1].sum() for some in rows], dtype=np.int64)


@broken("a draw for each column, paid once", "pace, few, two columns", the_promise_holds)
class DrawForEach(SamplingPeriod):
    def perturb(self, readings, noise, state):
        single = {"tau": self.tau, "grid": self.grid, "clamp": self.clamp}
        alone = SamplingPeriod(epsilon=self.epsilon, window=self.window, **single)
        made = []
        for column in range(self.columns):
            own = SeriesState.fresh(alone, 1, len(readings), state.further)
            own.missing[:] = state.missing[:, :2]
            made.append(alone.perturb(readings[:, [column, -1]], renamed(noise, column), own))
        state.status[:] = own.status
        return np.concatenate([*(one[:, :1] for one in made), made[0][:, 1:]], axis=1)


def renamed(noise, column):
    return lambda law, purpose, rows: noise(law, f"{purpose} {column}", rows)


@broken("shift and pace have all of epsilon each", "pace and shift, few", the_promise_holds)
class BothHaveAll(SamplingPeriod):
    @property
    def distributions(self):
        whole = super().distributions
        return tuple(distributions.DiscreteLaplace(noise.scale / 2) for noise in whole)


@broken("tau before it is put on the grid", "pace, off the grid", the_promise_holds)
class TauOffTheGrid(SamplingPeriod):
    @property
    def distributions(self):
        widest = Fraction(self.tau) / Fraction(self.grid)
        return (distributions.DiscreteLaplace(self.window * widest / Fraction(self.epsilon)),)


@broken("noise by the place in the block", "pace", same_bits_for_any_cutting)
class ByPlace(Paced):
    def noise(self, windows, noise):
        return noise(self.distributions[0], "period", np.arange(len(windows)))


@broken("what stands under the mask is read", "pace", shape_is_free_of_values)
class ReadsUnderTheMask(SamplingPeriod):
    def _split(self, readings, state):
        unmasked = SeriesState(
            state.counts, state.starts, np.zeros_like(state.missing), state.memory, state.further
        )
        return super()._split(readings, unmasked)


@broken("a guarantee where the pace is public", "pace, public", seeded_keys_promise_nothing)
class PublicPromise(SamplingPeriod):
    @property
    def guarantee(self):
        return Guarantee(Pure(self.epsilon), self.unit)


@broken(
    "a curve through the readings themselves",
    "curve, few",
    curves_tell_no_more_than_noisy_values,
    compiled_and_plain_and_reference_agree,
)
class RawCurve(NoisyCurve):
    def perturb(self, readings, noise, state):
        self.noisy.perturb(readings, noise, state)
        values = np.where(state.missing, np.nan, readings * np.array(self.grid))
        none = np.zeros((len(readings), 0), dtype=np.int64)
        windows = Windows(values, none, state, self.window)
        at_its_pace = np.zeros(len(windows)), np.ones(len(windows))
        return windows.read("cosine", *at_its_pace, windows.sums, self.waves)


@broken("half the noise on values", "curve, few", curves_tell_no_more_than_noisy_values)
class HalfCurve(NoisyCurve):
    @property
    def noisy(self):
        given = {"bounds": self.bounds, "unit": self.unit, "grid": self.grid}
        return type(super().noisy)(epsilon=2 * self.epsilon, **given)


@broken("first and last readings come out", "curve", shape_is_free_of_values)
class WholeCurve(NoisyCurve):
    """Their noisy values are as private as the others, but are said to be empty."""

    def perturb(self, readings, noise, state):
        noisy = self.noisy.perturb(readings, noise, state) * np.array(self.grid)
        out = super().perturb(readings, lambda law, purpose: noise(law, f"{purpose} again"), state)
        state.status[:] = RELEASED
        return np.where(np.isnan(out.view(np.float64)), as_bits(noisy), out)


@broken("noise for one time, guaranteed for three", "times, three", the_promise_holds)
class OneOfThree(NoisyTimes):
    @property
    def distribution(self):
        return distributions.DiscreteLaplace(super().distribution.scale / self.window)


@broken("one noise for all times", "times, one", the_promise_holds, same_bits_for_any_cutting)
class OneForAllTimes(NoisyTimes):
    def perturb(self, readings, noise, state):
        return readings + noise(self.distribution, "time")[:1, None]
