"""One broken mechanism for each classic mistake; the checks of ``conformance`` must fail them all.

A mutant is a real mechanism (or stream, law, key) with one thing wrong. Beside it stands which
checks are to notice, so that a check that goes blind is noticed too.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tempriv.accounting.gaussian_noise import NoisyNumbers, continuous_delta
from tempriv.mechanisms.domains import Numbers
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.stream import MAGIC, Seen, Stream, start
from tempriv.mechanisms.value.gaussian import Gaussian
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy import serialization
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units import Window
from tempriv.sampling import distributions
from tempriv.sampling.geometric import geometric_table
from tempriv.sampling.keys import Key, SeriesKey, _hash
from tempriv.sampling.keystream import StepRange
from tests.conformance.case_checks import Case
from tests.conformance.cases import NAMED
from tests.conformance.distribution_checks import (
    samplers_follow_their_laws,
    stated_errors_are_exact,
    stated_errors_are_met,
    the_promise_holds,
)
from tests.conformance.error_checks import bad_parameters_are_refused, bad_readings_are_refused
from tests.conformance.key_checks import (
    a_kept_key_only_goes_on,
    a_key_opens_each_series_once,
    a_step_is_released_once,
    every_number_varies_with_key_and_place,
    seeded_keys_promise_nothing,
)
from tests.conformance.spec_checks import memory_stays_flat, state_holds_no_secret
from tests.conformance.stream_checks import (
    compiled_and_plain_and_reference_agree,
    many_series_in_any_order,
    masked_readings_are_not_looked_at,
    resume_from_any_state,
    same_bits_for_any_cutting,
    shape_is_free_of_values,
    the_past_does_not_move,
)

Check = Callable[[Case], None]


@dataclass(frozen=True)
class Mutant:
    name: str
    original: Case
    case: Case
    killed_by: tuple[Check, ...]


MUTANTS: list[Mutant] = []


def broken(mistake: str, case: str, *killed_by: Check) -> Callable[[type], type]:
    """Put a broken class in the place of the one it is derived from."""

    def register(kind: type) -> type:
        original = NAMED[case]
        if issubclass(kind, Key):
            mutant = replace(original, key=kind.from_seed)
        else:
            given = {f.name: getattr(original.mechanism, f.name) for f in fields(kind)}
            mutant = replace(original, mechanism=kind(**given))
        MUTANTS.append(Mutant(mistake, original, mutant, killed_by))
        return kind

    return register


def streaming(kind: type[Stream]) -> Any:
    """A ``start`` that opens a broken stream."""

    def open_stream(self: Any, key: Key, series: str = "series") -> Stream:
        stream = start(self, key, series)
        return kind(self, stream._key, series, stream.seen, progress=stream._progress)

    return open_stream


# too little noise


@broken("half the scale", "laplace, event", the_promise_holds)
class HalfScale(Laplace):
    @property
    def distributions(self):
        return [distributions.DiscreteLaplace(law.scale / 2) for law in super().distributions]


@broken("one per cent of the scale missing", "laplace, window", the_promise_holds)
class HardlyLess(Laplace):
    @property
    def distributions(self):
        return [
            distributions.DiscreteLaplace(law.scale * Fraction(99, 100))
            for law in super().distributions
        ]


@broken("half the variance", "gaussian, event", the_promise_holds)
class HalfVariance(Gaussian):
    @property
    def distributions(self):
        return [distributions.DiscreteGaussian(law.variance / 2) for law in super().distributions]


@dataclass(frozen=True)
class AsContinuous(NoisyNumbers):
    def delta(self, rho, epsilon):
        return continuous_delta(rho, epsilon)


class Recalibrated(Gaussian):
    """Finds its noise anew."""

    def __post_init__(self):
        object.__setattr__(self, "rho", None)
        super().__post_init__()


@broken("calibrated by the continuous law", "gaussian, calibrated", the_promise_holds)
class ContinuousLaw(Recalibrated):
    @property
    def _noisy_numbers(self):
        numbers = super()._noisy_numbers
        return AsContinuous(numbers.variance, numbers.count, numbers.change)


@broken("calibrated for one of two readings", "gaussian, calibrated, window", the_promise_holds)
class OneOfTwo(Recalibrated):
    @property
    def distributions(self):
        return [
            distributions.DiscreteGaussian(law.variance / self.unit.readings)
            for law in super().distributions
        ]


@broken("too much noise", "laplace, event", the_promise_holds)
class DoubleScale(Laplace):
    """Private, but more is guaranteed away than needed: it shows as a loose bound."""

    @property
    def distributions(self):
        return [distributions.DiscreteLaplace(law.scale * 2) for law in super().distributions]


@broken("calibrated for one reading, guaranteed for two", "laplace, window", the_promise_holds)
class CalibratedForEvent(Laplace):
    @property
    def changes(self):
        return self.row_changes


@broken("another unit guaranteed than calibrated for", "response, event", the_promise_holds)
class ClaimsWindow(RandomizedResponse):
    @property
    def guarantee(self):
        return Guarantee(Pure(self.epsilon), Window(2))


@broken("calibrated for one series, guaranteed for a person", "laplace, person", the_promise_holds)
class CalibratedForOneSeries(Laplace):
    @property
    def changes(self):
        return [self.unit.each.readings * change for change in self.row_changes]


@broken("calibrated for one series of windows", "response, person", the_promise_holds)
class AnswersOfOneSeries(RandomizedResponse):
    @property
    def reading_share(self):
        return Fraction(self.epsilon) / self.unit.each.readings


@broken("per column, total not multiplied", "laplace, per column", the_promise_holds)
class TotalOfOneColumn(Laplace):
    @property
    def guarantee(self):
        return Guarantee(Pure(self.epsilon), self.unit)


@broken("columns do not share", "gaussian, two columns", the_promise_holds)
class ColumnsDoNotShare(Gaussian):
    @property
    def reading_share(self):
        return Fraction(self.rho) / self.unit.readings


@broken("sensitivity before rounding", "laplace, off the grid", the_promise_holds)
class BeforeRounding(Laplace):
    @property
    def distributions(self):
        widths = [
            Fraction(h - low) / Fraction(g)
            for (low, h), g in zip(self.bounds, self.grid, strict=True)
        ]
        return [distributions.DiscreteLaplace(width / self.reading_share) for width in widths]


@broken("no price for the lattice", "places", the_promise_holds)
class NoGridCost(PlanarLaplace):
    @property
    def distribution(self):
        return distributions.PlanarLattice(
            Fraction(self.epsilon) * Fraction(self.grid) / Fraction(self.unit.meters)
        )


@dataclass(frozen=True)
class KeepOfTwo(distributions.CategoryFlip):
    @property
    def keep(self):
        return 1 / (1 + math.exp(-self.epsilon))

    def pmf(self, k):
        return self.keep if k == 0 else (1 - self.keep) / (self.choices - 1)


@broken("truth kept as among two, with three", "response, event", the_promise_holds)
class KeepsTooOften(RandomizedResponse):
    @property
    def distributions(self):
        return [KeepOfTwo(law.epsilon, law.choices) for law in super().distributions]


# noise that is not independent


@broken(
    "one draw for all readings",
    "laplace, event",
    the_promise_holds,
    every_number_varies_with_key_and_place,
    same_bits_for_any_cutting,
)
class OneDrawForAll(Laplace):
    def perturb(self, readings, noise, state):
        return readings + noise(self.distributions[0], "column 0")[:1, None]


@broken(
    "one draw for both columns",
    "laplace, two columns",
    the_promise_holds,
    every_number_varies_with_key_and_place,
)
class OneDrawForBoth(Laplace):
    def perturb(self, readings, noise, state):
        return readings + noise(self.distributions[0], "column 0")[:, None]


@broken(
    "noise keyed without the column",
    "laplace, two columns",
    the_promise_holds,
    every_number_varies_with_key_and_place,
)
class WithoutColumn(Laplace):
    def perturb(self, readings, noise, state):
        return readings + np.stack([noise(law, "column") for law in self.distributions], axis=1)


@broken(
    "noise of unlike columns keyed without the column",
    "laplace, two fine grids",
    every_number_varies_with_key_and_place,
)
class UnlikeWithoutColumn(Laplace):
    perturb = WithoutColumn.perturb


@broken(
    "noise keyed without the series id",
    "laplace, event",
    every_number_varies_with_key_and_place,
    many_series_in_any_order,
)
class WithoutSeries(Laplace):
    def start(self, key, series="series"):
        chain = key.again(serialization.digest(self), "")
        return Stream(self, chain, series, Seen.by(chain))


class FromTheFirstStep(Stream):
    def push_block(self, block):
        out = perturb_block(self.mechanism, block, [StepRange(self._key, 0, len(block))])
        self.step += len(block)
        return out


@broken(
    "noise keyed by the place in the block",
    "response, event",
    same_bits_for_any_cutting,
)
class WithoutStep(RandomizedResponse):
    start = streaming(FromTheFirstStep)


class Sequential(Stream):
    """Draws from a generator as readings come, a block's columns one after the other."""

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.generator = np.random.default_rng(int(self._key.secret.hex(), 16))

    def push_block(self, block):
        out = super().push_block(block)
        made = [
            self.generator.laplace(scale=float(law.scale), size=len(block))
            for law in self.mechanism.distributions
        ]
        readings = self.mechanism.domain.to_grid(np.where(block.missing, 0.0, block.values))
        noisy = readings + np.rint(made).astype(np.int64).T
        return replace(out, values=self.mechanism.domain.from_grid(noisy))


