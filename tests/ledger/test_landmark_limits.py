"""What landmark releases add up to in a ledger, release by release, and what the ledger keeps."""

from __future__ import annotations

import itertools
import math
import sqlite3
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest

import tempriv as tp
from tempriv.audit import exact
from tempriv.data.series import Block
from tempriv.errors import BudgetError
from tempriv.landmarks.provenance import LandmarkProvenance, write_provenance
from tempriv.ledger.spending import moments_of
from tempriv.mechanisms.landmarks.budget import WHOLE
from tempriv.mechanisms.perturb import perturb_block
from tempriv.privacy import serialization
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units import Event, Landmarks, MarkedMoment, Unit, WholeSeries, Window
from tempriv.releases.spending import stated_spending
from tempriv.sampling.keystream import StepRange
from tests.support.ledgers import span

ONE = tp.Laplace(epsilon=1.0, bounds=(0, 5))
UNIFORM = tp.UniformLandmarks(over=ONE)
SKIP = tp.SkipLandmarks(over=ONE)
SPLIT = tp.SplitLandmarks(over=ONE)
ADAPTIVE = tp.AdaptiveLandmarks(over=ONE)
BOUND = tp.CountBoundLandmarks(over=ONE, count=3)
DRAWN = tp.CountBoundLandmarks(over=ONE, count_epsilon=0.5)

HERE = (1, 0, 0, 1, 0, 0, 0, 0)
THERE = (0, 1, 0, 1, 0, 0, 0, 0)
NOT_HERE = tuple(1 - mark for mark in HERE)
SPLIT_LANDMARK, SPLIT_OTHER = (part / WHOLE for part in SPLIT.parts(2, 6))


def table(*series: tuple[int, ...], start: int = 0) -> pa.Table:
    rows = [
        (f"home-{i}", start + step, step / 2, mark)
        for i, marks in enumerate(series)
        for step, mark in enumerate(marks)
    ]
    return pa.table(dict(zip(("home", "t", "v", "mark"), zip(*rows, strict=True), strict=True)))


def release(ledger: tp.Ledger, mechanism: tp.Mechanism, data: pa.Table) -> tp.Release:
    marked = mechanism.domain.marked
    values = ("v", "mark") if marked else ("v",)
    data = data if marked else data.drop_columns(["mark"])
    where = {"ledger": ledger, "dataset": "meters"}
    return tp.release(data, mechanism, values=values, time="t", series="home", **where)


def spent(ledger: tp.Ledger, unit: Unit) -> float | None:
    totals = {total.unit: total for total in ledger.show("meters").totals}
    return totals[unit].spent


@pytest.mark.parametrize(
    ("releases", "unit", "expected"),
    [
        # each reading what it spends, not all of epsilon
        ([(UNIFORM, HERE)], Event(), 1 / 3),
        ([(UNIFORM, HERE)], Window(3), 1.0),
        ([(UNIFORM, HERE)], WholeSeries(8), 8 / 3),
        ([(SPLIT, HERE)], Event(), SPLIT_OTHER),
        ([(SPLIT, HERE)], WholeSeries(8), 2 * SPLIT_LANDMARK + 6 * SPLIT_OTHER),
        ([(SKIP, HERE)], WholeSeries(8), 6.0),
        ([(ADAPTIVE, HERE)], Event(), 1.0),
        ([(BOUND, HERE)], Event(), 1 / 4),
        # the same landmarks, and others: what a reading loses is in the docstring of parts_of
        ([(SPLIT, HERE), (SPLIT, HERE)], Event(), 2 * SPLIT_OTHER),
        ([(SKIP, HERE), (SKIP, NOT_HERE)], Event(), 1.0),
        ([(SKIP, HERE), (ONE, HERE)], Event(), 2.0),
        # all landmarks and any one other
        ([(UNIFORM, HERE), (SPLIT, HERE)], Landmarks(), 2.0),
        ([(UNIFORM, HERE), (UNIFORM, THERE)], Landmarks(), 2 * (1 + 1 / 3)),
        ([(SPLIT, HERE), (SPLIT, THERE)], Landmarks(), 2 * (1 + SPLIT_OTHER)),
        ([(ONE, HERE)], Landmarks(), 1.0),
        ([(ONE, HERE), (UNIFORM, HERE)], Landmarks(), 3.0 + 1.0),
        ([(BOUND, HERE), (UNIFORM, HERE)], Landmarks(), 3 / 4 + 1.0),
    ],
)
def test_releases_add_up_to_what_their_readings_spend(ledger, releases, unit, expected):
    ledger.create_dataset("meters", unit, epsilon=1e3)
    for mechanism, marks in releases:
        release(ledger, mechanism, table(marks))
    assert spent(ledger, unit) == pytest.approx(expected)
    # a limit that is set later comes to the same
    renewed = ledger.create_dataset("meters", unit, epsilon=999.0, replace=True)
    assert renewed.spent == pytest.approx(expected)


