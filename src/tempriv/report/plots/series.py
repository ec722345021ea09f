"""Pictures of released series as matplotlib figures, and what every picture of one has to know."""

from __future__ import annotations

import functools
import io
import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tempriv.data.clock import HOUR
from tempriv.data.series import ONLY_SERIES, STATUSES, Bounds, Categories
from tempriv.errors import TemprivError, extra_packages
from tempriv.mechanisms import registry
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.domains import EARTH_RADIUS, ValueKind
from tempriv.privacy.guarantees import Guarantee
from tempriv.privacy.serialization import KIND
from tempriv.privacy.units import Contribution
from tempriv.releases.release import Release

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
About = dict[str, Any]
Span = tuple[float, float]

# Okabe and Ito's blue, and grays: told apart with any color vision, and in print
BLUE, INK, GRAY, RULE = "#0072B2", "#1f2430", "#5b6472", "#d5d9e0"
METERS_PER_DEGREE = math.radians(EARTH_RADIUS)
MAX_DOTTED_ROWS = 120  # up to so many readings are drawn as dots too
MAX_AXIS_NAMES = 25  # beside an axis


@dataclass(frozen=True)
class Trace:
    """Rows of one series to draw; categories are their numbers, missing values NaN.

    Rows that were moved hold what they held, text too, with None for what is missing.
    """

    name: str
    ticks: Integers
    values: npt.NDArray[Any]
    status: npt.NDArray[np.int8] | None = None


def mechanism_of(about: About) -> Mechanism:
    """The mechanism of a release.

    Parameters:
        about: the description of the release.
    """
    return _decoded(json.dumps(about["mechanism"]))


@functools.lru_cache(maxsize=16)
def _decoded(spec: str) -> Mechanism:
    return registry.decode(json.loads(spec))


def kind_of(about: About) -> ValueKind:
    """What the values of a release are.

    Parameters:
        about: the description of the release.
    """
    return mechanism_of(about).value_kind


def is_moved(about: About) -> bool:
    """Whether the values are exact, and only when they were is another.

    Parameters:
        about: the description of the release.
    """
    return kind_of(about) == "rows"


def categories_of(about: About) -> Categories | None:
    """The names of categories, for each column, if values are such.

    Parameters:
        about: the description of the release.
    """
    return mechanism_of(about).domain.released.categories


def numbers_of(values: npt.NDArray[Any]) -> Floats | None:
    """A column as numbers, NaN where missing; None if it holds anything else.

    Parameters:
        values: a column.

    >>> numbers_of(np.array([1, None], dtype=object)), numbers_of(np.array(["on"], dtype=object))
    (array([ 1., nan]), None)
    """
    if values.dtype != object:
        return np.asarray(values, np.float64)
    if not all(value is None or type(value) in (int, float) for value in values):
        return None
    return np.array([math.nan if value is None else value for value in values], np.float64)


def time_name(about: About) -> str:
    """The names of the columns that hold times, by ``about``."""
    return " + ".join(about["columns"]["time"] or ["reading number"])


def bounds_of(about: About, column: int) -> Span | None:
    """Where values lie, if they are readings: counts of people, sums and alerts have no such.

    Parameters:
        about: the description of the release.
        column: the number of a value column.
    """
    mechanism, bounds = mechanism_of(about), declared_bounds(about)
    if not mechanism.values_are_readings or isinstance(mechanism.unit, Contribution):
        return None
    return None if bounds is None else bounds[column]


def declared_bounds(about: About) -> Bounds | None:
    """Between which numbers readings were declared to lie, for each column; none for places.

    Parameters:
        about: the description of the release.
    """
    return None if kind_of(about) == "places" else mechanism_of(about).domain.released.bounds


def stated_without(about: About) -> str:
    """Without what in a series the expected error is as stated, if it grows with it.

    Parameters:
        about: the description of the release.
    """
    without = mechanism_of(about).report_texts.without
    return without and f" without {without}"


def band(about: About, column: int, values: Floats) -> tuple[Floats, Floats]:
    """The expected error: about each of a few values, or else about the bounds.

    Parameters:
        about: the description of the release.
        column: its number.
        values: of the series.
    """
    if is_moved(about) or mechanism_of(about).is_retimed:  # there is none about values
        return np.full(len(values), math.nan), np.full(len(values), math.nan)
    error, bounds = about["expected_error"][column]["error"], bounds_of(about, column)
    if len(values) <= MAX_DOTTED_ROWS or bounds is None:
        return values - error, values + error
    return np.full(len(values), bounds[0] - error), np.full(len(values), bounds[1] + error)


def shown(number: float, digits: int = 3) -> str:
    """A number to so many digits, without an exponent where it can be read without.

    >>> shown(0.012345), shown(123456.0), shown(2e-9)
    ('0.0123', '123,000', '2e-09')
    """
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    number = float(f"{number:.{digits}g}")
    power = math.floor(math.log10(abs(number)))
    if not -5 <= power <= 8:
        return f"{number:.{digits}g}"
    return f"{number:,.{max(0, digits - 1 - power)}f}"


