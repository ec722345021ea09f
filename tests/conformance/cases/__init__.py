"""Mechanisms with example parameters and what their definitions say, for ``conformance.checks``."""

from __future__ import annotations

from tests.conformance.case_checks import Case
from tests.conformance.cases import (
    budgets,
    counting,
    fourier,
    landmark,
    memoized,
    order,
    pattern,
    pegasus,
    period,
    sparse,
    value,
)

CASES: tuple[Case, ...] = (
    *(*value.CASES, *memoized.CASES, *sparse.CASES),
    *(*budgets.CASES, *counting.CASES, *fourier.CASES),
    *(*order.CASES, *pattern.CASES, *pegasus.CASES, *period.CASES),
    *landmark.CASES,
)
NAMED = {case.name: case for case in CASES}
