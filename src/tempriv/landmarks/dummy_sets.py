"""Landmark sets that dummies are added to, as published: Optimal, Heuristic and Partitioned.

Katsomallos, Tzompanaki and Kotzinos, "Landmark Privacy" (CODASPY 2022), Section 3.4.1. Each gives
one option for every number of dummies, from one up to all regular moments. Every option contains
all true landmarks: what follows from that is said in ``dummies``.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tempriv.errors import UsageError, require
from tempriv.landmarks._kernels import nearest_by_transport

Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Distance = Literal["euclidean", "wasserstein", "temporal"]
Score = Literal["temporal", "count", "distance"]

MAX_OPTIMAL_MOMENTS = 16  # of Optimal: it looks at 2^16 sets
MAX_HEURISTIC_STEPS = 5_000  # of Heuristic: it holds a set for each number of dummies
MAX_TRANSPORT_BINS = 2_000_000_000  # of Partitioned by transport, in bins times steps: some 10 s


@dataclass(frozen=True, eq=False)
class Histogram:
    """Landmarks counted in bins of moments; the last bin ends with the series.

    Parameters:
        width: moments of a bin.
        counts: landmarks of each.
        capacity: how many it can have.
    """

    width: int
    counts: Integers
    capacity: Integers

    @property
    def spare(self) -> Integers:
        """How many more events each bin can take."""
        return self.capacity - self.counts


def histogram(marks: Flags) -> Histogram:
    """Bins from the first moment to the last, by the rule of Freedman and Diaconis.

    A width is 2 IQR / |L|^(1/3), rounded up to whole moments. The last bin is cut off at the end of
    the series and has room for the moments it has: Algorithm 1 compares with the full width, and
    would put more landmarks there than there are moments. With fewer than two landmarks the rule
    gives no width: then all moments are one bin.
    """
    places = np.flatnonzero(marks)
    width = len(marks)
    if len(places) >= 2:
        low, high = np.percentile(places, [25, 75])
        width = min(width, max(1, int(np.ceil(2 * (high - low) / len(places) ** (1 / 3)))))
    starts = np.arange(0, len(marks), width)
    counts = np.add.reduceat(marks.astype(np.int64), starts)
    return Histogram(width, counts, np.diff(starts, append=len(marks)))


def steps_to_nearest(marks: Flags) -> Integers:
    """From each moment to the nearest of the ``marks``; -1 everywhere if there is none."""
    places = np.flatnonzero(marks)
    if len(places) == 0:
        return np.full(len(marks), -1, dtype=np.int64)
    moments = np.arange(len(marks))
    after = np.searchsorted(places, moments)
    back = moments - places[np.maximum(after - 1, 0)]
    ahead = places[np.minimum(after, len(places) - 1)] - moments
    nearest: Integers = np.minimum(np.abs(back), np.abs(ahead))
    return nearest


@dataclass(frozen=True, eq=False, kw_only=True)
class Options:
    """What to choose from: option i has i + 1 dummies beside all landmarks.

    Parameters:
        marks: the landmarks.
        distances: of each option from them, as the generator measures.
        largest: the largest that is possible: Euclidean, from no landmarks to all moments;
            otherwise, from the first bin or moment to the last.
        nearness: mean steps from a dummy to the nearest landmark; of a histogram, as expected.
        sets: of Optimal and Heuristic, a row of marks for each option.
        bins: of Partitioned, the landmarks in bins.
        added: of Partitioned, the bin that each step adds to.
    """

    marks: Flags
    distances: Floats
    largest: float
    nearness: Floats
    sets: Flags | None = None
    bins: Histogram | None = None
    added: Integers | None = None

    def __len__(self) -> int:
        return len(self.distances)

    def __repr__(self) -> str:
        return "Options(private)"

    @property
    def normalized(self) -> Floats:
        """Distances as parts of the largest that is possible, for Figure 10.

        The paper does not say what it divides by. With this, landmarks scattered as in its Section
        4.1.2 come out near its Euclidean mean (0.28 for 0.3) and not near the other (0.05 for 0.2).
        """
        return self.distances / self.largest if self.largest > 0 else np.zeros(len(self))

    def counts(self, option: int) -> Integers:
        """The histogram of an option of Partitioned."""
        assert self.bins is not None and self.added is not None
        more = np.bincount(self.added[: option + 1], minlength=len(self.bins.counts))
        return self.bins.counts + more

    def utilities(self, score: Score) -> Floats:
        """The utility of each set by a ``score`` (Section 3.4.2): the larger, the likelier.

        ``temporal``: dummies near landmarks. ``count``: few events. ``distance``: little difference
        from the landmark set, as the introduction of Section 3.4 has it.
        """
        if score == "count":
            return -(np.count_nonzero(self.marks) + 1.0 + np.arange(len(self)))
        if score == "distance":
            return -self.distances
        require(score == "temporal", f"score={score!r}: must be temporal, count or distance")
        require(
            bool(self.marks.any()) or len(self) == 0,
            "score='temporal' needs a landmark to be near to; with none, take score='count'",
        )
        return -self.nearness


def marks_of(marks: npt.ArrayLike) -> Flags:
    """The ``marks`` of one series as flags; refused if they are none."""
    flags = np.asarray(marks)
    require(
        flags.ndim == 1 and len(flags) > 0 and flags.dtype.kind in "bi",
        "landmarks: must be one mark (true or false) for each moment of a series",
    )
    return flags.astype(np.bool_)


def partitioned(marks: npt.ArrayLike, distance: Distance = "euclidean") -> Options:
    """Algorithm 1 on ``marks``: each step adds an event to the bin of least ``distance``.

    >>> options = partitioned([1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0])
    >>> options.bins.width, options.bins.counts.tolist(), options.counts(2).tolist()
    (5, [1, 2, 0], [2, 3, 1])
    """
    flags = marks_of(marks)
    bins = histogram(flags)
    spare = bins.spare
    if distance == "euclidean":
        # the sum of squares grows least where least was added: rounds over the bins with room left
        where = np.repeat(np.arange(len(spare)), spare)
        rounds = np.arange(len(where)) - np.repeat(np.cumsum(spare) - spare, spare)
        order = np.lexsort((where, rounds))
        added, growth = where[order], 2 * rounds[order] + 1
        distances = np.sqrt(np.cumsum(growth).astype(np.float64))
        largest = math.hypot(*bins.capacity.tolist())
    else:
        require(
            distance == "wasserstein",
            f"distance={distance!r}: the histograms of partitioned are compared by euclidean or "
            "wasserstein",
        )
        added, distances = _transported(bins)
        largest = float(bins.width * (len(bins.counts) - 1))
    steps = steps_to_nearest(flags)
    starts = np.arange(0, len(flags), bins.width)
    # a landmark is 0 steps from itself, so the sum over a bin is one over its regular moments
    mean = np.add.reduceat(steps, starts) / np.maximum(spare, 1)
    nearness = np.cumsum(mean[added]) / np.arange(1, len(added) + 1)
    return Options(
        marks=flags,
        distances=distances,
        largest=largest,
        nearness=nearness,
        bins=bins,
        added=added,
    )


def _transported(bins: Histogram) -> tuple[Integers, Floats]:
    """Events moved times moments, between the two histograms as distributions over bins."""
    landmarks, steps = int(bins.counts.sum()), int(bins.spare.sum())
    require(
        landmarks > 0,
        "distance='wasserstein' compares distributions, and no landmarks have none; take euclidean",
    )
    require(
        len(bins.counts) * steps <= MAX_TRANSPORT_BINS,
        f"{len(bins.counts)} bins of {steps} regular moments: too many for "
        "distance='wasserstein'; take euclidean",
    )
    added, moved = np.empty(steps, dtype=np.int64), np.empty(steps)
    nearest_by_transport(bins.counts, bins.capacity, added, moved)
    return added, bins.width * moved / landmarks


def _require_distance(distance: Distance) -> None:
    if distance == "euclidean":
        raise UsageError(
            "distance='euclidean': sets with equally many dummies are all equally far from the "
            "landmarks, so it prefers none; take temporal or wasserstein, or options='partitioned'"
        )
    require(
        distance in ("wasserstein", "temporal"),
        f"distance={distance!r}: must be temporal or wasserstein",
    )


def heuristic(marks: npt.ArrayLike, distance: Distance = "temporal") -> Options:
    """One dummy more at each step: the one that leaves the least ``distance`` to the ``marks``.

    >>> heuristic([0, 0, 1, 0]).sets.astype(int).tolist()
    [[0, 1, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1]]
    """
    flags = marks_of(marks)
    _require_distance(distance)
    require(
        len(flags) <= MAX_HEURISTIC_STEPS,
        f"{len(flags)} moments: heuristic holds a set for each number of dummies, for at most "
        f"{MAX_HEURISTIC_STEPS} moments; take options='partitioned'",
    )
    regular = np.flatnonzero(~flags)
    distances: Floats | None = None
    if distance == "wasserstein":
        # a bin for each moment
        each = Histogram(1, flags.astype(np.int64), np.ones(len(flags), dtype=np.int64))
        added, distances = _transported(each)
    else:
        _require_landmark(flags)
        added = regular[np.argsort(steps_to_nearest(flags)[regular], kind="stable")]
    places = np.full(len(flags), -1)
    places[added] = np.arange(len(added))
    sets = places[np.newaxis, :] <= np.arange(len(added))[:, np.newaxis]
    return _of_sets(flags, sets, distances)


def _require_landmark(marks: Flags) -> None:
    require(
        bool(marks.any()),
        "distance='temporal' needs a landmark to be near to; with none, take options='partitioned'",
    )


def _of_sets(marks: Flags, sets: Flags, distances: Floats | None) -> Options:
    steps = np.maximum(steps_to_nearest(marks), 0)
    nearness = sets @ steps.astype(np.float64) / np.arange(1, len(sets) + 1)
    return Options(
        marks=marks,
        distances=nearness if distances is None else distances,
        largest=len(marks) - 1.0,
        nearness=nearness,
        sets=sets,
    )


def optimal(marks: npt.ArrayLike, distance: Distance = "temporal") -> Options:
    """Of all sets with one dummy that of least ``distance`` to the ``marks``, with two, and so on.

    An option of the paper has a set of every size and is scored by all of them. Scores that add up
    are best where every size has its best set, so sizes are searched one by one; of equally near
    sets the earliest moments are taken.

    >>> optimal([0, 1, 0, 0]).sets.astype(int).tolist()
    [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    """
    flags = marks_of(marks)
    _require_distance(distance)
    regular = np.flatnonzero(~flags)
    require(
        len(regular) <= MAX_OPTIMAL_MOMENTS,
        f"{len(regular)} regular moments: optimal compares 2^{len(regular)} sets, and stops at "
        f"2^{MAX_OPTIMAL_MOMENTS}; take options='heuristic' or 'partitioned'",
    )
    if distance == "temporal":
        _require_landmark(flags)
    else:
        require(bool(flags.any()), "distance='wasserstein' needs a landmark; take partitioned")
    steps = np.maximum(steps_to_nearest(flags), 0)
    below = np.cumsum(flags)
    sets, distances = np.empty((len(regular), len(flags)), dtype=np.bool_), np.empty(len(regular))
    for dummies in range(1, len(regular) + 1):
        least = None
        chosen = itertools.combinations(regular.tolist(), dummies)
        while part := list(itertools.islice(chosen, 4096)):
            some = np.broadcast_to(flags, (len(part), len(flags))).copy()
            np.put_along_axis(some, np.array(part), True, axis=1)
            # in whole numbers, so that equally near is equal
            if distance == "temporal":
                far = some @ steps
            else:
                above = np.cumsum(some, axis=1)
                far = np.abs(above[:, -1:] * below - below[-1] * above).sum(axis=1)
            best = int(np.argmin(far))
            if least is None or far[best] < least:
                least = int(far[best])
                sets[dummies - 1] = some[best]
        assert least is not None
        parts = dummies if distance == "temporal" else below[-1] * (below[-1] + dummies)
        distances[dummies - 1] = least / parts
    return _of_sets(flags, sets, distances if distance == "wasserstein" else None)
