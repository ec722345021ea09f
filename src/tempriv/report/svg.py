"""Pictures as plain SVG, for reports: they need nothing else and take the page's colors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from tempriv.data.clock import DAY, HOUR, SECOND
from tempriv.report.plots.series import (
    MAX_DOTTED_ROWS,
    METERS_PER_DEGREE,
    About,
    Floats,
    Span,
    Trace,
    band,
    bounds_of,
    categories_of,
    kind_of,
    time_name,
)

AxisTicks = list[tuple[float, str, str]]
"""Where, what stands there, and what stands below it."""


@dataclass(frozen=True)
class Frame:
    """A picture's plotting area, and the way from data to its points.

    Parameters:
        width: of the whole picture, as ``height``.
        height: in the units of the picture.
        x: the least and the greatest number across.
        y: the least and the greatest number upwards.
        left: room beside the plotting area, as ``bottom``, ``top`` and ``right``.
        bottom: room for the labels of the horizontal axis.
        top: room for the name of the vertical axis.
        right: room for the last label.
    """

    width: float
    height: float
    x: Span
    y: Span
    left: float
    bottom: float
    top: float = 28.0
    right: float = 26.0

    @property
    def floor(self) -> float:
        """Where the plotting area ends below."""
        return self.height - self.bottom

    @property
    def end(self) -> float:
        """Where the plotting area ends on the right."""
        return self.width - self.right

    def across(self, x: Any) -> Any:
        """Where numbers ``x`` are across."""
        scale = (self.width - self.left - self.right) / (self.x[1] - self.x[0])
        return self.left + (x - self.x[0]) * scale

    def down(self, y: Any) -> Any:
        """Where numbers ``y`` are, from above."""
        scale = (self.height - self.top - self.bottom) / (self.y[1] - self.y[0])
        return self.top + (self.y[1] - y) * scale

    def points(self, x: Any, y: Any) -> list[str]:
        """The points of numbers ``x`` and ``y`` as they stand in a path."""
        return [f"{a:.1f} {b:.1f}" for a, b in zip(self.across(x), self.down(y), strict=True)]

    def line(self, x: Any, y: Floats, style: str) -> str:
        """A line through ``x`` and ``y`` in a ``style``; it stops where values are missing.

        The last bit of each stretch makes a lone one a dot.
        """
        path = "".join(f"M{'L'.join(self.points(x[run], y[run]))}h.01" for run in _present(y))
        return f'<path class="line {style}" d="{path}"/>'

    def area(self, x: Any, low: Floats, high: Floats) -> str:
        """The band between ``low`` and ``high`` along ``x``."""
        path = "".join(
            f"M{'L'.join(self.points(x[run], high[run]) + self.points(x[run], low[run])[::-1])}Z"
            for run in _present(low)
        )
        return f'<path class="band" d="{path}"/>'

    def dots(self, x: Any, y: Any, size: float, style: str) -> str:
        """Dots of a ``size`` and ``style`` at ``x`` and ``y``: round ends of lines without length.

        They are far shorter than circles.
        """
        good = np.isfinite(x) & np.isfinite(y)
        path = "".join(f"M{point}h.01" for point in self.points(x[good], y[good]))
        return f'<path class="dots {style}" stroke-width="{size}" d="{path}"/>'

    def level(self, y: float, style: str) -> str:
        """A line across the whole area at ``y`` in a ``style``."""
        return f'<path class="{style}" d="M{self.left} {self.down(y):.1f}H{self.end}"/>'

    def y_axis(self, ticks: AxisTicks, unit: str = "") -> str:
        """A rule with a label for each of the ``ticks``, the label followed by a ``unit``."""
        return "".join(
            self.level(value, "rule")
            + text(self.left - 8, self.down(value) + 4, label + unit, "end")
            for value, label, _ in ticks
        )

    def x_axis(self, ticks: AxisTicks) -> str:
        """The line below, with a mark, a label and perhaps another below for each of ``ticks``."""
        parts = [f'<path class="tick" d="M{self.left} {self.floor}H{self.end}"/>']
        for value, upper, lower in ticks:
            x = self.across(value)
            parts.append(f'<path class="tick" d="M{x:.1f} {self.floor}v5"/>')
            parts.append(text(x, self.floor + 18, upper))
            parts.append(text(x, self.floor + 32, lower) if lower else "")
        return "".join(parts)

    def svg(self, label: str, *parts: str) -> str:
        """The picture made of ``parts``, with a ``label`` for those who cannot see it."""
        box = f"0 0 {self.width:g} {self.height:g}"
        inner = "".join(parts)
        return f'<svg viewBox="{box}" role="img" aria-label="{escape(label)}">{inner}</svg>'


def text(x: float, y: float, words: str, anchor: str = "middle", style: str = "mark") -> str:
    """Words in a picture.

    Parameters:
        x: where they stand across.
        y: where they stand, from above.
        words: plain text.
        anchor: which part of them stands there: ``start``, ``middle`` or ``end``.
        style: the class in the style sheet.
    """
    place = f'class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(words)}</text>"


def label_width(labels: Iterable[str]) -> float:
    """About how wide the longest of some ``labels`` beside an axis is."""
    return 14 + 7.2 * max(map(len, labels))


def _present(values: Floats) -> Iterator[slice]:
    good = np.flatnonzero(np.isfinite(values))
    if len(good):
        for run in np.split(good, np.flatnonzero(np.diff(good) > 1) + 1):
            yield slice(int(run[0]), int(run[-1]) + 1)


def number_ticks(low: float, high: float, most: int, whole: bool = False) -> AxisTicks:
    """Round numbers between two numbers.

    Parameters:
        low: the least number.
        high: the greatest.
        most: how many ticks.
        whole: whether numbers are whole.

    >>> [label for _, label, _ in number_ticks(-0.4, 5.3, 4)]
    ['0', '2', '4']
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= 0.999 * rough)
    step = max(step, 1.0) if whole else step
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    plain = max(abs(low), abs(high)) < 1e9 and decimals <= 6
    form = f"{'' if whole else ','}.{decimals}f" if plain else ".4g"
    return [(k * step, format(k * step + 0.0, form).replace("-", "−"), "") for k in places]


