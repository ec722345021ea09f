"""Cases of the schemes that protect landmarks and any one other reading."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit import exact
from tempriv.data.series import Block
from tempriv.errors import DataError
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.units import WithinDistance
from tests.conformance.case_checks import Case, Small
from tests.conformance.cases import value
from tests.reference import landmark as reference
from tests.reference.value import planar_rate

Floats = npt.NDArray[np.float64]

Marking = Callable[[np.random.Generator, int], Floats]

MOST = 3  # landmarks of a series, where their number is bounded


def some(rng: np.random.Generator, count: int) -> Floats:
    return (rng.random(count) < 0.3).astype(np.float64)


def few(rng: np.random.Generator, count: int) -> Floats:
    """No more than a stream of many blocks has room for."""
    marks = np.zeros(count)
    marks[rng.permutation(count)[:MOST]] = 1.0
    return marks


def none(rng: np.random.Generator, count: int) -> Floats:
    return np.zeros(count)


def every(rng: np.random.Generator, count: int) -> Floats:
    return np.ones(count)


def plain(over: Any) -> Case:
    """Of the value mechanism by itself: what readings look like."""
    if isinstance(over, Laplace):
        return value.number_case("", over)
    if isinstance(over, RandomizedResponse):
        return value.answer_case("", over)
    return value.place_case("", over)


def kind_of(over: Any, drawn: list[Any]) -> reference.Kind:
    """What a part of epsilon buys; of what was drawn, noise is no plain array."""
    noise = [one for one in drawn if not isinstance(one, np.ndarray)]
    if isinstance(over, PlanarLaplace):
        rate = planar_rate(over.epsilon, over.unit.meters, over.grid)
        return reference.Places(over.origin, over.grid, rate, noise)
    columns = over.bounds if isinstance(over, Laplace) else over.categories
    share = Fraction(over.epsilon) / (1 if over.per_column else len(columns))
    if isinstance(over, Laplace):
        return reference.Numbers(over.bounds, over.grid, share, noise)
    return reference.Answers([len(names) for names in columns], share, noise)


def by_definition(scheme: Any, rows: Any, drawn: list[Any]) -> reference.Released:
    kind, marks = kind_of(scheme.over, drawn), reference.marks_of(rows)
    others = [one for one in drawn if isinstance(one, np.ndarray)]
    if isinstance(scheme, AdaptiveLandmarks):
        rates = scheme.kappa, scheme.increase, scheme.decrease, scheme.least
        return reference.adaptive(kind, rows, others[0], scheme.count, *rates)
    if isinstance(scheme, SkipLandmarks):
        parts = reference.skip(marks)
    elif isinstance(scheme, SplitLandmarks):
        parts = reference.split(marks, scheme.count, scheme.length)
    elif isinstance(scheme, CountBoundLandmarks) and scheme.count is None:
        drawn_once = int(others[0][0])
        bound = reference.bound_of(marks, drawn_once, scheme.count_epsilon, scheme.miss)
        parts = reference.uniform(marks, bound)
    else:
        parts = reference.uniform(marks, scheme.count)
    return reference.fixed(kind, rows, parts)


def landmark_case(
    name: str, scheme: Any, *smalls: Small, marking: Marking | None = None, tight: bool = True
) -> Case:
    of_values = plain(scheme.over)
    chosen = marking or (some if getattr(scheme, "count", None) is None else few)

    def readings(rng: np.random.Generator, count: int) -> Floats:
        return np.column_stack([of_values.readings(rng, count), chosen(rng, count)])

    parameters: tuple[Any, ...] = ()
    if isinstance(scheme, AdaptiveLandmarks):
        parameters = (reference.CERTAIN,)
    elif isinstance(scheme, CountBoundLandmarks) and scheme.count is None:
        parameters = (1 / Fraction(scheme.count_epsilon),)
    skips = isinstance(scheme, SkipLandmarks)
    keeps_any = isinstance(scheme, CountBoundLandmarks) and scheme.count is not None
    return Case(
        name=name,
        mechanism=scheme,
        readings=readings,
        # with little noise where few landmarks share epsilon, all rows are
        still=(*of_values.still, float(chosen in (some, every) and not skips)),
        released=lambda rows, drawn: by_definition(scheme, rows, drawn).values,
        parameters=parameters,
        cost=of_values.cost,
        smalls=smalls,
        tight=tight and not isinstance(scheme.over, PlanarLaplace),
        independent=not parameters,
        promises=keeps_any or not scheme.chosen_from_values,
        sampled=False,  # laws vary from row to row: see test_noise_varying
    )


def marked(*readings: Any) -> tuple[tuple[float, ...], ...]:
    """Every reading as a landmark, and as none."""
    rows = [one if isinstance(one, tuple) else (one,) for one in readings]
    return tuple((*row, mark) for mark in (0.0, 1.0) for row in rows)


def without_marks(*readings: Any) -> tuple[tuple[float, ...], ...]:
    return marked(*readings)[: len(readings)]


FINE = Laplace(epsilon=3.0, bounds=(-1, 2), grid=2.0**-6)
FINE_PAIRS = Laplace(epsilon=4.0, bounds=((0, 1), (-1, 2)), grid=2.0**-6)
WEAK_BIT = Laplace(epsilon=3.0, bounds=(0, 1), grid=1)
BIT = Laplace(epsilon=5.0, bounds=(0, 1), grid=1)
PAIRS = Laplace(epsilon=8.0, bounds=((0, 1), (1, 1.5)), grid=(1, 0.5))
EACH = Laplace(epsilon=6.0, bounds=((0, 1), (0, 1)), grid=1, per_column=True)
ANSWER = RandomizedResponse(epsilon=4.0, categories=("a", "b"))
THREE = RandomizedResponse(epsilon=3.0, categories=("a", "b", "c"))
ANSWERS = RandomizedResponse(epsilon=2.0, categories=(("a", "b"), ("x", "y", "z")))
EACH_ANSWER = RandomizedResponse(epsilon=1.0, categories=(("a", "b"), ("x", "y")), per_column=True)
PLACE = PlanarLaplace(epsilon=13.0, unit=WithinDistance(2.4), origin=(-33.9, 179.9), grid=8.0)
HALF_PLACE = PlanarLaplace(epsilon=6.5, unit=WithinDistance(2.4), origin=value.BEIJING, grid=8.0)
CITY = PlanarLaplace(epsilon=4.0, unit=WithinDistance(200), origin=value.BEIJING, grid=8.0)
# so many landmarks that any series of the checks has no more
STREAM = 39
LONG = Laplace(epsilon=40.0, bounds=(-1, 2), grid=2.0**-6)
LONG_PAIRS = Laplace(epsilon=40.0, bounds=((0, 1), (-1, 2)), grid=2.0**-6)
LONG_ANSWERS = RandomizedResponse(epsilon=8.0, categories=(("a", "b"), ("x", "y", "z")))

BITS = marked(0.0, 1.0)
TAIL = 1.2e-2  # small enough that noise for all of epsilon has more than one outcome
CORNERS = ((3.9, 3.9), (4.1, 4.1))  # near each other, yet not on the same cell of the lattice

CASES: tuple[Case, ...] = (
    # the same part for every reading
    landmark_case("uniform landmarks, fine grid", UniformLandmarks(over=FINE)),
    landmark_case("uniform landmarks, stream", UniformLandmarks(over=LONG, count=STREAM)),
    landmark_case("uniform landmarks, bits", UniformLandmarks(over=BIT), Small(BITS, 3, TAIL)),
    landmark_case(
        "uniform landmarks, two columns",
        UniformLandmarks(over=PAIRS),
        Small(marked((0, 1), (1, 1.5)), 2, 3.5e-2),
        marking=every,
    ),
    landmark_case(
        "uniform landmarks, per column",
        UniformLandmarks(over=EACH),
        Small(marked((0, 0), (1, 1)), 2, 2e-2),
    ),
    landmark_case("uniform landmarks, none there", UniformLandmarks(over=FINE_PAIRS), marking=none),
    landmark_case(
        "uniform landmarks, answers", UniformLandmarks(over=THREE), Small(marked(0, 7), 3)
    ),
    landmark_case(
        "uniform landmarks, two answers, stream",
        UniformLandmarks(over=LONG_ANSWERS, count=STREAM),
    ),
    landmark_case(
        "uniform landmarks, places",
        UniformLandmarks(over=PLACE),
        Small(marked(*CORNERS), 2, 0.12),
    ),
    landmark_case(
        "uniform landmarks, chosen by their values",
        UniformLandmarks(over=FINE, chosen_from_values=True),
    ),
    # landmarks are left out
    landmark_case("skip landmarks, fine grid", SkipLandmarks(over=FINE)),
    landmark_case("skip landmarks, bits", SkipLandmarks(over=WEAK_BIT), Small(BITS, 3, TAIL)),
    landmark_case("skip landmarks, no other answers", SkipLandmarks(over=ANSWERS), marking=every),
    landmark_case(
        "skip landmarks, two answers",
        SkipLandmarks(over=ANSWERS),
        Small(marked((0, 0), (1, 2)), 3),
    ),
    landmark_case(
        "skip landmarks, places",
        SkipLandmarks(over=HALF_PLACE),
        Small(marked(*CORNERS), 2, 0.12),
    ),
    # the best fixed parts
    landmark_case("split landmarks, fine grid", SplitLandmarks(over=FINE)),
    landmark_case("split landmarks, stream", SplitLandmarks(over=LONG, count=STREAM, length=1000)),
    landmark_case("split landmarks, bits", SplitLandmarks(over=BIT), Small(BITS, 3, TAIL)),
    landmark_case(
        "split landmarks, per column",
        SplitLandmarks(over=EACH_ANSWER),
        Small(marked((0, 0), (1, 1)), 3),
    ),
    landmark_case(
        "split landmarks, answers, stream",
        SplitLandmarks(over=LONG_ANSWERS, count=STREAM, length=60),
    ),
    # a bound on how many there are
    landmark_case("bounded landmarks, stream", CountBoundLandmarks(over=LONG, count=STREAM)),
    landmark_case(
        "bounded landmarks, chosen by their values",
        CountBoundLandmarks(over=BIT, count=1, chosen_from_values=True),
        Small(BITS, 2, 1e-4),
        marking=some,
    ),
    landmark_case(
        "bounded landmarks, two answers",
        CountBoundLandmarks(over=ANSWERS, count=1, chosen_from_values=True),
        Small(marked((0, 0), (1, 2)), 2),
        marking=every,
    ),
    landmark_case(
        "bounded landmarks, places",
        CountBoundLandmarks(over=PLACE, count=1, chosen_from_values=True),
        Small(without_marks(*CORNERS), 2, 0.12),
        marking=some,
    ),
    landmark_case(
        "bounded landmarks, a drawn bound",
        CountBoundLandmarks(over=FINE, count_epsilon=3.0, miss=0.01),
    ),
    # the bound is hidden in the noise, so what comes out tells less than epsilon
    landmark_case(
        "bounded landmarks, a drawn bound for bits",
        CountBoundLandmarks(over=BIT, count_epsilon=1.0, miss=0.3),
        Small(BITS, 2, TAIL),
        tight=False,
    ),
    landmark_case(
        "bounded landmarks, a drawn bound for answers",
        CountBoundLandmarks(over=ANSWER, count_epsilon=1.0, miss=0.3),
        Small(marked(0, 1), 3, 1e-2),
        tight=False,
    ),
    # sampled where releases change
    landmark_case("adaptive landmarks, fine grid", AdaptiveLandmarks(over=FINE)),
    landmark_case(
        "adaptive landmarks, two columns, stream",
        AdaptiveLandmarks(over=LONG_PAIRS, count=STREAM, decrease=0.5),
    ),
    landmark_case(
        "adaptive landmarks, bits",
        AdaptiveLandmarks(over=BIT, kappa=0.5, decrease=0.75),
        Small(BITS, 3, TAIL),
    ),
    landmark_case(
        "adaptive landmarks, answers",
        AdaptiveLandmarks(over=ANSWER, kappa=0.5, decrease=0.75),
        Small(marked(0, 1), 3),
        tight=False,
    ),
    landmark_case(
        "adaptive landmarks, answers, stream",
        AdaptiveLandmarks(over=LONG_ANSWERS, count=STREAM, kappa=0.05, decrease=0.5),
        tight=False,
    ),
    landmark_case(
        "adaptive landmarks, places",
        AdaptiveLandmarks(over=PLACE, decrease=0.75),
        Small(marked(*CORNERS), 2, 0.12),
    ),
    landmark_case(
        "adaptive landmarks, places, stream",
        AdaptiveLandmarks(over=CITY, count=STREAM, kappa=3.0),
    ),
    landmark_case(
        "adaptive landmarks, chosen by their values",
        AdaptiveLandmarks(over=FINE, chosen_from_values=True),
        marking=every,
    ),
)


def more_landmarks_are_refused(case: Case) -> None:
    """With a bound, one landmark too many is refused, at once or a row at a time."""
    scheme = case.mechanism
    rows = np.tile(case.still, (scheme.count + 1, 1))
    rows[:, -1] = 1.0
    for step in (1, len(rows)):
        stream = scheme.start(case.key(30), "a")
        for i in range(0, len(rows) - step, step):
            case.push(stream, rows[i : i + step])
        state = stream.state()
        try:
            case.push(stream, rows[-step:])
        except DataError as refusal:
            said = f"more than {scheme.count} landmarks"
            assert said in str(refusal) and "greater" in str(refusal), str(refusal)
            assert stream.state() == state, "what was refused is remembered"
            continue
        raise AssertionError("more landmarks than there is room for")


def no_row_passes_its_part(case: Case) -> None:
    """Of all landmarks and any one other reading: what rows took adds up to epsilon at most.

    By the parts that the mechanism says it spent, which ``test_landmark_schemes`` compares with the
    definition. Nothing is rounded up: sums are within a part of 2^-50 of what floats can hold.
    """
    for i in range(20):
        rows = case.gappy(30, f"parts {i}")
        stream = case.mechanism.start(case.key(i), "a")
        blocks = [stream.push_block(Block.of(rows, "a", 0)), stream.finish_block()]
        spent = np.concatenate([one.spent for one in blocks if one.spent is not None])
        marks = np.array(reference.marks_of(rows))
        together = spent[marks].sum() + spent[~marks].max(initial=0.0)
        most = case.mechanism.guarantee.loss.epsilon
        assert together <= most * (1 + 2.0**-50), f"{together} of {most}"


SKIPPED = ((0, 0, 1, 1, 0), (0, 0, 1, 1, 1), (1, 1, 1, 1, 1))
"""Marks of series in which a landmark can be skipped with others, of both kinds, still to come.

