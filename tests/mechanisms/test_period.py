"""A noisy pace: what it guarantees is true, what was published of it is not, by every outcome."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from tempriv.audit import exact, statistical
from tempriv.errors import TemprivError
from tempriv.mechanisms.retime.interpolation import INTERPOLATIONS
from tempriv.mechanisms.retime.noisy_curve import NoisyCurve
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.privacy.units import Event, Window
from tempriv.privacy.units.time import Pace, Timestamps
from tempriv.sampling.keys import Key
from tests.conformance.case_checks import Small, near, recorded, with_status
from tests.conformance.cases import NAMED
from tests.conformance.cases.period import RISING, TWO_PACES, at_a_noisy_pace, through_noisy_values
from tests.conformance.distribution_checks import the_promise_holds
from tests.conformance.stream_checks import _for_all_rows
from tests.support.statistics import COMPILED

pytest_plugins = ["tests.support.statistics"]

EPSILON = 2.0
FEW = SamplingPeriod(epsilon=EPSILON, window=2, tau=1.0, grid=1.0, clamp=None)
MANY = replace(FEW, grid=2.0**-3)  # periods that are whole numbers read few points of the curve


def retimed(times, step=1.0):
    """A curve that anyone may know, read at some times: rows of a value and a public step."""
    return tuple((math.sin(time) + 0.1 * time, step) for time in times)


def loss(mechanism, one, other, tail=1e-9):
    """What the outputs lose for two inputs, by all outcomes of the noise."""
    laws = [exact.distribution(mechanism, example, tail) for example in (one, other)]
    return exact.Comparison.of(*laws).pure_loss(mechanism.epsilon), laws


# what is guaranteed is true


def test_the_promise_is_about_the_pace_and_no_more_is_promised_away():
    verdict = exact.audit(FEW, ((0.0, 1.0), (3.0, 2.0)), 4, 1e-3)
    assert verdict.holds and math.isclose(verdict.found, EPSILON, rel_tol=1e-9)
    assert verdict.worst is not None
    assert FEW.guarantee == Guarantee(Pure(EPSILON), Pace(1.0, 2))


@pytest.mark.parametrize("distance", [1, 2, 3])
def test_the_loss_is_in_proportion_to_the_distance(distance):
    """e^(epsilon |T - T'| / tau), and half of it where half of the steps change."""
    usual = tuple((value, 1.0) for value in (0.0, 3.0, 1.0, 2.0))
    far = tuple((value, 1.0 + distance * (i in (1, 2))) for i, (value, _) in enumerate(usual))
    half = tuple((value, 1.0 + distance * (i == 1)) for i, (value, _) in enumerate(usual))
    assert math.isclose(loss(FEW, usual, far)[0], EPSILON * distance, rel_tol=1e-9)
    assert math.isclose(loss(FEW, usual, half)[0], EPSILON * distance / 2, rel_tol=1e-9)


def test_the_step_before_the_first_reading_and_before_the_last_are_not_used():
    usual = [(value, 1.0) for value in (0.0, 3.0, 1.0, 2.0)]
    for row in (0, 3):
        other = [*usual]
        other[row] = (usual[row][0], 50.0)
        assert loss(FEW, tuple(usual), tuple(other))[0] == 0


def lost_by(mechanism, length, later):
    """What it loses if the steps to some readings are tau longer."""
    values = [0.0, 3.0, 1.0, 2.0, 5.0, 4.0][:length]
    usual = tuple((value, 1.0) for value in values)
    slow = tuple((value, 1.0 + (i in later)) for i, value in enumerate(values))
    return loss(mechanism, usual, slow, 1e-4)[0] / mechanism.epsilon


def test_windows_add_up():
    """K windows of another pace lose K epsilon: those that w consecutive readings reach into too.

    Where each of so many readings has a step of its own, they share one epsilon between two whole
    windows; but at the end of a series, where the last step stands for those that are lacking.
    """
    mechanism = replace(FEW, epsilon=4.0)
    assert lost_by(mechanism, 6, (1, 2)) == pytest.approx(1)
    assert lost_by(mechanism, 6, (1, 2, 3, 4)) == pytest.approx(2)
    assert lost_by(mechanism, 6, (2, 3)) == pytest.approx(1)
    assert lost_by(mechanism, 5, (2, 3)) == pytest.approx(1.5)


def test_any_readings_in_a_row_are_not_covered_by_the_epsilon_of_a_window():
    mechanism = replace(FEW, epsilon=4.0)
    wide = Pace(1.0, 2).unaligned()
    claim = Guarantee(Pure(4.0), wide)
    verdict = exact.audit(mechanism, ((0.0, 1.0), (0.0, 2.0)), 5, 3e-3, claim)
    assert verdict.found == pytest.approx(6) and not verdict.holds
    assert mechanism.guarantee.for_unit(wide).loss == Pure(8.0)


LARGER = [
    ("pace, few", {"epsilon": 2.0}, Small(RISING, 4, 1e-6)),
    ("pace, few", {}, Small(TWO_PACES, 6, 1e-3)),
    ("pace, few", {"interpolation": "hermitian"}, Small(RISING, 5, 5e-2)),
    ("pace and shift, few", {"window": 2}, Small(((0.0, 0.0, 1.0), (3.0, 1.0, 2.0)), 4, 1e-3)),
    ("times, three", {}, Small((0.0, 1.0), 4, 1e-3)),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "other", "small"), LARGER, ids=lambda part: str(part)[:40])