STEPS = [n * unit for unit in (SECOND, 60 * SECOND) for n in (1, 5, 15, 30)]
STEPS += [n * HOUR for n in (1, 3, 6, 12)] + [n * DAY for n in (1, 2, 7, 14)]
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
MONDAY = 4 * DAY  # the first in 1970


def time_ticks(clock: str, low: float, high: float, most: int) -> AxisTicks:
    """Round moments between two ticks; below them the day or the year, where it is another.

    Parameters:
        clock: of the release.
        low: the first tick of the clock.
        high: the last.
        most: how many there are.

    >>> [mark[1:] for mark in time_ticks("date", 15500, 15560, 3)]
    [('1 Jul', '2012'), ('1 Aug', '')]
    """
    if clock not in ("date", "datetime"):
        return number_ticks(low, high, most, whole=True)
    tick = DAY if clock == "date" else 1
    low, high = low * tick, high * tick
    steps = [step for step in STEPS if step >= tick and (high - low) / step <= most]
    if steps:
        first = math.ceil((low - MONDAY) / steps[0])
        moments = [MONDAY + k * steps[0] for k in range(first, first + most + 2)]
    else:
        span = (high - low) / (30.44 * DAY) / most
        step = next((n for n in (1, 3, 6, 12, 24, 60, 120, 240) if n >= span), 1200)
        first = np.datetime64(int(low), "us").astype("datetime64[M]").astype(int) // step
        months = np.array([(first + k) * step for k in range(most + 3)], "datetime64[M]")
        moments = months.astype("datetime64[us]").astype(int).tolist()
    marks: AxisTicks = []
    before = ""
    for moment in (moment for moment in moments if low <= moment <= high):
        iso = str(np.datetime64(moment, "us"))
        year, day = iso[:4], f"{int(iso[8:10])} {MONTHS[int(iso[5:7]) - 1]}"
        if steps and steps[0] < DAY:
            upper, lower = iso[11 : 16 if steps[0] >= 60 * SECOND else 19], f"{day} {year}"
        else:
            upper, lower = (day, year) if steps or step < 12 else (year, "")
        marks.append((moment / tick, upper, "" if lower == before else lower))
        before = lower
    return marks


