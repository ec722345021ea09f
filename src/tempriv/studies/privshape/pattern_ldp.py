"""PatternLDP for whole series at once: what the shapes paper compares with, and what of it holds.

Mao, Ye, Hu, Wang and Huang (PrivShape, ICDE 2024, section V-B1) extend PatternLDP to a user's whole
series: points where the trend breaks are kept, the budget of the series is shared among them by
their PID scores, and lines join the noisy points. The paper leaves the details to its authors'
public program (github.com/Abigail-MAO/ICDE_code, commits d97f91b and 0145c08), which differs from
its intention:

- the inverse of the distribution function has its ratio upside down in its lower half, so noise
  that should end at about 2 reaches hundreds where a point's budget is small;
- the value written at a sampled point is that of the sampled point two before it;
- breaks are looked for two steps after the readings that are then taken for them;
- where PatternLDP takes the mean of the last five deviations, seven are summed, divided by five.

``OfflinePattern`` is this program, and the same with these repaired. Neither protects anybody, as
which points are sent depends on the readings and shows. ``EvenSamples`` keeps what can be
guaranteed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.mechanisms.adaptive.pattern import SOURCE
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Published, Pure
from tempriv.privacy.units.replacement import WholeSeries
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key, SeriesKey, simulation
from tempriv.sampling.keystream import StepRange

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# What the authors' program sets. The gains are those of proportion, mean and slope; PatternLDP for
# streams has a slope of 0.1 in its place (see ``mechanisms.pattern``).
TOLERANCE = 0.5
GAINS = (0.8, 0.1, 0.5)
REACH = (10.0, 1.0)
MIN_SCORE = 1.5
MAX_SCORE_STEP = 3.0  # between one score and the next higher one
AVERAGED_ERRORS, SUMMED_ERRORS = (
    5,
    7,
)  # deviations whose mean counts, and how many the program adds up
LATE_POINTS = 2  # sampled points, and steps
MIN_BUDGET = 1e-6

LABEL_SHARE = Fraction(1, 3)  # of epsilon, for the label
BOUND_DEVIATIONS = 3.0  # of z-scores, where Laplace noise needs one
STEPS_PER_DEVIATION = 1 << 10  # whole numbers to one standard deviation
BATCH_READINGS = 1 << 21  # readings that are worked on at a time

Variant = Literal["as run", "repaired", "clipped"]


@dataclass(frozen=True)
class Perturbed:
    """What the collector gets: a series and, if it was asked for, a label of each person."""

    series: Floats
    labels: Integers | None = None


@dataclass(frozen=True, kw_only=True)
class OfflinePattern:
    """Whole series by the points that break their trend, with noise by importance.

    ``variant`` is "as run" (the authors' program), "repaired" (without its slips) or "clipped" (the
    same points and budgets; values clipped to three standard deviations, and Laplace noise that
    would be enough for them). Series should be about z-scores. With ``classes`` each person's label
    takes a third of epsilon for randomized response; "as run" leaves that third out in any case.

    >>> OfflinePattern(epsilon=4.0).guarantee.sentence[:18]
    'Protects nothing: '
    """

    epsilon: float
    variant: Variant = "repaired"
    classes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        require(
            self.variant in ("as run", "repaired", "clipped"),
            f"variant={self.variant!r}: must be 'as run', 'repaired' or 'clipped'",
        )
        _check(self.epsilon, self.classes)

    @property
    def guarantee(self) -> NoGuarantee:
        chosen = (
            "which readings are sent, and how epsilon is shared among them, is decided by the "
            "readings themselves and can be seen where the line bends"
        )
        if self.variant == "clipped":
            return NoGuarantee(chosen)
        bounded = "and most of the noise" if self.variant == "as run" else "and the noise"
        return NoGuarantee(
            f"{chosen}, {bounded} is bounded: some outputs are possible for one of two series only"
        )

    @property
    def published(self) -> Published:
        return Published(
            claim="PatternLDP extended so that a whole series shares epsilon gives user-level "
            "local differential privacy",
            source="Mao, Ye, Hu, Wang and Huang 2024, section V-B1; PatternLDP: " + SOURCE,
            holds=False,
            remark="The budgets of a series add up to epsilon, but points and budgets are chosen "
            "by looking at it without noise, and noise that ends somewhere leaves outputs that "
            "only one of two series can have. EvenSamples is what can be guaranteed.",
        )

    @property
    def values_epsilon(self) -> float:
        """What all values of a series share."""
        taken = LABEL_SHARE if self.classes is not None or self.variant == "as run" else 0
        return self.epsilon * float(1 - taken)

    def perturbed(
        self, series: Any, key: Key, labels: Any = None, part: str = "people"
    ) -> Perturbed:
        """Every row as its owner would send it; the same for a key and a ``part``.

        Parameters:
            series: a row for each person.
            key: of the noise.
            labels: what each series is an example of.
            part: what the series are for; another part has other noise.
        """
        rows = _matrix(series, least=LATE_POINTS + 2)
        # simulated: it guarantees nothing, so that no release is made of it
        sent = _sent_labels(self, labels, len(rows), key.again(f"{self!r} labels", part))
        outputs = np.empty_like(rows)
        together = max(1, BATCH_READINGS // rows.shape[1])
        for i, begin in enumerate(range(0, len(rows), together)):
            generator = simulation(key, f"{self!r} {part} {i}")
            outputs[begin : begin + together] = self._noisy(
                rows[begin : begin + together], generator
            )
        return Perturbed(outputs, sent)

    def _noisy(self, rows: Floats, generator: Any) -> Floats:
        length = rows.shape[1]
        late = LATE_POINTS if self.variant == "as run" else 0
        chosen = breaks(rows[:, late:])
        values = rows[:, : length - late]
        points = Points(values, chosen)
        budgets, reach = self._shared(points, SUMMED_ERRORS if late else AVERAGED_ERRORS)
        true = points.values
        if late:
            true = points.earlier(true, LATE_POINTS)
        if self.variant == "clipped":
            true = np.clip(true, -BOUND_DEVIATIONS, BOUND_DEVIATIONS)
            noisy = true + generator.laplace(size=len(true)) * (2 * BOUND_DEVIATIONS / budgets)
        else:
            drawn = generator.random(len(true))
            noisy = true + bounded_noise(drawn, budgets, reach, upside_down=bool(late))
        lines = points.joined(noisy)
        return np.pad(lines, ((0, 0), (0, late)), mode="edge")

    def _shared(self, points: Points, summed: int) -> tuple[Floats, Floats]:
        """The budget of each point, and how far noise reaches: as far as for the least score."""
        scores = flattened(points.scores(summed), points)
        least, total = points.least(scores), points.total(scores)
        budgets = np.maximum(self.values_epsilon * scores / total, MIN_BUDGET)
        return budgets, np.log(REACH[0] / least + REACH[1])


# points of many series


def breaks(rows: Floats, tolerance: float = TOLERANCE) -> Flags:
    """Where no line from the last point kept passes all readings since within the tolerance.

    The first and the last reading are always kept.

    Parameters:
        rows: a series each.
        tolerance: by how much a line may miss a reading.

    >>> breaks(np.array([[0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0]])).astype(int).tolist()
    [[1, 0, 0, 0, 1, 0, 1]]
    """
    people, length = rows.shape
    columns = np.ascontiguousarray(rows.T)
    chosen = np.zeros((length, people), dtype=np.bool_)
    chosen[0] = chosen[-1] = True
    start, at = columns[0].copy(), np.zeros(people)
    low, high = np.full(people, -np.inf), np.full(people, np.inf)
    for step in range(1, length):
        gap = step - at
        rise = columns[step] - start
        slope = rise / gap
        broken = (slope < low) | (slope > high)
        low = np.where(broken, -np.inf, np.maximum(low, (rise - tolerance) / gap))
        high = np.where(broken, np.inf, np.minimum(high, (rise + tolerance) / gap))
        start, at = np.where(broken, columns[step], start), np.where(broken, step, at)
        chosen[step] |= broken
    return np.ascontiguousarray(chosen.T)


class Points:
    """The points kept of each series, one series after the other."""

    def __init__(self, rows: Floats, chosen: Flags):
        self.shape = rows.shape
        self.which, self.steps = np.nonzero(chosen)
        self.values = rows[self.which, self.steps]
        self.starts = np.searchsorted(self.which, np.arange(len(rows)))
        self.first = self.starts[self.which]
        self.rank = np.arange(len(self.which)) - self.first

    def earlier(self, values: Floats, back: int) -> Floats:
        """The value of the point so many before; before the first, that of the first.

        Parameters:
            values: one for each point.
            back: how many points before.
        """
        return values[np.maximum(np.arange(len(values)) - back, self.first)]

    def scores(self, summed: int = AVERAGED_ERRORS) -> Floats:
        """The PID control error of each point: how far it is off the line through the two before.

        Before the first point the line is level.

        Parameters:
            summed: how many deviations are added up.
        """
        proportion, mean, slope = GAINS
        steps = self.steps.astype(np.float64)
        last, before = self.earlier(self.values, 1), self.earlier(self.values, 2)
        at = np.where(self.rank > 0, self.earlier(steps, 1), -1.0)
        long = np.where(self.rank > 1, at - self.earlier(steps, 2), 1.0)
        gap = steps - at
        off = np.abs(last + (last - before) / long * gap - self.values)
        off[self.rank == 0] = 0.0
        recent = sum(
            np.where(self.rank >= back, self.earlier(off, back), 0.0) for back in range(summed)
        )
        errors = proportion * off + mean * recent / AVERAGED_ERRORS
        errors += slope * (off - self.earlier(off, 1)) / gap
        return np.maximum(errors, MIN_SCORE)

    def least(self, values: Floats) -> Floats:
        """For each point the least of the ``values`` of its series."""
        return np.minimum.reduceat(values, self.starts)[self.which]

    def total(self, values: Floats) -> Floats:
        """For each point the sum of the ``values`` of its series."""
        return np.add.reduceat(values, self.starts)[self.which]

    def joined(self, values: Floats) -> Floats:
        """Lines between the ``values`` at the points of each series, which has one at each end."""
        people, length = self.shape
        places = self.which * length + self.steps
        return np.interp(np.arange(people * length), places, values).reshape(people, length)


def flattened(scores: Floats, points: Points) -> Floats:
    """No score of a series more than ``MAX_SCORE_STEP`` above the next lower one, in their order.

    Parameters:
        scores: one for each point.
        points: those of all series.
    """
    order = np.lexsort((scores, points.which))
    climb = MAX_SCORE_STEP * points.rank
    # at most s_j + 3 (i - j) for every lower j: a running minimum, of one series at a time
    base = np.arange(len(points.starts))[points.which] * -(climb.max() + scores.max() + 1.0)
    lowest = np.minimum.accumulate(scores[order] - climb + base) - base
    flat = np.empty_like(scores)
    flat[order] = np.minimum(lowest + climb, scores[order])
    return flat


def bounded_noise(
    uniform: Floats, budgets: Floats, reach: Floats, *, upside_down: bool = False
) -> Floats:
    """Laplace noise of scale 1 / budget, cut off at the reach, from uniform numbers.

    ``upside_down`` is the authors' slip: below one half, u q / epsilon instead of u epsilon / q.

    Parameters:
        uniform: numbers between 0 and 1.
        budgets: of each point.
        reach: how far noise goes at most.
        upside_down: whether with the authors' slip.

    >>> bounded_noise(np.array([0.0, 0.5, 1.0]), np.ones(3), np.full(3, 2.0)).round(9).tolist()
    [-2.0, 0.0, 2.0]
    >>> bounded_noise(np.array([0.4]), np.array([0.1]), np.array([2.0]), upside_down=True).round(2)
    array([6.53])
    """
    short = np.expm1(-budgets * reach)
    # F(x) = (e^(epsilon x) - e^(-epsilon b)) / (2 (1 - e^(-epsilon b))) below 0, and mirrored above
    away = -np.log1p(np.abs(2 * uniform - 1) * short) / budgets
    if not upside_down:
        return np.asarray(np.where(uniform < 0.5, -away, away))
    ratio = -0.5 / short
    return np.asarray(
        np.where(uniform < 0.5, np.log(uniform * ratio + (1 + short)) / budgets, away)
    )


# what can be guaranteed


@dataclass(frozen=True, kw_only=True)
class EvenSamples:
    """Whole series by ``points`` readings at even distances, clipped, each with Laplace noise.

    Guarantees:
        - pure epsilon for a whole series, with its label if ``classes`` are asked for: when and
          with which budget a reading is sent is public, and equal for all;
        - noise is drawn as exact integers, on a public grid of 1/1024 standard deviation.

    >>> EvenSamples(epsilon=4.0, length=275).guarantee.loss
    Pure(epsilon=4.0)
    """

    epsilon: float
    length: int
    points: int = 8
    bound: float = BOUND_DEVIATIONS
    classes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        _check(self.epsilon, self.classes)
        require(
            isinstance(self.length, int) and self.length >= 2,
            f"length={self.length}: must be a whole number of readings >= 2",
        )
        require(
            isinstance(self.points, int) and 2 <= self.points <= self.length,
            f"points={self.points}: must be a whole number from 2 to length={self.length}",
        )
        require(
            1 / STEPS_PER_DEVIATION <= self.bound <= 1e6,
            f"bound={self.bound}: must be a number of standard deviations from "
            f"{1 / STEPS_PER_DEVIATION} to a million, such as 3",
        )

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.epsilon), WholeSeries(self.length), "local")

    @property
    def steps(self) -> Integers:
        """When readings are sent."""
        return np.arange(self.points) * (self.length - 1) // (self.points - 1)

    @property
    def distribution(self) -> distributions.DiscreteLaplace:
        """Of the noise, in steps of the grid."""
        share = 1 - (LABEL_SHARE if self.classes is not None else 0)
        return distributions.DiscreteLaplace(
            2 * self._top * self.points / (Fraction(self.epsilon) * share)
        )

    @property
    def _top(self) -> int:
        return math.floor(self.bound * STEPS_PER_DEVIATION)

    def perturbed(
        self, series: Any, key: Key, labels: Any = None, part: str = "people"
    ) -> Perturbed:
        """Every row as its owner would send it; one key serves each ``part`` once.

        Parameters:
            series: a row for each person.
            key: of the noise.
            labels: what each series is an example of.
            part: what the series are for; another part has other noise.
        """
        rows = _matrix(series, least=2)
        require(
            rows.shape[1] == self.length,
            f"series of {rows.shape[1]} readings: must be length={self.length}",
            DataError,
        )
        sent = _sent_labels(self, labels, len(rows), key.series(f"{self!r} labels", part))
        steps = self.steps
        true = np.clip(np.rint(rows[:, steps] * STEPS_PER_DEVIATION), -self._top, self._top).astype(
            np.int64
        )
        run = StepRange(key.series(f"{self!r} values", part), 0, true.size)
        noisy = (
            true + distributions.draw(self.distribution, [run], "value").reshape(true.shape)
        ) / STEPS_PER_DEVIATION
        chosen = np.zeros(rows.shape, dtype=np.bool_)
        chosen[:, steps] = True
        return Perturbed(Points(rows, chosen).joined(noisy.ravel()), sent)


# what both need


def _check(epsilon: float, classes: tuple[int, ...] | None) -> None:
    require(
        isinstance(epsilon, (int, float)) and 0 < epsilon < math.inf,
        f"epsilon={epsilon}: must be a finite number > 0",
    )
    require(
        classes is None or (len(classes) >= 2 and len(set(classes)) == len(classes)),
        f"classes={classes}: must be two or more different labels, or None",
    )


def _matrix(series: Any, least: int) -> Floats:
    rows = np.ascontiguousarray(series, dtype=np.float64)
    require(
        rows.ndim == 2 and len(rows) >= 1 and rows.shape[1] >= least,
        f"series: must be a matrix, a row of at least {least} readings for each person",
        DataError,
    )
    require(
        bool(np.isfinite(rows).all()),
        "series: must not hold missing or infinite readings; fill them in first",
        DataError,
    )
    return rows


def _sent_labels(
    spec: OfflinePattern | EvenSamples, labels: Any, people: int, key: SeriesKey
) -> Integers | None:
    """Labels by randomized response with their third of epsilon."""
    require(
        (labels is None) == (spec.classes is None),
        "labels: must be given if the mechanism has classes, and only then",
    )
    if spec.classes is None:
        return None
    names = np.sort(np.array(spec.classes, dtype=np.int64))
    known = np.asarray(labels, dtype=np.int64)
    require(
        known.shape == (people,) and bool(np.isin(known, names).all()),
        f"labels: must be one of {spec.classes} for each of {people} series",
        DataError,
    )
    flip = distributions.CategoryFlip(Fraction(spec.epsilon) * LABEL_SHARE, len(names))
    shifts = distributions.draw(flip, [StepRange(key, 0, people)], "label")
    return np.asarray(names[(np.searchsorted(names, known) + shifts) % len(names)])
