"""Broken memoized answers, one for each mistake; see ``mutants``, whose list they join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tempriv.mechanisms.stream import Stream
from tempriv.mechanisms.value.memoized_response import MemoizedResponse
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.sampling._kernels import at
from tests.conformance.distribution_checks import the_promise_holds
from tests.conformance.stream_checks import (
    compiled_and_plain_and_reference_agree,
    many_series_in_any_order,
    resume_across_an_epoch,
    resume_from_any_state,
    same_bits_for_any_cutting,
)
from tests.mutants.value import broken, streaming

# permanent answers that are not


@broken("permanent answers drawn anew each time", "memoized, as it is", the_promise_holds)
class AnewEachTime(MemoizedResponse):
    def perturb(self, readings, noise, state):
        law, answers = self.permanent_distribution, []
        for row, truth in enumerate(readings[:, 0].tolist()):
            shift = at(noise.each(law, f"permanent {truth}"), row)
            answers.append((truth + shift) % self.choices)
        return np.array(answers)[:, None]


@broken(
    "permanent answers drawn anew in each block",
    "memoized, as it is",
    same_bits_for_any_cutting,
    resume_from_any_state,
    resume_across_an_epoch,
)
class AnewEachBlock(MemoizedResponse):
    def perturb(self, readings, noise, state):
        state.memory[:] = 0
        return super().perturb(readings, noise, state)


class Forgetful(Stream):
    def state(self):
        kept, self._memory = self._memory, np.zeros_like(self._memory)
        try:
            return super().state()
        finally:
            self._memory = kept


@broken(
    "permanent answers drawn anew after a resume",
    "memoized, second response",
    resume_from_any_state,
)
class ForgetsOnResume(MemoizedResponse):
    start = streaming(Forgetful)


# permanent answers that are not independent


@broken("one draw for all truths", "memoized, two answers", the_promise_holds)
class OneShift(MemoizedResponse):
    """The answer to one truth then tells those to all others."""

    def perturb(self, readings, noise, state):
        drawn = noise.each(self.permanent_distribution, "permanent")
        if state.memory[0, 0] == 0:
            state.memory[0] = 1 + (np.arange(self.choices) + at(drawn, 0)) % self.choices
        return (state.memory[0, readings[:, 0]] - 1)[:, None]


@broken(
    "one permanent answer for all series of a block",
    "memoized, second response",
    many_series_in_any_order,
)
class SharedBySeries(MemoizedResponse):
    def perturb(self, readings, noise, state):
        super().perturb(readings, noise, state)
        state.memory[:] = state.memory.max(axis=0)
        return super().perturb(readings, noise, state)


# second responses


@dataclass(frozen=True)
class SameWords:
    source: Any

    def __call__(self, law, purpose):
        return self.source(law, "permanent 0")

    def each(self, law, purpose):
        return self.source.each(law, purpose)


@broken(
    "second response from the words of the permanent answer",
    "memoized, second response",
    compiled_and_plain_and_reference_agree,
)
class ReusesWords(MemoizedResponse):
    """Where both stages have one law, the second takes the first off again."""

    def perturb(self, readings, noise, state):
        return super().perturb(readings, SameWords(noise), state)


@broken(
    "a change reported as it is",
    "memoized, event",
    the_promise_holds,
    compiled_and_plain_and_reference_agree,
)
class WithoutSecond(MemoizedResponse):
    @property
    def instant_distribution(self):
        return None


# statements


@broken(
    "any number of reports for the price of one", "memoized, second response", the_promise_holds
)
class ClaimsOnce(MemoizedResponse):
    @property
    def guarantee(self):
        return Guarantee(Pure(self.epsilon_once), self.unit)


@broken("any number of answers for the price of one", "memoized, two answers", the_promise_holds)
class ClaimsOneAnswer(MemoizedResponse):
    @property
    def guarantee(self):
        return Guarantee(Pure(self.epsilon_forever), self.unit)
