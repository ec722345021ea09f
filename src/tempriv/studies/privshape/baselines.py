"""What the shapes paper does with perturbed series: cluster centers, and a random forest.

Section V-C of the paper puts KMeans (clusters, judged by the adjusted Rand index) and a random
forest (classes, judged by accuracy) behind PatternLDP, and section V-E takes KShape's centers for
pictures. k-Shape is that of Paparrizos and Gravano (SIGMOD 2015), for series of equal lengths.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.sampling.keys import Key, simulation

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MIN_LEAF_SERIES = 100
"""Of a tree. The paper says default settings, which is 1; its authors' program sets this."""

MAX_ROUNDS = 100
BATCH_NUMBERS = 1 << 21  # numbers that are worked on at a time


def forest_accuracy(
    train: Any,
    labels: Any,
    test: Any,
    truth: Any,
    key: Key,
    *,
    least_leaf: int = MIN_LEAF_SERIES,
    trees: int = 100,
) -> float:
    """The share of test series that a forest grown on (perturbed) series and labels gets right.

    As the paper's authors do, who give the forest the test series without noise.

    Parameters:
        train: series to learn from.
        labels: of these.
        test: series to tell.
        truth: their labels.
        key: of the random numbers.
        least_leaf: how many series a leaf of a tree holds at least.
        trees: how many.
    """
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(
        n_estimators=trees, min_samples_leaf=least_leaf, random_state=_state(key, "forest")
    )
    forest.fit(np.asarray(train, dtype=np.float32), labels)
    return float(np.mean(forest.predict(np.asarray(test, dtype=np.float32)) == np.asarray(truth)))


def kmeans_centers(series: Any, clusters: int, key: Key) -> Floats:
    """The means of the clusters that KMeans finds, by Euclidean distance.

    Parameters:
        series: a row each.
        clusters: how many.
        key: of the random numbers.
    """
    from sklearn.cluster import KMeans

    model = KMeans(n_clusters=clusters, n_init=1, random_state=_state(key, "kmeans")).fit(series)
    return np.asarray(model.cluster_centers_, dtype=np.float64)


def nearest(
    series: Any, centers: Floats, distance: Literal["euclidean", "shape"] = "euclidean"
) -> Integers:
    """The number of the center next to each series.

    Parameters:
        series: a row each.
        centers: a row each.
        distance: by which they are compared.

    >>> nearest([[0.0, 1.0], [5.0, 5.0]], np.array([[4.0, 5.0], [0.0, 0.0]])).tolist()
    [1, 0]
    """
    require(
        distance in ("euclidean", "shape"), f"distance={distance!r}: must be 'euclidean' or 'shape'"
    )
    rows = np.asarray(series, dtype=np.float64)
    if distance == "shape":
        return np.asarray(np.argmin(shape_distances(rows, centers)[0], axis=1))
    # the squares of the series themselves are the same for all centers
    return np.asarray(np.argmin((centers**2).sum(axis=1) - 2 * rows @ centers.T, axis=1))


def adjusted_rand(labels: Any, clusters: Any) -> float:
    """How well clusters agree with labels: 1 if they are the same, about 0 by chance.

    Parameters:
        labels: the true ones.
        clusters: their numbers.
    """
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(labels, clusters))


# k-Shape


