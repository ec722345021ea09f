"""Sensitivities are the largest change over all neighbors, as the units enumerate them."""

from __future__ import annotations

import functools
import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempriv.errors import UsageError
from tempriv.privacy import sensitivity as module
from tempriv.privacy.sensitivity import occupancy, query_matrix, running_count, sensitivity
from tempriv.privacy.units import Contribution, Event, Person, WholeSeries, Window, WithinDistance
from tests.support.paths import DOCS

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)

DAY = 1440
UNITS = [
    Event(),
    Window(2),
    WholeSeries(4),
    Contribution(Event()),
    Contribution(Event(), per_step=2),
    Contribution(Window(2)),
    Contribution(Window(3), per_step=2, total=3),
    Contribution(WholeSeries(4)),
    Contribution(WholeSeries(4), total=2),
    Contribution(WholeSeries(4), per_step=2, total=3),
    Contribution(WholeSeries(4), total=2, signed=True),
    Contribution(Window(3), per_step=2, total=3, signed=True),
]


def differences(before):
    return np.diff(before, prepend=0)


def two_step_sums(counts):
    return counts[:-1] + counts[1:]


@functools.cache
def changes(unit, length):
    """Every difference between an input and a neighbor of it, a column each."""
    alphabet = (0, 1, 2) if isinstance(unit, Contribution) else (0, 1)
    found = {
        tuple(a - b for a, b in zip(example, other, strict=True))
        for example in itertools.product(alphabet, repeat=length)
        for other in unit.neighbors(example, alphabet)
    }
    return np.array(sorted(found), dtype=np.float64).T


def brute(matrix, unit, length, order):
    """The definition: the most over every input and every neighbor of it."""
    return np.linalg.norm(matrix @ changes(unit, length), ord=order, axis=0).max()


@pytest.mark.parametrize("query", [occupancy, running_count, differences, two_step_sums])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_the_largest_change_over_all_neighbors(query, unit):
    for length in (2, 4):
        found, matrix = sensitivity(query, unit, length), query_matrix(query, length)
        assert found.exact
        assert found.l1 == pytest.approx(brute(matrix, unit, length, 1), rel=1e-12)
        assert found.l2 == pytest.approx(brute(matrix, unit, length, 2), rel=1e-12)


def attained(found, matrix, unit, scale=1):
    """The worst difference is one between neighbors, and changes the query that much."""
    for worst, most, order in ((found.worst_l1, found.l1, 1), (found.worst_l2, found.l2, 2)):
        other = tuple(scale * x for x in worst)
        assert unit.are_neighbors((0,) * len(worst), other)
        assert np.linalg.norm(matrix @ np.array(worst), ord=order) == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_random_queries(unit):
    rng = np.random.default_rng(5)
    for signs in (1, -1):
        for _ in range(2):
            matrix = rng.integers(0 if signs > 0 else -3, 4, (3, 4)).astype(np.float64)
            found = sensitivity(matrix, unit, 4)
            assert found.l1 == pytest.approx(brute(matrix, unit, 4, 1), rel=1e-12)
            assert found.l2 == pytest.approx(brute(matrix, unit, 4, 2), rel=1e-12)
            attained(found, matrix, unit)
            bound = [
                module._bound(matrix, module.Differences.of(unit, 4, (0, 1)), order)
                for order in (1, 2)
            ]
            assert bound[0] >= found.l1 - 1e-12 and bound[1] >= found.l2 - 1e-12


@quick
@given(st.data())
def test_longer_series_agree_with_corners_and_bounds(data):
    """What is found directly is what trying every corner finds; a bound is never below it."""
    length = data.draw(st.integers(2, 7))
    width = data.draw(st.integers(1, length))
    total = data.draw(st.none() | st.integers(2, 5))
    unit = Contribution(Window(width), data.draw(st.sampled_from([1, 2, 0.7])), total)
    low = data.draw(st.sampled_from([0, -2]))
    entries = st.lists(st.integers(low, 2), min_size=length, max_size=length)
    matrix = np.array(data.draw(st.lists(entries, min_size=1, max_size=4)), dtype=np.float64)
    reach, found = module.Differences.of(unit, length, (0, 1)), sensitivity(matrix, unit, length)
    for order, most in ((1, found.l1), (2, found.l2)):
        assert most == pytest.approx(module._by_corners(matrix, reach, order)[0], rel=1e-9)
        assert module._bound(matrix, reach, order) * module.ROUNDING_FACTOR >= most
    assert len(reach.corners()) * len(reach.starts) <= reach.corner_count
    attained(found, matrix, unit)


# the building of the paper


