"""What the sparse vector technique loses on its worst streams, by quadrature over the threshold.

Given the noisy threshold the answers are independent, so the probability of a stream of answers is
one integral. Sensitivity is 1 and noise is continuous, as in the literature.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

NODES = 8  # Gauss-Legendre points to a piece; pieces end where the integrand has a kink
PIECE = 0.25


def _log_above(x: Floats) -> Floats:
    """log P(X > x) of Laplace noise of scale 1."""
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x >= 0, -np.abs(x) - np.log(2.0), np.log1p(-tail))


def log_probability(
    values: Floats, alerts: npt.NDArray[np.bool_], threshold_scale: float, value_scale: float
) -> float:
    """The logarithm of the probability of these answers, the threshold being 0.

    Parameters:
        values: one for each step.
        alerts: the answers.
        threshold_scale: of the noise on the threshold.
        value_scale: of the noise on each value.

    >>> fair = log_probability(np.zeros(1), np.array([True]), 1.0, 1.0)
    >>> round(float(np.exp(fair)), 9)
    0.5
    """
    reach = 60 * (threshold_scale + value_scale) + float(np.abs(values).max(initial=0.0))
    ends = np.arange(-reach, reach + PIECE, PIECE * min(1.0, threshold_scale, value_scale))
    ends = np.unique(np.concatenate([ends, values, [0.0]]))
    points, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(ends)[:, None] / 2
    noise = (ends[:-1, None] + half * (1 + points)).ravel()
    logs = -np.abs(noise) / threshold_scale - np.log(2 * threshold_scale)
    logs += np.log((half * weights).ravel())
    for value, count in zip(*np.unique(values[alerts], return_counts=True), strict=True):
        logs += count * _log_above((noise - value) / value_scale)
    for value, count in zip(*np.unique(values[~alerts], return_counts=True), strict=True):
        logs += count * _log_above((value - noise) / value_scale)
    top = float(logs.max())
    return top + float(np.log(np.exp(logs - top).sum()))


def sparse_vector_loss(
    threshold_epsilon: float,
    alert_epsilon: float,
    most: int,
    *,
    factor: float = 2.0,
    monotone: bool = False,
    quiet: int = 30,
) -> float:
    """The loss between two streams that are hard to hide, with noise factor / alert_epsilon.

    First come ``quiet`` values far above the threshold that, against all odds, raise no alert, so
    the noisy threshold must be high; then come ``most`` alerts. On the other stream the quiet ones
    are higher by 1, and the alerting ones lower by 1, or as high if all must change the same way.
    More quiet values come closer to the worst.

    Parameters:
        threshold_epsilon: the budget of the threshold.
        alert_epsilon: the budget of each alert.
        most: how many alerts.
        factor: of the noise on values, which is factor / alert_epsilon.
        monotone: whether all values change the same way.
        quiet: how many values come before the alerts.

    >>> [round(sparse_vector_loss(0.5, 0.25, 2, factor=f), 4) for f in (2.0, 1.0)]
    [1.0, 1.5]
    """
    scale = factor / alert_epsilon
    height = 5 * scale
    alerts = np.arange(quiet + most) >= quiet
    stream = np.where(alerts, 0.0, height)
    neighbor = np.where(alerts, 0.0 if monotone else -1.0, height + 1)
    first, second = (
        log_probability(values, alerts, 1 / threshold_epsilon, scale)
        for values in (stream, neighbor)
    )
    return first - second
