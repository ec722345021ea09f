"""A summary keeps its guarantee: exactly, on its own code, and every classic mistake is noticed."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tempriv.accounting.gaussian_privacy import mu_budget
from tempriv.audit.exact import Comparison
from tempriv.audit.summaries import audit_parts, joint_distribution, one_record_apart
from tempriv.summaries import measure
from tempriv.summaries.from_table import Layout, read_strata
from tempriv.summaries.measure import PersonVectors, Wanted
from tempriv.summaries.spec import PeopleSummary
from tempriv.summaries.vectors import READING_STEPS
from tests.mutants.people import MEASUREMENTS, READERS

FULL = READING_STEPS
ALL = ("mean", "q50", "peak", "histogram", "share-above=0.5")
SPEC = PeopleSummary(epsilon=2.0, delta=1e-6, bounds=(0, 1), statistics=ALL)
RECORDS = (
    *([0] * 4, [FULL] * 4, [FULL, 0, 0, 0], [0, 0, FULL // 2, FULL // 3]),
    *([FULL // 5] * 4, [10, 20, 30, 0]),
)


def people(records):
    vectors = np.array(records, dtype=np.int32).reshape(len(records), 4)
    return PersonVectors(vectors, (vectors,))


def neighbors():
    """Tables of few and of many, with each record more."""
    rng = np.random.default_rng(20)
    many = rng.integers(0, FULL, (30, 4)).tolist()
    tables = ([], [RECORDS[1]], list(RECORDS), many)
    return [(people([*table, record]), people(table)) for table in tables for record in RECORDS]


def test_every_part_costs_what_it_says_and_no_more():
    """On the grid of releases, and on one so coarse that clipping to whole steps shows."""
    for grid in (SPEC.grid, 4):
        wanted = replace(SPEC.wanted(4), grid=grid)
        verdict = audit_parts(neighbors(), wanted, seeds=(1, 2))
        assert verdict.problems == ()
        assert verdict.holds
        # not by being far too careful: the worst pair uses most of the budget
        assert grid == 4 or verdict.found > 0.9 * verdict.claimed


@pytest.mark.parametrize("mutant", MEASUREMENTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_measurement_is_noticed(mutant):
    verdict = audit_parts(neighbors()[6:], SPEC.wanted(4), seeds=(1, 2), measurement=mutant)
    assert not verdict.holds


def tiny(monkeypatch, mu):
    """One cell, three options for each clip, a grid of two steps: all outcomes can be listed."""
    for name, value in (
        *(("CLIP_OPTIONS", 3), ("CLIP_RATIO", 4.0)),
        *(("SECOND_OPTIONS", 3), ("SECOND_RATIO", 32.0)),
    ):
        monkeypatch.setattr(measure, name, value)
    return Wanted(
        cells=1, mean=True, bands=False, spread=False, peak=False, edges=(), shares=0, mu=mu, grid=2
    )


def test_all_outcomes_of_a_tiny_table_keep_the_guarantee(monkeypatch):
    """The number of people, both private clips and both sums together, every outcome listed."""
    mu, tail = 8.0, 1e-3
    wanted = tiny(monkeypatch, mu)
    one, other = (
        joint_distribution(PersonVectors(np.array([records], dtype=np.int32).T, ()), wanted, tail)
        for records in ([FULL // 9], [FULL // 9, FULL])
    )
    for pair in ((one, other), (other, one)):
        assert 1 - min(sum(each.values()) for each in pair) < 10 * tail
        # rho is mu^2 / 2, and more shows than the number of people alone tells; outcomes that only
        # one table lists are within the tails
        compared = replace(Comparison.of(*pair), alone=0.0)
        assert 0.03 * mu**2 < compared.concentrated_loss(mu**2 / 2) <= mu**2 / 2


def test_the_budget_is_that_of_the_guarantee():
    assert mu_budget(1.0, 1e-6) * (1 - 1e-3) < replace(SPEC, epsilon=1.0).mu < mu_budget(1.0, 1e-6)
    # where the grid is too coarse to tell discrete noise as Gaussian noise, less is spent
    coarse = replace(SPEC, epsilon=1.0, grid=4)
    assert coarse.by_concentrated_privacy
    assert coarse.mu < 0.95 * replace(SPEC, epsilon=1.0).mu


# tables

START = datetime.datetime(2026, 1, 5)


def table(rows):
    who, hours, values, groups = zip(*rows, strict=True)
    return pa.table(
        {
            "who": pa.array(who),
            "when": pa.array([START + datetime.timedelta(hours=hour) for hour in hours]),
            "value": pa.array(values, pa.float64()),
            "group": pa.array(groups),
        }
    )


def random_rows(seed):
    """People with few readings, missing hours, rows in both groups, values outside the bounds."""
    rng = np.random.default_rng(seed)
    return [
        (int(rng.integers(6)), int(rng.integers(72)), float(rng.normal(0.5, 0.6)), "ab"[g])
        for g in rng.integers(0, 2, 60).tolist()
    ]


LAYOUT = Layout("who", "when", "value", group="group")


def records_of(rows, protect):
    """The rows of each record."""
    keys = {
        "person": lambda row: row[0],
        "day": lambda row: (row[0], row[1] // 24),
        "reading": lambda row: row,
    }
    return {keys[protect](row) for row in rows}, keys[protect]


@pytest.mark.parametrize("protect", ["person", "day", "reading"])
def test_a_record_is_in_one_vector_and_changes_no_other(protect):
    for seed, by in enumerate(("hour-of-day", "weekday", "hour-of-week", "month")):
        spec = replace(
            SPEC, by=by, protect=protect, groups=("a", "b"), statistics=("mean", "share-above=0.5")
        )
        rows = random_rows(seed)
        whole = read_strata(table(rows), spec, LAYOUT)
        records, key = records_of(rows, protect)
        for record in sorted(records)[:6]:
            others = [row for row in rows if key(row) != record]
            assert one_record_apart(whole, read_strata(table(others), spec, LAYOUT)) == []


@pytest.mark.parametrize("mutant", READERS, ids=lambda mutant: mutant.__name__)
def test_a_broken_reader_is_noticed(mutant):
    spec = replace(SPEC, by="weekday", groups=("a", "b"), statistics=("mean",))
    rows = [*random_rows(9), (9, 1, 0.5, "b"), (9, 30, 0.25, "c" if mutant is READERS[0] else "a")]
    others = [row for row in rows if row[0] != 9]
    pair = [mutant(table(part), spec, LAYOUT) for part in (rows, others)]
    assert one_record_apart(*pair) != []


def test_the_order_of_rows_does_not_matter():
    rows = random_rows(3)
    spec = replace(SPEC, groups=("a", "b"))
    pair = [read_strata(table(part), spec, LAYOUT) for part in (rows, rows[::-1])]
    for one, other in zip(*(strata.people for strata in pair), strict=True):
        assert np.array_equal(one.vectors, other.vectors)
