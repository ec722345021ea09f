"""Exact losses of the landmark schemes, between series that differ as much as they may."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields, replace

import numpy as np
import pytest

from tempriv.audit import exact
from tempriv.mechanisms.base import SeriesState
from tempriv.mechanisms.landmarks import private_count
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tests.conformance.cases import NAMED
from tests.conformance.cases.landmark import skipped_parts_stay_within_epsilon
from tests.conformance.distribution_checks import the_promise_holds
from tests.conformance.stream_checks import compiled_and_plain_and_reference_agree
from tests.mutants.landmark import Plainly
from tests.reference import landmark as reference


def losses(scheme, one, others, tail=1e-2):
    claimed = scheme.guarantee.loss.epsilon
    law = exact.distribution(scheme, one, tail)
    for other in others:
        assert scheme.unit.are_neighbors(one, other)
        there = exact.distribution(scheme, other, tail)
        yield exact.Comparison.of(law, there).pure_loss(claimed)
        yield exact.Comparison.of(there, law).pure_loss(claimed)


BITS = Laplace(epsilon=5.0, bounds=(0, 1), grid=1)
TWO = RandomizedResponse(epsilon=4.0, categories=("a", "b"))


@pytest.mark.parametrize("over", [BITS, TWO], ids=["numbers", "answers"])
@pytest.mark.parametrize(
    "make",
    [
        lambda over: UniformLandmarks(over=over, count=2),
        lambda over: AdaptiveLandmarks(over=over, count=2),
        lambda over: SplitLandmarks(over=over, count=2, length=3),
        lambda over: CountBoundLandmarks(over=over, count=2),
    ],
    ids=["uniform", "adaptive", "split", "bound"],
)
def test_streams_with_as_many_landmarks_as_announced_use_all_of_epsilon_and_no_more(make, over):
    scheme = make(over)
    marks = (1, 0, 1)
    one = tuple((0, mark) for mark in marks)
    other = tuple((1, mark) for mark in marks)
    found = max(losses(scheme, one, [other]))
    least = 2.0**-5 if isinstance(scheme, AdaptiveLandmarks) and over is TWO else 1e-6
    assert over.epsilon * (1 - least) <= found <= over.epsilon * (1 + 1e-9)
    fewer = tuple((1, mark) for mark in (0, 0, 1))
    single = ((0, 0), (1, 0), (0, 1))
    found = max(losses(scheme, single, [fewer[:1] + single[1:]]))
    assert found < 0.9 * over.epsilon


def test_drawn_bounds_keep_epsilon_whatever_they_are():
    """The bound itself may be told: epsilon holds for every one of them."""
    scheme = CountBoundLandmarks(over=TWO, count_epsilon=1.0, miss=0.1)
    assert scheme.margin == 2

    class Told(CountBoundLandmarks):
        """The bound beside each value, as the size of the noise would tell in a long series."""

        def perturb(self, readings, noise, state):
            out = super().perturb(readings, noise, state)
            return out + 10 * np.rint(self.over.epsilon / state.spent).astype(np.int64)[:, None]

    told = Told(**{f.name: getattr(scheme, f.name) for f in fields(scheme)})
    alphabet = tuple(itertools.product((0, 1), (0, 1)))
    verdict = exact.audit(told, alphabet, 3, 1e-2)
    assert verdict.holds and math.isclose(verdict.found, TWO.epsilon, rel_tol=1e-6)


@pytest.mark.parametrize(("epsilon", "miss"), [(1.0, 0.3), (0.5, 0.05), (2.0, 0.2), (3.0, 1e-3)])
def test_drawn_bounds_tell_about_one_landmark_what_is_said(epsilon, miss):
    """(epsilon, delta) exactly, from the scheme's own bounds and the law of its noise."""
    scheme = CountBoundLandmarks(over=TWO, count_epsilon=epsilon, miss=miss)
    claimed, delta = scheme.count_loss
    assert claimed == epsilon
    assert scheme.margin == reference.margin(epsilon, miss)
    length = 200

    def law(landmarks):
        state = SeriesState.fresh(scheme, 1, length)
        found = {}
        for drawn, mass in private_count.noise_of_count(epsilon).outcomes(1e-13):
            given = lambda *_, drawn=drawn: np.array([drawn])  # noqa: E731
            bound = int(scheme._drawn_bounds(np.array([landmarks]), given, state)[0])
            assert landmarks <= bound <= length, "a bound below the number of landmarks"
            found[bound] = found.get(bound, 0.0) + mass
        return found

    for landmarks in (0, 1, 20):
        one, other = law(landmarks), law(landmarks + 1)
        there = exact.Comparison.of(one, other).hockey_stick(epsilon)
        back = exact.Comparison.of(other, one).hockey_stick(epsilon)
        assert math.isclose(max(there, back), delta, rel_tol=1e-6)
    missed = delta * math.exp(-epsilon)  # Pr[Z < -margin]
    assert missed <= miss * (1 + 1e-9)


def test_a_threshold_on_the_values_breaks_a_promise_that_marks_are_fixed():
    """Why: of two series that differ in one value, one shows a repeat where the other cannot."""
    scheme = SkipLandmarks(over=BITS)
    low, high = ((0, 0), (0, 0)), ((1, 1), (0, 0))  # a landmark where the value is 1
    one, other = (exact.distribution(scheme, x, 1e-6) for x in (low, high))
    assert exact.Comparison.of(other, one).pure_loss(5.0) > 13


def test_what_a_skipped_landmark_hands_on_stays_within_epsilon():
    skipped_parts_stay_within_epsilon(NAMED["adaptive landmarks, answers"])


def test_plain_loops_of_the_mutants_are_the_scheme_itself():
    """Nothing but what a mutant changes is wrong with it."""
    for name in ("adaptive landmarks, bits", "adaptive landmarks, fine grid"):
        case = NAMED[name]
        given = {f.name: getattr(case.mechanism, f.name) for f in fields(Plainly)}
        plain = replace(case, mechanism=Plainly(**given))
        compiled_and_plain_and_reference_agree(plain)
        the_promise_holds(plain)
