"""Change points as an adversary sees them: where a stream is cut, and how well that was guessed.

Section 5.3.3 of "Local Differentially Private Release of Infinite Streams With Temporal Relevance"
(2025) takes what clustering still finds out about a person's activities for a measure of privacy,
as an F1 score. Two scores are offered: of the labels, and of the moments at which they change.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, extra_packages, require

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def label_f1(true: Any, clusters: Any) -> float:
    """The mean over the true labels of the F1 score of the cluster that stands for each.

    Clusters are matched to labels one to one, in the way that gives the highest mean; a label
    without a cluster scores 0. Names of clusters do not matter.

    >>> label_f1(["sit", "sit", "walk", "walk"], [7, 7, 3, 3])
    1.0
    >>> label_f1(["sit", "sit", "walk", "walk"], [0, 0, 0, 0])
    0.3333333333333333
    """
    with extra_packages("studies", "labels of segments"):
        from scipy.optimize import linear_sum_assignment

    true, clusters = np.asarray(true).ravel(), np.asarray(clusters).ravel()
    require(
        len(true) == len(clusters) > 0,
        f"{len(clusters)} labels found for {len(true)}: give one for each step, and at least one",
        DataError,
    )
    names, first = np.unique(true, return_inverse=True)
    groups, second = np.unique(clusters, return_inverse=True)
    both = np.zeros((len(names), len(groups)))
    np.add.at(both, (first, second), 1.0)
    scores = 2 * both / (both.sum(axis=1, keepdims=True) + both.sum(axis=0, keepdims=True))
    rows, columns = linear_sum_assignment(-scores)
    return float(scores[rows, columns].sum() / len(names))


def changes(labels: Any) -> Integers:
    """The steps at which a label differs from the one before.

    Parameters:
        labels: one for each step.

    >>> changes([4, 4, 1, 1, 4]).tolist()
    [2, 4]
    """
    labels = np.asarray(labels).ravel()
    return np.flatnonzero(labels[1:] != labels[:-1]) + 1


def change_f1(true: Any, guessed: Any, tolerance: int) -> float:
    """The F1 score of moments: a true change is met by a found one at most so many steps off.

    Each change meets one other at most. Where there is no change and none is found it is 1.

    Parameters:
        true: steps at which labels change.
        guessed: those that were found.
        tolerance: in steps.

    >>> change_f1([100, 200], [103, 104, 290], tolerance=5)
    0.4
    """
    require(
        isinstance(tolerance, (int, np.integer)) and tolerance >= 0,
        f"tolerance={tolerance}: must be a whole number of steps >= 0",
    )
    true, guessed = np.sort(np.asarray(true).ravel()), np.sort(np.asarray(guessed).ravel())
    if not len(true) + len(guessed):
        return 1.0
    met = i = j = 0
    # on a line the earliest two that can meet always may
    while i < len(true) and j < len(guessed):
        if abs(int(true[i]) - int(guessed[j])) <= tolerance:
            met, i, j = met + 1, i + 1, j + 1
        elif guessed[j] < true[i]:
            j += 1
        else:
            i += 1
    return 2 * met / (len(true) + len(guessed))


ChangeModel = Literal["normal", "l2", "rbf"]


def cut(
    values: Any, number: int, *, model: ChangeModel = "normal", apart: int = 64, grid: int = 16
) -> Any:
    """So many changes of the stream, by binary segmentation with the ``ruptures`` package.

    ``model`` is what changes: ``normal`` mean and covariance, ``l2`` the mean. Changes are on a
    ``grid`` of steps, at least ``apart``. Columns are brought to variance 1.

    Parameters:
        values: a row for each step.
        number: how many changes.
        model: what changes.
        apart: steps between two changes at least.
        grid: of steps on which changes are.

    >>> cut(np.repeat([0.0, 5.0, 1.0], 320), 2, model="l2").tolist()
    [320, 640]
    """
    with extra_packages("studies", "change points"):
        import ruptures
    values = np.asarray(values, dtype=np.float64)
    values = values.reshape(len(values), -1)
    spread = values.std(axis=0)
    values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    require(
        isinstance(number, int) and number >= 1 and (number + 1) * apart <= len(values),
        f"number={number}: must be from 1 to {len(values) // apart - 1}, with {len(values)} steps "
        f"of which changes are {apart} apart",
    )
    with warnings.catch_warnings():
        # it tells everybody that its covariances have a floor since version 1.1.5
        warnings.simplefilter("ignore", UserWarning)
        search = ruptures.Binseg(model=model, min_size=apart, jump=grid)
    search.fit(values)
    return np.asarray(search.predict(n_bkps=number)[:-1], dtype=np.int64)
