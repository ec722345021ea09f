"""What released values are, in words, and how far they can be trusted: for each mechanism.

Noise on every reading by itself averages out, and a report says how fast. Values that repeat, that
are sums, waves or answers to a question have other errors, and are told of in other sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from tempriv.data.clock import describe_step
from tempriv.mechanisms import registry
from tempriv.mechanisms.sparse_vector import SparseVector
from tempriv.privacy.serialization import KIND
from tempriv.releases.description import value_spec
from tempriv.report import landmarks
from tempriv.report.excerpt import PrivateSample, PublicSample
from tempriv.report.landmarks import grows, is_uneven, stated_for
from tempriv.report.plots.series import About, bounds_of, is_retimed, kind_of, shown

PERCENT = "\N{NO-BREAK SPACE}%"
MOST_PICTURED = 6  # columns
NOT_SINCE = (
    "These are the errors of the noise alone. Since then the values were worked on (see “How it "
    "was made”), which changes their errors in ways that depend on the data."
)
AVERAGED = (1, 24, 168, 720)
# the mean size of a nearly normal average, as a multiple of that of one draw over sqrt(n); a
# mechanism that is not here has errors that go together from one value to the next
FACTOR = {
    "Gaussian": 1.0,
    **dict.fromkeys(("Laplace", "UniformBudget"), 2 / math.pi**0.5),
    "PlanarLaplace": (3 * math.pi / 8) ** 0.5,
}
REPEATING = ("SampleOnce", "BudgetDistribution", "BudgetAbsorption")

DONE = {
    "numbers": "random noise was added to each of them",
    "categories": "each of them was kept or exchanged at random",
    "places": "each of them was moved at random",
    **dict.fromkeys(
        REPEATING, "random noise was added to some of them, and the others repeat the last of these"
    ),
    "Fast": "they were estimated from a few readings, to which random noise was added",
    "PeGaSus": "random noise was added to each of them, and they were smoothed over stretches in "
    "which little changed",
    "PatternSampling": "a line was drawn through some readings, to which random noise was added",
    "PatternLDP": "those that break the trend were sent, with noise that depends on them",
    "FourierPerturbation": "they were put together from a few slow waves of the original series, "
    "with random noise on each wave",
    "RunningCount": "each is the sum of all readings of its series so far, with random noise",
    "SparseVector": "each says only whether a reading was at or above a threshold, and random "
    "noise was added to both before they were compared",
    "SamplingPeriod": "they were read again, a window at a time, at a noisy pace from the curve "
    "through the originals; the last column is that pace",
    "NoisyCurve": "random noise was added to each of them, and smooth curves were drawn through "
    "what came of that",
    "NoisyTimes": "they are times, and random noise was added to each of them",
    "MemoizedResponse": "for each answer another or the same was drawn at random, once, and that "
    "one is reported from then on",
}
BAND = {
    **dict.fromkeys(REPEATING, "± expected error of a fresh value"),
    "Fast": "± expected error of a sample",
    "PeGaSus": "± expected error of a value by itself",
    "PatternSampling": "± expected error of a sample",
    "PatternLDP": "± expected error of a point, at most",
    "FourierPerturbation": "± expected error by noise",
    "RunningCount": "± expected error of a sum",
    "SkipLandmarks": "± expected error of a fresh value",
    "AdaptiveLandmarks": "± expected error of the first value",
    "SplitLandmarks": "± expected error on average",
}
EXPLAINED = {
    "numbers": "Typical errors (the mean of their size) in the unit of the column",
    **dict.fromkeys(REPEATING, "Expected errors of fresh values, in the unit of the column"),
    "Fast": "Expected errors of a sample before it is joined with those before it, in the unit of "
    "the column",
    "PeGaSus": "Expected errors of values that are not smoothed, in the unit of the column",
    "PatternSampling": "Expected errors of a sample with all of a window’s budget, before it is "
    "joined with those before it, in the unit of the column",
    "PatternLDP": "Expected errors of points that were sent, at most, in the unit of the column",
    "FourierPerturbation": "Expected errors by noise, in the unit of the column",
    "RunningCount": "Expected errors of sums, in the unit of the column",
    "SamplingPeriod": "How far released values are from their place in time, on average, in the "
    "unit of the period",
    "NoisyCurve": "Expected errors of values before they are smoothed, in the unit of the column",
    "NoisyTimes": "Expected errors in the unit of the times",
}
ONE = {
    **dict.fromkeys(REPEATING, "one fresh value"),
    "Fast": "one sample",
    "PeGaSus": "one by itself",
    "PatternSampling": "one sample",
    "PatternLDP": "one point",
    "RunningCount": "one sum",
}
BESIDES = {
    **dict.fromkeys(
        REPEATING,
        "A repeated value has the error of the one that it repeats, and misses what has changed "
        "since. Averages over repeated values are no better than one of them.",
    ),
    "Fast": "Between samples the estimate stands still, and misses what changes meanwhile. Errors "
    "of neighboring values go together: averages over them are hardly better than one.",
    "PeGaSus": "Where little changes, a value is made of a group of them and is off by less; where "
    "a group goes on over a change, it is late. Errors of neighboring values go together.",
    "PatternSampling": "Between samples the last one stands, and misses what changes meanwhile; "
    "lines from one sample to the next are nearer. Errors of neighboring values go together: "
    "averages over them are hardly better than one.",
    "PatternLDP": "Between points the last one stands; lines from one point to the next are "
    "nearer.",
    "FourierPerturbation": "The waves are smooth: what comes and goes quickly, such as a peak of "
    "one step, is not in them, and what it adds to the error is not in these numbers. Errors of "
    "neighboring values go together: averages over them are hardly better than one.",
    "SamplingPeriod": "How far that moves a value depends on how fast the readings change: where "
    "they stay the same, nothing moves. Errors of one window go together.",
    "NoisyCurve": "Curves take off noise where readings change slowly, and peaks along with it: "
    "what that adds to the error, or saves, depends on the data. Errors of neighboring values go "
    "together.",
    "NoisyTimes": "Times that come out in another order than they were read are no mistake.",
    "RunningCount": "Each value is the sum of all readings of its series so far. Where sums fall "
    "although readings cannot be negative, that is the noise and no mistake. What came between two "
    "steps is the difference of their sums, which has an error of its own.",
}
CURVES = ("SamplingPeriod", "NoisyCurve")
ENDS = (
    "The column “{}” tells values (“released”, also where a reading was missing) from the first "
    "and the last row of a series, where curves have their ends and nothing comes out (“empty”)."
)
STATUSES = (
    "The column “{}” tells fresh values (“released”, also where a reading was missing) from an "
    "earlier one that stands again (“repeated”) and from rows for which nothing more comes out "
    "(“empty”)."
)


def done(about: About) -> str:
    """What was done to the values."""
    name = about["mechanism"][KIND]
    if landmarks.is_scheme(about):
        return landmarks.done(about)
    said = DONE.get(name) or DONE[kind_of(about)]
    if name == "MemoizedResponse" and about["mechanism"].get("epsilon_instant") is not None:
        said += ", each time with some chance of another instead"
    return said


def factor(about: About) -> float | None:
    """How errors shrink in averages, where they are independent from one value to the next."""
    name = about["mechanism"][KIND]
    if name in landmarks.EQUAL and not grows(about):
        name = value_spec(about)[KIND]
    return FACTOR.get(name)


def band_name(about: About) -> str:
    """What the band about values is, in a legend."""
    if grows(about):
        return "± expected error without landmarks"
    return BAND.get(about["mechanism"][KIND], "± expected error")


def move_name(about: About) -> str:
    """The same of the circle about places."""
    error = shown(about["expected_error"][0]["error"])
    without = " without landmarks" if grows(about) else ""
    return f"typical move{without}: {error} m"


def items(sentences: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def lasts(about: About, readings: int) -> str:
    """How long so many readings take, where that is known."""
    clock, step = about["times"]["clock"], about["times"]["step"]
    known = step is not None and clock in ("date", "datetime")
    return describe_step(clock, readings * step) if known else ""


def percent(share: float) -> str:
    """Rounded, but never to a certainty that is none."""
    digits = 3 if 0.95 < share < 1 else 2
    return ("nearly 100" if 0.999 < share < 1 else shown(100 * share, digits)) + PERCENT


def average(about: About, column: int, n: int) -> float | None:
    """The typical size of the noise in an average over n readings, where it is known."""
    times = 1.0 if n == 1 else factor(about)
    error = about["expected_error"][column]["error"]
    return None if times is None else float(times * error / math.sqrt(n))


def trust(about: About, sample: PublicSample | PrivateSample) -> str:
    """The section that says how far the values can be trusted."""
    status = about["columns"].get("status")
    said = ENDS if about["mechanism"][KIND] in CURVES else STATUSES
    return (
        "<section><h2>How far the values can be trusted</h2>"
        + (_alerts(about) if kind_of(about) == "alerts" else _errors(about))
        + (f"<p>{escape(said.format(status))}</p>" if status else "")
        + (f'<p class="note">{NOT_SINCE}</p>' if "after" in about else "")
        + (_measured(about, sample) if isinstance(sample, PrivateSample) else "")
        + "</section>"
    )


def _errors(about: About) -> str:
    kind, columns = kind_of(about), range(len(about["columns"]["values"]))
    judge = {"numbers": _number, "categories": _category, "places": _place}[kind]
    explained = _explained(about)
    if kind != "numbers" and is_uneven(about):
        what = "How often another category stands there"
        if kind == "places":
            what = "Typical distances (their mean) from the true place, in meters"
        explained = f"{what}, {stated_for(about)[1]}. {landmarks.besides(about)}"
    elif kind == "categories":
        explained = (
            "One value: how often another category stands there. A share, counted over so many "
            f"{_counted(about)} and corrected as said below: its typical error in percentage "
            f"points.{_permanent(about)}"
        )
    elif kind == "places":
        explained = (
            "Typical distances (their mean) from the true place, in meters; for averages, of "
            "readings taken at one place. A way through released places comes out too long."
        )
    judged = [judge(about, column) for column in (columns[:1] if kind == "places" else columns)]
    one, over = "one value", list[str]()
    if is_uneven(about):
        one = stated_for(about)[0]
    elif kind == "categories" and _permanent(about):
        over = [f"share over {n} series" for n in AVERAGED[1:]]
    elif kind == "categories" or _averages(about):
        what = "share" if kind == "categories" else "average"
        over = [f"{what} over {n}<small>{lasts(about, n)}</small>" for n in AVERAGED[1:]]
    else:
        one = ONE.get(about["mechanism"][KIND], one)
    return (
        f"<p>{explained}</p>"
        + table(["Column", one, *over], [cells for cells, _ in judged])
        + items([sentence for _, sentence in judged])
    )


def _averages(about: About) -> bool:
    """Whether errors are independent from one value to the next, and so shrink in averages."""
    return factor(about) is not None


def _permanent(about: About) -> str:
    """Of answers that were drawn once: more reports of one series hardly help."""
    if about["mechanism"][KIND] != "MemoizedResponse":
        return ""
    return (
        " Count one report of each series: further ones go back to the same permanent answer, so "
        "they add little to a share, or nothing."
    )


def _counted(about: About) -> str:
    return "series" if _permanent(about) else "readings"


def _explained(about: About) -> str:
    name, bounds = about["mechanism"][KIND], bounds_of(about, 0)
    said = EXPLAINED.get(name, EXPLAINED["numbers"])
    if is_uneven(about):
        said = f"Expected errors {stated_for(about)[1]}, in the unit of the column"
    said += "" if bounds is None else "; below them, their part of the range between the bounds"
    if name in ("RunningCount", "SamplingPeriod", "NoisyTimes"):
        return f"{said}. {BESIDES[name]}"
    outside = "below zero" if bounds is None else "outside the bounds"
    why = ", or every average would be shifted" if _averages(about) else ""
    said += f". Released values {outside} are no mistake: leave them in{why}."
    if is_uneven(about):
        return f"{said} {landmarks.besides(about)}"
    return f"{said} {BESIDES[name]}" if name in BESIDES else said


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for name, *cells in rows
    )
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _number(about: About, column: int) -> tuple[list[str], str]:
    """The cells of a row, and what they mean."""
    name, one = about["columns"]["values"][column], about["expected_error"][column]["error"]
    measure = about["expected_error"][column]["measure"]
    bounds, counts = bounds_of(about, column), AVERAGED if _averages(about) else AVERAGED[:1]
    errors = [average(about, column, n) or 0.0 for n in counts]
    if bounds is None:
        return [escape(name), *map(shown, errors)], f"{name}: {shown(one)} ({measure})."
    low, high = bounds
    part = one / (high - low)
    cells = [f"{escape(name)}<small>{low:,g} to {high:,g}</small>"]
    for error in errors:
        share = f"{shown(100 * error / (high - low), 2)}{PERCENT}"
        cells.append(f"{shown(error)}<small>{share}</small>")
    if not _averages(about):
        among = f"where readings lie between {low:,g} and {high:,g}"
        return cells, f"{name}: {shown(one)} ({measure}), {among}."
    use = "alone says little" if part >= 0.5 else "is a rough hint" if part >= 0.1 else "is useful"
    said = (
        f"{name}: one released value {use}. It is typically {shown(one)} off, where readings "
        f"lie between {low:,g} and {high:,g}."
    )
    needed = math.ceil(((factor(about) or 1.0) * part / 0.05) ** 2)
    if needed > 1:
        said += f" An average over {needed:,} readings is off by about 5{PERCENT} of that range."
    return cells, said


def _category(about: About, column: int) -> tuple[list[str], str]:
    name, error = about["columns"]["values"][column], about["expected_error"][column]["error"]
    k = len(value_spec(about)["categories"][column])
    kept, other = 1 - error, error / (k - 1)
    # the noise in a share is greatest where all readings are of, or all not of, the category
    worst = max(kept * error, other * (1 - other)) * 2 / math.pi
    cells = [f"{escape(name)}<small>{k} categories</small>", percent(error)]
    if is_uneven(about):
        return cells, (
            f"{name}: the category shown is the true one in {percent(kept)} of readings (by a "
            f"blind guess: {percent(1 / k)}), {stated_for(about)[1]}."
        )
    for n in AVERAGED[1:]:
        off = 100 * math.sqrt(worst / n) / max(kept - other, 1e-9)
        cells.append(f"{off:.1f} points" if off < 50 else "no use")
    return cells, (
        f"{name}: the category shown is the true one in {percent(kept)} of {_counted(about)} (by a "
        f"blind guess: {percent(1 / k)}). The true share of a category is about (s − {other:.4f}) "
        f"/ {kept - other:.4f}, where s is its share among the released values."
    )


def _place(about: About, column: int) -> tuple[list[str], str]:
    name = " and ".join(about["columns"]["values"])
    if is_uneven(about):
        error = shown(about["expected_error"][column]["error"])
        return [escape(name), f"{error} m"], (
            f"{name}: {error} meters from the true place, {stated_for(about)[1]}. Draw "
            "conclusions about areas several times as wide."
        )
    errors = [average(about, column, n) or math.nan for n in AVERAGED]
    return [escape(name), *(f"{shown(error)} m" for error in errors)], (
        f"{name}: a released place is typically {shown(errors[0])} meters from the true one. "
        "Draw conclusions about areas several times as wide."
    )


def _alerts(about: About) -> str:
    """What the bits mean, when they end, and how often they are right."""
    alarm, name = registry.decode(about["mechanism"]), about["columns"]["values"][0]
    assert isinstance(alarm, SparseVector)
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
    said = [
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
    rows = [[where, rate] for where, rate in rates.items()]
    return warning + items(said) + table(["Where the reading lies", "chance of an alert"], rows)


def _chance(share: float) -> str:
    return f"less than 0.1{PERCENT}" if share < 0.001 else percent(min(share, 1 - 1e-9))


def _measured(about: About, sample: PrivateSample) -> str:
    kind, rows = kind_of(about), []
    told = kind in ("categories", "alerts")
    scale, unit = (100, PERCENT) if told else (1, " m" if kind == "places" else "")
    for i, expected in enumerate(about["expected_error"]):
        (size, bias, doubt), n = sample.measured(i), int(sample.compared[i])
        places = len(shown(doubt, 2).partition(".")[2])
        # errors that go together tell less than their number says
        doubtful = f" ± {shown(doubt, 2)}" if _averages(about) else ""
        rows.append(
            [
                escape(expected["column"]),
                "–"
                if kind == "alerts" or is_retimed(about)
                else f"{'from ' * grows(about)}{shown(scale * expected['error'])}{unit}",
                f"{shown(scale * size)}{unit}",
                "–" if told else f"{bias:+,.{places}f}{doubtful}{unit}",
                f"{n:,}<small>{percent(n / max(sample.rows, 1))} of rows</small>",
                "–" if kind == "categories" else f"{sample.moved[i]:,}",
            ]
        )
    head = ["Column", "expected error", "measured error", "bias", "compared", "moved to bounds"]
    compared = {
        "categories": "Error: how often the released category is another than the true one.",
        "alerts": "Error: how often the answer was another than that of the reading itself.",
    }.get(kind, "Error: the mean size of released value minus reading.")
    if about["mechanism"][KIND] == "RunningCount":
        compared = "Error: of released sum minus true sum, the root of the mean square."
    elif about["mechanism"][KIND] == "FourierPerturbation":
        compared = "Error: of released value minus reading, the root of the mean square."
    beside = ", ± one standard error" if _averages(about) else ""
    shift = "" if told else f" Bias: the mean of that difference{beside}."
    if "bounds" in value_spec(about):
        shift += (
            " Readings outside the bounds were moved to the nearest one before noise was added."
        )
    return f"<h3>Measured against the private readings</h3><p>{compared}{shift}</p>" + table(
        head, rows
    )
