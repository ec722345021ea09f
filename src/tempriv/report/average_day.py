"""One HTML page that compares average days before and after, for the owner of the data.

It shows true averages, so it is private. It loads nothing and runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.report.accuracy import PERCENT, percent, table
from tempriv.report.page import FOOTER, PRIVATE, whole_page, write_page
from tempriv.report.svg import Frame, label_width, number_ticks, text

Floats = npt.NDArray[np.float64]
HOURS = 24
LOST = 1.0  # a mean distance as large as the average itself
LEGEND = (
    '<p class="legend"><span><i class="key private"></i>true average</span>'
    '<span><i class="key"></i>average of released values</span></p>'
)


@dataclass(frozen=True)
class AverageDay:
    """The average of each hour of the day, before and after.

    Parameters:
        name: whose average it is, and how it was released.
        guarantee: what is protected, as a sentence.
        before: the true average of each hour.
        after: that of released values.

    >>> hours = np.arange(24.0)
    >>> day = AverageDay("six homes", "Nothing.", hours, hours[::-1])
    >>> day.peaks, day.total_error
    ((23, 0), 0.0)
    """

    name: str
    guarantee: str
    before: Floats
    after: Floats

    def __post_init__(self) -> None:
        for name, values in (("before", self.before), ("after", self.after)):
            require(
                values.shape == (HOURS,) and bool(np.isfinite(values).all()),
                f"{name}: must be an average for each of {HOURS} hours",
            )
        require(bool(self.before.sum() > 0), "before: must have a sum above 0, to compare with")

    @property
    def distance(self) -> float:
        """How far an hour is off, on average, as a share of the true average."""
        return float(np.abs(self.after - self.before).mean() / self.before.mean())

    @property
    def total_error(self) -> float:
        """How far the total of a day, or of a week, is off, as a share of the true total."""
        return float(abs(self.after.sum() - self.before.sum()) / self.before.sum())

    @property
    def peaks(self) -> tuple[int, int]:
        """The hour with the greatest average, before and after."""
        return int(self.before.argmax()), int(self.after.argmax())

    @property
    def verdict(self) -> str:
        """The three comparisons in words."""
        before, after = self.peaks
        peak = (
            f"peak hour {before} kept" if before == after else f"peak hour {before} became {after}"
        )
        return (
            f"An hour is off by {_share(self.distance)}, {peak}, "
            f"weekly total off by {_share(self.total_error)}."
        )


def write_comparison(
    path: Path,
    title: str,
    lead: str,
    unit: str,
    days: Sequence[AverageDay],
    force: bool = False,
) -> Path:
    """Write the page, which only its owner can read.

    Parameters:
        path: the file; its name ends in .html.
        title: of the page, as plain text.
        lead: what was compared, as plain text.
        unit: of the values, for the pictures.
        days: the comparisons, in the order of the page.
        force: whether to replace a file.
    """
    require(bool(days), "days: there is nothing to compare")
    return write_page(path, lambda: _page(title, lead, unit, days), force, private=True)


def _page(title: str, lead: str, unit: str, days: Sequence[AverageDay]) -> str:
    secret = f'<p class="secret">{PRIVATE}</p>'
    head = ("", "an hour is off by", "peak hour", "weekly total is off by")
    body = [
        f'{secret}<h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>',
        "<section><h2>In numbers</h2>" + table(head, [_row(day) for day in days]) + "</section>",
        *(_section(day, unit) for day in days),
        FOOTER + secret,
    ]
    return whole_page(f"{PRIVATE} | {title}", body)


def _row(day: AverageDay) -> list[str]:
    before, after = day.peaks
    peak = f"{before} kept" if before == after else f"{before} became {after}"
    return [escape(day.name), _share(day.distance), peak, _share(day.total_error)]


def _section(day: AverageDay, unit: str) -> str:
    lost = " Nothing is left of the average day." if day.distance > LOST else ""
    return (
        f'<section><h2>{escape(day.name)}</h2><div class="pair"><div>'
        f"<p><b>{escape(day.verdict)}</b>{lost}</p><p>{escape(day.guarantee)}</p>{LEGEND}</div>"
        f"<figure>{_picture(day, unit)}</figure></div></section>"
    )


def _share(share: float) -> str:
    return percent(share) if share < 1 else f"{100 * share:,.0f}{PERCENT}"


def _picture(day: AverageDay, unit: str) -> str:
    low = min(0.0, float(day.after.min()))
    high = max(float(day.before.max()), float(day.after.max()))
    span = (low, high + 0.05 * (high - low))
    y_marks = number_ticks(*span, 5)
    left = float(np.ceil(label_width(label for _, label, _ in y_marks)))
    frame = Frame(372, 250, (0.0, HOURS - 1.0), span, left, bottom=40)
    hours = np.arange(HOURS, dtype=np.float64)
    return frame.svg(
        f"{day.name}. {day.verdict}",
        text(0, 14, unit, "start", "label"),
        text(frame.end, frame.height - 5, "hour of the day", "end", "label"),
        frame.y_axis(y_marks),
        frame.x_axis([(float(hour), str(hour), "") for hour in range(0, HOURS, 6)]),
        frame.line(hours, day.before, "private"),
        frame.line(hours, day.after, "released"),
        frame.dots(hours, day.after, 4.5, "released"),
    )