@broken(
    "noise from a sequential generator",
    "laplace, two columns",
    same_bits_for_any_cutting,
    resume_from_any_state,
    many_series_in_any_order,
    compiled_and_plain_and_reference_agree,
)
class FromGenerator(Laplace):
    start = streaming(Sequential)


# laws that say one thing and draw another


@dataclass(frozen=True)
class FairSign(distributions.DiscreteLaplace):
    """Minus half the time: zero comes out both ways."""

    def sample(self, words):
        size = geometric_table(self.scale).sample(words)
        minus = words.substream(100).read() >> np.uint64(63) == 1
        return np.where(minus, -size, size)


@broken("a fair sign, so that zero counts twice", "laplace, event", samplers_follow_their_laws)
class DrawsZeroTwice(Laplace):
    @property
    def distributions(self):
        return [FairSign(law.scale) for law in super().distributions]


@dataclass(frozen=True)
class Shifted(distributions.DiscreteLaplace):
    """Zero comes out one way, but minus half the time: the law is centered between -1 and 0."""

    def sample(self, words):
        size = geometric_table(self.scale).sample(words)
        minus = words.substream(100).read() >> np.uint64(63) == 1
        return np.where(minus, -1 - size, size)


@broken("a fair sign, so that the law is shifted", "laplace, event", samplers_follow_their_laws)
class DrawsShifted(Laplace):
    @property
    def distributions(self):
        return [Shifted(law.scale) for law in super().distributions]