def pictures(
    about: About, column: int, released: Sequence[Trace], private: Sequence[Trace] | None = None
) -> list[tuple[str, str]]:
    """The name of each series and its picture as SVG, all to one scale; places need no column.

    Parameters:
        about: the description of the release.
        column: its number.
        released: rows of each series.
        private: readings of each series, for their owner.
    """
    wide = len(released) == 1
    before: Sequence[Trace | None] = private or [None] * len(released)
    every = [*released, *(private or ())]
    pairs = zip(released, before, strict=True)
    if kind_of(about) == "places":
        window = _window(np.concatenate([trace.values for trace in every]))
        drawn = [_map(about, trace, was, window, wide) for trace, was in pairs]
    elif kind_of(about) == "categories":
        drawn = [_choices(about, column, trace, was, wide) for trace, was in pairs]
    elif kind_of(about) == "alerts":
        known = [trace.values[:, column] for trace in private or ()]
        edges = [x for values in known for x in values[np.isfinite(values)].tolist()]
        edges.append(about["mechanism"]["threshold"])
        span = _widened(float(min(edges)), float(max(edges)), 0.04)
        drawn = [_alerts(about, column, trace, was, span, wide) for trace, was in pairs]
    else:
        values = np.concatenate([trace.values[:, column] for trace in every])
        edges = [*values[np.isfinite(values)], *(bounds_of(about, column) or ())] or [0.0]
        span = _widened(float(min(edges)), float(max(edges)), 0.04)
        drawn = [_lines(about, column, trace, was, span, wide) for trace, was in pairs]
    return [(trace.name, svg) for trace, svg in zip(released, drawn, strict=True)]


def _widened(low: float, high: float, share: float) -> Span:
    more = (high - low) * share or max(abs(low) * share, 0.5)
    return low - more, high + more


def _lines(
    about: About, column: int, trace: Trace, was: Trace | None, span: Span, wide: bool
) -> str:
    y_marks = number_ticks(*span, 5)
    frame = _frame(about, trace, 300 if wide else 230, span, y_marks, wide)
    values, parts = trace.values[:, column], []
    if was is None:
        parts.append(frame.area(trace.ticks, *band(about, column, values)))
    parts += [frame.level(edge, "bound") for edge in bounds_of(about, column) or ()]
    parts.append(frame.line(trace.ticks, values, "released"))
    if len(values) <= MAX_DOTTED_ROWS:
        parts.append(frame.dots(trace.ticks, values, 4.5, "released"))
    if was is not None:
        parts.append(frame.line(was.ticks, was.values[:, column], "private"))
    return _svg(about, frame, parts, y_marks, about["columns"]["values"][column])


def _alerts(
    about: About, column: int, trace: Trace, was: Trace | None, span: Span, wide: bool
) -> str:
    """Alerts alone as stems, on a line that ends with the output; or on the private readings."""
    values, name = trace.values[:, column], about["columns"]["values"][column]
    alert = values == 1
    if was is None:
        y_marks: AxisTicks = [(0.0, "no alert", ""), (1.0, "alert", "")]
        frame = _frame(about, trace, 150, (-0.3, 1.3), y_marks, wide)
        rise = frame.down(1.0) - frame.down(0.0)
        foot = frame.points(trace.ticks[alert], np.zeros(int(alert.sum())))
        stems = "".join(f"M{point}v{rise:.1f}" for point in foot)
        parts = [
            frame.line(trace.ticks, np.where(np.isnan(values), np.nan, 0.0), "released"),
            f'<path class="line released" d="{stems}"/>',
            frame.dots(trace.ticks[alert], values[alert], 7.0, "released"),
        ]
        return _svg(about, frame, parts, y_marks, name)
    y_marks = number_ticks(*span, 5)
    frame = _frame(about, trace, 300 if wide else 230, span, y_marks, wide)
    readings = was.values[:, column]
    parts = [
        frame.level(about["mechanism"]["threshold"], "bound"),
        frame.line(was.ticks, readings, "private"),
        frame.dots(trace.ticks[alert], readings[alert], 7.0, "released"),
    ]
    return _svg(about, frame, parts, y_marks, name)


