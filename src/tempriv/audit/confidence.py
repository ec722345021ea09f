"""Lower bounds on a privacy loss from counted runs, each wrong with probability at most alpha.

Two inputs x and y stand for a neighboring pair. Nothing here is a normal approximation: counts of
an event are bounded by Clopper and Pearson's exact interval (1934), means of bounded numbers by the
empirical Bernstein inequality (Maurer and Pontil 2009, Theorem 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import extra_packages

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

ORDERS = 1 + np.geomspace(0.02, 400, 60)
"""Renyi orders that a bound on rho is the best of; all are bounded at once by one interval."""


def at_least(hits: Any, trials: Any, alpha: float) -> Floats:
    """What the probability of an event is at least, from its hits.

    Parameters:
        hits: how often it happened.
        trials: how often it could have happened.
        alpha: the probability that the bound is wrong.

    >>> round(float(at_least(50, 100, 0.05)), 4)
    0.4136
    """
    with extra_packages("analysis", "confidence bounds"):
        from scipy.special import betaincinv

    hits, trials = np.broadcast_arrays(np.asarray(hits, float), np.asarray(trials, float))
    some = np.maximum(hits, 1)
    bound = betaincinv(some, np.maximum(trials - some + 1, 1), alpha)
    return np.asarray(np.where(hits >= 1, bound, 0.0))


def at_most(hits: Any, trials: Any, alpha: float) -> Floats:
    """What the probability of an event is at most, from its hits.

    Parameters:
        hits: how often it happened.
        trials: how often it could have happened.
        alpha: the probability that the bound is wrong.
    """
    return np.asarray(1 - at_least(np.subtract(trials, hits), trials, alpha))


def epsilon_at_least(
    hits: Any, misses: Any, trials: tuple[Any, Any], delta: float, alpha: float
) -> Floats:
    """Epsilon of any (epsilon, delta) that the counts of a guesser allow.

    Before each run a fair coin says whether x or y goes in; whoever sees the output names one of
    them or passes. ``hits`` and ``misses`` count right and wrong names. The chance of a hit is at
    most e^epsilon times that of a miss, plus delta. With delta = 0 a name is therefore right with
    probability e^epsilon / (1 + e^epsilon) at most, whatever the other names, so one exact interval
    for the share of hits suffices. Otherwise hits and misses get one each, at alpha / 2, out of
    their ``trials``: all runs, or those with the input in question if only one is ever named.

    >>> round(float(epsilon_at_least(731, 269, (1000, 1000), 0.0, 0.01)), 2)
    0.83
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        if delta == 0:
            share = at_least(hits, np.add(hits, misses), alpha)
            bound = np.log(share) - np.log1p(-share)
        else:
            least = at_least(hits, trials[0], alpha / 2) - delta
            bound = np.log(np.maximum(least, 0)) - np.log(at_most(misses, trials[1], alpha / 2))
    return np.asarray(np.maximum(bound, 0.0))


def rho_of_event(hits: Any, misses: Any, trials: tuple[Any, Any], alpha: float) -> Floats:
    """rho of any zCDP guarantee that an event allows, with its hits under x and under y.

    The Renyi divergence of order a of "happens or not" is at most a rho, for every a (Bun and
    Steinke 2016, Lemma 2.2). It grows when the probability under x grows or that under y falls, so
    the worst corner of the two intervals bounds it for all orders at once. The (epsilon, delta)
    curve of zCDP is what these divergences leave of an event's two probabilities (Canonne, Kamath
    and Steinke 2020, Proposition 12), so testing that curve point by point could not find more.

    Parameters:
        hits: how often it happened under x.
        misses: how often it happened under y.
        trials: the runs of each.
        alpha: the probability that the bound is wrong.
    """
    p = np.minimum(at_least(hits, trials[0], alpha / 2), 1 - 1e-16)[..., None]
    q = np.clip(at_most(misses, trials[1], alpha / 2), 1e-300, 1 - 1e-16)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        happens = ORDERS * np.log(p) + (1 - ORDERS) * np.log(q)
        does_not = ORDERS * np.log1p(-p) + (1 - ORDERS) * np.log1p(-q)
        bound = np.logaddexp(happens, does_not) / (ORDERS - 1) / ORDERS
    return np.asarray(np.where(p > q, bound, 0.0).max(axis=-1))


def mean_at_least(values: Floats, counts: Counts, alpha: float) -> float:
    """What the mean of bounded numbers is at least, from how often each came up.

    Parameters:
        values: of the numbers.
        counts: how often each came up.
        alpha: the probability that the bound is wrong.
    """
    trials = int(counts.sum())
    if trials < 2:
        return -math.inf
    mean = float(counts @ values) / trials
    variance = float(counts @ (values - mean) ** 2) / (trials - 1)
    log, reach = math.log(2 / alpha), float(np.ptp(values))
    return mean - math.sqrt(2 * variance * log / trials) - 7 * reach * log / (3 * (trials - 1))


@dataclass(frozen=True)
class Score:
    """A bounded score f for each cell of the output, and what its means are guessed to be."""

    values: Floats
    mean: float  # of f under x
    scale: float  # of e^f under y

    @classmethod
    def of(cls, values: Floats, ones: Counts, others: Counts) -> Score:
        """The score with these ``values``; counts ``ones`` and ``others`` say its means."""
        means = (
            counts @ part / max(counts.sum(), 1)
            for counts, part in ((ones, values), (others, np.exp(values)))
        )
        mean, scale = map(float, means)
        return cls(values, mean, scale if scale > 0 else 1.0)


def rho_of_score(score: Score, ones: Counts, others: Counts, alpha: float) -> float:
    """rho of any zCDP guarantee that a score of the output allows; counts are by output cell.

    The Kullback-Leibler divergence of x from y is at most rho, and at least E_x f - log E_y e^f for
    every bounded f (Donsker and Varadhan 1983), with equality for the log-likelihood ratio. Since
    log z <= z / s - 1 + log s for any s > 0, that is the mean of one bounded number a run, a fair
    coin saying which input goes in; wrong guesses make the bound smaller and never false.

    Parameters:
        score: of each cell.
        ones: counts under x.
        others: counts under y.
        alpha: the probability that the bound is wrong.
    """
    under_x = 2 * (score.values - score.mean)
    under_y = 2 * (1 - np.exp(score.values) / score.scale)
    bound = mean_at_least(np.concatenate([under_x, under_y]), np.concatenate([ones, others]), alpha)
    return max(0.0, bound + score.mean - math.log(score.scale))