OVER = tp.RandomizedResponse(epsilon=1.0, categories=("away", "home"))
SMALL = {
    "uniform": tp.UniformLandmarks(over=OVER),
    "split": tp.SplitLandmarks(over=OVER),
    "skip": tp.SkipLandmarks(over=OVER),
    "adaptive": tp.AdaptiveLandmarks(over=OVER, decrease=0.5, least=0.5),
}
INPUTS = list(itertools.product((0, 1), repeat=3))


def true_loss(scheme: tp.Mechanism, marks: tuple[int, ...]) -> dict[tuple[Any, Any], float]:
    """The loss of every pair of inputs, from the law of all outputs."""
    laws = {x: exact.distribution(scheme, tuple(zip(x, marks, strict=True))) for x in INPUTS}
    return {
        (x, y): max(math.log(laws[x][out] / laws[y][out]) for out in laws[x])
        for x, y in itertools.permutations(INPUTS, 2)
    }


@pytest.mark.parametrize("second", [(1, 0, 0), (0, 1, 0)])
@pytest.mark.parametrize("pair", [("uniform", "split"), ("skip", "skip"), ("adaptive", "uniform")])
def test_totals_are_at_least_what_enumeration_finds(tmp_path, pair, second):
    """The noise of two releases is independent, so their losses on two inputs add up."""
    landmarks = ((1, 0, 0), second)
    losses = [true_loss(SMALL[name], marks) for name, marks in zip(pair, landmarks, strict=True)]
    named = {step for marks in landmarks for step in range(3) if marks[step]}
    for unit in (Event(), WholeSeries(3), Landmarks()):
        most = {Event(): 1, WholeSeries(3): 3}.get(unit, 1)
        covered = named if isinstance(unit, Landmarks) else set()
        true = max(
            sum(loss[x, y] for loss in losses)
            for x, y in itertools.permutations(INPUTS, 2)
            if len({i for i in range(3) if x[i] != y[i]} - covered) <= most
        )
        with tp.Ledger.create(tmp_path / f"{type(unit).__name__}.sqlite") as ledger:
            ledger.create_dataset("meters", unit, epsilon=1e3)
            for name, marks in zip(pair, landmarks, strict=True):
                data = pa.table({"t": range(3), "v": ["away"] * 3, "mark": marks})
                layout = {"values": ("v", "mark"), "time": "t"}
                tp.release(data, SMALL[name], **layout, ledger=ledger, dataset="meters")
            total = spent(ledger, unit)
        assert true - 1e-9 <= total
        if "adaptive" not in pair and second == (1, 0, 0):
            assert total == pytest.approx(true, rel=1e-6)