def _choices(about: About, column: int, trace: Trace, was: Trace | None, wide: bool) -> str:
    categories = categories_of(about)
    assert categories is not None
    names = categories[column]
    labels = [name if len(name) <= 16 else name[:15] + "…" for name in names]
    y_marks: AxisTicks = [
        (float(i), labels[i], "") for i in range(0, len(names), len(names) // 25 + 1)
    ]
    height = 82 + max(60, min(len(names), 24) * 24)
    frame = _frame(about, trace, height, (-0.6, len(names) - 0.4), y_marks, wide)
    size, apart = 6.0 if len(trace.ticks) <= MAX_DOTTED_ROWS else 3.6, 0.0 if was is None else 0.16
    parts = [frame.dots(trace.ticks, trace.values[:, column] - apart, size, "released")]
    if was is not None:
        parts.append(frame.dots(was.ticks, was.values[:, column] + apart, size, "private"))
    return _svg(about, frame, parts, y_marks, about["columns"]["values"][column])


def _frame(
    about: About, trace: Trace, height: float, y: Span, y_marks: AxisTicks, wide: bool
) -> Frame:
    x = _widened(float(trace.ticks[0]), float(trace.ticks[-1]), 0.01)
    left = math.ceil(label_width(label for _, label, _ in y_marks))
    dated = about["times"]["clock"] in ("date", "datetime")
    return Frame(760 if wide else 372, height, x, y, left, bottom=54 if dated else 40)


def _window(values: Floats) -> tuple[Span, Span]:
    """North and east; a few stray places must not shrink all others to a dot."""
    values = values[np.isfinite(values).all(axis=1)]
    if not len(values):
        return (-1.0, 1.0), (-1.0, 1.0)
    low, high = np.quantile(values, (0.01, 0.99) if len(values) >= 50 else (0, 1), axis=0)
    return _widened(low[0], high[0], 0.12), _widened(low[1], high[1], 0.12)


def _map(
    about: About, trace: Trace, was: Trace | None, window: tuple[Span, Span], wide: bool
) -> str:
    """Degrees drawn so that meters are the same in both directions."""
    (south, north), (west, east) = window
    shrink = max(math.cos(math.radians((south + north) / 2)), 0.05)
    width, height = (760, 540) if wide else (372, 340)
    left, top, right, bottom = 62.0, 28.0, 26.0, 44.0
    across, down = width - left - right, height - top - bottom
    scale = max((east - west) * shrink / across, (north - south) / down)  # degrees to a point
    x, y = (west + east) / 2, (south + north) / 2
    half_x, half_y = scale * across / 2 / shrink, scale * down / 2
    frame = Frame(width, height, (x - half_x, x + half_x), (y - half_y, y + half_y), left, bottom)
    parts = []
    for drawn, style in ((trace, "released"), (was, "private")):
        if drawn is not None:
            near = (np.abs(drawn.values - (y, x)) <= (half_y, half_x)).all(axis=1)
            latitude, longitude = drawn.values[near].T
            parts.append(frame.dots(longitude, latitude, 4.4 if wide else 3.4, style))
    parts.append(_scale_bar(frame, scale * METERS_PER_DEGREE, about["expected_error"][0]["error"]))
    names = about["columns"]["values"]
    return _svg(
        about,
        frame,
        parts,
        number_ticks(*frame.y, 5),
        f"{names[0]} (degrees)",
        number_ticks(*frame.x, 5 if wide else 3),
        f"{names[1]} (degrees)",
    )


def _scale_bar(frame: Frame, meters: float, moved: float) -> str:
    """A round length, and the typical move as a circle; meters are those to a point."""
    rough = 0.3 * (frame.end - frame.left) * meters
    power = 10.0 ** math.floor(math.log10(rough))
    length = max(s * power for s in (1, 2, 5) if s * power <= rough)
    label = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    x, y = frame.end - 12, frame.floor - 12
    r = moved / meters
    circle = f'<circle class="scale" cx="{frame.left + 14 + r:.1f}" cy="{y - r:.1f}" r="{r:.1f}"/>'
    bar = f'<path class="scale" d="M{x - length / meters:.1f} {y - 4}v4H{x}v-4"/>'
    return circle + bar + text(x, y - 9, label, "end", "label")


def _svg(
    about: About,
    frame: Frame,
    parts: list[str],
    y_marks: AxisTicks,
    y_name: str,
    x_marks: AxisTicks | None = None,
    x_name: str | None = None,
) -> str:
    if x_marks is None:
        most = max(2, int((frame.end - frame.left) / 76))
        x_marks = time_ticks(about["times"]["clock"], *frame.x, most)
    x_name = time_name(about) if x_name is None else x_name
    names = (
        text(0, 14, y_name, "start", "label"),
        text(frame.end, frame.height - 5, x_name, "end", "label"),
    )
    axes = frame.y_axis(y_marks), frame.x_axis(x_marks)
    return frame.svg(f"{y_name} by {x_name}", *names, *axes, *parts)