def test_promises_hold_on_larger_instances(name, other, small):
    case = NAMED[name]
    the_promise_holds(replace(case, mechanism=replace(case.mechanism, **other), smalls=(small,)))


# what was published is not


def published(mechanism):
    """(epsilon, w, tau)-event privacy: the times of any w consecutive readings move by tau."""
    return Guarantee(Pure(mechanism.epsilon), Timestamps(mechanism.tau, mechanism.window))


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("clamp", ["safe", None], ids=str)
def test_one_reading_moved_in_time_is_told_for_certain(interpolation, clamp):
    """Hardly an output comes of both inputs, whatever epsilon: those that miss that reading."""
    mechanism = replace(MANY, interpolation=interpolation, clamp=clamp)
    assert not mechanism.published.holds
    claim = published(mechanism)
    times = (0.0, 1.0, 2.0, 3.0)
    moved = (0.0, 1.0, 1.9, 3.0)
    assert claim.unit.are_neighbors(times, moved)
    found, laws = loss(mechanism, retimed(times), retimed(moved))
    shared = laws[0].keys() & laws[1].keys()
    assert math.fsum(laws[0][output] for output in shared) < 0.15
    assert found == math.inf


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_a_common_shift_is_told_for_certain(interpolation):
    mechanism = replace(FEW, interpolation=interpolation)
    times = np.arange(4.0)
    one, other = retimed(times), retimed(times + 0.1)
    found, laws = loss(mechanism, one, other)
    assert found == math.inf and not laws[0].keys() & laws[1].keys()


def test_a_value_changed_by_a_hundredth_is_told_for_certain():
    claim = Guarantee(Pure(EPSILON), Event())
    verdict = exact.audit(FEW, ((0.0, 1.0), (0.01, 1.0)), 3, 1e-10, claim)
    assert not verdict.holds and verdict.found == math.inf
    # ... beside the guarantee that is kept on the same values
    assert exact.audit(FEW, ((0.0, 1.0), (0.01, 2.0)), 3, 1e-6).holds


def test_more_noise_on_the_pace_does_not_help():
    for epsilon in (2.0, 1.0, 0.5):
        mechanism = replace(FEW, epsilon=epsilon, clamp="safe")
        found, _ = loss(mechanism, retimed((0, 1, 2, 3)), retimed((0, 1.1, 2, 3)), 1e-10)
        assert found == math.inf


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_a_window_of_equal_values_leaves_as_it_is(interpolation, rng):
    mechanism = SamplingPeriod(
        epsilon=0.1, window=5, tau=1.0, interpolation=interpolation, pace="public"
    )
    values = rng.normal(size=(32, 1))
    values[10:17] = 3.25  # the readings of the third window
    stream = mechanism.start(Key.from_seed(2), "a")
    out = np.ma.concatenate([stream.push(values), stream.finish()])
    assert np.allclose(out[11:16], 3.25, rtol=1e-13)
    others = [*range(1, 11), *range(16, 31)]
    assert np.abs(out[others] - values[others]).max() > 0.5


def test_a_public_pace_promises_nothing_and_says_why():
    mechanism = SamplingPeriod(epsilon=1.0, window=8, tau=1.0, pace="public")
    assert isinstance(mechanism.guarantee, NoGuarantee)
    assert "public" in mechanism.guarantee.sentence and not mechanism.published.holds
    with pytest.raises(TemprivError, match="nothing is guaranteed"):
        statistical.audit(mechanism, runs=1_000)


# the same by runs


RUNS = 40_000 if COMPILED else 4_000
HELD = {
    "pace": SamplingPeriod(epsilon=1.0, window=8, tau=1.0),
    "clamped far out": SamplingPeriod(epsilon=1.0, window=3, tau=2.0, clamp=(0.01, 30.0)),
    "unclamped": SamplingPeriod(
        epsilon=2.0, window=5, tau=15.0, period=10.0, clamp=None, interpolation="printed", columns=2
    ),
    "shift": SamplingPeriod(epsilon=2.0, window=4, tau=1.0, shift=3.0, clamp=None),
    "times": NoisyTimes(epsilon=1.0, tau=60.0),
    "three times": NoisyTimes(epsilon=2.0, tau=1.0, window=3),
    "curve": NoisyCurve(epsilon=1.0, bounds=(0, 5), window=4),
    "curve of windows": NoisyCurve(epsilon=2.0, bounds=(0, 5), window=4, unit=Window(2), waves=6),
}


