"""Guarantees on larger instances than ``conformance.cases``: finer noise, or less left out."""

from dataclasses import replace

import pytest

from tests.conformance.case_checks import Small
from tests.conformance.cases import NAMED
from tests.conformance.cases.sparse import loss_of
from tests.conformance.distribution_checks import the_promise_holds

BITS = (0.0, 1.0)
COUNTS = (0, 1, 2)
CORNERS = ((0, 1), (1, 2))
LARGER = [
    ("gaussian, counts", {"rho": 1.0}, Small((0, 1), 3, 1e-13)),
    ("square root, event", {"rho": 2.0}, Small(BITS, 3, 1e-12)),
    ("square root, window", {}, Small(BITS, 4, 1e-6)),
    ("square root, whole series", {}, Small(BITS, 3, 1e-13)),
    ("square root, people", {}, Small(COUNTS, 3, 1e-8)),
    ("tree, three steps", {}, Small(BITS, 3, 1e-5)),
    ("tree, people", {}, Small(COUNTS, 3, 1e-4)),
    ("once, window", {}, Small((*BITS, 7.0), 3, 1e-5)),
    ("distribution, unlike columns", {}, Small(CORNERS, 2, 1e-3)),
    ("distribution, counts in two cells", {}, Small(((0, 0), (0, 1), (1, 0)), 2, 3e-3)),
    ("fast, few counts", {}, Small((0.0, 1.0, 2.0), 3, 1e-5)),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "other", "small"), LARGER, ids=lambda part: str(part)[:40])
def test_promises_hold_on_larger_instances(name, other, small):
    case = NAMED[name]
    the_promise_holds(replace(case, mechanism=replace(case.mechanism, **other), smalls=(small,)))


@pytest.mark.long
@pytest.mark.parametrize("stream", ["QQQQAQQQQA", "QQQQQQQQAA"])
def test_alerts_on_hard_streams_with_hardly_anything_left_out(stream):
    mechanism = NAMED["alerts, signed sums"].mechanism
    assert loss_of(mechanism, stream, 1e-12) <= 1.001 * mechanism.epsilon