@dataclass(frozen=True)
class ZeroTwice(FairSign):
    def pmf(self, k):
        ratio = math.exp(-1 / self.scale)
        return (1 - ratio) * ratio ** abs(k) / (2 if k else 1)


@broken("zero counts twice, and the law says so", "laplace, event", the_promise_holds)
class CountsZeroTwice(Laplace):
    @property
    def distributions(self):
        return [ZeroTwice(law.scale) for law in super().distributions]


def within(outcomes, reach):
    kept = [(k, p) for k, p in outcomes if abs(k) <= reach]
    mass = math.fsum(p for _, p in kept)
    return [(k, p / mass) for k, p in kept]


@dataclass(frozen=True)
class ShortLaplace(distributions.DiscreteLaplace):
    def outcomes(self, tail):
        return within(super().outcomes(tail), 16 * self.scale)

    def sample(self, words):
        reach = math.floor(16 * self.scale)
        return np.clip(super().sample(words), -reach, reach)


@broken("noise cut off, at a mass of 1e-7", "laplace, event", the_promise_holds)
class CutOff(Laplace):
    @property
    def distributions(self):
        return [ShortLaplace(law.scale) for law in super().distributions]


@dataclass(frozen=True)
class ShortGaussian(distributions.DiscreteGaussian):
    def outcomes(self, tail):
        return within(super().outcomes(tail), 4 * math.sqrt(self.variance))


