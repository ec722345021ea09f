"""Every mechanism does what every mechanism must do."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempriv.errors import TemprivError
from tempriv.mechanisms import registry
from tempriv.mechanisms.landmarks.domain import without_landmarks
from tempriv.mechanisms.perturb import limit_of
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy.units import Event, Person, WholeSeries, Window
from tests.conformance.case_checks import Case, quick
from tests.conformance.cases import CASES
from tests.conformance.checks import CHECKS
from tests.conformance.distribution_checks import the_promise_holds
from tests.conformance.spec_checks import memory_stays_flat
from tests.conformance.stream_checks import compiled_and_plain_and_reference_agree
from tests.support.statistics import COMPILED

ALWAYS = (the_promise_holds, compiled_and_plain_and_reference_agree)
FULLY = 1  # cases of a mechanism that take every check each time; the others in the long tier

# a second or more to enumerate: their guarantees are for the long tier, while quicker cases of the
# same mechanism, for the same kind of unit, are enumerated each time
LONGER = {
    *("laplace, unlike columns, window", "laplace, per column", "gaussian, event"),
    *("gaussian, two columns", "gaussian, counts", "places, two readings", "alerts, counts"),
    *("distribution, three steps", "distribution, unlike columns", "absorption, unlike columns"),
    *("square root, event", "square root, window", "square root, person", "square root, people"),
    *("tree, event", "tree, three steps", "tree of threes, event", "tree, window"),
    *("tree, people", "tree, two columns", "tree, gaussian, event", "increments, event"),
    *("increments, gaussian, window", "endless, event", "endless, window"),
    *("endless, gaussian, window", "waves, event", "waves, short series"),
    *("waves, gaussian, window", "waves, counts in two columns", "noisy order, whole"),
    *("noisy order, whole, three rows", "line, window", "pegasus, event", "pegasus, two columns"),
    *("pegasus, sums in two cells", "pace, few", "uniform landmarks, bits"),
    *("uniform landmarks, answers", "uniform landmarks, places", "skip landmarks, two answers"),
    *("split landmarks, bits", "bounded landmarks, a drawn bound for answers"),
    *("adaptive landmarks, bits", "adaptive landmarks, places"),
}


def _all() -> list:
    """Every check of every case; of a mechanism's further cases most are for the long tier."""
    seen: Counter[type] = Counter()
    found = []
    for case in CASES:
        seen[type(case.mechanism)] += 1
        for check in CHECKS:
            late = seen[type(case.mechanism)] > FULLY and check not in ALWAYS
            late |= check is the_promise_holds and case.name in LONGER
            marks = [pytest.mark.long] if late else []
            if seen[type(case.mechanism)] == 1 and check is compiled_and_plain_and_reference_agree:
                marks.append(pytest.mark.quick)
            name = f"{case.name}-{check.__name__}"
            found.append(pytest.param(case, check, marks=marks, id=name))
    return found


@pytest.mark.parametrize(("case", "check"), _all())
def test_conformance(case, check):
    if check is memory_stays_flat and not COMPILED:
        pytest.skip("tracing every step of a plain kernel takes long and shows no more")
    check(case)


def test_every_mechanism_has_cases():
    assert {type(case.mechanism) for case in CASES} == set(registry.classes())


@pytest.mark.parametrize("kind", registry.classes(), ids=lambda kind: kind.__name__)
def test_every_mechanism_is_audited_for_each_of_its_units(kind):
    units = {type(case.unit) for case in CASES if isinstance(case.mechanism, kind) and case.smalls}
    names = {field.name for field in fields(kind)}
    assert "per_column" not in names or units >= {Event, Window, WholeSeries, Person}
    audited = [case for case in CASES if isinstance(case.mechanism, kind) and case.smalls]
    each_time = [case for case in audited if case.name not in LONGER]
    assert {type(case.unit) for case in each_time} == units
    if "per_column" in names:
        assert any(case.mechanism.per_column for case in audited)
        assert {case.columns for case in audited} >= {1, 2}


def test_names_of_cases_are_unique():
    names = {case.name for case in CASES}
    assert len(names) == len(CASES)
    assert names > LONGER


def first_of(kind) -> Case:
    return next(case for case in CASES if isinstance(case.mechanism, kind))