@pytest.mark.parametrize("name", HELD)
def test_the_statistical_audit_spares_what_is_promised(name, seed):
    """At alpha 1e-6. For a pace it finds at least half of epsilon, so it does look."""
    mechanism, sure = HELD[name], 1 - 1e-6
    verdict = statistical.audit(mechanism, runs=RUNS, confidence=sure, key=Key.from_seed(seed))
    assert verdict.holds, verdict.sentence
    if not isinstance(mechanism, NoisyCurve):
        assert verdict.found > 0.5 * mechanism.epsilon * (1 if COMPILED else 0.5)


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_the_statistical_audit_breaks_what_was_published(interpolation, seed):
    """One reading moved by a tenth of tau, epsilon 1: p-value at most 1e-9."""
    mechanism = SamplingPeriod(epsilon=1.0, window=8, tau=1.0, interpolation=interpolation)
    times = np.arange(10.0)
    moved = times + 0.1 * (times == 4)
    claim = published(mechanism)
    assert claim.unit.are_neighbors(tuple(times), tuple(moved))
    pairs = [(retimed(times), retimed(moved))]
    broken = statistical.audit(mechanism, claim.loss, pairs, runs=RUNS, key=Key.from_seed(seed))
    assert not broken.holds and broken.p_value <= 1e-9, broken.sentence
    assert "CLAIM BROKEN" in broken.sentence


# statements


def mean_change(mechanism):
    """By all outcomes: how far the noisy period is from the public one, on average."""
    unit = mechanism.grid / mechanism.window
    usual = round(mechanism.period / unit)
    low, high = (-math.inf, math.inf) if mechanism.clamp is None else mechanism.clamp
    return math.fsum(
        mass * abs(min(max((usual + k) * unit, low), high) - mechanism.period)
        for k, mass in mechanism.distributions[0].outcomes(1e-13)
    )


@pytest.mark.parametrize(
    "clamp", ["safe", None, (0.5, 4.0), (1.5, 3.0), (0.25, 0.75), (1.0, 1.0), (3.0, 3.0)], ids=str
)
def test_stated_errors_are_exact(clamp):
    """Also where the public period itself is out of bounds."""
    given = {"epsilon": 1.5, "window": 4, "tau": 1.0, "clamp": clamp, "grid": 0.125}
    mechanism = SamplingPeriod(columns=2, **given)
    *points, step = mechanism.errors
    assert math.isclose(step, mean_change(mechanism), rel_tol=1e-9, abs_tol=1e-12)
    # the place of point i is off by i times that, i = 1 to w
    assert points == [pytest.approx(step * (1 + 2 + 3 + 4) / 4)] * 2
    public = SamplingPeriod(pace="public", **given)
    assert public.errors == (pytest.approx(points[0]),)


def test_a_shift_adds_its_own_error():
    mechanism = SamplingPeriod(epsilon=2.0, window=4, tau=1.0, shift=3.0, grid=0.25)
    point, late, step = mechanism.errors
    law = mechanism.distributions[1]
    mean = math.fsum(abs(k) * mass for k, mass in law.outcomes(1e-13)) * 0.25 / 4
    assert late == pytest.approx(mean, rel=1e-6)
    assert point >= max(late, step * 2.5)


def test_noise_is_for_the_times_as_they_lie_on_the_grid():
    for tau, grid, widest in ((1.0, 1.0, 1), (1.5, 1.0, 2), (1.0, 0.25, 4), (0.3, 0.25, 2)):
        mechanism = SamplingPeriod(epsilon=0.5, window=3, tau=tau, grid=grid)
        assert mechanism.distributions[0].scale == 3 * widest / 0.5
        one = NoisyTimes(epsilon=0.5, tau=tau, grid=grid)
        assert one.distribution.scale == widest / 0.5
        assert replace(one, window=4).distribution.scale == 4 * widest / 0.5
    # rounded down, two times within tau are never further apart than that
    times = np.random.default_rng(1).uniform(-50, 50, 10_000)
    for tau, grid, widest in ((1.5, 1.0, 2), (0.3, 0.25, 2)):
        form = NoisyTimes(epsilon=1.0, tau=tau, grid=grid).domain
        for other in (times + tau, np.nextafter(times + tau, -np.inf), times + tau / 2):
            near_enough = np.abs(other - times) <= tau
            steps = form.to_grid(other[:, None]) - form.to_grid(times[:, None])
            assert np.abs(steps[near_enough, 0]).max() <= widest


