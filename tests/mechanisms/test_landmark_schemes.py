"""The landmark schemes beside their definitions: what is spent, repeated, refused and told."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest

from tempriv.audit import exact
from tempriv.data.series import Block
from tempriv.errors import DataError, TemprivError, UsageError
from tempriv.mechanisms.base import SeriesState
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.stream import resume
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.privacy.units import WithinDistance
from tempriv.privacy.units.landmarks import Landmarks, Readings
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange
from tests.conformance.case_checks import recorded
from tests.conformance.cases import NAMED, landmark
from tests.conformance.cases.landmark import (
    by_definition,
    more_landmarks_are_refused,
    no_row_passes_its_part,
)
from tests.conformance.stream_checks import _for_all_rows
from tests.mutants.landmark import SEEN_AS_THEY_RUN
from tests.reference import landmark as reference
from tests.reference.value import meters_per_degree
from tests.support.statistics import COMPILED

CASES = landmark.CASES
BY_NAME = {case.name: case for case in CASES}
PROMISING = [c for c in CASES if c.promises and not c.mechanism.chosen_from_values]
BOUNDED = [c for c in PROMISING if c.mechanism.most_landmarks is not None]
SCHEMES = (UniformLandmarks, SkipLandmarks, SplitLandmarks, AdaptiveLandmarks)

FINE = Laplace(epsilon=1.0, bounds=(0, 5))
ANSWER = RandomizedResponse(epsilon=1.0, categories=("no", "yes"))
TAXI = PlanarLaplace(epsilon=1.0, unit=WithinDistance(200), origin=(39.9, 116.4))


def named(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def run(scheme, rows, key=None, cuts=()):
    """Everything that a stream gives its owner, as one block."""
    stream = scheme.start(key or Key.from_seed(3), "a")
    edges = [0, *cuts, len(rows)]
    parts = [stream.push_block(Block.of(rows[i:j], "a", i)) for i, j in itertools.pairwise(edges)]
    parts = [part for part in [*parts, stream.finish_block()] if len(part)]
    status = None if parts[0].status is None else np.concatenate([p.status for p in parts])
    return Block(
        values=np.concatenate([part.values for part in parts]),
        missing=np.concatenate([part.missing for part in parts]),
        ids=("a",),
        counts=np.array([len(rows)]),
        starts=np.array([0]),
        status=status,
        spent=np.concatenate([part.spent for part in parts]),
    )


def series(values, marks):
    return np.column_stack([np.asarray(values, dtype=float), np.asarray(marks, dtype=float)])


def most_of(scheme):
    return scheme.over.guarantee.loss.epsilon


# the definitions


@named(CASES)
@pytest.mark.parametrize("gaps", [False, True], ids=["", "gaps"])
def test_values_statuses_and_spending_are_those_of_the_definition(case, gaps):
    for number in range(4):
        purpose = f"definition {number}"
        rows = case.gappy(60, purpose) if gaps else case.rows(60, purpose)
        with recorded() as drawn:
            made = run(case.mechanism, rows, case.key(number))
        expected = by_definition(case.mechanism, rows, _for_all_rows(drawn))
        there = ~made.missing
        close = 0 if not isinstance(case.mechanism.over, PlanarLaplace) else 1.01e-7
        assert (np.abs(made.values - expected.values)[there] <= close).all()
        whole = most_of(case.mechanism)
        spent = [float(part) * whole for part in expected.parts]
        assert np.allclose(made.spent, spent, rtol=1e-15, atol=0)
        if made.status is not None:
            assert made.status.tolist() == expected.repeated
        if not case.mechanism.chosen_from_values:
            marks = reference.marks_of(rows)
            assert reference.most_spent(marks, expected.parts) <= 1


def test_the_best_fixed_parts_are_the_best():
    """No other parts for landmarks and others have a lower mean scale; the known example too."""
    for landmarks, others in ((1, 1), (3, 7), (20, 80), (200, 800), (5, 10_000)):
        each, rest = (Fraction(u, 2**40) for u in SplitLandmarks.parts(landmarks, others))
        assert landmarks * each + rest == 1
        best = landmarks / each + others / rest
        for factor in (Fraction(99, 100), Fraction(101, 100)):
            other = each * factor
            assert landmarks / other + others / (1 - landmarks * other) > best
        marks = [True] * landmarks + [False] * others
        assert [each, rest] == [reference.split(marks)[i] for i in (0, -1)]
    each, rest = SplitLandmarks.parts(200, 800)
    mean = (200 * 2**40 / each + 800 * 2**40 / rest) / 1000
    assert round(mean) == 52  # against the 201 of equal parts


# the invariant


@named(PROMISING)
def test_landmarks_and_any_other_reading_never_pass_epsilon(case):
    no_row_passes_its_part(case)


@pytest.mark.parametrize(
    ("kind", "name"), SEEN_AS_THEY_RUN, ids=[kind.__name__ for kind, _ in SEEN_AS_THEY_RUN]
)
def test_spending_too_much_is_stopped_before_anything_is_out(kind, name):
    case = BY_NAME[name]
    given = {f.name: getattr(case.mechanism, f.name) for f in fields(kind)}
    with pytest.raises(AssertionError, match="would have more than epsilon together"):
        no_row_passes_its_part(replace(case, mechanism=kind(**given)))


def test_the_check_adds_up_over_blocks():
    """A stream that spent it all in one block has nothing left in the next."""
    scheme = SkipLandmarks(over=FINE)
    state = SeriesState.fresh(scheme, 1, 2)
    readings = np.array([[10, 0], [20, 0]])
    draw = exact.Outcomes([], 1e-3)
    draw.begin(2)
    scheme.perturb(readings, draw, state)
    assert state.memory[0, -4:-2].tolist() == [0, 2**40]  # landmarks, and the most of others
    state.memory[0, -4] = 1  # as if a landmark had taken the least there is
    draw.begin(2)
    with pytest.raises(AssertionError, match="more than epsilon"):
        scheme.perturb(readings, draw, state)


# streams


@named(BOUNDED)
def test_streams_give_the_bits_of_whole_series(case):
    rows = case.gappy(40, "streams")
    whole = run(case.mechanism, rows)
    for cuts in ((1, 2, 3), (17,), tuple(range(1, 40)), (0, 20, 20)):
        parts = run(case.mechanism, rows, cuts=cuts)
        for name in ("values", "missing", "spent"):
            assert np.array_equal(getattr(parts, name), getattr(whole, name)), name
        assert (whole.status is None) or np.array_equal(parts.status, whole.status)


@named([c for c in CASES if c.mechanism.has_status and not c.mechanism.takes_whole])
def test_streams_go_on_from_any_state_with_the_same_bits_and_budgets(case):
    rows = case.gappy(15, "states")
    whole = run(case.mechanism, rows)
    for i in range(len(rows) + 1):
        stream = case.mechanism.start(Key.from_seed(3), "a")
        first = stream.push_block(Block.of(rows[:i], "a", 0))
        again = resume(case.mechanism, stream.state(), Key.from_seed(3))
        last = again.push_block(Block.of(rows[i:], "a", i))
        assert np.array_equal(np.concatenate([first.values, last.values]), whole.values)
        assert np.array_equal(np.concatenate([first.spent, last.spent]), whole.spent)


def test_every_series_of_a_block_has_its_own_landmarks():
    """Parts by the marks of each series; together they get what each gets alone."""
    lengths, marks = [4, 0, 1, 6], [[1, 0, 1, 0], [], [1], [0] * 6]
    rows = [series(np.arange(n), m) for n, m in zip(lengths, marks, strict=True)]
    for scheme in (
        UniformLandmarks(over=FINE),
        SplitLandmarks(over=ANSWER),
        AdaptiveLandmarks(over=ANSWER),
        SkipLandmarks(over=FINE),
    ):
        names = tuple("abcd")
        block = Block(
            values=np.concatenate(rows),
            missing=np.zeros((11, 2), dtype=bool),
            ids=names,
            counts=np.array(lengths),
            starts=np.zeros(4, dtype=np.int64),
        )
        keys = [Key.from_seed(9).series("together", name) for name in names]
        runs = [StepRange(key, 0, n) for key, n in zip(keys, lengths, strict=True)]
        made = perturb_block(scheme, block, runs, ending=True)
        for i, (low, high) in enumerate(itertools.pairwise([0, 4, 4, 5, 11])):
            alone = perturb_block(scheme, Block.of(rows[i], names[i], 0), runs[i : i + 1])
            assert np.array_equal(made.spent[low:high], alone.spent)
            assert np.array_equal(made.values[low:high], alone.values)
    uniform = perturb_block(UniformLandmarks(over=FINE), block, runs).spent
    assert np.allclose(uniform, [1 / 3] * 4 + [1.0] + [1.0] * 6, rtol=1e-11)


# the edges


@pytest.mark.parametrize("over", [FINE, ANSWER], ids=["numbers", "answers"])
def test_series_of_landmarks_only_and_of_none(over):
    count = 5
    for marks, expected in (
        ([1] * count, {UniformLandmarks: 1 / 5, SplitLandmarks: 1 / 5, SkipLandmarks: 0.0}),
        ([0] * count, dict.fromkeys((UniformLandmarks, SplitLandmarks, SkipLandmarks), 1.0)),
    ):
        rows = series([1.0] * count, marks)
        for kind, part in expected.items():
            made = run(kind(over=over), rows)
            assert np.allclose(made.spent, part, rtol=1e-11, atol=0)
        spent = run(AdaptiveLandmarks(over=over), rows).spent
        assert spent[0] > 0.95 * (1 / 5 if marks[0] else 1.0)
        together = spent.sum() if marks[0] else spent.max()
        assert together <= 1.0


def test_skipped_landmarks_show_a_public_constant_before_the_first_release():
    for bounds, constant in (((0, 5), 0.0), ((-3, -1), -1.0), ((2, 9), 2.0)):
        made = run(
            SkipLandmarks(over=Laplace(epsilon=1.0, bounds=bounds)),
            series([bounds[1]] * 4, [1, 1, 0, 1]),
        )
        assert (made.values[:2] == constant).all() and made.values[2] == made.values[3]
        assert made.status.tolist() == [1, 1, 0, 1]
        assert made.spent.tolist() == [0, 0, 1, 0]


def test_rows_without_a_reading_are_no_landmarks_and_spend_for_nobody():
    rows = np.ma.array(series([1.0] * 5, [1, 1, 0, 1, 0]), mask=False)
    rows[1] = np.ma.masked
    rows[3, 0] = np.ma.masked
    made = run(UniformLandmarks(over=FINE), rows)
    # one landmark and another
    assert np.allclose(made.spent, [0.5, 0, 0.5, 0, 0.5], rtol=1e-11)
    assert made.missing[:, 0].tolist() == [False, True, False, True, False]
    again = run(UniformLandmarks(over=FINE, count=1), rows)  # and there is room for them
    assert np.allclose(again.spent[[0, 2, 4]], 1 / 2, rtol=1e-11)


def test_half_a_row_is_a_landmark_with_all_of_its_part():
    over = Laplace(epsilon=2.0, bounds=((0, 5), (0, 5)))
    rows = np.ma.array([[1.0, 2.0, 1.0], [1.0, 2.0, 1.0], [3.0, 4.0, 0.0]], mask=False)
    rows[1, 0] = np.ma.masked
    made = run(UniformLandmarks(over=over), rows)
    assert np.allclose(made.spent, 2 / 3, rtol=1e-11)
    assert made.missing.tolist() == [[False, False], [True, False], [False, False]]


def test_nothing_comes_in_and_nothing_comes_out():
    for over in (FINE, ANSWER, TAXI):
        for scheme in (
            UniformLandmarks(over=over),
            SkipLandmarks(over=over),
            AdaptiveLandmarks(over=over, count=3),
        ):
            stream = scheme.start(Key.from_seed(1), "a")
            none = np.zeros((0, scheme.domain.columns), dtype=object if over is ANSWER else float)
            assert len(stream.push(none)) == 0 and len(stream.finish()) == 0


# what is guaranteed and told


def test_landmarks_chosen_by_their_values_leave_no_promise_but_that_of_a_bound():
    for kind in SCHEMES:
        scheme = kind(over=FINE, chosen_from_values=True)
        assert isinstance(scheme.guarantee, NoGuarantee)
        assert "CountBoundLandmarks" in scheme.guarantee.sentence
        assert kind(over=FINE).guarantee == Guarantee(Pure(1.0), Landmarks())
    for given in ({}, {"chosen_from_values": True}):
        bound = CountBoundLandmarks(over=FINE, count=4, **given)
        assert bound.guarantee == Guarantee(Pure(1.0), Readings(5))
    drawn = CountBoundLandmarks(over=FINE, count_epsilon=1.0, chosen_from_values=True)
    assert isinstance(drawn.guarantee, NoGuarantee)
    place = UniformLandmarks(over=TAXI)
    assert place.guarantee.unit == Landmarks(meters=200)
    both = Laplace(epsilon=1.0, bounds=((0, 5), (0, 5)), per_column=True)
    assert SkipLandmarks(over=both).guarantee.loss == Pure(2.0)


def test_a_public_bound_does_not_look_at_marks():
    scheme = CountBoundLandmarks(over=FINE, count=2, chosen_from_values=True)
    values = np.linspace(0, 5, 12)
    outputs = [
        run(scheme, series(values, marks)).values for marks in ([0] * 12, [1] * 12, [0, 1] * 6)
    ]
    assert all(np.array_equal(outputs[0], other) for other in outputs[1:])


@named(CASES)
def test_marks_stay_in(case):
    scheme = case.mechanism
    made = run(scheme, case.rows(20, "width"))
    assert made.values.shape[1] == scheme.domain.columns - 1 == len(scheme.errors)
    assert isinstance(scheme.domain, WithLandmarks)
    assert made.spent.shape == (20,) and (made.spent >= 0).all()


# errors


def mean_error(scheme, count, marks):
    """Of released values that are about one reading: numbers, answers or places."""
    over = scheme.over
    still = NAMED_STILL[type(over)]
    rows = np.column_stack([np.tile(still, (count, 1)), marks])
    made = run(scheme, rows).values
    if isinstance(over, RandomizedResponse):
        return (made != still).astype(float)
    if isinstance(over, PlanarLaplace):
        moved = np.hypot(*((made - still) * meters_per_degree(over.origin)).T)
        return np.column_stack([moved, moved])
    return np.abs(made - still)


NAMED_STILL = {Laplace: (2.5,), RandomizedResponse: (1.0,), PlanarLaplace: TAXI.origin}
DRAWS = 40_000 if COMPILED else 2_000


@pytest.mark.parametrize("over", [FINE, ANSWER, TAXI], ids=["numbers", "answers", "places"])
@pytest.mark.parametrize(
    "make",
    [
        lambda over: UniformLandmarks(over=over),
        lambda over: UniformLandmarks(over=over, count=3),
        lambda over: SkipLandmarks(over=over),
        lambda over: SplitLandmarks(over=over, count=DRAWS // 4, length=DRAWS),
        lambda over: CountBoundLandmarks(over=over, count=3),
    ],
    ids=["uniform", "uniform, bounded", "skip", "split", "bound"],
)
def test_stated_errors_are_met(make, over):
    """Within five standard errors: alpha 6e-7; detects 4 % in 40,000 values (power 0.99)."""
    scheme = make(over)
    marks = np.zeros(DRAWS)
    if isinstance(scheme, SplitLandmarks):
        marks[: DRAWS // 4] = 1
    found = mean_error(scheme, DRAWS, marks)
    for column, stated in enumerate(scheme.errors):
        bound = 5 * found[:, column].std() / math.sqrt(DRAWS)
        assert abs(found[:, column].mean() - stated) <= bound + 1e-9


def test_stated_errors_are_those_of_the_part():
    """By the formulas: 1 / sinh(1 / scale) steps of the grid, or one minus what is kept."""
    grid = FINE.grid[0]
    for count in (0, 1, 4, 99):
        (stated,) = UniformLandmarks(over=FINE, count=count).errors
        scale = (count + 1) * 5 / grid
        assert math.isclose(stated, grid / math.sinh(1 / scale), rel_tol=1e-9)
        (stated,) = CountBoundLandmarks(over=ANSWER, count=count).errors
        assert math.isclose(stated, 1 / (1 + math.exp(1 / (count + 1))), rel_tol=1e-9)
    assert SkipLandmarks(over=FINE).errors == FINE.errors


# refusals


@named(BOUNDED)
def test_more_landmarks_than_announced_are_refused(case):
    more_landmarks_are_refused(case)


def test_a_bound_for_any_readings_takes_any_marks():
    scheme = CountBoundLandmarks(over=FINE, count=1, chosen_from_values=True)
    made = run(scheme, series([1.0] * 9, [1] * 9), cuts=(3, 6))
    assert np.allclose(made.spent, 1 / 2)


SECRET = 3.1415


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (np.ma.array([[SECRET, 1.0]], mask=[[False, True]]), "the mark of 1 readings is missing"),
        (np.array([[SECRET, math.nan]]), "a reading is NaN or infinite"),
        (np.array([[math.inf, 1.0]]), "a reading is NaN or infinite"),
        (np.array([[SECRET]]), "1 value column, but the mechanism is set up for 2"),
        (np.array([[SECRET, SECRET, 1.0]]), "3 value columns"),
        (np.array([[SECRET, 1.0]] * 3), "more than 2 landmarks"),
    ],
    ids=["no mark", "mark is NaN", "reading is infinite", "narrow", "wide", "too many"],
)
def test_refusals_show_no_value(wrong, said):
    scheme = UniformLandmarks(over=FINE, count=2)
    stream = scheme.start(Key.from_seed(5), "a")
    stream.push(np.array([[SECRET, 0.0]]))
    before = stream.state()
    with pytest.raises((DataError, UsageError)) as refusal:
        stream.push(wrong)
    text = str(refusal.value)
    assert said in text and "3.14" not in text and "\n" not in text
    assert stream.state() == before
    assert "3.14" not in repr(stream) + repr(scheme) + repr(Block.of(wrong, "a", 0))


def test_too_many_landmarks_of_a_whole_series_are_never_refused():
    made = run(UniformLandmarks(over=FINE), series([1.0] * 50, [1] * 50))
    assert np.allclose(made.spent, 1 / 50)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SplitLandmarks(over=FINE, count=3), "count and length: give both"),
        (lambda: SplitLandmarks(over=FINE, length=3), "count and length: give both"),
        (lambda: CountBoundLandmarks(over=FINE), "count and count_epsilon: give one of them"),
        (lambda: CountBoundLandmarks(over=FINE, count=3, count_epsilon=1.0), "give one of them"),
        (lambda: CountBoundLandmarks(over=FINE, count_epsilon=30), "count_epsilon=30: must be"),
        (lambda: CountBoundLandmarks(over=FINE, count_epsilon=5e-324), "must be from"),
        (lambda: UniformLandmarks(over=FINE, count=2**39), "too little for this fine a grid"),
        (
            lambda: AdaptiveLandmarks(over=replace(FINE, epsilon=1e-3, grid=2.0**-20), count=10**4),
            "too little for this fine a grid",
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_settings_that_go_together_are_asked_for(make, said):
    with pytest.raises(TemprivError) as refusal:
        make()
    assert said in str(refusal.value)


def test_marks_that_are_neither_are_landmarks():
    """In doubt a reading is protected more."""
    for mark in (0.5, -1.0, 7.0, 1e300):
        made = run(UniformLandmarks(over=FINE), series([1.0, 1.0], [mark, 0.0]))
        assert np.allclose(made.spent, 1 / 2)
    stream = UniformLandmarks(over=ANSWER).start(Key.from_seed(1), "a")
    stream.push(np.array([["no", "perhaps"], ["yes", "0"]], dtype=object))
    assert np.allclose(stream.finish_block().spent, 1 / 2)


def test_names_of_all_cases_say_what_they_are():
    assert all("landmarks" in case.name for case in CASES)
    assert {type(case.mechanism) for case in CASES} == {*SCHEMES, CountBoundLandmarks}
    assert set(BY_NAME) <= set(NAMED)


@pytest.mark.parametrize("count", [None, 3], ids=["counted", "bounded"])
def test_what_is_pushed_and_what_is_left_fit_together(count):
    """Nothing yet has as many columns as something."""
    over = Laplace(epsilon=1.0, bounds=(0, 5))
    stream = UniformLandmarks(over=over, count=count).start(Key.from_seed(1), "a")
    pushed = stream.push(np.array([[1.0, 0], [2.0, 1]]))
    assert np.concatenate([pushed, stream.finish()]).shape == (2, 1)


def test_a_refused_landmark_leaves_the_stream_as_it_was():
    stream = UniformLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)), count=1).start(
        Key.from_seed(1), "a"
    )
    stream.push(np.array([[1.0, 1]]))
    with pytest.raises(DataError, match="more than 1 landmarks"):
        stream.push(np.array([[1.0, 1]]))
    assert stream.push(np.array([[1.0, 0]])).shape == (1, 1)


@pytest.mark.parametrize("slot", range(6))
def test_what_cannot_be_remembered_is_refused(slot):
    """A tampered state must not buy more than epsilon."""
    scheme = AdaptiveLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)), count=3)
    good = np.array([5, 1, 1, 1 << 38, 1 << 38, 1 << 38, 1 << 31])
    assert scheme.could_remember(good, 4)
    for bad in (-1, 1 << 45):
        memory = good.copy()
        memory[1 + slot] = bad
        assert not scheme.could_remember(memory, 4)


def test_a_public_bound_has_nothing_to_miss():
    with pytest.raises(TemprivError, match="goes with count_epsilon"):
        CountBoundLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)), count=3, miss=0.1)
