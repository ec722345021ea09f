"""``tempriv leakage`` as typed, and what reports say of correlation: numbers, refusals, privacy."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tempriv.correlation.chain import Chain, read_chain, states_of, write_chain
from tempriv.correlation.landmarks import landmark_loss
from tempriv.correlation.loss import loss, supremum
from tempriv.datasets import METERS
from tempriv.errors import TemprivError
from tempriv.leakage.budgets import (
    budgets_of_release,
    distance_factor,
    read_budgets,
    reading_epsilon,
)
from tempriv.leakage.leakage import compute_leakage
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.mechanisms.value.gaussian import Gaussian
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.mechanisms.w_event.uniform import UniformBudget
from tempriv.privacy.units import Person, WholeSeries, Window, WithinDistance
from tempriv.report.leakage import section
from tempriv.report.plots.leakage import plot_leakage, thinned
from tests.support.paths import DOCS

VALUES = [
    "--epsilon",
    "1",
    "--bounds",
    "0",
    "5",
    "--value",
    "energy_kWh",
    "--time",
    "time",
    "--series",
    "home",
    "--no-ledger",
]
LAPLACE = ["--mechanism", "laplace", *VALUES]
SECTION = "Where readings go together"


def mode(name):
    return stat.S_IMODE(Path(name).stat().st_mode)


def public_mode():
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@pytest.fixture
def chain():
    def write(smoothing, name="chain.json"):
        write_chain(Chain.smoothed_identity(2, smoothing), name)
        return name

    return write


@pytest.fixture
def told(run):
    """The command's answer for machines."""

    def call(*words):
        status, out, err = run("leakage", *words, "--json")
        assert (status, err) == (0, ""), err
        return json.loads(out)

    return call


