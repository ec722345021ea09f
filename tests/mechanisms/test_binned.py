"""Running sums by bins: the sensitivity of what is really added up, and the stated errors."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tempriv.mechanisms.base import SeriesState
from tempriv.mechanisms.counting import binned
from tempriv.mechanisms.counting.binned import Binned, changed_square, coefficients
from tempriv.mechanisms.counting.running_count import RunningCount
from tempriv.mechanisms.counting.tree import LONGEST
from tempriv.privacy import serialization
from tempriv.privacy.units import Contribution, Event, Window
from tempriv.sampling.keys import Key
from tests.reference import counting as reference

MILLION = 10**6


@pytest.mark.parametrize("width", [1, 2, 16])
@pytest.mark.parametrize("steps", [1, 3])
def test_no_change_makes_more_than_is_paid_for(width, steps):
    """Of the matrix with bins, at every place of the changes, also where they are merged."""
    horizon, bits = 150, 12
    column = reference.binned_coefficients(horizon, bits)
    assert column == coefficients(bits)[:horizon].tolist()
    matrix = np.array(reference.binned_matrix(horizon, column, width), dtype=object)
    paid = changed_square(bits, steps, horizon)
    for start in range(horizon - steps + 1):
        changed = matrix[:, start : start + steps].sum(axis=1)
        assert sum(x * x for x in changed) <= paid
    if steps == 1:
        assert sum(x * x for x in matrix[:, 0]) == paid, "the first step reaches it"


def test_sensitivities_of_long_streams_are_never_too_small():
    column = coefficients(22)
    starts = binned.block_starts()
    length = 1 << 18
    exact = column[np.searchsorted(starts, np.arange(length), side="right") - 1].astype(object)
    assert changed_square(22, 1, length) == int((exact**2).sum())
    sums = np.cumsum(exact)
    sums[5:] -= sums[:-5].copy()
    five = int((sums**2).sum())
    assert five <= changed_square(22, 5, length) <= five * 1.001


def test_errors_follow_from_the_matrix():
    """Of sums and their differences, over the steps where bins of several sizes are merged."""
    horizon = 500
    plan: Binned = RunningCount(rho=0.5, bounds=(0, 1), grid=1).plans[0]
    column = coefficients(plan.bits)[:horizon].tolist()
    matrix = np.array(reference.binned_matrix(horizon, column, binned.WIDTH), dtype=np.float64)
    back = np.linalg.solve(matrix.T, np.tril(np.ones((horizon, horizon))).T).T
    for count in (1, 10, 100, horizon):
        exact = plan.noise.mean_square * float((back[count - 1] ** 2).sum())
        assert plan.variance_at(count) == pytest.approx(exact, rel=0.015)
    between = plan.noise.mean_square * float(((back[449] - back[399]) ** 2).sum())
    assert plan.variance_between(400, 450) == pytest.approx(between, rel=0.015)


@pytest.mark.parametrize(
    "given",
    [
        {"bounds": (0, 1)},
        {"bounds": (0, 1), "grid": 1},
        {"bounds": (0, 9), "unit": Contribution(Event())},
    ],
)
def test_the_error_after_a_million_steps_is_half_that_of_epochs(given):
    """At most 6.8 at rho .5; epochs have 13.6, a horizon that is known 5.5."""
    chosen = RunningCount(rho=0.5, **given)
    assert chosen.method == "binned" and chosen.memory_size < 1400
    assert chosen.error_at(MILLION) <= 6.8
    assert RunningCount(rho=0.5, method="tree", **given).error_at(MILLION) > 13
    assert RunningCount(rho=0.5, horizon=MILLION, **given).error_at(MILLION) > 5.4
    errors = [chosen.error_at(2**n) for n in range(0, 41, 4)]
    assert errors == sorted(errors) and errors[-1] < 100


def test_released_sums_err_as_stated():
    """150 series at 60 places; the seeds are fixed. It detects noise a tenth too small or large."""
    mechanism = RunningCount(rho=0.5, bounds=(0, 1), grid=1)
    steps = np.arange(1, 1001)
    errors = [
        np.asarray(mechanism.start(Key.from_seed(seed)).push(np.ones(1000))).ravel() - steps
        for seed in range(150)
    ]
    places = np.unique(np.geomspace(1, 1000, 60).astype(int))
    squares = np.array(errors)[:, places - 1] ** 2
    stated = [mechanism.error_at(int(count)) ** 2 for count in places]
    assert squares.mean() / np.mean(stated) == pytest.approx(1.0, abs=0.2)


def test_a_stream_goes_on_to_two_to_the_forty():
    mechanism = RunningCount(rho=0.5, bounds=(0, 1), grid=1)
    plan, steps = mechanism.plans[0], 20
    state = SeriesState(
        counts=np.array([steps]),
        starts=np.array([LONGEST - steps]),
        missing=np.zeros((steps, 1), dtype=np.bool_),
        memory=np.zeros((1, mechanism.memory_size), dtype=np.int64),
    )

    def silence(law, purpose):
        return np.zeros(steps, dtype=np.int64)

    out = mechanism.perturb(np.ones((steps, 1), dtype=np.int64), silence, state)
    assert (out[:, 0] * plan.step).tolist() == list(range(1, steps + 1))


def test_old_specs_keep_their_method():
    """0.8.0 wrote no method where it chose one, and chose a tree for streams without an end."""
    old = {"is": "RunningCount", "bounds": [[0.0, 1.0]], "epsilon": None, "rho": 0.5}
    old |= {"horizon": None, "method": None, "branching": None, "bits": None}
    old |= {"unit": {"is": "Event"}, "grid": [1.0]}
    read = serialization.decode(old, (RunningCount, Event))
    assert read.method_used == "tree" and serialization.encode(read) == old
    new = RunningCount(rho=0.5, bounds=(0, 1), grid=1)
    again = serialization.decode(
        json.loads(json.dumps(serialization.encode(new))), (RunningCount, Event)
    )
    assert again == new and again.method == "binned"
    # where the choice is that of 0.8.0, so is the spec
    assert RunningCount(rho=0.5, bounds=(0, 1), horizon=99).method is None


def test_units_of_many_steps_have_more_noise():
    day = RunningCount(rho=0.5, bounds=(0, 1), grid=1, unit=Window(24))
    one = RunningCount(rho=0.5, bounds=(0, 1), grid=1)
    assert math.sqrt(24) < day.error_at(1000) / one.error_at(1000) < 24 * math.sqrt(24)