@broken("Gaussian noise cut off at four deviations", "gaussian, event", the_promise_holds)
class GaussianCutOff(Gaussian):
    @property
    def distributions(self):
        return [ShortGaussian(law.variance) for law in super().distributions]


# readings that pass


@broken(
    "last reading of a block without noise",
    "laplace, event",
    the_promise_holds,
    same_bits_for_any_cutting,
    every_number_varies_with_key_and_place,
)
class LastUnnoised(Laplace):
    def perturb(self, readings, noise, state):
        out = super().perturb(readings, noise, state)
        out[-1:] = readings[-1:]
        return out


@broken("zeros are dropped", "laplace, event", the_promise_holds)
class DropsZeros(Laplace):
    def perturb(self, readings, noise, state):
        return super().perturb(readings, noise, state)[readings[:, 0] != 0]


class SkipsZeros(Stream):
    def push_block(self, block):
        out, kept = super().push_block(block), block.values[:, 0] != 0
        return replace(out, values=out.values[kept], missing=out.missing[kept])


@broken("rows with zeros are skipped", "laplace, event", shape_is_free_of_values)
class RowsByValue(Laplace):
    start = streaming(SkipsZeros)


class HidesZeros(Stream):
    def push_block(self, block):
        out = super().push_block(block)
        return replace(out, missing=out.missing | (block.values <= 0))


@broken("missing where the reading is zero", "laplace, event", shape_is_free_of_values)
class MissingByValue(Laplace):
    start = streaming(HidesZeros)


@dataclass(frozen=True)
class Unclipped(Numbers):
    def to_grid(self, values):
        return np.rint(np.clip(values / np.array(self.grids), -1e6, 1e6)).astype(np.int64)


@broken(
    "bounds ignored",
    "laplace, event",
    the_promise_holds,
    compiled_and_plain_and_reference_agree,
)
class IgnoresBounds(Laplace):
    @property
    def domain(self):
        return Unclipped(self.bounds, self.grid)


@broken(
    "noise before clipping",
    "laplace, event",
    the_promise_holds,
    compiled_and_plain_and_reference_agree,
)
class ClipsTheOutput(IgnoresBounds):
    def perturb(self, readings, noise, state):
        return np.clip(super().perturb(readings, noise, state), *self.domain.edges().T)