def test_series_with_unlike_numbers_of_landmarks_spend_unlike_parts(ledger):
    """A later release of the series with landmarks alone adds to what those spent."""
    ledger.create_dataset("meters", epsilon=1.0)
    release(ledger, UNIFORM, table((0,) * 8, HERE))
    assert spent(ledger, Event()) == pytest.approx(1.0)  # of the series without landmarks
    half = tp.Laplace(epsilon=0.5, bounds=(0, 5))
    only = table((0,) * 8, HERE).filter(pa.compute.field("home") == "home-1")
    release(ledger, half, only)
    assert spent(ledger, Event()) == pytest.approx(1.0)
    with pytest.raises(BudgetError):
        release(ledger, half, table(HERE))


def test_weeks_of_one_series_have_landmarks_of_their_own(ledger):
    """No week pays for landmarks of another; all landmarks count, and one other reading once."""
    ledger.create_dataset("meters", Landmarks(), epsilon=1e3)
    for week in range(3):
        release(ledger, UNIFORM, table(HERE, start=8 * week))
    assert spent(ledger, Landmarks()) == pytest.approx(3 * 2 / 3 + 1 / 3)
    release(ledger, ONE, table(HERE, start=0))
    assert spent(ledger, Landmarks()) == pytest.approx(7 / 3 + 3)


def test_a_release_that_is_refused_early_would_be_refused_anyway(ledger):
    """All of epsilon is above the limit, what each reading spends is not."""
    ledger.create_dataset("meters", epsilon=2.0)
    five = tp.Laplace(epsilon=5.0, bounds=(0, 5))
    release(ledger, tp.UniformLandmarks(over=five), table(HERE))
    assert spent(ledger, Event()) == pytest.approx(5 / 3)
    with pytest.raises(BudgetError):
        release(ledger, tp.CountBoundLandmarks(over=five, count=3), table(HERE))


def test_drawn_bounds_add_up(ledger):
    """A bound drawn again and again would average out to the number of landmarks."""
    ledger.create_dataset("meters", MarkedMoment(), epsilon=1.2, delta=1e-4)
    release(ledger, DRAWN, table(HERE))
    release(ledger, ONE, table(HERE))  # does not look at marks
    release(ledger, BOUND, table(HERE))
    assert spent(ledger, MarkedMoment()) == pytest.approx(0.5)
    release(ledger, DRAWN, table(HERE))
    with pytest.raises(BudgetError, match="whether any one moment of a series is a landmark"):
        release(ledger, DRAWN, table(HERE))
    with pytest.raises(BudgetError, match="says nothing"):
        release(ledger, UNIFORM, table(HERE))


def test_without_a_limit_drawn_bounds_are_shown(ledger):
    ledger.ensure_dataset("meters")
    for _ in range(2):
        release(ledger, DRAWN, table(HERE))
    assert spent(ledger, MarkedMoment()) == pytest.approx(1.0)
    assert spent(ledger, Landmarks()) == pytest.approx(2.0)


def test_marks_that_were_drawn_are_charged_once_for_each_draw(ledger, tmp_path):
    """Releases of one marked table show one draw; marking again is another."""
    ledger.create_dataset("meters", MarkedMoment(), epsilon=0.5)
    for draw, expected in (("first", 0.2), ("first", 0.2), ("second", 0.4)):
        path = tmp_path / f"{draw}.parquet"
        pa.parquet.write_table(table(HERE), path)
        note = LandmarkProvenance("a list", (), 0.9, "", 0.2, draw)
        write_provenance(path, {"mark": note}, path, path)
        named = {"values": ("v", "mark"), "time": "t", "series": "home"}
        tp.release(path, UNIFORM, **named, ledger=ledger, dataset="meters")
        assert spent(ledger, MarkedMoment()) == pytest.approx(expected)
    assert ledger.create_dataset("meters", MarkedMoment(), epsilon=0.4, replace=True).spent == 0.4


