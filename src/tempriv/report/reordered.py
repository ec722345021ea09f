"""Reports of rows that were moved in time: the values are exact, when they were read is hidden.

No error of a value is told, for there is none. Told is how far readings were moved, which of them
are lost, and what the copy as a whole gives away of their order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from html import escape
from typing import Any, cast

import numpy as np

from tempriv.data.clock import describe_tick
from tempriv.data.series import EMPTY, STATUSES
from tempriv.mechanisms.domains import Floats, Integers
from tempriv.mechanisms.reorder.base import ReorderMechanism
from tempriv.mechanisms.reorder.shares import Shares
from tempriv.privacy.guarantees import Approximate, Guarantee, NoGuarantee
from tempriv.privacy.units.order import BlockSwap, Swap
from tempriv.report.accuracy import MAX_PICTURED_COLUMNS, PERCENT, items, lasts, percent, table
from tempriv.report.excerpt import PrivateSample, PublicSample
from tempriv.report.plots.series import About, Trace, mechanism_of, numbers_of, shown
from tempriv.report.svg import Frame, number_ticks, pictures

MAX_TABLE_ROWS = 16  # rows of a table
MIN_DRAWN_ROWS = 48  # rows
NUMBERS = ("int", "uint", "float", "double", "halffloat", "decimal")
MAX_RISING_SHARE = 0.9  # so many changes in one direction give an order away

LONG_BEFORE = (
    "Each series was treated as if it had begun long before: some of its first rows belong to "
    "readings from before it, and are empty. Readings that would come out after the last row are "
    "not in this copy."
)
STATUS = (
    "The column “{}” tells rows that hold a reading (“released”, also one that was missing) from "
    "those that hold an earlier one again (“repeated”) and those that hold none (“empty”)."
)
BY_VALUE = (
    "When a reading was, as far as its value tells: what is high at noon and low at night needs no "
    "time beside it, and sorting puts numbers that only rise back in their places."
)


def _mechanism(about: About) -> ReorderMechanism:
    return cast(ReorderMechanism, mechanism_of(about))


def lead(about: About, guarantee: Guarantee | NoGuarantee) -> str:
    """What was done, as a sentence for people.

    Parameters:
        about: the description of the release.
        guarantee: of the copy.
    """
    purpose = (
        "That was done before this copy left its owner. Read here what it protects, what it does "
        "not, and how far the times can be trusted."
        if isinstance(guarantee, Guarantee)
        else "That does not protect anyone. Treat this copy like the original."
    )
    done = mechanism_of(about).done
    return f"The values in it are exact. What was changed is when they were: {done}. {purpose}"


def _time(about: About, steps: float) -> str:
    """A number of steps, and how long they take where that is known."""
    time = lasts(about, round(steps)) if steps >= 1 else ""
    number = f"{steps:,.0f}" if abs(steps - round(steps)) < 0.005 else shown(steps)
    return f"{number} row{'s'[: steps != 1]}" + (f"<small>{time}</small>" if time else "")


# what is told and what not


def beyond(guarantee: Guarantee | NoGuarantee) -> list[str]:
    """What can still be told of times, besides what every such copy says that it does not hide.

    Parameters:
        guarantee: of the copy.
    """
    points = [BY_VALUE]
    unit = guarantee.unit if isinstance(guarantee, Guarantee) else None
    if isinstance(unit, BlockSwap):
        points.append(
            "Which of two readings was first, if one block ended between them, however near they "
            f"are. Blocks begin at row {unit.offset + 1} of each series and have {unit.block} rows."
        )
    elif isinstance(unit, Swap):
        points.append(
            f"Readings that were {unit.window} rows or more apart: the farther, the easier it is "
            "to tell which of them was first."
        )
    return points


def together(about: About) -> str:
    """What all rows of a release (``about``) together tell of two readings, as a table."""
    mechanism = _mechanism(about)
    rows = []
    if isinstance(mechanism.unit, BlockSwap):
        within = Approximate(mechanism.epsilon, 0.0)
        for where, loss in (("of one block", within), ("of two blocks", mechanism.loss_at(1))):
            rows.append([where, *_loss(loss)])
    else:
        span = mechanism.unit.span
        for distance in sorted({1, 2, max(1, span // 2), span, 2 * span}):
            time = lasts(about, distance)
            apart = f"{distance} row{'s'[: distance != 1]} apart"
            rows.append(
                [apart + (f" ({time})" if time else ""), *_loss(mechanism.loss_at(distance))]
            )
    alone = isinstance(mechanism.guarantee, Guarantee) and mechanism.unit.single_rows
    single = "The guarantee is about one row, seen by itself. All rows together tell more. " * alone
    return (
        f"<h3>What all rows together tell</h3><p>{single}Suppose somebody wonders which of two "
        "readings was first. They may come to see it for certain, because these rows could not "
        "have come out the other way round. Otherwise the rows speak for one of the two, and the "
        "odds of a bet grow.</p>"
        + table(["Two readings", "seen for certain, at most", "else odds grow at most"], rows)
    )


def _loss(loss: Approximate) -> list[str]:
    odds = math.exp(min(loss.epsilon, 700.0))
    grow = "–" if loss.delta == 1 else f"× {shown(odds)}" if odds < 1e6 else f"× {odds:.1e}"
    never = f"0{PERCENT}"
    return [never if loss.delta == 0 else _small(loss.delta), grow]


def _small(share: float) -> str:
    return percent(share) if share >= 1e-4 else f"{share:.1g}"


# how far times can be trusted


def trust(about: About, sample: PublicSample | PrivateSample) -> str:
    """The section that says how far the times can be trusted.

    Parameters:
        about: the description of the release.
        sample: some released rows, and for their owner the readings beside them.
    """
    mechanism = _mechanism(about)
    shares, early = _shares(mechanism), mechanism.moves_both_ways
    far = mechanism.unit.span + 1
    long = f"over stretches much longer than {_plain(_time(about, far))}"
    hold = (
        f"Totals, averages and shares hold {long}: at both ends some readings have come from "
        "outside or gone there."
    )
    if shares.missing:
        hold = (
            f"Averages and shares hold {long}, but for chance: about as much as those of a sample "
            "do. Totals and counts lack what was lost"
            + (", and hold some readings twice." if shares.repeated else ".")
        )
    sentences = [
        "A value is what was read, with what stood beside it. It needs no correction, and an "
        "average over many rows has no noise.",
        f"{mechanism.fate}{'' if early else ' ' + LONG_BEFORE}",
        hold,
        "What happened within such a stretch does not hold: which of two readings was first, how "
        "long something took, how fast it changed, what came at the same time in another series.",
    ]
    status = about["columns"].get("status")
    sentences += [STATUS.format(status)] if status else []
    return (
        "<section><h2>How far the times can be trusted</h2>"
        + _expected(about)
        + items(sentences)
        + _moves(about, sample)
        + (_measured(about, sample) if isinstance(sample, PrivateSample) else "")
        + "</section>"
    )


def _plain(html: str) -> str:
    return html.replace("<small>", " (").replace("</small>", ")")


def _shares(mechanism: ReorderMechanism) -> Shares:
    return Shares() if mechanism.moves_both_ways else mechanism.expected_shares()


def _expected(about: About) -> str:
    mechanism = _mechanism(about)
    shares = _shares(mechanism)
    row = ["Expected", _time(about, mechanism.errors[0])]
    row += [_part(share) for share in (shares.missing, shares.repeated, shares.empty)]
    late = f"{mechanism.move_name}, on average"
    return table(["", late, "readings lost", "rows that repeat", "rows left empty"], [row])


def _part(share: float) -> str:
    return "none" if share == 0 else percent(share)


def _moves(about: About, sample: PublicSample | PrivateSample) -> str:
    """The public distribution of moves as bars, with the moves that were seen for their owner."""
    mechanism = _mechanism(about)
    far, chances = mechanism.move_distribution()
    title = mechanism.move_title
    dots, note = "", ""
    if isinstance(sample, PrivateSample):
        seen, rows = seen_moves(mechanism, sample)
        if seen:
            counts = np.array([seen.count(move) for move in far.tolist()])
            dots = _bars(far, chances, title, counts / len(seen))
            note = (
                f'<p class="note">Dots: how far {len(seen):,} of {rows:,} readings were moved, all '
                "whose values stand only once among those that could have come there. Whoever "
                "knows the readings sees where these were.</p>"
            )
    return f'<h3>{title}</h3><div class="wide"><figure>' + (
        f"{dots or _bars(far, chances, title)}</figure></div>{note}"
    )


def _bars(far: Integers, chances: Floats, title: str, seen: Floats | None = None) -> str:
    top = 1.08 * float(max(chances.max(), 0 if seen is None else seen.max()))
    frame = Frame(760, 200, (float(far[0]) - 1, float(far[-1]) + 1), (0.0, 100 * top), 52, 34)
    drawn = [frame.y_axis(number_ticks(*frame.y, 4), " %")]
    half = 0.38 * (frame.across(1) - frame.across(0))
    path = "".join(
        f"M{x - half:.1f} {frame.floor}V{y:.1f}h{2 * half:.1f}V{frame.floor}"
        for x, y in zip(frame.across(far), frame.down(100 * chances), strict=True)
    )
    drawn.append(f'<path class="band" d="{path}"/><path class="line released" d="{path}"/>')
    drawn.append(frame.x_axis(number_ticks(*frame.x, 10, whole=True)))
    if seen is not None:
        drawn.append(frame.dots(far, 100 * seen, 6.0, "private"))
    return frame.svg(title, *drawn)


# for the owner


def seen_moves(mechanism: ReorderMechanism, sample: PrivateSample) -> tuple[list[int], int]:
    """By how many rows readings were moved, where their values tell; of how many rows.

    Parameters:
        mechanism: that moves rows.
        sample: some released rows, and for their owner the readings beside them.
    """
    early, back = mechanism.moves_both_ways, mechanism.domain.reach or math.inf
    moves, rows = list[int](), 0
    for name, released in sample.released.traces.items():
        before = defaultdict(list)
        for place, row in enumerate(_keys(sample.private.traces[name])):
            before[row].append(place)
        for place, row in enumerate(_keys(released)):
            if released.status is not None and released.status[place] == EMPTY:
                continue
            rows += 1
            near = [at for at in before[row] if (early or at <= place) and place - at <= back]
            if len(near) == 1:
                moves.append(place - near[0])
    return moves, rows


def _keys(trace: Trace) -> list[tuple[Any, ...]]:
    """Rows that can be compared: NaN is not like itself."""
    return [tuple(None if cell != cell else cell for cell in row) for row in trace.values.tolist()]


def _measured(about: About, sample: PrivateSample) -> str:
    total = max(int(sample.statuses.sum()), 1)
    cells = [f"{n:,}<small>{percent(n / total)}</small>" for n in sample.statuses.tolist()]
    head = ["", *(f"rows “{word}”" for word in STATUSES)]
    counted = table(head, [["Of this copy", *cells]])
    betrayed = [
        name
        for i, name in enumerate(about["columns"]["values"])
        if i < len(sample.steps) and sample.rising(i) >= MAX_RISING_SHARE
    ]
    alarm = ""
    if betrayed:
        shares = ", ".join(
            f"“{name}” in {percent(sample.rising(about['columns']['values'].index(name)))}"
            for name in betrayed
        )
        alarm = (
            '<div class="alarm" role="alert"><h3>These values give their order away</h3><p>Where '
            f"they change, they go one way: {escape(shares)} of all changes. Sorting them undoes "
            "most of what was done here. Leave such a column out, or release its changes instead."
            "</p></div>"
        )
    return f"{alarm}<h3>Measured against the private readings</h3>{counted}"


# rows of the copy


def rows(about: About, sample: PublicSample | PrivateSample) -> str:
    """The section that shows some rows: numbers as lines, anything else as it stands there.

    Parameters:
        about: the description of the release.
        sample: some released rows, and for their owner the readings beside them.
    """
    private = [*sample.private.traces.values()] if isinstance(sample, PrivateSample) else None
    released, names = [*sample.released.traces.values()], about["columns"]["values"]
    span = _mechanism(about).unit.span
    most = max(MIN_DRAWN_ROWS, 6 * (span + 1))  # so that a move can be seen
    n, every = len(released), about["series"]
    some = "the" if every == 1 else "each" if n == every else f"{n} of {every:,}"
    count = min(most, max((len(trace.ticks) for trace in released), default=0))
    first = f"The first {count:,} rows of {some} series." if count else "No readings were kept."
    keys = [("released", "released"), *([("private", "private")] if private else [])]
    legend = "".join(f'<span><i class="key {style}"></i>{text}</span>' for style, text in keys)
    title = "Before and after" if private is not None else "What the released values look like"
    parts = [f"<h2>{title}</h2><p>{first}</p>"]
    lines = [i for i in range(len(names)) if _drawn(about, released, i)]
    if lines and released:
        parts.append(f'<p class="legend">{legend}</p>')
    for column in lines[:MAX_PICTURED_COLUMNS]:
        parts.append(_drawings(about, column, released, private, most))
    if len(lines) < len(names) and released:
        parts.append(_text_rows(about, released[0], private[0] if private else None))
    return f"<section>{''.join(parts)}</section>"


def _drawings(
    about: About, column: int, released: list[Trace], private: list[Trace] | None, most: int
) -> str:
    known = about["columns"]["series"]
    after = [_as_numbers(trace, most) for trace in released]
    before = None if private is None else [_as_numbers(trace, most) for trace in private]
    parts = [f'<div class="{"wide" if len(after) == 1 else "pair"}">']
    for name, svg in pictures(about, column, after, before):
        caption = f"<figcaption>{escape(f'{known}: {name}')}</figcaption>" if known else ""
        parts.append(f"<figure>{caption}{svg}</figure>")
    return "".join([*parts, "</div>"])


def _drawn(about: About, traces: list[Trace], column: int) -> bool:
    """Whether a column can be drawn as a line: a number that stands for a text cannot."""
    types = about["columns"].get("types")
    if types is not None and not types[column].startswith(NUMBERS):
        return False
    return all(numbers_of(trace.values[:, column]) is not None for trace in traces)


def _as_numbers(trace: Trace, most: int) -> Trace:
    """The first rows, to be drawn; what is not a number is none."""
    columns = []
    for column in trace.values[:most].T:
        numbers = numbers_of(column)
        columns.append(np.full(len(column), math.nan) if numbers is None else numbers)
    return Trace(trace.name, trace.ticks[:most], np.stack(columns, axis=1))


def _text_rows(about: About, released: Trace, private: Trace | None) -> str:
    """The first rows of a series as they stand in the copy, after those that stood there before."""
    columns, clock = about["columns"], about["times"]["clock"]
    traces = [released] if private is None else [private, released]
    body = []
    for i in range(min(len(released.ticks), MAX_TABLE_ROWS)):
        tick = int(released.ticks[i])
        cells = [str(tick + 1) if clock == "index" else describe_tick(clock, tick)]
        cells += [_cell(value) for trace in traces for value in trace.values[i]]
        cells += [] if released.status is None else [STATUSES[released.status[i]]]
        body.append(cells)
    head = ["Row" if clock == "index" else "Time"]
    head += [] if private is None else [f"{name}, before" for name in columns["values"]]
    head += columns["values"]
    head += [] if released.status is None else [columns["status"]]
    whose = f"{columns['series']}: {released.name}" if columns["series"] else ""
    return (f"<h3>{escape(whose)}</h3>" if whose else "") + table([*map(escape, head)], body)


def _cell(value: Any) -> str:
    if value is None or value != value:
        return "–"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return escape(str(value))