@broken(
    "the next reading is looked at",
    "laplace, event",
    the_past_does_not_move,
    same_bits_for_any_cutting,
)
class Peeks(Laplace):
    def perturb(self, readings, noise, state):
        following = np.concatenate([readings[1:], readings[-1:]])
        return super().perturb((readings + following) // 2, noise, state)


class LooksBelow(Stream):
    def push_block(self, block):
        gaps, block.missing = block.missing, np.zeros_like(block.missing)
        block.values = np.nan_to_num(block.values)
        out = super().push_block(block)
        return replace(out, missing=gaps)


@broken("masked readings are used", "laplace, event", masked_readings_are_not_looked_at)
class LooksUnderTheMask(Laplace):
    start = streaming(LooksBelow)


class TakesAnything(Stream):
    def push_block(self, block):
        block.values = np.nan_to_num(block.values)
        return super().push_block(block)


@broken("NaN counts as a number", "laplace, event", bad_readings_are_refused)
class TakesNan(Laplace):
    start = streaming(TakesAnything)


class Alone(Stream):
    """Does not tell the key how far it has come."""

    def push_block(self, block):
        self._progress = None
        return super().push_block(block)


@broken("a stream that does not tell the key", "laplace, event", a_step_is_released_once)
class TellsNobody(Laplace):
    start = streaming(Alone)


class NeverFull(Stream):
    def push_block(self, block):
        if not np.isfinite(block.values).all():
            return super().push_block(block)
        out = [
            perturb_block(
                self.mechanism, replace_rows(block, i), [StepRange(self._key, self.step + i, 1)]
            )
            for i in range(len(block))
        ]
        self.step += len(block)
        whole = replace_rows(block, slice(0, 0))
        for name in ("values", "missing"):
            parts = [getattr(whole, name), *(getattr(part, name) for part in out)]
            setattr(whole, name, np.concatenate(parts))
        return whole


def replace_rows(block, rows):
    rows = slice(rows, rows + 1) if isinstance(rows, int) else rows
    values, missing = block.values[rows], block.missing[rows]
    count = np.array([len(values)])
    return replace(block, values=values, missing=missing, counts=count, starts=np.zeros_like(count))


@broken("longer series than guaranteed", "laplace, whole series", bad_readings_are_refused)
class TakesLongSeries(Laplace):
    start = streaming(NeverFull)


@broken("epsilon below zero", "laplace, event", bad_parameters_are_refused)
class AnyEpsilon(Laplace):
    def __post_init__(self):
        if isinstance(self.epsilon, (int, float)) and self.epsilon <= 0:
            object.__setattr__(self, "epsilon", 1.0)
        super().__post_init__()


# keys and states


@broken("noise keyed without the release", "laplace, event", every_number_varies_with_key_and_place)
class KeyWithoutRelease(Key):
    def again(self, spec_digest, series, step=0):
        return SeriesKey(_hash(self._secret, "series", spec_digest, series), 0)


@broken("noise keyed without the spec", "laplace, event", every_number_varies_with_key_and_place)
class KeyWithoutSpec(Key):
    def again(self, spec_digest, series, step=0):
        return SeriesKey(_hash(self._secret, "series", self.release_id, series), 0)


@broken("noise without the key", "response, event", every_number_varies_with_key_and_place)
class NoKey(Key):
    def again(self, spec_digest, series, step=0):
        return SeriesKey(_hash(bytes(32), spec_digest, series), 0)


@broken("two inputs under one key", "laplace, event", a_key_opens_each_series_once)
class KeyTwice(Key):
    def series(self, spec_digest, series):
        return self.again(spec_digest, series)


@broken("a key forgets how far a stream has come", "response, event", a_step_is_released_once)
class Forgets(Key):
    def note(self, spec_digest, series, step):
        pass


@broken("a key from a file starts streams", "laplace, event", a_kept_key_only_goes_on)
class StartsAgain(Key):
    @classmethod
    def load(cls, path):
        kept = Key.load(path)
        return cls(kept._secret, kept.release_id, kept.seed)


@broken("a key from a file is another key", "response, event", a_kept_key_only_goes_on)
class LosesRelease(Key):
    @classmethod
    def load(cls, path):
        kept = Key.load(path)
        return cls(kept._secret, "the same", kept.seed, only_resumes=True)


@broken("a seed passes for a secret", "laplace, event", seeded_keys_promise_nothing)
class SeedAsSecret(Key):
    @classmethod
    def from_seed(cls, seed):
        seeded = Key.from_seed(seed)
        return cls(seeded._secret, seeded.release_id)


class KeyInState(Stream):
    def state(self):
        body = json.loads(super().state()[len(MAGIC) + 16 :])
        data = json.dumps({**body, "key": self._key.secret.hex()}).encode()
        return MAGIC + hashlib.blake2b(data, digest_size=16).digest() + data


@broken("the key is in the state", "laplace, event", state_holds_no_secret)
class LeaksKey(Laplace):
    start = streaming(KeyInState)


class NoiseKeyInState(Stream):
    def state(self):
        return super().state() + self._key.cipher_key("column 0")


@broken("what makes the noise is in the state", "gaussian, event", state_holds_no_secret)
class LeaksNoiseKey(Gaussian):
    start = streaming(NoiseKeyInState)


class Remembers(Stream):
    def push_block(self, block):
        self.__dict__.setdefault("past", []).append(block.values.copy())
        return super().push_block(block)


@broken("every reading is kept", "laplace, event", memory_stays_flat)
class KeepsReadings(Laplace):
    start = streaming(Remembers)


# statements


@broken(
    "error stated too small",
    "laplace, event",
    stated_errors_are_exact,
    stated_errors_are_met,
)
class UnderstatesError(Laplace):
    @property
    def errors(self):
        return tuple(0.9 * error for error in super().errors)


@broken(
    "error of the continuous law",
    "gaussian, two columns",
    stated_errors_are_exact,
)
class ContinuousError(Gaussian):
    @property
    def errors(self):
        deviations = [math.sqrt(2 * law.variance / math.pi) for law in self.distributions]
        return tuple(grid * d for grid, d in zip(self.grid, deviations, strict=True))
