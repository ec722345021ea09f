"""Answers that devices report again and again, and how common each is among the people.

A fresh randomized response to the same question tells a little more each time, and an answer that
does not change comes out in the end. A memoized response (Erlingsson, Pihur and Korolova 2014)
draws one permanent answer for every possible truth, once, and reports that: as it is, or through a
second response that is drawn anew each time. An unchanging truth then never costs more than the
permanent answer did; that it changed is a different matter, see ``MemoizedResponse``.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tempriv.data.series import Block
from tempriv.errors import DataError, require
from tempriv.mechanisms.domains import positive
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.value.memoized_response import MemoizedResponse
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy import serialization
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange

Integers = npt.NDArray[np.int64]


class Response(Protocol):
    """A report of one of ``choices`` answers: the true one with probability ``keep``.

    Each of the others is reported with the same probability.
    """

    @property
    def choices(self) -> int: ...

    @property
    def keep(self) -> float: ...


def instant_for(epsilon_once: float, epsilon_forever: float, choices: int) -> float:
    """The ``epsilon_instant`` with which a single report gives away ``epsilon_once`` at most.

    Parameters:
        epsilon_once: of a single report.
        epsilon_forever: of the permanent answer.
        choices: how many answers there are.

    >>> second = instant_for(0.5, 2.0, 2)
    >>> asked = MemoizedResponse(
    ...     epsilon_forever=2.0, epsilon_instant=second, categories=("no", "yes")
    ... )
    >>> round(second, 4), round(asked.epsilon_once, 9)
    (0.6668, 0.5)
    """
    positive("epsilon_once", epsilon_once)
    require(
        epsilon_once < epsilon_forever,
        f"epsilon_once={epsilon_once}: must be < epsilon_forever={epsilon_forever}",
    )

    def contrast(epsilon: float) -> float:
        """keep - other at an ``epsilon``; that of two stages is the product of theirs."""
        return -math.expm1(-epsilon) / (1 + (choices - 1) * math.exp(-epsilon))

    ratio = contrast(epsilon_once) / contrast(epsilon_forever)
    epsilon = math.log1p(choices * ratio / (1 - ratio))
    return epsilon * (1 - 1e-12)  # rounding must not pass what was asked for


def other_probability(response: Response) -> float:
    """The probability of each category that is not the truth, in a ``response``."""
    return (1 - response.keep) / (response.choices - 1)


def response_of(mechanism: Any) -> Response:
    """How a ``mechanism`` answers: memoized, by a distribution, or by a randomized response.

    >>> response_of(RandomizedResponse(epsilon=math.log(3), categories=("no", "yes"))).keep
    0.75
    """
    if isinstance(mechanism, RandomizedResponse):
        require(
            len(mechanism.distributions) == 1,
            f"{len(mechanism.distributions)} columns: estimate one column at a time, by "
            "mechanism.distributions",
        )
        return mechanism.distributions[0]
    require(
        isinstance(mechanism, (MemoizedResponse, distributions.CategoryFlip)),
        f"{type(mechanism).__name__}: must be RandomizedResponse or MemoizedResponse",
    )
    response: Response = mechanism
    return response


# what devices send


def collect(mechanism: MemoizedResponse | RandomizedResponse, truth: Any, key: Key) -> Integers:
    """Reports of many people: a row for each person, a column for each time step.

    Parameters:
        mechanism: that makes the reports.
        truth: the number of the true answer, for each person and step.
        key: of the noise.

    >>> truth = np.zeros((3, 4), dtype=int)
    >>> fresh = RandomizedResponse(epsilon=1.0, categories=("no", "yes"))
    >>> collect(fresh, truth, Key.from_seed(1)).shape
    (3, 4)
    """
    answers, choices = np.asarray(truth), response_of(mechanism).choices
    require(answers.ndim == 2, "give a row of answers for each person", DataError)
    require(
        answers.dtype.kind in "iu" and bool(((answers >= 0) & (answers < choices)).all()),
        f"an answer is none of the {choices} categories: number them from 0 to {choices - 1}",
        DataError,
    )
    people, steps = answers.shape
    digest, names = serialization.digest(mechanism), [f"person {i}" for i in range(people)]
    runs = [StepRange(key.series(digest, name), 0, steps) for name in names]
    block = Block(
        values=answers.reshape(-1, 1).astype(np.float64),
        missing=np.zeros((answers.size, 1), dtype=np.bool_),
        ids=tuple(names),
        counts=np.full(people, steps, dtype=np.int64),
        starts=np.zeros(people, dtype=np.int64),
    )
    out = perturb_block(mechanism, block, runs)
    return out.values.astype(np.int64).reshape(people, steps)


def standard_error_of_average(
    mechanism: MemoizedResponse, people: int, reports: int, fraction: float
) -> float:
    """The standard error of an estimate from the average of so many reports of unchanging answers.

    Second responses average out, permanent answers do not: the error has a floor that only more
    people can lower.

    Parameters:
        mechanism: that makes the reports.
        people: how many.
        reports: of each person.
        fraction: the share of people with the answer.

    >>> memo = MemoizedResponse(epsilon_forever=2.0, epsilon_instant=1.0, categories=("a", "b"))
    >>> [round(standard_error_of_average(memo, 10_000, n, 0.3), 4) for n in (1, 10, 1000)]
    [0.0133, 0.0058, 0.0043]
    """
    require(people >= 1 and reports >= 1, "people and reports: must be at least 1 each")
    require(0 <= fraction <= 1, f"fraction={fraction}: must be from 0 to 1")
    first, second = mechanism.permanent_distribution, mechanism.instant_distribution
    keep, other = (1.0, 0.0) if second is None else (second.keep, other_probability(second))
    contrast = (first.keep - other_probability(first)) * (keep - other)
    total = 0.0
    for part, chance in ((fraction, first.keep), (1 - fraction, other_probability(first))):
        between = (keep - other) ** 2 * chance * (1 - chance)
        within = chance * keep * (1 - keep) + (1 - chance) * other * (1 - other)
        total += part * (between + within / reports)
    return math.sqrt(total / people) / contrast