number = st.floats() | st.integers() | st.sampled_from([10**400, 5e-324, 1e308, 2.0**-1074])
GIVEN = {
    "epsilon": number,
    "rho": number,
    "epsilon_forever": number,
    "epsilon_instant": st.none() | number,
    "bounds": st.tuples(number, number),
    "grid": st.none() | number | st.integers(-1100, 1030).map(lambda e: 2.0 ** min(e, 1023)),
    "origin": st.tuples(number, number),
    "unit": st.integers(1, 10**12).map(Window) | st.just(WholeSeries(10**400)),
    "threshold": st.none() | st.integers(-1, 12) | number,
    "window": st.integers(-1, 300) | st.sampled_from([10**15, 10**400]),
    "block": st.integers(-1, 300) | st.sampled_from([10**15, 10**400]),
    "offset": st.integers(-1, 5) | number,
    "latency": st.none() | st.integers(-1, 300) | st.sampled_from([10**15, 10**400]),
    "tolerance": number,
    "share": number,
    "theta": st.none() | number,
    "longest": st.integers(-1, 10**6),
    "spread": st.none() | number,
    "delta": st.none() | st.floats(0, 1) | number,
    "tau": number,
    "period": number,
    "shift": st.none() | number,
    "clamp": st.none() | st.just("safe") | st.tuples(number, number),
    "columns": st.integers(-1, 1001) | st.sampled_from([10**15, 10**400]),
    "waves": st.none() | st.integers(-1, 300) | st.just(10**400),
    "over": st.builds(
        lambda epsilon, bounds: Laplace(epsilon=epsilon, bounds=bounds),
        number,
        st.tuples(number, number) | st.just((0, 5)),
    ),
    "count": st.none() | st.integers(-1, 2**41) | st.just(10**400),
    "length": st.none() | st.integers(-1, 2**41) | st.just(10**400),
    "count_epsilon": st.none() | number | st.floats(0, 21),
    "miss": st.floats(0, 1) | number,
    "kappa": number,
    "increase": number,
    "decrease": number,
    "least": number,
}


@pytest.mark.parametrize("kind", registry.classes(), ids=lambda kind: kind.__name__)
def test_any_numbers_are_taken_or_refused(kind):
    """Nothing but a refusal is ever raised, and what is taken can say what it guarantees."""
    mechanism = first_of(kind).mechanism
    names = [field.name for field in fields(mechanism) if field.name in GIVEN]

    @quick
    @given(st.data())
    def holds(data):
        chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        try:
            other = replace(mechanism, **{name: data.draw(GIVEN[name]) for name in chosen})
        except TemprivError as refusal:
            assert str(refusal)
            return
        assert other.guarantee.sentence and other.guarantee.plain
        assert all(error >= 0 for error in other.errors)

    holds()


@pytest.mark.parametrize("kind", registry.classes(), ids=lambda kind: kind.__name__)
def test_any_reading_is_released_near_the_bounds(kind):
    """Whatever number comes in, what comes out is finite and made of noise within the bounds."""
    case = first_of(kind)
    rows = np.array([[x] * case.columns for x in (1e308, -1e308, 5e-324, -0.0, 2.0**62, 1e17)])
    rows = case.fitting(rows)
    out = case.release(rows[: limit_of(case.mechanism)], case.key(20))
    if case.moves:
        made = {number.tobytes() for number in np.ma.compressed(out)}
        assert made and made <= {number.tobytes() for number in rows.ravel()}
        return
    assert np.isfinite(np.asarray(out)).all()
    scale = max(case.mechanism.errors)
    edges = without_landmarks(case.mechanism.domain).bounds or ((0, 99),) * case.columns
    if isinstance(case.mechanism, SamplingPeriod):
        most = len(rows) * 1e300  # a curve overshoots, but never beyond the sum of its waves
        edges = ((-most, most),) * case.mechanism.columns + (case.mechanism.clamp,)
    elif isinstance(case.mechanism, NoisyTimes):
        most = case.mechanism.grid * 2**52
        assert (np.sign(out[:, 0]) == [1, -1, *np.sign(out[2:4, 0]), 1, 1]).all()
        edges = ((-most, most),)
    for column, (low, high) in enumerate(edges):
        assert (out[:, column] > low - 60 * scale).all()
        assert (out[:, column] < high + 60 * scale).all()
    assert math.isfinite(scale)