@pytest.fixture
def marked():
    """The sample with three evenings of each home marked."""
    with METERS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with Path("marked.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["home", "time", "energy_kWh", "evening"])
        for row in rows:
            day, hour = row["time"][8:10], row["time"][11:13]
            mark = int(hour in ("19", "20") and day in ("06", "13", "20"))
            writer.writerow([row["home"], row["time"], row["energy_kWh"], mark])
    return "marked.csv"


def constant(length, epsilon, name="budgets.csv"):
    Path(name).write_text(f"{epsilon}\n" * length)
    return name


# numbers


# landmark_tpl.json: smoothed identity, two states, epsilon 1; allocations for a target of 1
@pytest.mark.parametrize(
    ("smoothing", "total", "middle", "ends"),
    [
        (1.0, 1.8218, 0.51537, 0.75769),
        (0.1, 4.8935, 0.09471, 0.54735),
        (0.01, 9.3131, 0.010319, 0.50516),
    ],
)
def test_the_reference_numbers(run, told, chain, smoothing, total, middle, ends):
    words = ["--budgets", constant(400, 1), "--chain", chain(smoothing), "--target", "1"]
    found = told(*words)
    assert found["supremum"] == pytest.approx(total, abs=5e-5) and not found["unbounded"]
    assert found["total"]["loss"] == pytest.approx(total, abs=5e-5)
    assert found["epsilon"] == 1 and not found["private"]
    kept = found["target"]["quantified"]
    assert kept["middle"] == pytest.approx(middle, abs=1e-5)
    assert [kept["first"], kept["last"]] == pytest.approx([ends, ends], abs=1e-5)
    assert found["target"]["upper_bound"] == pytest.approx(middle, abs=1e-5)
    _, out, _ = run("leakage", *words)
    up = f"{math.ceil(total * 1000) / 1000:g}"
    assert f"tells up to {up} about one of them (as if epsilon were {up})" in out
    assert out.startswith("400 readings, and a chain of 2 states")
    assert "epsilon = 1 at every reading; because readings follow each other" in out


def test_sides_and_places(told, chain):
    found = told("--budgets", constant(5, 1), "--chain", chain(1.0))
    direct = loss(Chain.smoothed_identity(2, 1.0), np.ones(5))
    for side, reading in (("backward", 5), ("forward", 1), ("total", 3)):
        assert found[side]["loss"] == getattr(direct, side).max()
        assert found[side]["reading"] == reading


def test_no_limit_is_said_in_words(run, told):
    Path("stay.json").write_text('{"forward": [[1, 0], [0, 1]], "start": [0.5, 0.5]}')
    words = ["--budgets", constant(30, 0.5), "--chain", "stay.json", "--target", "1"]
    found = told(*words)
    assert (found["supremum"], found["unbounded"]) == (None, True)
    assert found["total"]["loss"] == 15.0  # budgets add up, nothing is forgotten
    assert found["target"]["upper_bound"] is None
    _, out, _ = run("leakage", *words)
    assert "there is no limit: the longer the series goes on, the more is told" in out
    assert "no constant budget keeps below it" in out and "nearly 100 %" in out


def test_varying_budgets_have_no_limit_to_say(run, chain):
    Path("b.csv").write_text("epsilon\n0.5\n1\n0\n")
    status, out, _ = run("leakage", "--budgets", "b.csv", "--chain", chain(0.1))
    assert status == 0 and "for ever" not in out
    assert "epsilon = 0 to 1 at a reading" in out


def test_landmarks_of_a_file_by_every_method(run, told):
    Path("rare.csv").write_text("0.99,0.01\n0.95,0.05\n")
    Path("b.csv").write_text("epsilon,landmark\n0.001,1\n2,0\n0.001,1\n")
    words = ["--budgets", "b.csv", "--chain", "rare.csv"]
    found = told(*words)
    assert found["private"]  # landmarks stay with their owner, whatever the chain
    direct = Chain(forward=[[0.99, 0.01], [0.95, 0.05]])
    for method in ("bridge", "definition5", "exact"):
        joint = landmark_loss(direct, [0.001, 2, 0.001], [0, 2], method)
        one = told(*words, "--method", method)["landmarks"]
        assert one[method]["loss"] == joint.maximum
        assert one["independent"] == pytest.approx(2.002)
        assert set(one) == {method, "independent"}
    assert set(found["landmarks"]) == {"bridge", "definition5", "independent"}
    _, out, _ = run("leakage", *words)
    assert "never less than what is lost" in out
    assert "as published; it can be less than what is lost, so do not rely on it" in out


def test_the_counterexample_to_definition_5(told):
    """Of the first and last step: exact .7888, Definition 5 .4326 (landmark_joint_loss.json)."""
    Path("rare.json").write_text("[[0.99, 0.01], [0.95, 0.05]]")
    Path("b.csv").write_text("epsilon,landmark\n0.001,1\n2,0\n0.001,1\n")
    words = ["--budgets", "b.csv", "--chain", "rare.json", "--output", "t.csv", "--force"]
    first = {}
    for method in ("exact", "definition5", "bridge"):
        told(*words, "--method", method)
        with Path("t.csv").open(newline="") as file:
            first[method] = float(next(csv.DictReader(file))[f"landmarks_{method}"])
    assert first["exact"] == pytest.approx(0.7888, abs=5e-5)
    assert first["definition5"] == pytest.approx(0.4326, abs=5e-5)
    assert first["definition5"] < first["exact"] <= first["bridge"]


def test_series_of_a_file_are_apart(told, chain):
    rows = ["series,epsilon", *["a,1", "b,0.1"] * 3, "b,0.1"]
    Path("b.csv").write_text("\n".join(rows) + "\n")
    found = told("--budgets", "b.csv", "--chain", chain(0.1), "--output", "t.csv")
    direct = Chain.smoothed_identity(2, 0.1)
    assert (found["series"], found["readings"], found["epsilon"]) == (2, 7, None)
    assert found["total"]["series"] == "a" and found["total"]["reading"] == 2
    assert found["total"]["loss"] == loss(direct, np.ones(3)).total.max()
    with Path("t.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    of_b = [float(row["total"]) for row in table if row["series"] == "b"]
    assert of_b == loss(direct, np.full(4, 0.1)).total.tolist()


def test_a_target_is_kept_by_the_budgets_that_are_written(told, chain):
    words = ["--budgets", constant(50, 1), "--chain", chain(0.1)]
    told(*words, "--target", "0.5", "--output", "t.csv")
    with Path("t.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    # the constant one is for any length, and 50 readings do not quite reach its limit
    for column, least in (("kept", 0.4999), ("kept_constant", 0.49)):
        Path("again.csv").write_text("\n".join(row[column] for row in table))
        again = told("--budgets", "again.csv", "--chain", "chain.json")
        assert least < again["total"]["loss"] <= 0.5, column


# budgets of releases


def test_what_each_reading_spends():
    two = ((0, 5), (0, 1))
    for mechanism, each in (
        (Laplace(epsilon=1.0, bounds=(0, 5)), 1.0),
        (Laplace(epsilon=1.0, bounds=two), 1.0),
        (Laplace(epsilon=1.0, bounds=two, per_column=True), 2.0),
        (Laplace(epsilon=1.0, bounds=(0, 5), unit=Window(24)), 1 / 24),
        (Laplace(epsilon=1.0, bounds=two, unit=WholeSeries(10)), 0.1),
        (Laplace(epsilon=1.0, bounds=(0, 5), unit=Person(2, Window(5))), 0.1),
        (RandomizedResponse(epsilon=2.0, categories=("a", "b")), 2.0),
        (UniformLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)), count=4), 0.2),
        (CountBoundLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)), count=3), 0.25),
        # what shows landmarks, or is no pure epsilon at each reading, is not known to everyone
        (UniformLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5))), None),
        (SkipLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5))), None),
        (CountBoundLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)), count_epsilon=1.0), None),
        (Gaussian(rho=0.5, bounds=(0, 5)), None),
        (UniformBudget(epsilon=1.0, bounds=(0, 5), unit=Window(4)), None),
    ):
        found = reading_epsilon(mechanism)
        assert found == (None if each is None else pytest.approx(each, rel=1e-9)), mechanism


