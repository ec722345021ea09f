"""What released values are, in words, and how far they can be trusted.

Noise on every reading by itself averages out, and a report says how fast. Values that repeat, that
are sums, waves or answers to a question have other errors, and their mechanisms describe them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, cast

from tempriv.data.clock import describe_step
from tempriv.report.excerpt import PrivateSample, PublicSample
from tempriv.report.plots.series import (
    About,
    bounds_of,
    categories_of,
    declared_bounds,
    kind_of,
    mechanism_of,
    shown,
)

if TYPE_CHECKING:
    from tempriv.mechanisms.sparse_vector import SparseVector

PERCENT = "\N{NO-BREAK SPACE}%"
MAX_PICTURED_COLUMNS = 6
POSTPROCESSED = (
    "These are the errors of the noise alone. Since then the values were worked on (see “How it "
    "was made”), which changes their errors in ways that depend on the data."
)
AVERAGED_READINGS = (1, 24, 168, 720)  # readings
TYPICAL = "Typical errors (the mean of their size) in the unit of the column"


def items(sentences: Sequence[str]) -> str:
    """A list in HTML.

    Parameters:
        sentences: plain text, one for each item.
    """
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def lasts(about: About, readings: int) -> str:
    """How long so many readings take, where that is known.

    Parameters:
        about: the description of the release.
        readings: their number.
    """
    clock, step = about["times"]["clock"], about["times"]["step"]
    known = step is not None and clock in ("date", "datetime")
    return describe_step(clock, readings * step) if known else ""


def percent(share: float) -> str:
    """Rounded, but never to a certainty that is none.

    Parameters:
        share: from 0 to 1.
    """
    digits = 3 if 0.95 < share < 1 else 2
    return ("nearly 100" if 0.999 < share < 1 else shown(100 * share, digits)) + PERCENT


def average(about: About, column: int, n: int) -> float | None:
    """The typical size of the noise in an average over n readings, where it is known.

    Parameters:
        about: the description of the release.
        column: the number of a value column.
        n: how many readings are averaged.
    """
    factor = 1.0 if n == 1 else mechanism_of(about).averaging_factor
    error = about["expected_error"][column]["error"]
    return None if factor is None else float(factor * error / math.sqrt(n))


def trust(about: About, sample: PublicSample | PrivateSample) -> str:
    """The section that says how far the values can be trusted.

    Parameters:
        about: the description of the release.
        sample: some released values, and for their owner the readings beside them.
    """
    status, text = about["columns"].get("status"), mechanism_of(about).report_texts.status
    return (
        "<section><h2>How far the values can be trusted</h2>"
        + (_alerts(about) if kind_of(about) == "alerts" else _errors(about))
        + (f"<p>{escape(text.format(status))}</p>" if status else "")
        + (f'<p class="note">{POSTPROCESSED}</p>' if "after" in about else "")
        + (_measured(about, sample) if isinstance(sample, PrivateSample) else "")
        + "</section>"
    )


def _errors(about: About) -> str:
    kind, columns = kind_of(about), range(len(about["columns"]["values"]))
    mechanism = mechanism_of(about)
    texts, averages = mechanism.report_texts, mechanism.averaging_factor is not None
    judge = {"categories": _category, "places": _place}.get(kind, _number)
    judged = [judge(about, column) for column in (columns[:1] if kind == "places" else columns)]
    averaged = list[str]()
    if texts.scope:  # which says of which values errors are, and averages have others
        pass
    elif texts.counted == "series":
        averaged = [f"share over {n} series" for n in AVERAGED_READINGS[1:]]
    elif kind == "categories" or averages:
        what = "share" if kind == "categories" else "average"
        averaged = [
            f"{what} over {n}<small>{lasts(about, n)}</small>" for n in AVERAGED_READINGS[1:]
        ]
    return (
        f"<p>{_explained(about)}</p>"
        + table(["Column", texts.single, *averaged], [cells for cells, _ in judged])
        + items([sentence for _, sentence in judged])
    )


def _explained(about: About) -> str:
    """What the table of errors shows, and what has to be said beside it."""
    kind, mechanism = kind_of(about), mechanism_of(about)
    texts = mechanism.report_texts
    besides = texts.besides and f" {texts.besides}"
    if kind == "categories":
        if texts.scope:
            return f"How often another category stands there, {texts.scope}.{besides}"
        return (
            "One value: how often another category stands there. A share, counted over so many "
            f"{texts.counted} and corrected as said below: its typical error in percentage "
            f"points.{besides}"
        )
    if kind == "places":
        distances = "Typical distances (their mean) from the true place, in meters"
        if texts.scope:
            return f"{distances}, {texts.scope}.{besides}"
        return (
            f"{distances}; for averages, of readings taken at one place. A way through released "
            "places comes out too long."
        )
    bounds, errors = bounds_of(about, 0), texts.errors or TYPICAL
    if texts.scope:
        errors = f"Expected errors {texts.scope}, in the unit of the column"
    errors += "" if bounds is None else "; below them, their part of the range between the bounds"
    if not texts.outside:
        return f"{errors}.{besides}"
    outside = "below zero" if bounds is None else "outside the bounds"
    averages = mechanism.averaging_factor is not None
    why = ", or every average would be shifted" if averages else ""
    return f"{errors}. Released values {outside} are no mistake: leave them in{why}.{besides}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in HTML.

    Parameters:
        head: the cells of the first row, as HTML.
        rows: the cells of the others, as HTML.
    """
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for name, *cells in rows
    )
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _number(about: About, column: int) -> tuple[list[str], str]:
    """The cells of a row, and what they mean."""
    name, expected = about["columns"]["values"][column], about["expected_error"][column]
    single, measure = expected["error"], expected["measure"]
    factor = mechanism_of(about).averaging_factor
    bounds, counts = (
        bounds_of(about, column),
        AVERAGED_READINGS[:1] if factor is None else AVERAGED_READINGS,
    )
    errors = [average(about, column, n) or 0.0 for n in counts]
    if bounds is None:
        return [escape(name), *map(shown, errors)], f"{name}: {shown(single)} ({measure})."
    low, high = bounds
    part = single / (high - low)
    cells = [f"{escape(name)}<small>{low:,g} to {high:,g}</small>"]
    for error in errors:
        share = f"{shown(100 * error / (high - low), 2)}{PERCENT}"
        cells.append(f"{shown(error)}<small>{share}</small>")
    if factor is None:
        among = f"where readings lie between {low:,g} and {high:,g}"
        return cells, f"{name}: {shown(single)} ({measure}), {among}."
    use = "alone says little" if part >= 0.5 else "is a rough hint" if part >= 0.1 else "is useful"
    sentence = (
        f"{name}: one released value {use}. It is typically {shown(single)} off, where readings "
        f"lie between {low:,g} and {high:,g}."
    )
    needed = math.ceil((factor * part / 0.05) ** 2)
    if needed > 1:
        five = f"5{PERCENT} of that range"
        sentence += f" An average over {needed:,} readings is off by about {five}."
    return cells, sentence


