"""The study of the principles: every number comes out, and is shown as it is."""

from __future__ import annotations

import csv
import json

import pytest

from tempriv.studies import common, principles
from tempriv.studies.common import Row
from tests.support.reproducing import run

# to the digits that were known before
KNOWN = {
    "occupancy, one event, L1": 1,
    "occupancy, one event, L2": 1,
    "occupancy, one user, L1": 1440,
    "occupancy, one user, L2": pytest.approx(37.947, abs=5e-4),
    "running count, one event, L1": 1440,
    "running count, one event, L2": pytest.approx(37.947, abs=5e-4),
    "running count, one user, L1": 1_037_520,
    "running count, one user, L2": pytest.approx(31_565.25, abs=5e-3),
    "epsilon by sum": pytest.approx(72),
    "epsilon, advanced": pytest.approx(14.4642, abs=5e-5),
    "epsilon, optimal": pytest.approx(11.1599, abs=5e-5),
    "epsilon, optimal, pure releases": pytest.approx(9.191, abs=5e-4),
    "epsilon, Laplace noise": pytest.approx(9.101, abs=5e-4),
    "epsilon, Gaussian noise, by Renyi as printed": pytest.approx(2.1016, abs=5e-5),
    "its best order": pytest.approx(12.081, abs=5e-4),
    "epsilon, Gaussian noise, by Renyi, sharper": pytest.approx(1.7768, abs=5e-5),
    "epsilon, Gaussian noise, exact": pytest.approx(1.6289, abs=5e-5),
    "Pr[loss > 1]: at most delta?": pytest.approx(1.61e-4, rel=5e-3),
    "loss, noise 2 / epsilon_1": pytest.approx(1.0, abs=5e-5),
    "loss, noise 1 / epsilon_1": pytest.approx(1.5, abs=5e-5),
    "Gaussian, noisy increments": pytest.approx(720.5, rel=0.01),
    "Gaussian, binary tree": pytest.approx(55.64, rel=0.01),
    "Gaussian, square root": pytest.approx(10.358, rel=0.01),
    "Laplace, noisy increments": pytest.approx(1441, rel=0.01),
    "Laplace, binary tree": pytest.approx(1224, rel=0.01),
    "Laplace, 12-ary tree": pytest.approx(279, rel=0.01),
}


@pytest.fixture(scope="module")
def rows():
    return principles.study()


def test_the_numbers_come_out(rows):
    found = {row.what: row.ours for row in rows}
    assert {name: found[name] for name in KNOWN} == KNOWN


def test_only_what_is_said_not_to_hold_disagrees(rows):
    assert len({(row.section, row.what) for row in rows}) == len(rows)
    for row in rows:
        assert row.is_confirmed, row
    assert sum(row.verdict == "does not hold" for row in rows) == 1


def test_no_observer_passes_what_the_promise_allows(rows):
    found = {row.what: row.ours for row in rows if row.section.startswith("Post-processing")}
    cap = found["most that the guarantee allows"]
    rates = [value for name, value in found.items() if name.startswith("success")]
    assert len(rates) == 3 and max(rates) < cap


def test_the_files_hold_the_same_numbers(rows, tmp_path):
    for path in principles.write(tmp_path / "new folder", rows):
        assert path.stat().st_size > 1000
    with (tmp_path / "new folder" / "principles.csv").open() as file:
        read = list(csv.DictReader(file))
    assert [float(line["ours"]) for line in read] == [row.ours for row in rows]
    page = (tmp_path / "new folder" / "principles.md").read_text()
    assert "14.4642" in page and "does not hold" in page and principles.REMARKS[0] in page


def test_a_number_that_is_off_is_seen():
    row = Row("s", "w", 14.46, 14.4642, "holds", "how", 5e-4)
    assert row.agrees and not Row("s", "w", 14.46, 14.48, "holds", "how", 5e-4).agrees
    assert Row("s", "w", None, 3.0, "ours", "how").is_confirmed
    assert not Row("s", "w", None, 3.0, "holds", "how").is_confirmed
    assert not Row("s", "w", None, 3.0, "ours", "how", at_most=2.0).is_confirmed
    assert not Row("s", "w", 3.0, 3.0, "does not hold", "how").is_confirmed
    assert Row("s", "w", 3.0, 4.0, "does not hold", "how").is_confirmed
    assert common.format_number(0.5) == "0.5"


def test_the_command(tmp_path):
    done = run("principles", "--json", "--output", str(tmp_path))
    assert done.returncode == 0
    assert len(json.loads(done.stdout)) > 40 and "principles.png" in done.stderr
    wrong = run("physics")
    assert wrong.returncode == 2 and "physics: must be one of principles" in wrong.stderr