def test_places_need_to_know_how_far_apart_they_can_be():
    places = PlanarLaplace(epsilon=1.0, unit=WithinDistance(200), origin=(39.9, 116.4))
    with pytest.raises(TemprivError, match="across: needed for places"):
        reading_epsilon(places)
    assert reading_epsilon(places, 1000.0) == 5.0
    assert reading_epsilon(places, 50.0) == 1.0
    assert distance_factor(UniformLandmarks(over=places), 400.0) == 2.0
    with pytest.raises(TemprivError, match="across: is for places"):
        distance_factor(Laplace(epsilon=1.0, bounds=(0, 5)), 10.0)


def test_a_release_of_places_is_seen_at_its_widest(run, told, chain):
    rows = [f"{t},{39.9 + t / 1000},{116.4 - t / 1000},{int(t in (3, 4))}" for t in range(12)]
    Path("taxi.csv").write_text("\n".join(["t,lat,lon,stay", *rows]) + "\n")
    words = [
        "--epsilon",
        "1",
        "--meters",
        "200",
        "--origin",
        "39.9",
        "116.4",
        "--value",
        "lat",
        "--value",
        "lon",
        "--time",
        "t",
        "--no-ledger",
    ]
    assert run("release", "taxi.csv", "out.csv", "--mechanism", "planar-laplace", *words)[0] == 0
    status, _, err = run("leakage", "out.csv", "--chain", chain(0.1))
    assert status == 2 and "--across: needed for places" in err
    found = told("out.csv", "--chain", "chain.json", "--across", "600")
    assert found["epsilon"] == pytest.approx(3.0)
    scheme = ["--mechanism", "skip-landmarks", "--landmarks", "stay", *words, "--landmarks-given"]
    assert run("release", "taxi.csv", "skip.csv", *scheme)[0] == 0
    found = told("skip.csv", "--chain", "chain.json", "--across", "600")
    assert found["landmarks"]["independent"] == pytest.approx(3.0)
    spent = np.where(np.isin(np.arange(12), (3, 4)), 0.0, 3.0)
    direct = landmark_loss(Chain.smoothed_identity(2, 0.1), spent, [3, 4])
    assert found["landmarks"]["bridge"]["loss"] == pytest.approx(direct.maximum)


