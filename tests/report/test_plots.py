"""Pictures: what a figure shows of a release, and where axes put their marks."""

from __future__ import annotations

import datetime
import itertools
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tempriv.data.clock import DAY, HOUR
from tempriv.errors import TemprivError
from tempriv.mechanisms.value.gaussian import Gaussian
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.units import Window, WithinDistance
from tempriv.releases.release import Release, read
from tempriv.releases.run import release
from tempriv.report.plots.series import Trace, plot_release, shown, trace_of
from tempriv.report.svg import number_ticks, pictures, time_ticks
from tempriv.sampling.keys import Key

FIRST = datetime.datetime(2024, 2, 28, 22)
HOURS = [FIRST + datetime.timedelta(hours=i) for i in range(30)]


def homes() -> Release:
    """Two series of two columns, hourly, some values missing."""
    table = pa.table(
        {
            "home": ["a"] * 30 + ["b$<"] * 30,
            "at": pa.array(HOURS * 2, pa.timestamp("us")),
            "kWh": [None if i % 7 == 3 else i % 5 for i in range(60)],
            "share": [0.5] * 60,
        }
    )
    mechanism = Gaussian(rho=0.5, bounds=((0, 5), (0, 1)), unit=Window(24))
    return release(table, mechanism, values=("kWh", "share"), time="at", series="home")


def taxi(rows: int = 40) -> Release:
    table = pa.table(
        {
            "lat": [39.9 + i / 1000 for i in range(rows)],
            "lon": [116.4 - i / 1000 for i in range(rows)],
        }
    )
    mechanism = PlanarLaplace(epsilon=1.0, unit=WithinDistance(200), origin=(39.9, 116.4))
    return release(table, mechanism, values=("lat", "lon"))


def moods() -> Release:
    table = pa.table({"day": range(20), "mood": ["good", "bad", None, "so so"] * 5})
    mechanism = RandomizedResponse(epsilon=1.0, categories=("good", "so so", "bad"))
    return release(table, mechanism, values="mood", time="day")


def drawn(figure: Any, tmp_path: Path) -> bytes:
    figure.savefig(tmp_path / "figure.png")
    return (tmp_path / "figure.png").read_bytes()


def test_a_figure_has_a_panel_for_each_column_and_names_everything(tmp_path: Path) -> None:
    figure = plot_release(homes())
    assert [axes.get_ylabel() for axes in figure.axes] == ["kWh", "share"]
    assert figure.axes[-1].get_xlabel() == "at"
    title = figure.get_suptitle()
    assert "Series a" in title and "Gaussian: rho = 0.5" in title and "24 consecutive" in title
    assert drawn(figure, tmp_path).startswith(b"\x89PNG")
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_figure_uses_no_global_state() -> None:
    plot_release(homes())
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_dates_are_dates_on_the_axis() -> None:
    import matplotlib.dates

    low, high = plot_release(homes()).axes[0].get_xlim()
    assert matplotlib.dates.num2date(low).date() == datetime.date(2024, 2, 28)
    assert matplotlib.dates.num2date(high).date() == datetime.date(2024, 3, 1)


def test_names_with_signs_of_formulas_are_drawn(tmp_path: Path) -> None:
    figure = plot_release(homes(), "b$<")
    assert r"Series b\$<" in figure.get_suptitle()
    drawn(figure, tmp_path)


def test_an_unknown_series_is_refused_by_naming_some() -> None:
    with pytest.raises(
        TemprivError, match=r"series='zz': not in this release; there are 'a', 'b\$<'$"
    ):
        plot_release(homes(), "zz")
    with pytest.raises(TemprivError, match="one series, without an id"):
        plot_release(moods(), "zz")


def test_without_matplotlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(TemprivError, match=r"plots need more packages: pip install 'tempriv.plots"):
        plot_release(moods())


def test_categories_and_places_have_figures_of_their_own(tmp_path: Path) -> None:
    figure = plot_release(moods())
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["good", "so so", "bad"]
    drawn(figure, tmp_path)
    figure = plot_release(taxi())
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("lon (degrees)", "lat (degrees)")
    assert axes.get_aspect() == pytest.approx(1 / np.cos(np.radians(39.9)), rel=0.01)
    drawn(figure, tmp_path)


def test_a_seeded_release_says_so_in_its_title() -> None:
    seeded = release([1.0, 2.0], Laplace(epsilon=1.0, bounds=(0, 5)), key=Key.from_seed(1))
    assert "NO PRIVACY GUARANTEE" in plot_release(seeded).get_suptitle()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("which", [homes, moods, taxi])
def test_a_release_read_back_gives_the_same_picture(
    tmp_path: Path, suffix: str, which: Any
) -> None:
    one = which()
    one.write(tmp_path / f"out{suffix}")
    before, after = trace_of(one, None), trace_of(read(tmp_path / f"out{suffix}"), None)
    assert before.name == after.name
    np.testing.assert_array_equal(before.ticks, after.ticks)
    np.testing.assert_array_equal(before.values, after.values)


@pytest.mark.parametrize("suffix", [None, ".csv", ".parquet"])
@pytest.mark.parametrize(
    "columns",
    [
        {"day": [at.date() for at in HOURS], "hour": [at.hour for at in HOURS]},
        {"day": [at.date() for at in HOURS], "clock": [at.time() for at in HOURS]},
        {"at": HOURS},
        {"at": pa.array(HOURS, pa.timestamp("us", "UTC"))},
    ],
    ids=["date+hour", "date+time", "datetime", "datetime UTC"],
)
def test_every_form_of_time_becomes_the_same_ticks(
    tmp_path: Path, columns: dict[str, Any], suffix: str | None
) -> None:
    table = pa.table({**columns, "v": [1.0] * len(HOURS)})
    mechanism = Laplace(epsilon=1.0, bounds=(0, 5))
    one = release(table, mechanism, values="v", time="+".join(columns))
    if suffix is not None:
        one.write(tmp_path / f"out{suffix}")
        one = read(tmp_path / f"out{suffix}")
    ticks = trace_of(one, None).ticks
    assert ticks[0] == int(FIRST.replace(tzinfo=datetime.UTC).timestamp()) * 1_000_000
    assert set(np.diff(ticks).tolist()) == {HOUR}


