"""Reports of mechanisms that do more than put noise on each value: every sentence must be true."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tempriv.mechanisms import (
    ALL,
    BudgetAbsorption,
    BudgetDistribution,
    Fast,
    FourierPerturbation,
    MemoizedResponse,
    RunningCount,
    SampleOnce,
    SparseVector,
    UniformBudget,
)
from tempriv.mechanisms.run import release
from tempriv.plots import kind_of, plot_release
from tempriv.randomness import Key
from tempriv.report import page
from tempriv.report_samples import PrivateSample
from tempriv.series import Block, Series
from tempriv.units import Contribution, WholeSeries, Window
from tests.test_report import made, words

BOUNDS: Any = {"bounds": (0, 5)}
WHOLE: Any = {**BOUNDS, "unit": WholeSeries(60)}
ALARM = SparseVector(epsilon=9000.0, threshold=2.5, most=4, **WHOLE)
CHANCE = SparseVector(epsilon=1.0, threshold=3, most=4, **WHOLE)
SUMS = RunningCount(rho=0.5, horizon=60, unit=Contribution(), **BOUNDS)
WINDOWED = [
    one(epsilon=1.0, unit=Window(6), **BOUNDS)
    for one in (SampleOnce, BudgetDistribution, BudgetAbsorption)
]
FAST = Fast(epsilon=1.0, samples=20, wander=1, **WHOLE)
WAVES = FourierPerturbation(epsilon=1.0, coefficients=9, **WHOLE)
ANSWERS = MemoizedResponse(epsilon_forever=2.0, categories=("no", "yes"))

AVERAGED = "average over 24"
NOISE_ON_EACH = "random noise was added to each"


def readings() -> Series:
    values = [None if i == 5 else float(i % 6) for i in range(60)]
    return Series(pa.table({"kWh": pa.array(values, pa.float64())}), values=("kWh",))


def told(mechanism: Any) -> tuple[str, str, str]:
    """The public page, its words, and those of the private one."""
    series = readings()
    if mechanism is ANSWERS:
        series = Series(pa.table({"said": ["no", "yes"] * 30}), values=("said",))
    about, public, private = made(series, mechanism)
    text = page(about, public)
    return text, words(text), words(page(about, private))


def test_alerts_are_told_as_answers() -> None:
    text, public, private = told(ALARM)
    assert "each says only whether a reading was at or above a threshold" in public
    assert NOISE_ON_EACH not in public and "below zero" not in public and AVERAGED not in public
    assert "± expected error" not in public and 'class="band"' not in text
    assert "1 is an alert, a step whose reading was at or above 2.5" in public
    assert "After 4 alerts the output of a series ends" in public
    assert "mostly chance" not in public
    assert "at the threshold, 2.5 50" in public and "how often the answer was another" in private


def test_alerts_that_are_chance_are_a_warning() -> None:
    text, public, _ = told(CHANCE)
    assert CHANCE.errors[0] > 5 and "These alerts are mostly chance" in public
    assert 'class="alarm" role="alert"' in text
    low, high = (f"{100 * CHANCE.alert_rate(reading):.0f}" for reading in (0, 5))
    assert f"with a chance of {low} %, at the upper bound with {high} %" in public


def test_the_chance_of_an_alert_is_that_of_the_mechanism() -> None:
    """First answers of 4000 series each; 0.04 is five standard errors, fixed seed."""
    alarm = SparseVector(epsilon=50.0, bounds=(0, 5), threshold=3, most=1, unit=WholeSeries(1))
    for reading in (2.5, 3.0, 3.2):
        table = pa.table({"s": range(4000), "v": [reading] * 4000})
        found = release(table, alarm, values="v", series="s", key=Key.from_seed(4)).values
        assert np.mean(found) == pytest.approx(alarm.alert_rate(reading), abs=0.04)
    assert 0.05 < alarm.alert_rate(2.5) < 0.4 and 0.6 < alarm.alert_rate(3.2) < 0.95


def test_alerts_measured_against_readings_and_drawn() -> None:
    """With hardly any noise no answer is wrong; and there is no band about answers."""
    about, _, private = made(readings(), ALARM)
    assert kind_of(about) == "alerts"
    size, _, _ = private.measured(0)
    assert size == 0 and 0 < private.compared[0] < 60
    figure = plot_release(release(readings().source, ALARM, values="kWh"))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["no alert", "alert"]
    assert [type(one).__name__ for one in axes.collections] == ["LineCollection"]  # no band


@pytest.mark.parametrize("mechanism", [ALARM, *WINDOWED, FAST])
def test_statuses_are_explained_wherever_there_are_some(mechanism: Any) -> None:
    sentence = "The column “status” tells fresh values (“released”"
    assert all(sentence in text for text in told(mechanism)[1:])
    assert sentence not in told(SUMS)[1]


@pytest.mark.parametrize(
    ("mechanism", "sentences"),
    [
        *((one, ["the others repeat the last of these", "A repeated value has the error of the one "
          "that it repeats", "one fresh value"]) for one in WINDOWED),
        (FAST, ["estimated from a few readings", "the estimate stands still", "one sample"]),
        (WAVES, ["a few slow waves", "The waves are smooth", "± expected error by noise"]),
        (SUMS, ["the sum of all readings of its series so far", "Expected errors of sums",
                "the difference of their sums", "± expected error of a sum"]),
        (ANSWERS, ["drawn at random, once", "share over 24 series", "Count one report of each "
                   "series"]),
    ],
    ids=lambda one: getattr(type(one), "__name__", "") if hasattr(one, "unit") else "",
)  # fmt: skip
def test_each_mechanism_is_told_in_true_sentences(mechanism: Any, sentences: list[str]) -> None:
    _, public, _ = told(mechanism)
    for sentence in sentences:
        assert sentence in public, sentence
    assert NOISE_ON_EACH not in public and AVERAGED not in public
    assert "every average would be shifted" not in public


def test_noise_on_every_value_is_still_told_as_such() -> None:
    _, public, _ = told(UniformBudget(epsilon=1.0, unit=Window(6), **BOUNDS))
    assert NOISE_ON_EACH in public and AVERAGED in public


def test_running_sums_are_measured_against_sums() -> None:
    """Three series, the second cut between two blocks, with a missing reading."""
    values = np.arange(12.0)[:, None]
    missing = values == 6
    true = np.array([0, 1, 3, 3, 7, 12, 12, 19, 27, 9, 19, 30.0])[:, None]
    off = np.where(np.arange(12) % 2, 2.0, 0.0)[:, None]
    sample = PrivateSample(SUMS)
    for rows, ids, counts, starts in (
        (slice(0, 5), ("a", "b"), [3, 2], [0, 0]),
        (slice(5, 12), ("b", "c"), [4, 3], [2, 0]),
    ):
        rest: Any = (missing[rows], ids, np.array(counts), np.array(starts))
        sample.watch(Block(values[rows], *rest), Block((true + off)[rows], *rest))
    size, bias, _ = sample.measured(0)
    assert (size, bias) == (pytest.approx(math.sqrt(24 / 11)), pytest.approx(12 / 11))
    drawn = np.concatenate([trace.values for trace in sample.private.traces.values()])
    assert np.array_equal(drawn, np.where(missing, np.nan, true), equal_nan=True)


def test_no_mechanism_is_left_out_here() -> None:
    """A new one is told of as noise on each value, which must not be by oversight."""
    reported = {type(one) for one in (ALARM, SUMS, *WINDOWED, FAST, WAVES, ANSWERS)}
    simple = {"Laplace", "Gaussian", "RandomizedResponse", "PlanarLaplace", "UniformBudget"}
    assert {one.__name__ for one in set(ALL) - reported} == simple, "tell of the new one too"