def test_a_release_and_a_public_chain(run, told, chain):
    assert run("release", METERS, "out.csv", *LAPLACE)[0] == 0
    words = ["out.csv", "--chain", chain(0.1), "--output", "t.csv", "--plot", "p.svg"]
    found = told(*words)
    assert (found["series"], found["readings"], found["private"]) == (6, 4032, False)
    assert found["total"]["loss"] == pytest.approx(4.8935, abs=5e-5)
    assert {mode("t.csv"), mode("p.svg")} == {public_mode()}
    assert "PRIVATE" not in Path("p.svg").read_text()
    with Path("t.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == 4032
    assert list(table[0]) == [
        "series",
        "time",
        "reading",
        "epsilon",
        "backward",
        "forward",
        "total",
    ]
    assert table[0]["series"] == "home-1" and table[0]["time"].startswith("2026-01-05 00:00")
    _, out, _ = run("leakage", "out.csv", "--chain", "chain.json")
    assert "of every series" in out


def test_a_window_is_shared_by_its_readings(run, chain):
    words = [*LAPLACE, "--unit", "window", "--window", "24"]
    assert run("release", METERS, "out.csv", *words)[0] == 0
    _, out, _ = run("leakage", "out.csv", "--chain", chain(0.1))
    assert "epsilon = 1 for everything within any 24" in out
    assert "that is epsilon = 0.04167 at every reading" in out


def test_categories_and_a_seeded_release(run, told):
    Path("r.csv").write_text("t,room\n" + "".join(f"{t},{'ab'[t // 3 % 2]}\n" for t in range(40)))
    words = [
        "--mechanism",
        "randomized-response",
        "--categories",
        "a,b",
        "--epsilon",
        "1",
        "--value",
        "room",
        "--time",
        "t",
        "--no-ledger",
        "--key-seed",
        "1",
        "--not-private",
    ]
    assert run("release", "r.csv", "out.csv", *words)[0] == 0
    found = told("out.csv", "--from", "r.csv")
    assert found["states"] == 2 and found["private"]
    assert "this release guarantees nothing" in found["remarks"][0]
    seen = [[t // 3 % 2 for t in range(40)]]
    assert found["total"]["loss"] == loss(Chain.estimate(seen, 2), np.ones(40)).total.max()


@pytest.mark.parametrize("scheme", ["uniform", "skip", "adaptive", "split"])
def test_landmark_releases_are_read_from_the_owners_file(run, told, marked, chain, scheme):
    words = [
        "--mechanism",
        f"{scheme}-landmarks",
        "--landmarks",
        "evening",
        *VALUES,
        "--landmarks-given",
    ]
    assert run("release", marked, "out.csv", *words)[0] == 0
    found = told("out.csv", "--chain", chain(0.1), "--output", "t.csv", "--plot", "p.svg")
    assert found["private"] and {mode("t.csv"), mode("p.svg")} == {0o600}
    assert "PRIVATE" in Path("p.svg").read_text()
    with Path("out.csv.owner.csv").open(newline="") as file:
        owned = [row for row in csv.DictReader(file) if row["home"] == "home-1"]
    marks = [i for i, row in enumerate(owned) if row["landmark"] == "1"]
    spent = [float(row["epsilon"]) for row in owned]
    direct = landmark_loss(Chain.smoothed_identity(2, 0.1), spent, marks)
    with Path("t.csv").open(newline="") as file:
        table = [row for row in csv.DictReader(file) if row["series"] == "home-1"]
    assert [float(row["landmarks_bridge"]) for row in table] == direct.total.tolist()
    assert len(marks) == 6 and found["landmarks"]["independent"] <= 1 + 1e-9
    assert found["landmarks"]["bridge"]["loss"] >= direct.maximum
    Path("out.csv.owner.csv").unlink()
    status, _, err = run("leakage", "out.csv", "--chain", "chain.json")
    assert status == 1 and "out.csv.owner.csv: missing" in err and "--budgets FILE" in err


@pytest.mark.parametrize("scheme", ["uniform", "count-bound"])
def test_a_public_count_needs_no_owners_file(run, told, marked, chain, scheme):
    words = [
        "--mechanism",
        f"{scheme}-landmarks",
        "--landmarks",
        "evening",
        *["--landmarks-given"] * (scheme != "count-bound"),
        "--count",
        "9",
        *VALUES,
    ]
    assert run("release", marked, "out.csv", *words)[0] == 0
    with_owner = told("out.csv", "--chain", chain(0.1))
    assert with_owner["private"] and "landmarks" in with_owner
    Path("out.csv.owner.csv").unlink()
    without = told("out.csv", "--chain", "chain.json")
    assert not without["private"] and "landmarks" not in without
    assert without["total"] == with_owner["total"]
    assert without["epsilon"] == with_owner["epsilon"] == pytest.approx(0.1, rel=1e-9)
    assert "out.csv.owner.csv is not there" in without["remarks"][0]


def test_an_owners_file_of_another_release_is_refused(run, marked, chain):
    words = [
        "--mechanism",
        "split-landmarks",
        "--landmarks",
        "evening",
        *VALUES,
        "--landmarks-given",
    ]
    assert run("release", marked, "out.csv", *words)[0] == 0
    lines = Path("out.csv.owner.csv").read_text().splitlines()
    Path("out.csv.owner.csv").write_text("\n".join(lines[:-1]) + "\n")
    status, _, err = run("leakage", "out.csv", "--chain", chain(0.1))
    assert status == 1 and "does not belong to out.csv" in err
    status, _, err = run("leakage", "--budgets", "out.csv.owner.csv", "--chain", "chain.json")
    assert status == 1 and "'home', 'time', 'release' is not known" in err
    assert "give the release that this file lies beside" in err


# chains from data


def test_a_chain_from_private_data_is_private_everywhere(run, told):
    assert run("release", METERS, "out.csv", *LAPLACE)[0] == 0
    words = [
        "--from",
        METERS,
        "--states",
        "4",
        "--output",
        "t.csv",
        "--plot",
        "p.svg",
        "--save-chain",
        "mine.json",
    ]
    found = told("out.csv", *words)
    assert found["private"]
    assert {mode(name) for name in ("t.csv", "p.svg", "mine.json")} == {0o600}
    assert "PRIVATE" in Path("p.svg").read_text()
    kept = read_chain("mine.json")
    assert kept.private and json.loads(Path("mine.json").read_text())["private"] is True
    homes: dict[str, list[float]] = {}
    with METERS.open(newline="") as file:
        for row in csv.DictReader(file):
            homes.setdefault(row["home"], []).append(float(row["energy_kWh"]))
    edges = (0, 1.25, 2.5, 3.75, 5)  # the release's own bounds
    direct = Chain.estimate([states_of(values, edges) for values in homes.values()], 4)
    assert np.allclose(kept.matrix, direct.matrix, rtol=0, atol=1e-15)
    assert found["supremum"] == pytest.approx(supremum(direct, 1.0))
    assert told("out.csv", "--chain", "mine.json")["private"]
    _, out, _ = run("leakage", "out.csv", "--chain", "mine.json")
    assert "as private as they are: do not hand it out" in out


def test_a_table_is_laid_out_as_options_say(told):
    times = [0, 1, 2, 3, 7, 8, 9]
    rows = [f"{t},{t % 2}" for t in times]
    Path("d.csv").write_text("\n".join(["t,v", *rows]) + "\n")
    words = [
        "--budgets",
        constant(9, 1),
        "--from",
        "d.csv",
        "--value",
        "v",
        "--bounds",
        "0",
        "1",
        "--states",
        "2",
        "--time",
        "t",
    ]
    seen = [t % 2 for t in times]
    gap = Chain.estimate([seen[:4], seen[4:]], 2)  # no pair is taken across a gap
    assert told(*words)["supremum"] == pytest.approx(supremum(gap, 1.0))
    none = Chain.estimate([seen], 2)
    assert told(*words, "--grid", "index")["supremum"] == pytest.approx(supremum(none, 1.0))
    flat = Chain.estimate([seen], 2, pseudocount=100.0)
    found = told(*words, "--grid", "index", "--pseudocount", "100")
    assert found["supremum"] == pytest.approx(supremum(flat, 1.0))


def test_data_at_another_pace_is_refused(run):
    assert run("release", METERS, "out.csv", *LAPLACE)[0] == 0
    lines = METERS.read_text().splitlines()
    kept = [lines[0], *(line for line in lines[1:] if int(line.split(",")[1][11:13]) % 2 == 0)]
    Path("slow.csv").write_text("\n".join(kept) + "\n")
    status, _, err = run("leakage", "out.csv", "--from", "slow.csv", "--states", "4")
    assert status == 2 and "the same time step" in err


# the reports of a release


@pytest.fixture
def private_chain(run):
    constant(3, 1, "some.csv")
    words = [
        "--budgets",
        "some.csv",
        "--from",
        METERS,
        "--value",
        "energy_kWh",
        "--time",
        "time",
        "--series",
        "home",
        "--bounds",
        "0",
        "5",
        "--states",
        "3",
        "--save-chain",
        "mine.json",
    ]
    assert run("leakage", *words)[0] == 0
    return "mine.json"


def test_a_public_chain_is_in_both_reports(run, chain):
    words = [*LAPLACE, "--report", "r.html", "--private-report", "p.html", "--chain", chain(0.1)]
    assert run("release", METERS, "out.csv", *words)[0] == 0
    for name in ("r.html", "p.html"):
        page = Path(name).read_text()
        assert SECTION in page and "tells up to 4.894 about one of them" in page
        assert "It stays at 4.894 or below" in page and "0.9167" in page
        assert page.count('aria-label="Loss of each reading"') == 1


def test_a_chain_from_data_never_reaches_a_public_page(run, private_chain):
    words = [*LAPLACE, "--report", "r.html", "--private-report", "p.html", "--force"]
    assert run("release", METERS, "out.csv", *words, "--chain", private_chain)[0] == 0
    public, private = Path("r.html").read_text(), Path("p.html").read_text()
    told = (
        compute_leakage(read_chain(private_chain), budgets_of_release(Path("out.csv"))).worst().loss
    )
    number = f"{math.ceil(told * 1000) / 1000:g}"
    assert SECTION in private and f"tells up to {number} about" in private
    assert SECTION not in public and number not in public and "tells up to" not in public
    # apart from what names the release, the page is that of a release without any chain
    assert run("release", METERS, "out.csv", *words)[0] == 0
    shape = [line.count("<section>") for line in Path("r.html").read_text().splitlines()]
    assert shape == [line.count("<section>") for line in public.splitlines()]


def test_the_page_itself_refuses_what_is_private(run, private_chain, chain, marked):
    assert run("release", METERS, "out.csv", *LAPLACE)[0] == 0
    mine = compute_leakage(read_chain(private_chain), budgets_of_release(Path("out.csv")))
    with pytest.raises(TemprivError, match="this page may be handed out"):
        section(mine, private_page=False)
    assert SECTION in section(mine, private_page=True)
    words = [
        "--mechanism",
        "skip-landmarks",
        "--landmarks",
        "evening",
        *VALUES,
        "--landmarks-given",
    ]
    assert run("release", marked, "skip.csv", *words)[0] == 0
    owned = compute_leakage(read_chain(chain(0.1)), budgets_of_release(Path("skip.csv")))
    with pytest.raises(TemprivError, match="this page may be handed out"):
        section(owned, private_page=False)
    with pytest.raises(TemprivError, match="stay with its owner"):
        budgets_of_release(Path("skip.csv"), public=True)


@pytest.mark.parametrize("scheme", ["uniform", "skip", "adaptive", "split"])
def test_budgets_that_show_landmarks_stay_off_the_public_page(run, marked, chain, scheme):
    words = [
        "--mechanism",
        f"{scheme}-landmarks",
        "--landmarks",
        "evening",
        *["--landmarks-given"] * (scheme != "count-bound"),
        *VALUES,
        "--chain",
        chain(0.1),
        "--report",
        "r.html",
    ]
    status, _, err = run("release", marked, "out.csv", *words)
    assert status == 2 and "what readings spend shows their landmarks" in err
    assert not Path("out.csv").exists()
    assert run("release", marked, "out.csv", *words, "--private-report", "p.html")[0] == 0
    assert SECTION not in Path("r.html").read_text()
    private = Path("p.html").read_text()
    assert SECTION in private and "it would be 1 if readings were independent" in private


@pytest.mark.parametrize("scheme", ["uniform", "count-bound"])
def test_a_constant_budget_by_a_public_count_may_be_shown(run, marked, chain, scheme):
    words = [
        "--mechanism",
        f"{scheme}-landmarks",
        "--landmarks",
        "evening",
        *["--landmarks-given"] * (scheme != "count-bound"),
        "--count",
        "9",
        *VALUES,
        "--chain",
        chain(0.1),
        "--report",
        "r.html",
        "--private-report",
        "p.html",
    ]
    assert run("release", marked, "out.csv", *words)[0] == 0
    public, private = Path("r.html").read_text(), Path("p.html").read_text()
    assert "that is epsilon = 0.1 at every reading" in public and SECTION in public
    # of landmarks together, and where they are, only their owner reads
    assert "if readings were independent" in private
    assert "if readings were independent" not in public
    assert "landmark</span>" in private and "landmark</span>" not in public


def test_a_public_page_does_not_depend_on_the_landmarks(run, chain):
    """Two tables that differ in their marks only, no noise between them: the same section."""
    found = []
    for marks in ((1, 4), (2, 3)):
        lines = [f"{t},1.0,{int(t in marks)}" for t in range(6)]
        Path("m.csv").write_text("\n".join(["t,v,mark", *lines]) + "\n")
        words = [
            "--mechanism",
            "uniform-landmarks",
            "--landmarks",
            "mark",
            "--landmarks-given",
            "--count",
            "3",
            "--epsilon",
            "1",
            "--bounds",
            "0",
            "5",
            "--value",
            "v",
            "--time",
            "t",
            "--no-ledger",
            "--force",
            "--chain",
            chain(0.1),
            "--report",
            "r.html",
        ]
        assert run("release", "m.csv", "out.csv", *words)[0] == 0
        page = Path("r.html").read_text()
        start = page.index(f"<section><h2>{SECTION}")
        found.append(page[start : page.index("</section>", start)])
    assert found[0] == found[1]


# refusals and files


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ([], 2, "give one of RELEASE (a released file) and --budgets"),
        (["out.csv", "--budgets", "b.csv", "--chain", "c"], 2, "give one of RELEASE"),
        (["--budgets", "b.csv"], 2, "give one of --chain FILE and --from DATA"),
        (["--budgets", "b.csv", "--chain", "c", "--from", "d"], 2, "give one of --chain"),
        (["--budgets", "b.csv", "--chain", "none.json"], 1, "none.json: no such file"),
        (["--budgets", "none.csv", "--chain", "chain.json"], 1, "none.csv: no such file"),
        (["none.csv", "--chain", "chain.json"], 1, "none.csv: no such file"),
        (["--budgets", "b.csv", "--chain", "chain.json", "--states", "3"], 2, "goes with --from"),
        (["--budgets", "b.csv", "--chain", "chain.json", "--across", "3"], 2, "with RELEASE"),
        (["--budgets", "b.csv", "--chain", "chain.json", "--method", "magic"], 2, "must be bridge"),
        (["--budgets", "b.csv", "--chain", "chain.json", "--method", "exact"], 2, "have none"),
        (["--budgets", "b.csv", "--chain", "chain.json", "--target", "-1"], 2, "above 0"),
        (["--budgets", "b.csv", "--chain", "chain.json", "--plot", "p.txt"], 2, "ends in .png"),
        (["--budgets", "b.csv", "--chain", "chain.json", "--output", "p.txt"], 2, "end in .csv"),
        (["--budgets", "b.csv", "--chain", "chain.json", "--output", "no/t.csv"], 2, "directory"),
        (["--budgets", "words.csv", "--chain", "chain.json"], 1, "must hold a number in each row"),
        (["--budgets", "minus.csv", "--chain", "chain.json"], 1, "must hold numbers >= 0"),
        (["--budgets", "marks.csv", "--chain", "chain.json"], 1, "1 at landmarks and 0 elsewhere"),
        (["--budgets", "other.csv", "--chain", "chain.json"], 1, "has no column 'epsilon'"),
        (["--budgets", "more.csv", "--chain", "chain.json"], 1, "'note' is not known"),
        (["--budgets", "b.csv", "--chain", "b.csv"], 1, "must be a square matrix"),
        (["--budgets", "b.csv", "--from", "none.csv", "--value", "v"], 1, "none.csv: no such"),
        (["--budgets", "b.csv", "--from", "d.csv"], 2, "--from needs --value"),
        (["--budgets", "b.csv", "--from", "d.csv", "--value", "v"], 2, "--from needs --bounds"),
        (["--budgets", "b.csv", "--from", "d.csv", "--value", "v", "--states", "2"], 2, "--bounds"),
        (
            [
                "--budgets",
                "b.csv",
                "--from",
                "d.csv",
                "--value",
                "w",
                "--states",
                "2",
                "--bounds",
                "0",
                "1",
            ],
            1,
            "no column 'w'",
        ),
        (["--budgets", "b.csv", "--from", "d.csv", "--value", "v", "--grid", "odd"], 2, "regular"),
    ],
)
def test_what_cannot_be_meant_ends_with_a_sentence(run, chain, words, status, sentence):
    chain(0.1)
    constant(3, 1, "b.csv")
    Path("words.csv").write_text("epsilon\none\n")
    Path("minus.csv").write_text("1\n-1\n")
    Path("marks.csv").write_text("epsilon,landmark\n1,2\n")
    Path("other.csv").write_text("a,b\n1,2\n")
    Path("more.csv").write_text("epsilon,note\n1,2\n")
    Path("d.csv").write_text("t,v\n0,1\n1,0\n")
    ended, out, err = run("leakage", *words)
    assert (ended, out) == (status, "") and sentence in err, err


@pytest.mark.parametrize(
    "words",
    [
        ["--mechanism", "gaussian", "--rho", "1", *VALUES[2:]],
        ["--mechanism", "uniform-budget", *VALUES, "--unit", "window", "--window", "4"],
        ["--mechanism", "running-count", *VALUES, "--horizon", "672"],
        ["--mechanism", "block-shuffle", "--block", "4", *VALUES[:2], *VALUES[5:]],
    ],
    ids=lambda words: words[1],
)
def test_mechanisms_without_an_epsilon_for_each_reading_are_refused(run, chain, words):
    assert run("release", METERS, "out.csv", *words)[0] == 0
    status, _, err = run("leakage", "out.csv", "--chain", chain(0.1))
    assert status == 2 and "give them with --budgets FILE" in err
    pages = ["--private-report", "p.html", "--chain", "chain.json", "--force"]
    status, _, err = run("release", METERS, "out.csv", *words, *pages)
    assert status == 2 and "--budgets FILE" in err


def test_a_chain_of_a_release_needs_a_page(run, chain, private_chain):
    for words, sentence in (
        (["--chain", chain(0.1)], "goes with --report or --private-report"),
        (["--across", "5", "--report", "r.html"], "--across: goes with --chain"),
        (["--chain", "none.json", "--report", "r.html"], "none.json: no such file"),
        (["--chain", private_chain, "--report", "r.html"], "estimated from private data"),
        (["--chain", "chain.json", "--across", "5", "--report", "r.html"], "is for places"),
        (["--chain", private_chain, "--report", "r.html", "--dry-run"], "estimated from private"),
    ):
        status, _, err = run("release", METERS, "out.csv", *LAPLACE, *words)
        assert status in (1, 2) and sentence in err
        assert not Path("out.csv").exists() and not Path("r.html").exists()


def test_files_are_replaced_only_by_force(run, chain):
    words = ["leakage", "--budgets", constant(5, 1), "--chain", chain(0.1)]
    for option, name in (("--output", "t.csv"), ("--plot", "p.svg")):
        Path(name).write_text("mine")
        status, _, err = run(*words, option, name)
        assert status == 1 and "--force" in err and Path(name).read_text() == "mine"
        assert run(*words, option, name, "--force")[0] == 0
        assert Path(name).read_text() != "mine"
    Path("c.json").write_text("mine")
    more = [
        "leakage",
        "--budgets",
        "budgets.csv",
        "--from",
        METERS,
        "--value",
        "energy_kWh",
        "--bounds",
        "0",
        "5",
        "--states",
        "2",
        "--series",
        "home",
        "--save-chain",
        "c.json",
    ]
    assert run(*more)[0] == 1 and Path("c.json").read_text() == "mine"


def test_a_landmark_loss_that_takes_too_long_is_said_or_refused(run, told, chain):
    marks = "\n".join(f"0.1,{int(i in (0, 39_999))}" for i in range(40_000))
    Path("b.csv").write_text(f"epsilon,landmark\n{marks}\n")
    words = ["--budgets", "b.csv", "--chain", chain(0.1)]
    found = told(*words)["landmarks"]
    assert "would take too long" in found["bridge"]["refused"]
    status, out, _ = run("leakage", *words)
    assert status == 0 and "bridge       not found: landmarks: the longest stretch" in out
    status, _, err = run("leakage", *words, "--method", "bridge")
    assert status == 2 and "which would take too long" in err


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_drawn(run, chain, ending):
    Path("b.csv").write_text("epsilon,landmark\n" + "1,0\n0.5,1\n1,0\n" * 10)
    words = ["--budgets", "b.csv", "--chain", chain(0.1), "--plot", f"p.{ending}"]
    assert run("leakage", *words)[0] == 0
    assert Path(f"p.{ending}").stat().st_size > 5000


def test_a_picture_shows_what_was_found(chain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("b.csv").write_text("epsilon,landmark\n" + "1,0\n0.5,1\n1,0\n" * 10)
    found = compute_leakage(Chain.smoothed_identity(2, 0.1), read_budgets(Path("b.csv")))
    above, below = plot_leakage(found).axes
    lines = {line.get_label(): line for line in above.lines}
    total = next(line for label, line in lines.items() if label.startswith("by all of them"))
    assert total.get_ydata().tolist() == found.leaks[0].loss.total.tolist()
    bound = next(one for one in below.lines if str(one.get_label()).startswith("sound bound"))
    assert bound.get_ydata().max() == found.together("bridge").loss


def test_thinning_keeps_ends_and_peaks():
    losses = np.random.default_rng(5).random(100_003)
    losses[0], losses[-1], losses[70_001] = 0.25, 0.75, 9.0
    places, highest = thinned(losses)
    assert len(places) == len(highest) <= 1500
    assert (places[0], highest[0], places[-1], highest[-1]) == (1, 0.25, 100_003, 0.75)
    assert highest.max() == 9.0 and (np.diff(places) > 0).all()


def test_a_million_readings(told, chain):
    """Seconds, not minutes: nothing here is done reading by reading."""
    epsilons = np.random.default_rng(3).uniform(0, 0.2, 1_000_000)
    Path("b.csv").write_text("\n".join(map(repr, epsilons.tolist())))
    found = told("--budgets", "b.csv", "--chain", chain(0.1))
    direct = loss(Chain.smoothed_identity(2, 0.1), epsilons).total
    assert found["total"]["loss"] == direct.max()


def test_help_shows_an_example(run):
    status, out, _ = run("leakage", "--help")
    assert status == 0
    assert "tempriv leakage --budgets budgets.csv --chain chain.json" in " ".join(out.split())


def test_the_page_is_what_the_commands_print(run, tmp_path):
    """Every command of the page as typed, on the bundled sample; dots stand for any output."""
    page = (DOCS / "leakage.md").read_text()
    shutil.copy(METERS, "meters.csv")
    typed = [
        part
        for block in re.findall(r"```console\n(.*?)```", page, flags=re.DOTALL)
        for part in block.split("$ ")
        if part
    ]
    assert len(typed) > 8
    for one in typed:
        command, _, printed = one.partition("\n")
        if not command.startswith("tempriv "):
            subprocess.run(["bash", "-c", command], check=True, cwd=tmp_path)
            continue
        status, out, err = run(*shlex.split(command)[1:])
        assert (status, err) == (0, ""), command
        assert printed in (out, "...\n"), command
    for scheme, told in (("uniform", "2.341"), ("skip", "9.746")):  # the page's table
        words = ["--mechanism", f"{scheme}-landmarks", "--landmarks", "landmark", *VALUES]
        assert run("release", "marked.csv", f"{scheme}.csv", *words)[0] == 0
        assert (
            f"bridge       {told}," in run("leakage", f"{scheme}.csv", "--chain", "chain.json")[1]
        )
        assert f"| {told} |" in page
