"""What a release says that its guarantee means: for a series and a person, in red, and again."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tempriv as tp
from tempriv.datasets import METERS
from tempriv.privacy.guarantees import shown
from tempriv.privacy.units import conversion_factor
from tempriv.releases.meaning import meaning_in, meaning_of
from tempriv.releases.verify import verify
from tempriv.report.excerpt import PublicSample
from tempriv.report.page import page
from tests.support.behavior import run

HOURLY = tp.Laplace(epsilon=1.0, bounds=(0, 5))
NAMED = ("--time", "time", "--value", "energy_kWh", "--series", "home")
WEAK = ("--target-error", "0.2", "--bounds", "0", "5", "--unit", "window", "--window", "24")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def readings(count: int = 48, homes: int = 1, first: int = 0) -> pa.Table:
    times = np.tile(np.arange(first, first + count), homes)
    names = np.repeat([f"h{i}" for i in range(homes)], count)
    return pa.table({"home": names, "t": times, "v": np.linspace(0, 5, count * homes)})


def statements(meaning: dict[str, Any]) -> dict[str, tuple[float | None, float | None]]:
    return {one["about"]: (one["epsilon"], one["delta"]) for one in meaning["statements"]}


# what it means


def test_a_release_says_what_its_guarantee_means_for_a_series_and_a_person() -> None:
    table = readings(48, homes=2)
    alone = tp.release(table, HOURLY, time="t", values="v", series="home")
    assert statements(alone.about["meaning"]) == {
        "unit": (1.0, 0.0),
        "series": (48.0, 0.0),
        "person": (None, None),
    }
    assert alone.about["meaning"]["relation"] == "replace-one"
    assert "any single reading of a series: epsilon = 1; " in alone.about["sentence"]
    assert (
        "a whole series of up to 48 readings: epsilon = 48, which protects" in alone._repr_html_()
    )
    person = tp.Laplace(epsilon=1.0, bounds=(0, 5), unit=tp.Person(2, tp.Window(24)))
    owned = table.append_column("who", pa.array(["p"] * 96))
    known = tp.release(
        owned, person, time="t", values="v", series="home", person="who", max_series_per_person=2
    )
    assert statements(known.meaning)["person"] == (2.0, 0.0)
    gaussian = tp.release(table, tp.Gaussian(rho=0.001, bounds=(0, 5)), **COLUMNS)
    (_, series, _) = gaussian.meaning["statements"]
    assert series["rho"] == pytest.approx(0.001 * 48**2) and series["delta"] == 1e-6
    assert "rho" in gaussian.meaning["delta_reason"] and alone.meaning["delta_reason"] is None


COLUMNS: Any = {"time": "t", "values": "v", "series": "home"}


def test_the_figures_follow_from_the_lengths_and_not_from_the_values() -> None:
    low, high = readings(30), readings(30)
    high = high.set_column(2, "v", pa.array(np.full(30, 5.0)))
    told = [tp.release(one, HOURLY, **COLUMNS).about["meaning"] for one in (low, high)]
    assert told[0] == told[1] and told[0]["longest"] == 30


@pytest.mark.parametrize(
    "mechanism",
    [
        tp.Threshold(epsilon=2.0, window=3),
        tp.DualThreshold(epsilon=2.0, window=3),
        tp.Backward(epsilon=2.0, window=6),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_a_guarantee_about_one_row_is_told_by_what_all_rows_tell(mechanism: Any) -> None:
    """0.8.0 said "epsilon = 0" of the first, of which every second output shows the order."""
    meaning = tp.release(readings(), mechanism, **COLUMNS).about["meaning"]
    rows = {row["distance"]: (row["epsilon"], row["delta"]) for row in meaning["rows_together"]}
    assert set(rows) >= {1, mechanism.window - 1}
    for distance, told in rows.items():
        loss = mechanism.loss_at(distance)
        assert told == (loss.epsilon, loss.delta)
    headline = meaning["headline"]
    assert headline.startswith("All rows together show for certain which of two readings was first")
    certain = f"with probability up to {shown(rows[1][1])}"
    assert headline.index(certain) < headline.index("one row alone")
    assert statements(meaning)["series"] == (None, None) and meaning["relation"] == "swap"


def test_a_report_draws_what_all_rows_tell_and_not_a_coin() -> None:
    """One row of it tells nothing, so 0.8.0 drew a chance of 50 %."""
    released = tp.release(readings(), tp.Threshold(epsilon=2.0, window=3), **COLUMNS)
    drawn = page(released.about, PublicSample.of(released)).partition(
        "How sure can an observer become?"
    )[2]
    chances = re.findall(r"<span>([^<]*at most)</span>.*?<b>([^<]*)</b>", drawn)
    assert chances == [
        ("after seeing all rows, 1 step apart, at most", "83\N{NO-BREAK SPACE}%"),
        ("after seeing all rows, 2 steps apart, at most", "100\N{NO-BREAK SPACE}%"),
    ]


def test_a_series_and_a_person_are_chains_of_the_unit() -> None:
    """Every finite figure is that of the unit, times the links that lead there."""
    for unit in (tp.Event(), tp.Window(5), tp.WholeSeries(48), tp.Person(3, tp.Window(5))):
        guarantee = tp.Guarantee(tp.Pure(0.5), unit)
        told = statements(meaning_of(None, guarantee, 48))
        links = conversion_factor(unit, tp.WholeSeries(48))
        assert links is not None and told["series"] == (0.5 * links, 0.0)
        whole = unit.of_person(48)
        factor = None if whole is None else conversion_factor(unit, whole)
        assert told["person"][0] == (None if factor is None else 0.5 * factor)
    # a stream goes on: no figure is final, unless the unit covers all of it
    assert statements(meaning_of(HOURLY, HOURLY.guarantee, None))["series"] == (None, None)


def test_verify_finds_a_figure_that_is_too_small(tmp_path: Path) -> None:
    path = tp.release(readings(48, homes=2), HOURLY, **COLUMNS).write(tmp_path / "out.csv")
    assert not any(check.wrong for check in verify(path))
    beside = path.with_name("out.csv.release.json")
    about = json.loads(beside.read_text())
    about["meaning"]["statements"][1]["epsilon"] = 4.8
    beside.write_text(json.dumps(about))
    bad = [check.what for check in verify(path) if check.wrong]
    assert any(what.startswith("what the guarantee means") for what in bad)
    # a description without it is that of an earlier version, whose sentence was the guarantee's
    del about["meaning"], about["evidence"]
    about["sentence"] = HOURLY.guarantee.sentence
    beside.write_text(json.dumps({**about, "format": 1}))
    assert not any(check.wrong for check in verify(path))
    assert meaning_in(about)["longest"] is None


def test_verify_says_ok_of_nothing_that_it_did_not_see(tmp_path: Path, ledger: Any) -> None:
    released = tp.release(readings(), HOURLY, ledger=ledger, dataset="meters", **COLUMNS)
    checks = {check.what: check for check in verify(released.write(tmp_path / "out.csv"))}
    assert checks["the ledger knows of it"].state == "not checked"
    quoted = checks["the published claim is as this version of tempriv has it"]
    assert "the paper itself was not looked up" in quoted.found
    assert not any("the one that was written" in what for what in checks), "it can be recomputed"


# practically nothing


def test_what_protects_practically_nothing_is_refused_before_it_is_paid() -> None:
    words = ("release", METERS, "out.csv", *NAMED, "--mechanism", "laplace", *WEAK)
    status, out, err = run(*words)
    assert status == 2 and not Path("out.csv").exists() and out == ""
    assert "epsilon=600: protects practically nothing" in err and "--accept-weak" in err
    assert not Path("data/tempriv/ledger.sqlite").exists()
    status, out, _ = run(*words, "--dry-run")
    assert status == 0 and "needs     --accept-weak" in out
    status, out, _ = run(*words, "--accept-weak", "--report", "out.html")
    assert status == 0 and "epsilon = 600, which protects practically nothing; " in out
    page = Path("out.html").read_text()
    assert '<div class="weak" role="alert">epsilon = 600 protects practically nothing' in page
    assert "with practically no protection" in page


@pytest.mark.parametrize(
    "words",
    [
        ("stream", "--mechanism", "laplace", "--epsilon", "11", "--bounds", "0", "5", *NAMED),
        ("shapes", METERS, "--epsilon", "11", "--series", "home", "--value", "energy_kWh"),
    ],
    ids=lambda words: words[0],
)
def test_streams_and_shapes_refuse_it_too(words: tuple[str, ...]) -> None:
    status, out, err = run(*words, "--no-ledger")
    assert status == 2 and out == ""
    assert "--epsilon 11: protects practically nothing" in err and "--accept-weak" in err


def test_python_warns_of_it_unless_it_is_meant() -> None:
    weak = tp.Laplace(epsilon=10.5, bounds=(0, 5))
    with pytest.warns(tp.WeakGuaranteeWarning, match=r"epsilon=10.5: .*accept_weak=True"):
        tp.release([0.5], weak)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tp.release([0.5], weak, accept_weak=True)
        tp.release([0.5], tp.Laplace(epsilon=10.0, bounds=(0, 5)))


# again, without a limit


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with tp.Ledger.create(tmp_path / "ledger.sqlite") as opened:
        opened.ensure_dataset("meters")
        yield opened


def warned(ledger: Any, table: pa.Table, mechanism: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tp.release(table, mechanism, ledger=ledger, dataset="meters", **COLUMNS)
    assert all(each.category is tp.RepeatedReleaseWarning for each in caught)
    return [str(each.message) for each in caught]


def test_a_second_release_of_the_same_readings_says_what_it_comes_to(ledger: Any) -> None:
    assert warned(ledger, readings(), HOURLY) == []
    assert warned(ledger, readings(first=48), HOURLY) == [], "other readings"
    (said,) = warned(ledger, readings(), HOURLY)
    assert "'meters' has no limit" in said
    assert "epsilon = 2 is spent on any single reading" in said and "would make 3" in said
    (said,) = warned(ledger, readings(24), tp.Laplace(epsilon=0.5, bounds=(0, 5)))
    assert "epsilon = 2.5 is spent" in said and "would make 3" in said


@pytest.mark.parametrize("epsilon", [2.0, 5.0])
def test_a_second_copy_of_one_order_is_said_to_undo_it(ledger: Any, epsilon: float) -> None:
    """Ten copies of the first gave all times away, each charged epsilon 0 without a word."""
    mechanism = tp.Threshold(epsilon=epsilon, window=3)
    assert warned(ledger, readings(), mechanism) == []
    (said,) = warned(ledger, readings(), mechanism)
    assert "two such outputs side by side can show for certain" in said
    (total,) = ledger.show("meters").totals
    assert total.spent is None


def test_with_a_limit_the_limit_decides(ledger: Any) -> None:
    ledger.create_dataset("meters", epsilon=2.0)
    assert [warned(ledger, readings(), HOURLY) for _ in range(2)] == [[], []]
    with pytest.raises(tp.BudgetError):
        warned(ledger, readings(), HOURLY)


def test_the_command_line_warns_of_repetition() -> None:
    words = ("release", METERS, "--mechanism", "laplace", "--epsilon", "1", "--bounds", "0", "5")
    first = run(*words[:2], "one.csv", *words[2:], *NAMED)
    second = run(*words[:2], "two.csv", *words[2:], *NAMED)
    assert (first[0], first[2], second[0]) == (0, "", 0)
    assert "WARNING: dataset 'meters.csv' has no limit" in second[2]
    assert "another like it would make 3" in second[2]