def test_a_stream_pays_for_landmarks_that_nobody_knows_yet(ledger):
    ledger.create_dataset("meters", Landmarks(), epsilon=1e3)
    ledger.create_dataset("meters", Event(), epsilon=1e3)
    scheme = tp.UniformLandmarks(over=ONE, count=4)
    for number, expected in enumerate((1.0, 2 * (1 + 4 / 5))):
        ledger.charge(
            "meters",
            scheme.guarantee,
            span(0, 7),
            str(number),
            spending=stated_spending(scheme),
        )
        assert spent(ledger, Landmarks()) == pytest.approx(expected)
        assert spent(ledger, Event()) == pytest.approx((number + 1) / 5)


def test_landmarks_at_other_steps_are_refused(ledger):
    ledger.create_dataset("meters", Landmarks(), epsilon=1e3)
    release(ledger, UNIFORM, table(HERE))
    with pytest.raises(BudgetError, match="other time steps"):
        ledger.charge("meters", Guarantee(Pure(1.0), Event()), span(0, 8, step=2), "later")
    with pytest.raises(tp.errors.UsageError, match="without steps"):
        ledger.create_dataset("meters", Landmarks(steps=(1, 2)), epsilon=1.0)


# what the ledger keeps, and what a release shows of it


def test_no_file_of_a_ledger_tells_landmarks_without_its_secret(ledger):
    """Digests of the same moments differ from ledger to ledger, and no tick stands in the file."""
    release_of = {"home-0": np.array([7_000_001, 7_000_002])}
    scope = span(0, 7_000_009, "home-0")
    one, other = (moments_of(bytes([i]) * 32, scope, release_of) for i in (1, 2))
    assert set(one.moments.tolist()).isdisjoint(other.moments.tolist())
    ledger.ensure_dataset("meters")
    release(ledger, SPLIT, table(HERE))
    with sqlite3.connect(ledger.path) as opened:
        tables = {name for (name,) in opened.execute("SELECT name FROM sqlite_schema")}
        assert {"marks", "meta"} <= tables
        (moments,) = opened.execute("SELECT DISTINCT moments FROM marks").fetchall()
    assert len(moments[0]) == 8 * sum(HERE)
    small = np.frombuffer(moments[0], dtype="<u8")
    assert (small > len(HERE)).all()


@pytest.mark.parametrize("scheme", [UNIFORM, SPLIT, SKIP, ADAPTIVE])
def test_no_receipt_tells_how_many_landmarks_there_are(ledger, scheme):
    """Descriptions are public: those of tables with unlike landmarks say the same of the ledger."""
    ledger.create_dataset("meters", epsilon=1e3)
    told = []
    for marks in (HERE, (1, 1, 1, 1, 0, 0, 0, 0)):
        released = release(ledger, scheme, table(marks))
        later = release(ledger, ONE, table(marks))
        told += [released.about["ledger"]["totals"], later.about["ledger"]["totals"]]
    assert told == [[], [], [], []]


@pytest.mark.parametrize("landmarks", [1, 3])
def test_what_adaptive_is_charged_holds_on_every_path(landmarks):
    """However its coins and noise fall, no reading spends more; and some path spends that."""
    marks = np.array([1] * landmarks + [0])
    scheme = tp.AdaptiveLandmarks(over=ONE, decrease=1.0, least=0.5)
    rows = np.column_stack([np.zeros(len(marks)), marks])
    digest, seen = serialization.digest(scheme), [0.0, 0.0]
    for seed in range(150):
        runs = [StepRange(tp.Key.from_seed(seed).series(digest, "home"), 0, len(marks))]
        spent_by_row = perturb_block(scheme, Block.of(rows, "home", 0), runs).spent
        for i in (0, 1):
            seen[i] = max(seen[i], spent_by_row[marks == 1 - i].max())
    most = [part / WHOLE for part in scheme.most_units(landmarks, 1, (0, 0))]
    reached = [1 / (landmarks + 1), 1 / 2]
    assert all(a <= b + 1e-9 for a, b in zip(seen, most, strict=True))
    assert all(a >= b - 1e-9 for a, b in zip(seen, reached, strict=True))