Two releases have to be compared before sampling gets rarer, so the third reading is the first that
may be skipped; in any shorter series nothing comes of handing its part on."""


def skipped_parts_stay_within_epsilon(case: Case) -> None:
    """Exactly, between series that differ at all landmarks and at one other reading, or none."""
    scheme, small = case.mechanism, case.smalls[0]
    low, high = (letter[:-1] for letter in small.alphabet[:2])
    claimed, found = scheme.guarantee.loss.epsilon, []
    for marks in SKIPPED:

        def series(changed: set[int], marks: tuple[int, ...] = marks) -> Any:
            return tuple((*(high if i in changed else low), m) for i, m in enumerate(marks))

        landmarks = {i for i, mark in enumerate(marks) if mark}
        one = exact.distribution(scheme, series(set()), small.tail)
        for another in (set(), *({i} for i, mark in enumerate(marks) if not mark)):
            changed = series(landmarks | another)
            assert scheme.unit.are_neighbors(series(set()), changed)
            other = exact.distribution(scheme, changed, small.tail)
            for pair in ((one, other), (other, one)):
                found.append(exact.Comparison.of(*pair).pure_loss(claimed))
    assert max(found) <= claimed * (1 + 1e-9), f"{max(found)} of {claimed}"
    assert max(found) >= claimed * (1 - 2.0**-5), f"only {max(found)} of {claimed}"
