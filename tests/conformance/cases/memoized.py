"""Cases of memoized answers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tempriv.mechanisms.value.memoized_response import MemoizedResponse
from tempriv.privacy.units import Answers, Event, WholeSeries
from tests.conformance.case_checks import Case, Small
from tests.reference import memoized as reference

Floats = npt.NDArray[np.float64]


def memoized_case(name: str, mechanism: MemoizedResponse, *smalls: Small) -> Case:
    choices = len(mechanism.categories[0])
    second = mechanism.epsilon_instant

    def readings(rng: np.random.Generator, count: int) -> Floats:
        """Category numbers, some of them none."""
        return rng.integers(-1, choices + 1, (count, 1)).astype(np.float64)

    return Case(
        name=name,
        mechanism=mechanism,
        readings=readings,
        still=(float(choices - 1),),
        released=lambda rows, drawn: reference.reports(rows, choices, drawn),
        parameters=(Fraction(mechanism.epsilon_forever),) * choices
        + (() if second is None else (Fraction(second),)),
        cost=lambda outcomes, column: (outcomes != 0).astype(np.float64),
        smalls=smalls,
        tight=second is None,  # with a second response only very many reports use up the guarantee
        independent=False,  # reports of one series share its permanent answers
    )


# answers are categories, so that two unknown ones would be two names of the last
KNOWN, WITH_UNKNOWN = (0, 1, 2), (0, 1, 2, 9)

CASES: tuple[Case, ...] = (
    memoized_case(
        "memoized, second response",
        MemoizedResponse(epsilon_forever=2.0, epsilon_instant=1.0, categories=("no", "yes")),
        Small((0, 1, 7), 3),
        Small((0, 1), 4),
    ),
    memoized_case(
        "memoized, as it is",
        MemoizedResponse(epsilon_forever=1.0, categories=("a", "b", "c")),
        Small(WITH_UNKNOWN, 3),
    ),
    memoized_case(
        "memoized, two answers",
        MemoizedResponse(epsilon_forever=0.7, categories=("a", "b", "c"), unit=Answers(2)),
        Small(KNOWN, 3),
    ),
    memoized_case(
        "memoized, two answers, second response",
        MemoizedResponse(
            epsilon_forever=0.7, epsilon_instant=2.0, categories=("a", "b", "c"), unit=Answers(2)
        ),
        Small(KNOWN, 2),
    ),
    memoized_case(
        "memoized, event",
        MemoizedResponse(
            epsilon_forever=3.0, epsilon_instant=1.0, categories=("a", "b"), unit=Event()
        ),
        Small((0, 1, -1), 3),
    ),
    memoized_case(
        "memoized, whole series",
        MemoizedResponse(
            epsilon_forever=3.0, epsilon_instant=0.5, categories=("a", "b"), unit=WholeSeries(4)
        ),
        Small((0, 1), 4),
    ),
)