def plot_release(release: Release, series: str | None = None) -> Any:
    """A matplotlib figure of one series of a release (the first, unless named).

    The band about released numbers, or the circle about a released place, is the expected error.
    """
    about, trace = release.about, trace_of(release, series)
    names, kind = about["columns"]["values"], kind_of(about)
    panels = 1 if kind == "places" else len(names)
    size = (8.0, 7.2) if kind == "places" else (9.0, 1.2 + 2.9 * panels)
    figure = new_figure(size, _title(release, trace.name))
    for i, axes in enumerate(figure.subplots(panels, 1, squeeze=False, sharex=True)[:, 0]):
        tidy(axes, "both" if kind == "places" else "y")
        if kind == "places":
            _plot_places(axes, about, trace)
            x_name, y_name = f"{names[1]} (degrees)", f"{names[0]} (degrees)"
        else:
            _plot_column(axes, about, trace, i)
            x_name, y_name = time_name(about) if i == panels - 1 else "", names[i]
        axes.set_xlabel(_plain(x_name), fontsize=12, color=INK)
        axes.set_ylabel(_plain(y_name), fontsize=12, color=INK)
    figure.align_ylabels()
    return figure


def new_figure(size: tuple[float, float], title: str, font: float = 13) -> Any:
    """An empty matplotlib figure.

    Parameters:
        size: width and height in inches.
        title: above all of it.
        font: the size of the title.
    """
    figure = figure_class()(figsize=size, dpi=100, layout="constrained", facecolor="white")
    figure.suptitle(title, fontsize=font, color=INK)
    return figure


def tidy(axes: Any, grid: str = "both", labels: float = 11) -> None:
    """Draw the frame of a panel in quiet colors.

    Parameters:
        axes: the panel.
        grid: of which axes rules are drawn.
        labels: the size of numbers at the axes.
    """
    axes.tick_params(labelsize=labels, color=GRAY, labelcolor=INK)
    axes.grid(axis=grid, color=RULE, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRAY)
    axes.set_axisbelow(True)


