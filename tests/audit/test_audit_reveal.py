"""Observers who name landmarks from released rows: whom they find, and whom they cannot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tempriv.audit.attacks.landmarks import PLANAR_STEP, _part_for, _step_at, landmarks_shown
from tempriv.errors import TemprivError
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.units import WithinDistance
from tests.support.statistics import assert_proportion

NUMBERS = Laplace(epsilon=1.0, bounds=(0, 5))
PLACES = PlanarLaplace(epsilon=1.0, unit=WithinDistance(200), origin=(39.9, 116.4))
CHOICES = RandomizedResponse(epsilon=4.0, categories=("a", "b", "c"))
STEPS = np.arange(600)
MARKS = np.random.default_rng(3).permutation(600) < 60  # scattered, at no regular steps
RUNS = 20
OVER = [NUMBERS, PLACES, CHOICES]


def over_name(over: Any) -> str:
    return type(over).__name__


def readings(over: Any, marks: np.ndarray = MARKS) -> np.ndarray:
    """Readings that have nothing to do with the marks."""
    wave = 2 + np.sin(2 * np.pi * STEPS / 24)
    columns = {
        Laplace: [wave],
        PlanarLaplace: [39.9 + STEPS / 1e5, 116.4 - STEPS / 1e5],
        RandomizedResponse: [STEPS // 100 % 3],
    }[type(over)]
    return np.column_stack([*columns, marks])


@pytest.mark.parametrize("over", OVER, ids=over_name)
def test_skipped_landmarks_are_all_found_and_nothing_else_is(over: Any) -> None:
    shown = landmarks_shown(SkipLandmarks(over=over), readings(over), runs=RUNS)
    for attack in ("repeats", "budgets"):
        assert (shown[attack].precision, shown[attack].recall) == (1, 1)
    assert shown.count == (60, 0)


@pytest.mark.parametrize("over", OVER, ids=over_name)
@pytest.mark.parametrize("kind", [UniformLandmarks, CountBoundLandmarks])
def test_equal_noise_shows_no_landmark(kind: Any, over: Any) -> None:
    """Blindly 10 % are right; 1200 named rows, alpha 1e-9, an attack with 19 % would show."""
    given = {"count": 60} if kind is CountBoundLandmarks else {}
    shown = landmarks_shown(kind(over=over, **given), readings(over), runs=RUNS)
    for attack in ("repeats", "falling noise", "budgets"):
        assert not shown[attack].named
    guess = shown["size of noise"]
    assert guess.named == guess.landmarks == 60 * RUNS and guess.blind_precision == 0.1
    assert_proportion(guess.right, guess.named, 0.1, detects=0.9)


@pytest.mark.parametrize("over", [NUMBERS, PLACES], ids=over_name)
def test_the_size_of_noise_shows_how_many_landmarks_there_are(over: Any) -> None:
    """600 rows tell the scale to some percent; the wave adds less than that at this noise."""
    mean, spread = landmarks_shown(
        UniformLandmarks(over=over), readings(over), runs=RUNS
    ).count or (
        0,
        0,
    )
    assert abs(mean - 60) < 3 and 0 < spread < 6
    bounded = CountBoundLandmarks(over=over, count=200)
    mean, _ = landmarks_shown(bounded, readings(over), runs=RUNS).count or (0, 0)
    assert abs(mean - 200) < 12, "the bound, and not the number"


@pytest.mark.parametrize("over", [NUMBERS, PLACES], ids=over_name)
def test_unequal_noise_shows_most_landmarks(over: Any) -> None:
    """Ten times as much noise: more than 7 of 10 named rows are right, blindly one."""
    shown = landmarks_shown(SplitLandmarks(over=over), readings(over), runs=RUNS)
    assert shown["size of noise"].precision > 0.7
    assert (shown["budgets"].precision, shown["budgets"].recall) == (1, 1)
    assert shown.count is None


def test_unequal_noise_on_categories_shows_a_little() -> None:
    shown = landmarks_shown(SplitLandmarks(over=CHOICES), readings(CHOICES), runs=RUNS)
    assert 0.1 < shown["size of noise"].precision < 0.5


def test_a_habit_is_shown_completely() -> None:
    """Landmarks at the same 6 of every 60 steps, ten times: their noise stands out on average."""
    rows = readings(NUMBERS, STEPS % 60 < 6)
    scheme = SplitLandmarks(over=NUMBERS)
    once = landmarks_shown(scheme, rows, runs=RUNS)["size of noise"]
    habit = landmarks_shown(scheme, rows, runs=RUNS, period=60)["size of noise"]
    assert once.precision < 0.95 < habit.precision


@pytest.mark.parametrize("over", OVER, ids=over_name)
def test_repeats_by_chance_show_nothing_but_budgets_would(over: Any) -> None:
    """What AdaptiveLandmarks repeats does not depend on marks; blindly 10 % are right.

    Over all runs at least 2000 rows repeat: alpha 1e-9, an attack with 16 % would show.
    """
    scheme = AdaptiveLandmarks(over=over, decrease=0.5)
    shown = landmarks_shown(scheme, readings(over), runs=RUNS)
    repeats, budgets = shown["repeats"], shown["budgets"]
    assert repeats.named > 2000
    assert_proportion(repeats.right, repeats.named, 0.1, detects=0.6)
    # a part that falls by rounding may hide one or two
    assert budgets.right > 0.9 * repeats.right and budgets.precision > 1.3 * repeats.precision
    assert shown["falling noise"].named


def test_a_blind_guess_and_sentences() -> None:
    shown = landmarks_shown(UniformLandmarks(over=NUMBERS), readings(NUMBERS), runs=2)
    guess = shown["size of noise"]
    assert guess.blind_recall == guess.named / guess.readings == 0.1
    assert guess.sentence.startswith("size of noise: finds ") and "(blindly 10 %)" in guess.sentence
    assert shown["repeats"].sentence == "repeats: names nothing"
    assert math.isnan(shown["repeats"].precision)
    none = landmarks_shown(SkipLandmarks(over=NUMBERS), readings(NUMBERS, 0 * STEPS), runs=1)
    assert math.isnan(none["repeats"].recall) and none.count == (0, 0)


@pytest.mark.parametrize("over", OVER, ids=over_name)
def test_the_part_is_found_from_the_step_that_it_makes(over: Any) -> None:
    for part in (1.0, 0.3, 0.01):
        assert _part_for(over, _step_at(over, part)) == pytest.approx(part, rel=1e-6)
    assert _part_for(over, 0.0) == 1, "more than all of epsilon is not there"


def test_the_distance_of_two_planar_draws() -> None:
    """By simulation: 400,000 pairs, 0.02 is six standard errors."""
    rng = np.random.default_rng(1)
    angle, radius = rng.uniform(0, 2 * np.pi, (2, 400_000)), rng.gamma(2, 1, (2, 400_000))
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    assert np.hypot(x[0] - x[1], y[0] - y[1]).mean() == pytest.approx(PLANAR_STEP, abs=0.02)


def test_refusals() -> None:
    rows, scheme = readings(NUMBERS), SkipLandmarks(over=NUMBERS)
    wrong: Any = NUMBERS
    with pytest.raises(TemprivError, match="one of the landmark schemes"):
        landmarks_shown(wrong, rows)
    with pytest.raises(TemprivError, match="runs=0"):
        landmarks_shown(scheme, rows, runs=0)
    with pytest.raises(TemprivError, match="no missing readings"):
        landmarks_shown(scheme, np.ma.masked_greater(rows, 2.5))
    with pytest.raises(TemprivError, match="two rows at least"):
        landmarks_shown(scheme, rows[:1])
    with pytest.raises(TemprivError, match="period=601"):
        landmarks_shown(scheme, rows, period=601)
