"""One HTML page about statistics of people: pictures, intervals, what is guaranteed.

The public page is made of released values alone. The data owner's draws the exact ones beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.privacy import guarantees
from tempriv.privacy.guarantees import NoGuarantee
from tempriv.privacy.serialization import decode
from tempriv.releases.description import ledger_sentence
from tempriv.report.accuracy import PERCENT, items, table
from tempriv.report.page import (
    FOOTER,
    PRIVATE,
    check_section,
    facts_list,
    guarantee_section,
    made_section,
    whole_page,
    write_page,
)
from tempriv.report.svg import AxisTicks, Frame, label_width, number_ticks, text
from tempriv.summaries.exact import Exact
from tempriv.summaries.run import NUMBER_NAMES
from tempriv.summaries.spec import PeopleSummary, SummaryStatistic

About = dict[str, Any]
Floats = npt.NDArray[np.float64]
WIDE, NARROW = 760, 372
HEAT_CELLS = 168
MOST_LABELS = 12
RECORDS = {"person": "Each person", "day": "Each day of a person", "reading": "Each reading"}


def write_report(path: Path, about: About, rows: Any, exact: Exact | None = None) -> Path:
    """Write the page; with exact values it is the data owner's, and only the owner can read it.

    Parameters:
        path: the file; its name ends in .html.
        about: the description of the release.
        rows: the released table.
        exact: the statistics without noise.
    """
    made = _SummaryPage(about, rows.to_pylist(), exact)
    return write_page(path, made.page, True, exact is not None)


class _SummaryPage:
    """The page about one release."""

    def __init__(self, about: About, rows: list[dict[str, Any]], exact: Exact | None):
        self.about, self.rows, self.exact = about, rows, exact
        self.spec: PeopleSummary = decode(about["mechanism"], (PeopleSummary,))
        self.groups = list(dict.fromkeys(row["group"] for row in rows))
        self.by_statistic: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
        for row in rows:
            cells = self.by_statistic.setdefault((row["group"], row["statistic"]), {})
            cells[row["cell"]] = row
        self.cells = [name for names in about["cells"] for name in names]
        self.value = about["columns"]["of"]
        self.number = NUMBER_NAMES[self.spec.protect]

    def page(self) -> str:
        """The whole page as text."""
        guarantee = guarantees.decode(self.about["guarantee"])
        headline = f"{self.value} of many people, by {self.spec.by}"
        stated, alarm = guarantee_section(guarantee, self.about["meaning"]), ""
        if isinstance(guarantee, NoGuarantee):
            stated, alarm = "", stated
        secret = f'<p class="secret">{PRIVATE}</p>' if self.exact is not None else ""
        body = [
            f"{secret}{alarm}<h1>{escape(headline)}</h1>{self._lead()}",
            *self._sections(),
            self._whole(),
            stated,
            "<section><h2>What is not protected</h2>"
            f"{items(_sentences(self.about['not_protected']))}</section>",
            self._trust(),
            self._made(guarantee),
            check_section(self.about),
            FOOTER + secret,
        ]
        return whole_page(f"{PRIVATE} | {headline}" if secret else headline, body)

    def _lead(self) -> str:
        people = sum(row["value"] for row in self.rows if row["statistic"] == self.number)
        facts = [
            (f"{self.number.title()}, with noise", f"{people:,.0f}"),
            ("Epsilon of all", f"{self.spec.epsilon:g}"),
            ("Delta", f"{self.spec.delta:g}"),
            ("Statistics", str(len(self.spec.statistics))),
        ]
        if self.spec.groups:
            facts.insert(1, ("Groups", str(len(self.groups))))
        said = "".join(
            f'<div class="alarm"><h3>Few {self.number}</h3><p>{escape(_sentence(words))}</p></div>'
            for words in self.about["warnings"]
        )
        return (
            f'<p class="lead">{RECORDS[self.spec.protect]} became a few bounded averages; only '
            "noisy sums over all of them left their owner. What is drawn here is made of these "
            "sums. Intervals hold the value of the table 95 times in 100.</p>"
            f"{facts_list(facts, 'facts')}{said}"
        )

    # pictures

    def _sections(self) -> list[str]:
        sections = []
        quantiles = [s.name for s in self.spec.asked if s.kind == "quantile"]
        names = {statistic.name for statistic in self.spec.asked}
        if quantiles or "mean" in names:
            sections.append(self._profiles(sorted(quantiles, key=_share_of)))
        for statistic in self.spec.asked:
            if statistic.kind in ("total", "share"):
                sections.append(self._lines(statistic))
            elif statistic.kind == "peak":
                sections.append(self._bars(statistic.name, [*self.cells, "none"], "Peaks"))
            elif statistic.kind == "histogram":
                bins = [row["cell"] for row in self.rows if row["statistic"] == "histogram"]
                sections.append(self._bars(statistic.name, list(dict.fromkeys(bins)), "Averages"))
        return sections

    @property
    def _is_heat_map(self) -> bool:
        return self.spec.by == "hour-of-week" and len(self.cells) == HEAT_CELLS

    def _series(self, group: str, name: str, field: str = "value") -> Floats:
        """A number of each cell; missing ones are NaN."""
        cells = self.by_statistic.get((group, name), {})
        return np.array([cells[c][field] if c in cells else np.nan for c in self.cells])

    def _known(self, group: str, name: str) -> Floats:
        """The exact numbers of each cell, for the owner."""
        assert self.exact is not None
        return np.array([self.exact.get((group, c, name), np.nan) for c in self.cells])

    def _figures(self, title: str, drawn: Sequence[tuple[str, str]], note: str) -> str:
        wide = len(drawn) == 1
        figures = "".join(
            f"<figure>{'' if wide else f'<figcaption>{escape(name)}</figcaption>'}{svg}</figure>"
            for name, svg in drawn
        )
        kind = "wide" if wide else "pair"
        return (
            f'<section><h2>{escape(title)}</h2><div class="{kind}">{figures}</div>'
            f"{self._legend(note)}</section>"
        )

    def _legend(self, note: str) -> str:
        keys = ['<span><span class="key"></span>released</span>']
        if self.exact is not None:
            keys.append('<span><span class="key private"></span>exact, private</span>')
        return f'<p class="legend">{"".join(keys)}</p><p class="note">{escape(note)}</p>'

    def _profiles(self, quantiles: Sequence[str]) -> str:
        """The mean of each cell with the band between outer quantiles, all groups to one scale."""
        if self._is_heat_map:
            drawn = [(group, self._heat_map(group)) for group in self.groups]
            return self._figures(
                "The average week",
                drawn,
                f"Mean of {self.value}; the stronger the color, the more.",
            )
        has_mean = any(name == "mean" for _, name in self.by_statistic)
        outer = (quantiles[0], quantiles[-1]) if len(quantiles) > 1 else None
        lines = ["mean"] if has_mean else quantiles[len(quantiles) // 2 : len(quantiles) // 2 + 1]
        used = [*lines, *(outer or ())]
        top = max(
            float(
                np.nanmax(self._series(group, name, "value" if name in (outer or ()) else "high"))
            )
            for group in self.groups
            for name in used
        )
        drawn = []
        for group in self.groups:
            frame, marks = self._frame(top)
            parts = [frame.y_axis(marks), self._x_axis(frame)]
            at = np.arange(len(self.cells)) + 0.5
            if outer:
                parts.append(frame.area(at, *(self._series(group, name) for name in outer)))
            for name in lines:
                parts += self._with_interval(frame, at, group, name)
            drawn.append((group, self._svg(frame, f"{lines[0]} of {self.value}", parts)))
        between = f" The band is from {outer[0]} to {outer[1]} of people." if outer else ""
        title = {"hour-of-day": "The average day", "weekday": "The average week"}.get(
            self.spec.by, f"By {self.spec.by}"
        )
        note = (
            f"The line is the {lines[0]} of {self.value}; bars are 95{PERCENT} intervals.{between}"
        )
        return self._figures(title, drawn, note)

    def _with_interval(self, frame: Frame, at: Any, group: str, name: str) -> list[str]:
        parts = []
        if len(self.cells) <= 48:
            low, high = (self._series(group, name, edge) for edge in ("low", "high"))
            bars = "".join(
                f"M{x:.1f} {a:.1f}V{b:.1f}"
                for x, a, b in zip(frame.across(at), frame.down(low), frame.down(high), strict=True)
                if np.isfinite(a)
            )
            parts.append(f'<path class="line released" d="{bars}"/>')
        line = frame.line(at, self._series(group, name), "released")
        parts.append(line.replace("<path", '<path style="stroke-width:2.4"'))
        if self.exact is not None:
            parts.append(frame.line(at, self._known(group, name), "private"))
        return parts

    def _lines(self, statistic: SummaryStatistic) -> str:
        name = statistic.name
        if self._is_heat_map:
            drawn = [(group, self._heat_map(group, name)) for group in self.groups]
            return self._figures(_title(name), drawn, "The stronger the color, the more.")
        top = max(float(np.nanmax(self._series(group, name, "high"))) for group in self.groups)
        drawn = []
        for group in self.groups:
            frame, marks = self._frame(top)
            at = np.arange(len(self.cells)) + 0.5
            parts = [frame.y_axis(marks), self._x_axis(frame)]
            parts += self._with_interval(frame, at, group, name)
            drawn.append((group, self._svg(frame, name, parts)))
        meaning = {
            "total": f"The sum over people of their average {self.value} in each cell",
            "share": "The share of a person's readings, averaged over people",
        }[statistic.kind]
        return self._figures(_title(name), drawn, f"{meaning}; bars are 95{PERCENT} intervals.")

    def _frame(self, top: float) -> tuple[Frame, AxisTicks]:
        low = min(self.spec.bounds[0], 0.0) if self.spec.bounds[0] <= 0.3 * top else None
        least = low if low is not None else self.spec.bounds[0]
        high = max(top, least + 1e-9) + 0.04 * (top - least)
        marks = number_ticks(least, high, 5)
        left = label_width(label for _, label, _ in marks)
        width = WIDE if len(self.groups) == 1 else NARROW
        height = 300 if width == WIDE else 230
        return Frame(width, height, (0.0, float(len(self.cells))), (least, high), left, 40), marks

    def _x_axis(self, frame: Frame) -> str:
        return frame.x_axis(_labels(self.cells, frame))

    def _svg(self, frame: Frame, y_name: str, parts: Sequence[str]) -> str:
        return frame.svg(
            f"{y_name} by {self.spec.by}",
            text(0, 14, y_name, "start", "label"),
            text(frame.end, frame.height - 5, self.spec.by, "end", "label"),
            *parts,
        )

    def _heat_map(self, group: str, name: str = "mean") -> str:
        """Hours across, weekdays down."""
        grid = self._series(group, name).reshape(7, 24)
        days = [self.cells[24 * day].split(" ")[0][:3] for day in range(7)]
        width = WIDE if len(self.groups) == 1 else NARROW
        frame = Frame(
            width, 40 + 7 * (26 if width == WIDE else 18), (0.0, 24.0), (0.0, 7.0), 40, 36, 4
        )
        least, most = float(np.nanmin(grid)), float(np.nanmax(grid))
        step = frame.across(1.0) - frame.across(0.0)
        height = frame.down(0.0) - frame.down(1.0)
        parts = []
        for day in range(7):
            y = frame.down(7.0 - day)
            parts.append(text(frame.left - 6, y + height / 2 + 4, days[day], "end"))
            for hour in range(24):
                dark = 0.06 + 0.94 * (grid[day, hour] - least) / max(most - least, 1e-12)
                x = frame.across(float(hour))
                label = f"{days[day]} {hour}: {grid[day, hour]:.4g}"
                parts.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{step - 1:.1f}" '
                    f'height="{height - 1:.1f}" style="fill:var(--blue);fill-opacity:{dark:.2f}">'
                    f"<title>{escape(label)}</title></rect>"
                )
        ticks: AxisTicks = [(hour + 0.5, str(hour), "") for hour in range(0, 24, 3)]
        parts.append(frame.x_axis(ticks))
        scale = f"{least:.3g} to {most:.3g}"
        parts.append(text(frame.end, frame.height - 3, f"hour; {scale}", "end", "label"))
        return frame.svg(f"{name} of {self.value} by weekday and hour", *parts)

    def _bars(self, name: str, cells: Sequence[str], title: str) -> str:
        """Shares of people in each of some cells or bins, a bar for each."""
        known = [self.by_statistic.get((group, name), {}) for group in self.groups]
        cells = [cell for cell in cells if any(cell in rows for rows in known)]
        if cells[-1:] == ["none"] and all(rows["none"]["value"] < 0.005 for rows in known):
            cells = cells[:-1]
        if len(cells) > 60:
            return self._top_table(name, title)
        top = 100 * max(rows[cell]["high"] for rows in known for cell in cells)
        width = WIDE if len(self.groups) == 1 else NARROW
        marks = number_ticks(0.0, top * 1.04, 5)
        left = label_width(label for _, label, _ in marks)
        drawn = []
        for group, rows in zip(self.groups, known, strict=True):
            frame = Frame(
                width, 250, (0.0, float(len(cells))), (0.0, max(top * 1.04, 1e-9)), left, 40
            )
            step = frame.across(1.0) - frame.across(0.0)
            parts = [frame.y_axis(marks)]
            for i, cell in enumerate(cells):
                value, low, high = (100 * rows[cell][key] for key in ("value", "low", "high"))
                x, y = frame.across(i + 0.12), frame.down(value)
                shape = f'x="{x:.1f}" y="{y:.1f}" width="{0.76 * step:.1f}"'
                style = 'rx="2" style="fill:var(--blue);fill-opacity:.45"'
                parts.append(f'<rect {shape} height="{frame.floor - y:.1f}" {style}/>')
                line = f"M{frame.across(i + 0.5):.1f} {frame.down(low):.1f}V{frame.down(high):.1f}"
                parts.append(f'<path class="line released" d="{line}"/>')
                if self.exact is not None:
                    exact = 100 * self.exact.get((group, cell, name), 0.0)
                    mark = f"M{x:.1f} {frame.down(exact):.1f}h{0.76 * step:.1f}"
                    parts.append(
                        f'<path class="line private" style="stroke-width:2.4" d="{mark}"/>'
                    )
            parts.append(frame.x_axis(_labels(cells, frame)))
            label = text(0, 14, f"share of {self.number}, %", "start", "label")
            drawn.append((group, frame.svg(f"{title}: share of {self.number}", label, *parts)))
        meaning = {
            "Peaks": f"In which cell a person's own average {self.value} is largest",
            "Averages": f"People by their average {self.value} over all cells",
        }[title]
        return self._figures(title, drawn, f"{meaning}; lines are 95{PERCENT} intervals.")

    def _top_table(self, name: str, title: str) -> str:
        """The cells with the largest shares, where there are too many to draw."""
        parts = []
        for group in self.groups:
            rows = sorted(self.by_statistic[group, name].values(), key=lambda row: -row["value"])
            lines = [
                [
                    escape(row["cell"]),
                    f"{100 * row['value']:.1f}{PERCENT}",
                    f"{100 * row['low']:.1f} to {100 * row['high']:.1f}{PERCENT}",
                ]
                for row in rows[:MOST_LABELS]
            ]
            parts.append(f"<h3>{escape(group)}</h3>" if len(self.groups) > 1 else "")
            parts.append(table(["Cell", "Share of people", f"95{PERCENT} interval"], lines))
        return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"

    # words

    def _whole(self) -> str:
        """What is about all cells together."""
        rows = [row for row in self.rows if row["cell"] == "all"]
        if not rows:
            return ""
        head = ["Statistic", "Value", f"95{PERCENT} interval", "Sampling error"]
        head += ["Exact, private"] if self.exact is not None else []
        lines = []
        for row in rows:
            of = f", {row['group']}" if self.spec.groups else ""
            sampling = row["sampling_error"]
            cells = [
                f"{row['value']:,.4g}",
                f"{row['low']:,.4g} to {row['high']:,.4g}",
                "none" if sampling is None else f"{sampling:,.3g}",
            ]
            if self.exact is not None:
                known = self.exact.get((row["group"], "all", row["statistic"]))
                cells.append("" if known is None else f"{known:,.4g}")
            lines.append([escape(row["statistic"] + of), *map(escape, cells)])
        return f"<section><h2>All cells together</h2>{table(head, lines)}</section>"

    def _trust(self) -> str:
        points = [
            "an interval is for the value of this table: it counts the noise, and for means also "
            "what the private clip may have taken from people far from the rest. The noise is "
            "exact; what clipping takes was measured on other tables, not proven",
            "the sampling error is how much the value would vary from one table of such people to "
            "another; it is estimated from released numbers, and comes on top of the interval",
            f"from about {self.spec.enough_people:,} {self.number} in each group on, intervals "
            "were checked on two tables",
            "what is drawn was smoothed with what is typical of profiles: neighboring cells are "
            "alike. A sharp change in a single cell may be flattened",
        ]
        return f"<section><h2>How far to trust it</h2>{items(_sentences(points))}</section>"

    def _made(self, guarantee: Any) -> str:
        about = self.about
        ledger = ledger_sentence(about)
        facts = [
            ("Table before that", " ".join(map(_sentence, about["treatment"]))),
            ("Randomness", about["randomness"]),
            ("Release id", about["release"]),
            ("Made", about["created"].replace("T", " ").replace("+00:00", " UTC")),
            ("Version", f"tempriv {about['tempriv']}"),
            ("Ledger", _sentence(ledger)),
            ("Guarantee", guarantee.sentence),
            ("Claim in the literature", guarantees.decode(about["published"]).sentence),
        ]
        return made_section(facts, about["mechanism"])


def _share_of(name: str) -> float:
    return SummaryStatistic.of(name).low


def _title(name: str) -> str:
    kind = SummaryStatistic.of(name)
    if kind.kind == "total":
        return "Totals"
    if kind.high == np.inf:
        return f"Readings above {kind.low:g}"
    return f"Readings between {kind.low:g} and {kind.high:g}"


def _labels(names: Sequence[str], frame: Frame) -> AxisTicks:
    """Names below an axis, as many as there is room for."""
    longest = max(map(len, names))
    room = (frame.end - frame.left) / max(7.4 * longest + 8, 22)
    every = max(1, int(np.ceil(len(names) / max(room, 1))))
    short = [name if len(names) != 7 else name[:3] for name in names]
    if len(names) in (7, 12) and every > 1:
        short, every = [name[:3] for name in names], 1
        every = max(1, int(np.ceil(len(names) * 30 / (frame.end - frame.left))))
    return [(i + 0.5, short[i], "") for i in range(0, len(names), every)]


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:].rstrip(".") + "."


def _sentences(points: Sequence[str]) -> list[str]:
    return [_sentence(point) for point in points]