@pytest.mark.parametrize(
    ("query", "unit", "l1", "l2"),
    [
        (occupancy, Contribution(Event()), 1, 1),
        (occupancy, Contribution(WholeSeries(DAY)), DAY, math.sqrt(DAY)),
        (running_count, Contribution(Event()), 1440, 37.947),
        (running_count, Contribution(WholeSeries(DAY)), 1_037_520, 31_565.25),
        (running_count, Event(), 1440, 37.947),
        (running_count, WholeSeries(DAY), 1_037_520, 31_565.25),
    ],
)
def test_a_day_of_minutes(query, unit, l1, l2):
    found = sensitivity(query, unit, DAY)
    assert found.exact and found.l1 == l1
    assert found.l2 == pytest.approx(l2, abs=0.005)
    attained(found, query_matrix(query, DAY), unit)


def test_a_limit_on_what_one_person_adds_helps():
    """Ten visits at most: the first ten minutes are the worst for a running count."""
    found = sensitivity(running_count, Contribution(WholeSeries(DAY), total=10), DAY)
    assert found.l1 == sum(DAY - i for i in range(10))
    assert found.worst_l2 == (1.0,) * 10 + (0.0,) * (DAY - 10)
    windows = sensitivity(running_count, Contribution(Window(60), total=10), DAY)
    assert (windows.l1, windows.l2) == (found.l1, found.l2)


def test_counts_themselves_change_as_the_unit_says():
    for unit in (one for one in UNITS if isinstance(one, Contribution)):
        found = sensitivity(occupancy, unit, 4)
        assert found.l1 == unit.most
        assert found.l2**2 == pytest.approx(float(unit.square))


def test_persons_have_their_series_side_by_side():
    one = sensitivity(running_count, Window(2), 3)
    both = sensitivity(running_count, Person(2, Window(2)), 3)
    assert both.l1 == 2 * one.l1 and both.l2 == pytest.approx(math.sqrt(2) * one.l2)
    matrix, series = query_matrix(running_count, 3), list(itertools.product((0, 1), repeat=3))
    most = 0.0
    for example in itertools.product(series, repeat=2):
        for other in Person(2, Window(2)).neighbors(example, (0, 1)):
            change = np.concatenate(
                [matrix @ (np.array(a) - np.array(b)) for a, b in zip(example, other, strict=True)]
            )
            most = max(most, np.abs(change).sum())
    assert both.l1 == most


def test_bounds_of_readings():
    assert sensitivity(occupancy, Event(), 3, bounds=(-2, 5)).l1 == 7
    assert sensitivity(running_count, WholeSeries(3), 3, bounds=(0, 2)).l1 == 12


def test_too_many_differences_are_refused_or_bounded():
    with pytest.raises(UsageError, match="or_bound=True"):
        sensitivity(differences, WholeSeries(50), 50)
    found = sensitivity(differences, WholeSeries(50), 50, or_bound=True)
    # up and down in turn is the worst: 1 for the first, 2 for each of the others
    assert not found.exact and found.worst_l1 is None
    assert 99 <= found.l1 < 99.001
    assert math.sqrt(1 + 49 * 4) <= found.l2 <= 1.02 * math.sqrt(1 + 49 * 4)


@pytest.mark.parametrize(
    "query",
    [
        np.sort,
        np.square,
        lambda x: x + 1,
        np.abs,
        lambda x: np.maximum(x, 2),
        lambda x: x * x.sum(),
    ],
)
def test_what_is_not_linear_is_refused(query):
    with pytest.raises(UsageError, match="must be linear"):
        sensitivity(query, Event(), 5)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"length": 0}, "length=0: "),
        ({"unit": WithinDistance(5.0)}, "unit=WithinDistance"),
        ({"unit": WholeSeries(3)}, "length=4: must be at most 3"),
        ({"query": np.ones((2, 3))}, "shape (2, 3)"),
        ({"query": np.full((2, 4), np.nan)}, "finite"),
        ({"query": lambda x: np.ones((2, 2))}, "flat array"),
        ({"query": lambda x: x[x > 0]}, "as many numbers"),
        ({"query": lambda x: x / 0 if x.any() else x}, "finite"),
        ({"bounds": (1, 0)}, "bounds=1 0: "),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_refusals(given, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        sensitivity(**{"query": occupancy, "unit": Event(), "length": 4, **given})


def test_the_table_of_the_docs_is_what_the_code_says():
    text = (DOCS / "counting-people.md").read_text()
    rows = re.findall(
        r"^\| (occupancy|running count) \| `(.+)` \| ([\d.,]+) \| ([\d.,]+) \|$", text, re.M
    )
    assert len(rows) >= 8
    queries = {"occupancy": occupancy, "running count": running_count}
    names = {
        "Contribution": Contribution,
        "Event": Event,
        "WholeSeries": WholeSeries,
        "Window": Window,
    }
    for query, unit, l1, l2 in rows:
        found = sensitivity(queries[query], eval(unit, names), DAY)
        assert f"{found.l1:,.0f}" == l1
        assert f"{found.l2:,.2f}" == l2