def test_dates_become_days() -> None:
    days = [datetime.date(1970, 1, 3), datetime.date(1970, 1, 4)]
    table = pa.table({"day": days, "v": [1.0, 2.0]})
    one = release(table, Laplace(epsilon=1.0, bounds=(0, 5)), values="v", time="day")
    assert trace_of(one, None).ticks.tolist() == [2, 3]


def test_numbers_are_shown_to_be_read() -> None:
    assert [shown(x) for x in (0, 0.9999999, 1234.5, -0.00123, 12.0)] == [
        "0",
        "1.00",
        "1,230",
        "-0.00123",
        "12.0",
    ]


def test_marks_are_round_and_within() -> None:
    assert [label for _, label, _ in number_ticks(-30.0, 30.0, 4)] == ["−20", "0", "20"]
    assert [label for _, label, _ in number_ticks(0.0, 1e-3, 4)] == ["0.0000", "0.0005", "0.0010"]
    assert [label for _, label, _ in number_ticks(2000, 2003, 9, whole=True)] == [
        "2000",
        "2001",
        "2002",
        "2003",
    ]


@pytest.mark.parametrize("span", [3_000_000, HOUR, DAY, 9 * DAY, 400 * DAY, 90_000 * DAY])
@pytest.mark.parametrize("most", [2, 4, 9])
def test_time_marks_are_few_within_and_apart(span: int, most: int) -> None:
    low = 1_340_000_000_000_000
    marks = time_ticks("datetime", low, low + span, most)
    where = [at for at, _, _ in marks]
    assert all(low <= at <= low + span for at in where)
    assert len(marks) <= most + 1
    assert all(b - a > span / most / 3 for a, b in itertools.pairwise(where))


def test_time_marks_say_the_day_and_the_year_once() -> None:
    low = int(FIRST.replace(tzinfo=datetime.UTC).timestamp()) * 1_000_000
    assert [mark[1:] for mark in time_ticks("datetime", low, low + 9 * HOUR, 3)] == [
        ("00:00", "29 Feb 2024"),
        ("03:00", ""),
        ("06:00", ""),
    ]
    assert [mark[1:] for mark in time_ticks("date", 19_700, 20_100, 3)] == [
        ("1 Jan", "2024"),
        ("1 Jul", ""),
        ("1 Jan", "2025"),
    ]
    assert [mark[1] for mark in time_ticks("integer", -1, 11, 4)] == ["0", "5", "10"]


def points(svg: str, style: str) -> list[tuple[float, float]]:
    found = re.search(rf'<path class="{style}"[^>]* d="([^"]*)"', svg)
    assert found is not None
    pairs = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", found[1])
    return [(float(x), float(y)) for x, y in pairs]


def test_a_line_stops_at_missing_values_and_stays_inside() -> None:
    about = homes().about
    values = np.array([[1.0, 0], [2.0, 0], [np.nan, 0], [3.0, 0], [np.nan, 0], [np.nan, 0]])
    trace = Trace("a", np.arange(6) * HOUR, values)
    ((name, svg),) = pictures(about, 0, [trace])
    assert name == "a" and "nan" not in svg
    assert svg.count("h.01") - svg.split('class="dots')[1].count("h.01") == 2
    line = points(svg, "line released")
    assert len(line) == 3 and line[0][1] > line[1][1] > line[2][1]
    assert all(0 <= x <= 760 and 0 <= y <= 300 for x, y in line)


def test_all_series_are_drawn_to_one_scale() -> None:
    about = homes().about
    flat = [
        Trace(name, np.arange(3), np.full((3, 2), level)) for name, level in (("a", 1), ("b", 99))
    ]
    (_, low), (_, high) = pictures(about, 0, flat)
    assert points(low, "line released")[0][1] - points(high, "line released")[0][1] > 100


def test_series_without_any_value_or_with_one_row_can_be_drawn() -> None:
    for one, column in ((homes(), 1), (moods(), 0), (taxi(), 0)):
        width = len(one.about["columns"]["values"])
        for rows, level in ((1, 1.0), (1, np.nan), (3, np.nan)):
            trace = Trace("a", np.arange(rows), np.full((rows, width), level))
            ((_, svg),) = pictures(one.about, column, [trace])
            assert svg.startswith("<svg") and "nan" not in svg


def test_a_map_has_the_same_scale_in_both_directions_and_leaves_strays_out() -> None:
    about = taxi().about
    north = np.array([39.9, 39.9 + 1 / 111.195, 39.9])  # a kilometer
    east = np.array([116.4, 116.4, 116.4 + 1 / 111.195 / np.cos(np.radians(39.9))])
    values = np.repeat(np.stack([north, east], axis=1), 100, axis=0)
    values[-1] = (0.0, 0.0)
    trace = Trace("a", np.arange(300), values)
    ((_, svg),) = pictures(about, 0, [trace])
    dots = points(svg, "dots released")
    assert len(dots) == 299
    (x0, y0), (x1, y1), (x2, y2) = dots[0], dots[100], dots[200]
    assert x0 == x1 and y0 == y2
    assert y0 - y1 == pytest.approx(x2 - x0, rel=0.01)
    assert "1 km" in svg or "500 m" in svg