def z_scored(rows: Floats) -> Floats:
    """Each of the ``rows`` with mean 0 and standard deviation 1; a constant row becomes 0.

    >>> z_scored(np.array([[1.0, 3.0], [2.0, 2.0]])).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    off = rows - rows.mean(axis=1, keepdims=True)
    spread = off.std(axis=1, keepdims=True)
    return np.asarray(off / np.where(spread > 0, spread, 1.0))


def shape_distances(rows: Floats, centers: Floats) -> tuple[Floats, Integers]:
    """1 - the largest normalized cross-correlation over all shifts; and how far to shift the row.

    Paparrizos and Gravano 2015, equation 9: from 0 for the same shape up to 2.

    Parameters:
        rows: a series each.
        centers: a row each.
    """
    length = rows.shape[1]
    size = 1 << (2 * length - 1).bit_length()
    other = np.conj(np.fft.rfft(centers, size, axis=1))
    norms = np.linalg.norm(centers, axis=1)
    distances = np.empty((len(rows), len(centers)))
    shifts = np.empty((len(rows), len(centers)), dtype=np.int64)
    together = max(1, BATCH_NUMBERS // size)
    for begin in range(0, len(rows), together):
        part = rows[begin : begin + together]
        spectrum = np.fft.rfft(part, size, axis=1)
        scale = np.linalg.norm(part, axis=1)
        for j in range(len(centers)):
            # at lag k: sum over t of row[t + k] center[t], negative lags at the end
            lags = np.fft.irfft(spectrum * other[j], size, axis=1)
            lags = np.concatenate([lags[:, size - length + 1 :], lags[:, :length]], axis=1)
            best = np.argmax(lags, axis=1)
            height = lags[np.arange(len(part)), best]
            both = scale * norms[j]
            distances[begin : begin + together, j] = 1 - height / np.where(both > 0, both, 1.0)
            shifts[begin : begin + together, j] = length - 1 - best
    return distances, shifts


def shifted(rows: Floats, by: Integers) -> Floats:
    """Each row moved right (or left) by so many steps, with zeros for what is not there.

    Parameters:
        rows: a series each.
        by: steps to the right, or to the left if negative.

    >>> shifted(np.array([[1.0, 2.0, 3.0]] * 2), np.array([1, -2])).tolist()
    [[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]]
    """
    length = rows.shape[1]
    places = np.arange(length) - by[:, None]
    inside = (places >= 0) & (places < length)
    moved = np.where(inside, np.take_along_axis(rows, np.clip(places, 0, length - 1), axis=1), 0.0)
    return np.asarray(moved)


def extracted_shape(rows: Floats) -> Floats:
    """The shape with the largest sum of squared correlations to aligned rows.

    It is the leading eigenvector of Q S Q (Paparrizos and Gravano 2015, equation 15), z-scored; of
    its two signs the one nearer to the rows.

    Parameters:
        rows: aligned series.
    """
    centered = z_scored(rows)
    centered = centered - centered.mean(axis=1, keepdims=True)  # Q, once more after rounding
    if len(centered) < centered.shape[1]:
        # the same vector from a smaller matrix: if C C' u = m u, then C' C (C' u) = m (C' u)
        lead = centered.T @ np.linalg.eigh(centered @ centered.T)[1][:, -1]
    else:
        lead = np.linalg.eigh(centered.T @ centered)[1][:, -1]
    shape: Floats = z_scored((lead if (centered @ lead).sum() >= 0 else -lead)[None])[0]
    return shape


def kshape_centers(series: Any, clusters: int, key: Key, *, starts: int = 3) -> Floats:
    """The shapes of the clusters that k-Shape finds; the best of some random starts.

    Parameters:
        series: a row each.
        clusters: how many.
        key: of the random numbers.
        starts: how many random ones.
    """
    rows = z_scored(np.asarray(series, dtype=np.float64))
    require(
        1 <= clusters <= len(rows),
        f"clusters={clusters}: must be from 1 to the number of series, {len(rows)}",
    )
    require(starts >= 1, f"starts={starts}: must be >= 1")
    best: Floats = np.empty(0)
    least = np.inf
    for start in range(starts):
        generator = simulation(key, f"k-Shape {start}")
        assigned = generator.permutation(np.arange(len(rows)) % clusters)
        centers = np.zeros((clusters, rows.shape[1]))
        for _ in range(MAX_ROUNDS):
            for j in range(clusters):
                members = rows[assigned == j]
                if len(members) == 0:  # a cluster that lost all its series begins with another one
                    members = rows[generator.integers(len(rows), size=1)]
                if centers[j].any():
                    members = shifted(
                        members, shape_distances(members, centers[j : j + 1])[1][:, 0]
                    )
                centers[j] = extracted_shape(members)
            distances = shape_distances(rows, centers)[0]
            before, assigned = assigned, np.argmin(distances, axis=1)
            if (before == assigned).all():
                break
        total = float(distances.min(axis=1).sum())
        if total < least:
            best, least = centers, total
    return best


def _state(key: Key, purpose: str) -> int:
    return int(simulation(key, purpose).integers(1 << 31))