def test_one_time_that_is_nearer_than_tau_loses_less():
    """Definition 4 of the paper: epsilon in proportion to the distance."""
    times = NoisyTimes(epsilon=2.0, tau=4.0, grid=1.0)
    for distance in (0.0, 1.0, 2.0, 4.0, 6.0):
        laws = [exact.distribution(times, (time,), 1e-9) for time in (10.0, 10.0 + distance)]
        found = exact.Comparison.of(*laws).pure_loss(1e9)
        assert math.isclose(found, times.loss_at(distance).epsilon, rel_tol=1e-9, abs_tol=1e-12)
        assert math.isclose(found, 2.0 * distance / 4.0, rel_tol=1e-9, abs_tol=1e-12)
    three = NoisyTimes(epsilon=2.0, tau=4.0, grid=1.0, window=3)
    assert three.loss_at(4.0).epsilon == pytest.approx(2.0)
    assert three.published.holds and "Theorem 3" in three.published.source


def test_curves_of_noisy_values_keep_the_promise_of_the_noise():
    curve = NoisyCurve(epsilon=1.5, bounds=((0, 5), (-1, 1)), window=6, unit=Window(3))
    assert curve.distributions == curve.noisy.distributions and curve.guarantee.unit == Window(3)
    assert curve.guarantee.loss == Pure(1.5) == curve.noisy.guarantee.loss
    assert curve.published.holds


# gaps, in values and in steps


@pytest.mark.parametrize(
    "name",
    ["pace", "pace, taxis", "pace, as printed", "pace, public", "pace and shift", "curve, window"],
)
def test_gaps_are_bridged_and_missing_steps_are_the_public_ones(name):
    """By the definitions, with noise as it was drawn."""
    case = NAMED[name]
    rows = case.gappy(60, "bridged")
    with recorded() as drawn:
        case.release(rows, case.key(5))
    define = through_noisy_values if isinstance(case.mechanism, NoisyCurve) else at_a_noisy_pace
    expected = define(case.mechanism)(rows, _for_all_rows(drawn))
    made, status = with_status(case, rows, case.key(5))
    assert near(made, expected.rows) and status == expected.status


def test_a_window_without_any_reading_is_empty_in_values_and_tells_its_step():
    mechanism = SamplingPeriod(epsilon=1.0, window=3, tau=1.0, columns=1)
    rows = np.ma.array(np.ones((14, 2)), mask=np.zeros((14, 2), dtype=bool))
    rows[3:12, 0] = np.ma.masked
    stream = mechanism.start(Key.from_seed(1), "a")
    out = np.ma.concatenate([stream.push(rows), stream.finish()])
    gone = np.ma.getmaskarray(out)
    assert gone[:, 0].tolist() == [True, False, False, *[True] * 9, False, True]
    assert gone[:, 1].tolist() == [True, *[False] * 12, True]


# what may be given


def test_the_safe_clamp_reads_within_the_window_and_in_order():
    for window, period in itertools.product((1, 2, 8, 100), (1.0, 15.0)):
        low, high = SamplingPeriod(epsilon=1.0, window=window, tau=period, period=period).clamp
        assert low == period / 2 and math.isclose(high * window, period * (window + 1))
        assert low < period < high


def test_a_clamp_is_kept_on_the_grid():
    with pytest.raises(TemprivError, match="no noisy period lies in it"):
        SamplingPeriod(epsilon=0.1, window=3, tau=1.0, grid=0.5, clamp=(0.51, 0.52))
    for clamp in ((0.3, 0.9), (0.45, 0.6), (0.5, 0.5)):
        mechanism = SamplingPeriod(epsilon=0.1, window=3, tau=1.0, grid=0.5, clamp=clamp)
        stream = mechanism.start(Key.from_seed(1), "a")
        rows = np.ones((900, 2))
        told = np.ma.compressed(np.ma.concatenate([stream.push(rows), stream.finish()])[:, 1])
        step = 0.5 / 3
        assert set(np.rint(told / step) * step) == set(told)
        assert told.min() >= clamp[0] - 1e-12, "lower than the public bound"
        assert told.max() <= clamp[1] + 1e-12, "higher"


def test_shapes_are_refused_with_what_to_do():
    mechanism = SamplingPeriod(epsilon=1.0, window=8, tau=1.0, columns=2)
    with pytest.raises(TemprivError, match="2 value columns, but the mechanism is set up for 3"):
        mechanism.start(Key.from_seed(1), "a").push(np.zeros((4, 2)))
    with pytest.raises(TemprivError, match="shift=1.0: must be left out where the pace is public"):
        SamplingPeriod(epsilon=1.0, window=8, tau=1.0, shift=1.0, pace="public")
    with pytest.raises(TemprivError, match="2\\^.* grid steps: choose a coarser grid"):
        SamplingPeriod(epsilon=1e-9, window=8, tau=1.0)