def _category(about: About, column: int) -> tuple[list[str], str]:
    name, error = about["columns"]["values"][column], about["expected_error"][column]["error"]
    categories, texts = categories_of(about), mechanism_of(about).report_texts
    assert categories is not None
    k = len(categories[column])
    kept, other = 1 - error, error / (k - 1)
    # the noise in a share is greatest where all readings are of, or all not of, the category
    worst = max(kept * error, other * (1 - other)) * 2 / math.pi
    cells = [f"{escape(name)}<small>{k} categories</small>", percent(error)]
    right = (
        f"{name}: the category shown is the true one in {percent(kept)} of {texts.counted} (by a "
        f"blind guess: {percent(1 / k)})"
    )
    if texts.scope:
        return cells, f"{right}, {texts.scope}."
    for n in AVERAGED_READINGS[1:]:
        off = 100 * math.sqrt(worst / n) / max(kept - other, 1e-9)
        cells.append(f"{off:.1f} points" if off < 50 else "no use")
    return cells, (
        f"{right}. The true share of a category is about (s − {other:.4f}) / {kept - other:.4f}, "
        "where s is its share among the released values."
    )


def _place(about: About, column: int) -> tuple[list[str], str]:
    name, scope = " and ".join(about["columns"]["values"]), mechanism_of(about).report_texts.scope
    wide = "Draw conclusions about areas several times as wide."
    if scope:
        error = shown(about["expected_error"][column]["error"])
        return [escape(name), f"{error} m"], (
            f"{name}: {error} meters from the true place, {scope}. {wide}"
        )
    errors = [average(about, column, n) or math.nan for n in AVERAGED_READINGS]
    return [escape(name), *(f"{shown(error)} m" for error in errors)], (
        f"{name}: a released place is typically {shown(errors[0])} meters from the true one. {wide}"
    )