def figure_class() -> Any:
    with extra_packages("plots", "plots"):
        from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that notebooks show without pyplot."""

        def _repr_png_(self) -> bytes:
            self.savefig(image := io.BytesIO(), format="png", dpi=self.dpi)
            return image.getvalue()

    return Picture


def _plain(text: str) -> str:
    return text.replace("$", r"\$")  # which would start a formula


def _title(release: Release, name: str) -> str:
    guarantee, claim = release.guarantee, "NO PRIVACY GUARANTEE"
    if isinstance(guarantee, Guarantee):
        claim = f"{str(guarantee.loss).split(' (')[0]}\nprotects {guarantee.unit.sentence}"
    which = "" if release.about["columns"]["series"] is None else f"Series {name} · "
    lines = f"{which}{release.about['mechanism'][KIND]}: {claim}".splitlines()
    return _plain("\n".join(textwrap.fill(line, 84) for line in lines))


def _plot_column(axes: Any, about: About, trace: Trace, column: int) -> None:
    import matplotlib.dates

    dates: Any = matplotlib.dates  # without types
    clock, values = about["times"]["clock"], trace.values[:, column]
    categories = categories_of(about)
    names: Sequence[str] | None = None if categories is None else categories[column]
    if is_moved(about) and numbers_of(values) is None:
        names, values = _named(values)
    elif is_moved(about):
        values = np.asarray(numbers_of(values))
    times: Any = trace.ticks
    if clock in ("date", "datetime"):
        times = trace.ticks.astype("datetime64[D]" if clock == "date" else "datetime64[us]")
        locator = dates.AutoDateLocator(minticks=4, maxticks=8)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    few = len(values) <= MAX_DOTTED_ROWS
    if names is not None:
        axes.step(times, values, where="mid", color=RULE, linewidth=1)
        axes.plot(times, values, "o", color=BLUE, markersize=5 if few else 3, alpha=0.8)
        some = range(0, len(names), len(names) // MAX_AXIS_NAMES + 1)
        axes.set_yticks(some, [_plain(names[i]) for i in some])
        axes.set_ylim(-0.6, len(names) - 0.4)
        return
    if kind_of(about) == "alerts":
        alert = values == 1
        axes.plot(times, np.where(np.isnan(values), np.nan, 0.0), color=GRAY, linewidth=1.2)
        axes.vlines(times[alert], 0, 1, color=BLUE, linewidth=1.2)
        axes.plot(times[alert], values[alert], "o", color=BLUE, markersize=5)
        axes.set_yticks((0, 1), ("no alert", "alert"))
        axes.set_ylim(-0.3, 1.3)
        axes.margins(x=0.01)
        return
    if not is_moved(about):
        size = shown(about["expected_error"][column]["error"])
        error = f"expected error{stated_without(about)}: ± {size}"
        low, high = band(about, column, values)
        axes.fill_between(times, low, high, color=BLUE, alpha=0.15, linewidth=0, label=error)
    axes.plot(
        times,
        values,
        color=BLUE,
        linewidth=1.2,
        marker="o" if few else None,
        markersize=4,
        label="exact values, moved in time" if is_moved(about) else "released",
    )
    for edge, label in zip(bounds_of(about, column) or (), ("bounds", None), strict=False):
        axes.axhline(edge, color=GRAY, linewidth=1, linestyle=(0, (4, 3)), label=label)
    axes.margins(x=0.01, y=0.08)
    _legend(axes)


def _named(values: npt.NDArray[Any]) -> tuple[list[str], Floats]:
    """Anything by its text: the different ones in order, and the number of each in that order."""
    names = sorted({str(value) for value in values if value is not None})
    places = {name: float(i) for i, name in enumerate(names)}
    return names, np.array([math.nan if value is None else places[str(value)] for value in values])


def _plot_places(axes: Any, about: About, trace: Trace) -> None:
    from matplotlib.patches import Ellipse

    north, east = trace.values.T
    axes.plot(
        east,
        north,
        "o",
        color=BLUE,
        markersize=4,
        alpha=0.55,
        markeredgewidth=0,
        label="released location",
    )
    axes.ticklabel_format(useOffset=False)
    if np.isfinite(north).any():
        meters = about["expected_error"][0]["error"]
        middle = np.nanmedian(east), np.nanmedian(north)
        shrink, reach = math.cos(math.radians(middle[1])), 2 * meters / METERS_PER_DEGREE
        axes.set_aspect(1 / shrink, adjustable="datalim")
        axes.add_patch(Ellipse(middle, reach / shrink, reach, fill=False, edgecolor=INK, lw=1.4))
        axes.plot(
            [],
            [],
            "o",
            markersize=11,
            markerfacecolor="none",
            color=INK,
            label=f"typical move{stated_without(about)}: {shown(meters)} m",
        )
    _legend(axes)


def _legend(axes: Any) -> None:
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=3,
        fontsize=11,
        frameon=False,
        borderaxespad=0.2,
        labelcolor=INK,
    )


def trace_of(release: Release, series: str | None) -> Trace:
    """One series of a release, from its table."""
    about, table = release.about, release.table
    name = about["columns"]["series"]
    if name is None:
        if series is not None:
            raise TemprivError(f"series={series!r}: this release has one series, without an id")
        series = ONLY_SERIES
    else:
        ids = pc.cast(table.column(name), pa.string())
        series = ids[0].as_py() if series is None else str(series)
        table = table.filter(pc.equal(ids, series))
        if not table.num_rows:
            some = [repr(known) for known in pc.unique(ids).slice(0, 5).to_pylist()]
            known_ids = ", ".join([*some, "..."] if about["series"] > 5 else some)
            raise TemprivError(f"series={series!r}: not in this release; there are {known_ids}")
    wanted = range(len(about["columns"]["values"]))
    if not is_moved(about):
        numbers = [_numbers(about, table, i) for i in wanted]
        return Trace(series, _ticks(about, table), np.stack(numbers, axis=1))
    columns = [_as_they_are(table.column(about["columns"]["values"][i])) for i in wanted]
    if any(column.dtype == object for column in columns):
        columns = [column.astype(object) for column in columns]
    rows = np.stack(columns, axis=1)
    statuses = pc.cast(table.column(about["columns"]["status"]), pa.string())
    status = pc.index_in(statuses, value_set=pa.array(STATUSES, pa.string())).to_numpy()
    return Trace(series, _ticks(about, table), rows, np.asarray(status, np.int8))


def _as_they_are(column: Any) -> npt.NDArray[Any]:
    """Numbers, or objects with None for what is missing."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return np.asarray(pc.cast(column, pa.float64()).to_numpy(), np.float64)
    objects = np.empty(len(column), dtype=object)
    objects[:] = column.to_pylist()
    return objects


def _numbers(about: About, table: pa.Table, column: int) -> Floats:
    values = table.column(about["columns"]["values"][column]).combine_chunks()
    categories = categories_of(about)
    if categories is not None:
        # what a CSV file gives back as numbers or truth values was written as text
        known = [name.lower() for name in categories[column]]
        text = pc.utf8_lower(pc.cast(values, pa.string()))
        values = pc.index_in(text, value_set=pa.array(known, pa.string()))
    return np.asarray(pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def _ticks(about: About, table: pa.Table) -> Integers:
    names, clock = about["columns"]["time"], about["times"]["clock"]
    if not names:
        return np.arange(table.num_rows)
    first = table.column(names[0])
    if clock == "date":
        first = pc.cast(pc.cast(first, pa.date32()), pa.int32())
    elif clock == "datetime":
        first = pc.cast(first, pa.timestamp("us", getattr(first.type, "tz", None)))
    ticks = np.asarray(pc.cast(first, pa.int64()).to_numpy(), dtype=np.int64)
    for second in map(table.column, names[1:]):
        length = HOUR if pa.types.is_integer(second.type) else 1
        if length == 1:  # a time of day, or its text in a CSV file
            text = pc.binary_join_element_wise("1970-01-01", pc.cast(second, pa.string()), " ")
            second = pc.cast(pc.cast(text, pa.timestamp("us")), pa.int64())
        ticks = ticks + length * np.asarray(second.to_numpy(), dtype=np.int64)
    return ticks
