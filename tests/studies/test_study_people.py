"""The study on people: its tables, its verdicts, and what must hold on made-up homes."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

from tempriv.errors import UsageError
from tempriv.sampling.keys import Key, simulation
from tempriv.studies.people import MOST, STUDY
from tempriv.studies.people.data import HOURS, PeopleInputs, homes, read
from tempriv.studies.people.experiment import (
    ERRORS,
    INTERVALS,
    QUICK,
    SCORES,
    PeopleSize,
    interval_table,
)

SMALL = PeopleSize(runs=3, people=(670,), interval_runs=2, interval_people=(700,))


@pytest.fixture(scope="module")
def inputs():
    """As many people as in the contacts, whose levels differ less than those of homes."""
    profiles = homes(670, simulation(Key.from_seed(3), "profiles"))
    return PeopleInputs(np.minimum(profiles, 1.0) * 4)


def test_every_score_of_every_table_comes_out(inputs):
    result = STUDY.run(inputs, SMALL)
    errors = result.tables[ERRORS]
    assert len(errors.lines) == 2 * len(SMALL.people) * len(SCORES)
    for table in errors.unique("table"):
        where = {"table": table, "people": 670}
        ours, theirs = (
            errors.number("median", score=score, **where) for score in ("mean", "public bounds")
        )
        assert ours < 0.5 * theirs, "the private clip is what it is for"
        assert errors.number("median", score="peak", **where) < 0.2
    held = result.tables[INTERVALS].column("held", statistic="q50")
    assert min(held) > 0.6
    bounded = [row for row in result.rows if row.at_most is not None]
    assert {row.what for row in bounded} == {*MOST[670], "runs above 3 times the median"}


def test_contacts_are_counted_once_a_slot(tmp_path):
    folder = tmp_path / "copenhagen"
    folder.mkdir()
    with (folder / "bt_contacts_5min.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["slot", "user_a", "user_b"])
        # persons 0 and 1 meet twice in one slot, and once at the same hour a day later
        lines.writerows([[5, 0, 1], [5, 1, 0], [5 + 288, 0, 1], [5, 0, 2]])
    contacts = read(tmp_path).contacts
    assert contacts.shape == (670, HOURS)
    assert contacts[0, 0] == contacts[1, 0] == pytest.approx(2 / 28)
    assert contacts[2, 0] == pytest.approx(1 / 28)
    assert contacts.sum() == pytest.approx(5 / 28)
    with pytest.raises(UsageError, match="no such file"):
        read(tmp_path / "elsewhere")


@pytest.mark.long
def test_intervals_hold_for_skewed_homes(inputs):
    """At least 93 % of all cells; 200 runs, of which means go up and down together."""
    size = replace(QUICK, interval_runs=200)
    table = interval_table(inputs, size)
    low = [
        line
        for line in table.where(table="lognormal homes")
        if line["statistic"] != "people" and line["held"] < 0.93
    ]
    assert low == []