def _alerts(about: About) -> str:
    """What the bits mean, when they end, and how often they are right."""
    alarm: SparseVector = cast(Any, mechanism_of(about))
    name = about["columns"]["values"][0]
    (low, high), (distance,), limit = alarm.bounds[0], alarm.errors, alarm.threshold
    places = {
        f"at the lower bound, {low:,g}": low,
        f"{shown(distance)} below the threshold": limit - distance,
        f"at the threshold, {limit:,g}": limit,
        f"{shown(distance)} above the threshold": limit + distance,
        f"at the upper bound, {high:,g}": high,
    }
    rates = {where: _chance(alarm.alert_rate(x)) for where, x in places.items() if low <= x <= high}
    ends = "the first alert" if alarm.most == 1 else f"{alarm.most:,} alerts"
    sentences = [
        f"{name}: 1 is an alert, a step whose reading was at or above {limit:,g}; 0 is a step "
        "whose reading was not. Both are told as noise shows them, so either can be wrong.",
        f"The nearer a reading is to the threshold, the more often: 1 answer in 20 is wrong at a "
        f"distance of {shown(distance)}, and more of them nearer by.",
        f"After {ends} the output of a series ends: the rows that follow are empty, whatever their "
        "readings are. An empty row does not say that all is quiet.",
        "The values are answers, not readings: their average says how often there were alerts, and "
        "not how high the readings were.",
    ]
    warning = ""
    if distance > high - low:
        warning = (
            '<div class="alarm" role="alert"><h3>These alerts are mostly chance</h3><p>A reading '
            f"would have to be {shown(distance)} away from the threshold for 19 right answers in "
            f"20, but readings lie between {low:,g} and {high:,g}. Even at the lower bound a step "
            f"gives an alert with a chance of {_chance(alarm.alert_rate(low))}, at the upper bound "
            f"with {_chance(alarm.alert_rate(high))}.</p></div>"
        )
    head = ["Where the reading lies", "chance of an alert"]
    return warning + items(sentences) + table(head, list(rates.items()))


def _chance(share: float) -> str:
    return f"less than 0.1{PERCENT}" if share < 0.001 else percent(min(share, 1 - 1e-9))


def _measured(about: About, sample: PrivateSample) -> str:
    kind, mechanism, rows = kind_of(about), mechanism_of(about), []
    averages, texts = mechanism.averaging_factor is not None, mechanism.report_texts
    counted = kind in ("categories", "alerts")  # how often values differ, not by how much
    scale, unit = (100, PERCENT) if counted else (1, " m" if kind == "places" else "")
    for i, expected in enumerate(about["expected_error"]):
        (size, bias, doubt), n = sample.measured(i), int(sample.compared[i])
        places = len(shown(doubt, 2).partition(".")[2])
        # errors that go together tell less than their number says
        doubtful = f" ± {shown(doubt, 2)}" if averages else ""
        rows.append(
            [
                escape(expected["column"]),
                "–"
                if kind == "alerts" or mechanism.is_retimed
                else f"{'from ' * bool(texts.without)}{shown(scale * expected['error'])}{unit}",
                f"{shown(scale * size)}{unit}",
                "–" if counted else f"{bias:+,.{places}f}{doubtful}{unit}",
                f"{n:,}<small>{percent(n / max(sample.rows, 1))} of rows</small>",
                "–" if kind == "categories" else f"{sample.moved[i]:,}",
            ]
        )
    head = ["Column", "expected error", "measured error", "bias", "compared", "moved to bounds"]
    # what has no meaning for any column is not shown
    kept = [i for i in range(len(head)) if any(row[i] != "–" for row in rows)]
    head, rows = [head[i] for i in kept], [[row[i] for i in kept] for row in rows]
    compared = texts.measured
    if kind == "categories":
        compared = "Error: how often the released category is another than the true one."
    beside = ", ± one standard error" if averages else ""
    shift = "" if counted else f" Bias: the mean of that difference{beside}."
    if declared_bounds(about) is not None:
        shift += (
            " Readings outside the bounds were moved to the nearest one before noise was added."
        )
    return f"<h3>Measured against the private readings</h3><p>{compared}{shift}</p>" + table(
        head, rows
    )
