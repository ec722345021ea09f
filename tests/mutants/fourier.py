"""Broken Fourier perturbation, one for each mistake; see ``mutants``, whose list they join."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tempriv.mechanisms.fourier import FourierPerturbation, wave, whole_wave
from tempriv.mechanisms.stream import Stream
from tempriv.privacy.units import Event
from tempriv.sampling._kernels import at
from tests.conformance.distribution_checks import the_promise_holds
from tests.conformance.key_checks import what_is_finished_stays_so
from tests.conformance.stream_checks import (
    compiled_and_plain_and_reference_agree,
    shape_is_free_of_values,
)
from tests.mutants.value import broken, streaming


class Inside(FourierPerturbation):
    """The loop over the waves with its parts laid open."""

    def waves(self, number, length):
        return whole_wave(number, length, self._bits)

    def noise(self, drawn, row, number):
        return at(drawn, row + number)

    def kept(self, series):
        return range(min(self.coefficients, series.shape[1]))

    def _smoothed(self, series, drawn, first):
        made, length = np.zeros(series.shape), series.shape[1]
        for number in self.kept(series):
            noise = [self.noise(drawn, int(row), number) for row in first]
            noisy = series @ self.waves(number, length) + np.array(noise)
            made += noisy[:, None] / 2.0**self._bits * wave(number, length)
        return made


@broken("a coefficient without noise", "waves, event", the_promise_holds)
class LastUnnoised(Inside):
    def noise(self, drawn, row, number):
        return 0 if number == 1 else at(drawn, row + number)


@broken("the mean without noise", "waves, gaussian, event", the_promise_holds)
class MeanUnnoised(Inside):
    def noise(self, drawn, row, number):
        return 0 if number == 0 else at(drawn, row + number)


@broken("one draw for all coefficients", "waves, event", the_promise_holds)
class OneDraw(Inside):
    def _smoothed(self, series, drawn, first):
        drawn = {int(row): at(drawn, int(row)) for row in first}
        return super()._smoothed(series, drawn, first)

    def noise(self, drawn, row, number):
        return drawn[row]


@broken("waves that are not scaled to length one", "waves, event", the_promise_holds)
class Unscaled(Inside):
    """As a Fourier transform that is not divided by the root of the length."""

    def waves(self, number, length):
        return np.rint(wave(number, length) * math.sqrt(length) * 2**self._bits).astype(np.int64)


@broken("waves are kept where the data have any", "waves, event", the_promise_holds)
class KeepsWhatIsThere(Inside):
    def kept(self, series):
        found = [
            np.abs(series @ self.waves(j, series.shape[1])).max() for j in super().kept(series)
        ]
        return [j for j, size in enumerate(found) if size > 0]


@broken("the mean of the data is taken off and put back", "waves, event", the_promise_holds)
class PrivateMiddle(FourierPerturbation):
    def perturb(self, readings, noise, state):
        middle = readings.mean(axis=0).astype(np.int64)
        return super().perturb(readings - middle, noise, state) + middle * round(1 / self._steps[0])


@broken("measured for one reading, guaranteed for two", "waves, window", the_promise_holds)
class MeasuredForOne(FourierPerturbation):
    def noise_on(self, length, column):
        return FourierPerturbation.noise_on(replace(self, unit=Event()), length, column)


@broken("measured for one series, guaranteed for a person", "waves, person", the_promise_holds)
class MeasuredForOneSeries(FourierPerturbation):
    def noise_on(self, length, column):
        return FourierPerturbation.noise_on(replace(self, unit=Event()), length, column)


@broken("columns do not share the noise", "waves, counts in two columns", the_promise_holds)
class HalfForEachColumn(FourierPerturbation):
    def noise_on(self, length, column):
        law = super().noise_on(length, column)
        return type(law)(law.scale / 2)


@broken("noise of the full length on shorter series", "waves, short series", the_promise_holds)
class FullLength(FourierPerturbation):
    """Short series have taller waves, so their coefficients change by more."""

    def noise_on(self, length, column):
        return super().noise_on(self.length, column)


class EndsWithTheData(Stream):
    def finish_block(self):
        held = [block.values[:, 0] for block in self._held]
        last = np.flatnonzero(np.concatenate([*held, [1.0]])[: sum(map(len, held))] > 0)
        out = super().finish_block()
        count = int(last[-1]) + 1 if len(last) else 0
        return type(out)(
            values=out.values[:count],
            missing=out.missing[:count],
            ids=out.ids,
            counts=np.array([count]),
            starts=out.starts,
        )


@broken("the length says where the data end", "waves, event", shape_is_free_of_values)
class TellsLength(FourierPerturbation):
    start = streaming(EndsWithTheData)


@broken(
    "rounded between the waves and the noise",
    "waves",
    compiled_and_plain_and_reference_agree,
)
class RoundsCoefficients(Inside):
    """Half a grid step in each coefficient, which nobody has measured."""

    def _smoothed(self, series, drawn, first):
        made, length = np.zeros(series.shape), series.shape[1]
        for number in self.kept(series):
            real = np.rint(series @ wave(number, length)) * 2**self._bits
            noise = [self.noise(drawn, int(row), number) for row in first]
            made += (real + noise)[:, None] / 2.0**self._bits * wave(number, length)
        return made


class EndsAgain(Stream):
    """Does not tell the key that it has come to its end."""

    def finish_block(self):
        progress, self._progress = self._progress, None
        out = super().finish_block()
        self._progress = progress
        return out


@broken("a stream that can be finished again", "waves, event", what_is_finished_stays_so)
class FinishedTwice(FourierPerturbation):
    start = streaming(EndsAgain)
