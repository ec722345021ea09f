"""One HTML page about a release, for people: what it guarantees, what not, and how to use it.

The public page knows released values only; the private one compares them with the readings and is
for the data owner alone. Both load nothing, run nothing, and can be read offline or on paper.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from tempriv.accounting.composition import success_cap
from tempriv.data.clock import describe_step, describe_tick
from tempriv.data.files import follow_umask, write_durably
from tempriv.errors import TemprivError, require
from tempriv.leakage.leakage import Leakage
from tempriv.privacy import guarantees
from tempriv.privacy.guarantees import (
    PROTECTS_NOTHING,
    WEAK_EPSILON,
    Guarantee,
    NoGuarantee,
    Pure,
    epsilon_and_delta,
    odds_of,
)
from tempriv.privacy.serialization import KIND
from tempriv.privacy.units import Event, Person, Unit, Window, WithinDistance
from tempriv.privacy.units.landmarks import Landmarks, Readings
from tempriv.releases.description import ledger_sentence
from tempriv.releases.meaning import meaning_in, shown_epsilon
from tempriv.report import leakage as report_leakage
from tempriv.report import reordered
from tempriv.report.accuracy import (
    MAX_PICTURED_COLUMNS,
    average,
    items,
    lasts,
    percent,
    table,
    trust,
)
from tempriv.report.excerpt import PrivateSample, PublicSample
from tempriv.report.plots.series import (
    About,
    bounds_of,
    is_moved,
    kind_of,
    mechanism_of,
    shown,
    stated_without,
)
from tempriv.report.svg import pictures

PRIVATE = "Contains private data: do not hand out"
CERTAIN = 1 - 1e-9  # no guarantee lets anyone be certain, whatever is left after rounding
FOOTER = "<footer>This page loads nothing and runs nothing.</footer>"


def write_report(
    path: Path,
    about: About,
    sample: PublicSample | PrivateSample,
    force: bool = False,
    leakage: Leakage | None = None,
) -> Path:
    """Write the page; with a PrivateSample it is the owner's, and only the owner can read it.

    Parameters:
        path: the file; its name ends in .html.
        about: the description of the release.
        sample: some released values, and for their owner the readings beside them.
        force: whether to replace a file.
        leakage: adds what all readings together tell of one, if they are correlated.
    """
    private = isinstance(sample, PrivateSample)
    return write_page(path, lambda: page(about, sample, leakage), force, private)


def page(about: About, sample: PublicSample | PrivateSample, leakage: Leakage | None = None) -> str:
    """The whole page as text; see ``write_report`` for ``about``, ``sample`` and ``leakage``."""
    guarantee = guarantees.decode(about["guarantee"])
    names = about["columns"]["values"]
    columns = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    headline, alarm = f"A protected copy of {columns}", ""
    stated = guarantee_section(guarantee, meaning_in(about))
    if guarantee.protects_little:
        headline = f"A copy of {columns} with practically no protection"
    if mechanism_of(about).is_retimed:  # no value is hidden
        headline = f"A copy of {columns} at a noisy pace"
    if isinstance(guarantee, NoGuarantee):
        headline, stated, alarm = f"A copy of {columns} without any guarantee", "", stated
    secret = f'<p class="secret">{PRIVATE}</p>' if isinstance(sample, PrivateSample) else ""
    body = [
        secret + alarm,
        f"<h1>{escape(headline)}</h1>{_lead(about, guarantee)}{stated}",
        _not_protected(about, guarantee),
        *_correlated(leakage, isinstance(sample, PrivateSample)),
        reordered.trust(about, sample) if is_moved(about) else trust(about, sample),
        reordered.rows(about, sample) if is_moved(about) else _pictures(about, sample),
        _made(about, guarantee),
        check_section(about),
        FOOTER + secret,
    ]
    title = f"{PRIVATE} | {headline}" if secret else headline
    return whole_page(title, body)


def _correlated(leakage: Leakage | None, private_page: bool) -> list[str]:
    return [] if leakage is None else [report_leakage.section(leakage, private_page)]


def write_page(
    path: Path, make: Callable[[], str], force: bool = False, private: bool = False
) -> Path:
    """Write a page to a file that does not exist.

    Parameters:
        path: the file; its name ends in .html.
        make: makes the page.
        force: whether to replace a file.
        private: whether only its owner can read it.
    """
    path = Path(path)
    require(path.suffix.lower() in (".html", ".htm"), f"{path}: a report must end in .html")
    require(path.parent.is_dir(), f"{path.parent}: no such directory")
    remedy = "choose another name, or replace it with [[force=True]]"
    require(force or not path.exists(), f"{path}: exists already; {remedy}", TemprivError)
    write_durably(path, make().encode())
    if not private:
        follow_umask(path)
    return path


def whole_page(title: str, body: Sequence[str]) -> str:
    """A page that loads nothing, with a ``title`` and the parts of its ``body`` in HTML."""
    style = Path(__file__).with_name("report.css").read_text()
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def made_section(
    facts: Sequence[tuple[str, str]], settings: Mapping[str, Any], afterwards: str = ""
) -> str:
    """The section on how something was made.

    Parameters:
        facts: names and values, as plain text.
        settings: all of them.
        afterwards: what was done then, as HTML.
    """
    inner = ",\n".join(
        f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in settings.items()
    )
    return (
        "<section><h2>How it was made</h2>"
        + facts_list([(name, escape(str(value))) for name, value in facts], "made")
        + afterwards
        + f"<h3>All settings</h3><pre>{{\n{escape(inner)}\n}}</pre></section>"
    )


def facts_list(facts: Sequence[tuple[str, str]], style: str) -> str:
    """A list of names and values in HTML.

    Parameters:
        facts: names and values, as HTML.
        style: the class in the style sheet.
    """
    cells = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    return f'<dl class="{style}">{cells}</dl>'


def _lead(about: About, guarantee: Guarantee | NoGuarantee) -> str:
    purpose = (
        ". That was done before this copy left its owner. Read here what it protects, what it does "
        "not, and how far the values can be trusted."
        if isinstance(guarantee, Guarantee)
        else ", but that does not protect anyone. Treat this copy like the original."
    )
    times, file = about["times"], about.get("output", {}).get("file")
    facts = [("Rows", f"{about['rows']:,}"), ("Series", f"{about['series']:,}")]
    if times["clock"] != "index" and times["first"] is not None:
        facts += [
            (f"{end.title()} time", describe_tick(times["clock"], times[end]))
            for end in ("first", "last")
        ]
    if times["clock"] != "index" and times["step"] is not None:
        facts.append(("Time step", describe_step(times["clock"], times["step"])))
    goes = f"This page goes with the file <code>{escape(file)}</code>. " if file else ""
    change = f"The values in it are not the originals: {mechanism_of(about).done}{purpose}"
    if is_moved(about):
        change = escape(reordered.lead(about, guarantee))
    return f'<p class="lead">{goes}{change}</p>' + facts_list(facts, "facts")


def guarantee_section(guarantee: Guarantee | NoGuarantee, meaning: Mapping[str, Any]) -> str:
    """The guarantee in words, and how sure an observer can become; or that there is none.

    Parameters:
        guarantee: of the copy.
        meaning: what it means for a whole series and person, as ``meaning_of`` gives it.
    """
    if isinstance(guarantee, NoGuarantee):
        sentences = f"<p>{escape(guarantee.sentence)}</p><p>{escape(guarantee.plain)}</p>"
        return f'<div class="alarm" role="alert"><h2>No privacy guarantee</h2>{sentences}</div>'
    rows = meaning.get("rows_together")
    plain = guarantee.plain_for(meaning["longest"])
    reason = meaning["delta_reason"]
    why = f'<p class="note">Why there is a delta: {escape(reason)}.</p>' if reason else ""
    return (
        f'<section class="guarantee"><h2>The guarantee</h2>{_weak(guarantee)}'
        f"<p>{escape(meaning['headline'])}</p><p>{escape(plain)}</p>{why}"
        + _restated(meaning["statements"], rows or [])
        + "<h3>How sure can an observer become?</h3><p>Someone wavers between two guesses and "
        + "finds both equally likely. "
        + (_sure_by_all_rows(rows) if rows else _sure(guarantee))
        + "</section>"
    )


def _weak(guarantee: Guarantee) -> str:
    if not guarantee.protects_little:
        return ""
    epsilon, _ = epsilon_and_delta(guarantee.loss)
    return (
        f'<div class="weak" role="alert">epsilon = {shown_epsilon(epsilon)} {PROTECTS_NOTHING}. '
        "Treat this copy like the original.</div>"
    )


def _restated(
    statements: Sequence[Mapping[str, Any]], together: Sequence[Mapping[str, Any]]
) -> str:
    """The same loss for the unit, a whole series and a whole person, as a table."""
    rows = []
    for one in together:
        steps = f"{one['distance']} step{'s'[: one['distance'] != 1]} apart"
        certain = f'<span class="wrap">{percent(one["delta"])} seen for certain by all rows</span>'
        epsilon = "–" if one["delta"] == 1 else shown_epsilon(one["epsilon"])
        rows.append([f"Which of two readings {steps} was first", epsilon, certain])
    for one in statements:
        what = escape(one["what"][:1].upper() + one["what"][1:])
        if one["epsilon"] is None:
            rows.append([what, "–", f'<span class="wrap">{escape(one["reason"])}</span>'])
        else:
            delta = f", but for a probability of {one['delta']:.3g}" if one["delta"] else ""
            odds = f"× {odds_of(one['epsilon'])}{delta}"
            if one["epsilon"] > WEAK_EPSILON:
                odds = f'<span class="weak">{PROTECTS_NOTHING}</span>'
            rows.append([what, shown_epsilon(one["epsilon"]), odds])
    heads = ["What someone bets on", "epsilon", "odds grow at most"]
    return table(heads, rows).replace('<th scope="row">', '<th scope="row" class="wrap">')


def _sure(guarantee: Guarantee) -> str:
    loss, delta = guarantee.loss, getattr(guarantee.loss, "delta", 1e-6)
    epsilon = loss.epsilon_at(delta)
    but = "" if isinstance(loss, Pure) else f", but for a probability of {delta:.3g}"
    # from even odds, the chance to be right
    right = {e: min(success_cap(e), CERTAIN) for e in (epsilon, 0.1, 0.5, 1, 2, 4, 8)}
    scale = ", ".join(f"{e:g} allows {percent(right[e])}" for e in (0.1, 0.5, 1, 2, 4, 8))
    return (
        f"The guesses are about {escape(guarantee.unit.sentence)}. Their chance to be right:</p>"
        + _guesses([("after seeing it, at most", right[epsilon])])
        + f'<p class="note">This is for epsilon = {epsilon:.3g}{but}. For comparison, epsilon '
        f"{scale}.</p>"
    )


def _sure_by_all_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """How sure all rows make an observer of which of two readings was first, by their distance."""
    after = []
    for row in (rows[0], *rows[-1:][: len(rows) - 1]):
        odds = math.exp(min(row["epsilon"], 700.0))
        steps = f"{row['distance']} step{'s'[: row['distance'] != 1]} apart, at most"
        after.append((f"after seeing all rows, {steps}", (odds + row["delta"]) / (odds + 1)))
    return (
        "The guesses are about which of two readings was first. Their chance to be right:</p>"
        + _guesses(after)
    )


def _guesses(after: Sequence[tuple[str, float]]) -> str:
    """Bars for the chance to be right: before, after what is released, and with the original."""
    bars = [("before seeing this copy", 0.5, ""), *((*one, "after") for one in after)]
    bars.append(("if they saw the original", 1.0, ""))
    return "".join(
        f'<div class="guess {style}"><span>{label}</span><span class="track">'
        f'<span style="width:{100 * share:.2f}%"></span></span><b>{percent(share)}</b></div>'
        for label, share, style in bars
    )


def _not_protected(about: About, guarantee: Guarantee | NoGuarantee) -> str:
    points = [point[:1].upper() + point[1:].rstrip(".") + "." for point in about["not_protected"]]
    name = about["columns"]["series"]
    if name is not None:
        points.append(
            f"Ids: those in “{name}” are pseudonyms, but who knows when someone's readings were "
            "taken, or how many there are, may still recognize the series."
            if about["pseudonyms"]
            else f"Ids: those in “{name}” are shown as they are."
        )
    first, more = "Nothing in this copy is protected. These things are not even changed:", ""
    if is_moved(about):
        first = "Nothing in this copy is protected. What others can learn:"
        points += reordered.beyond(guarantee)
        more = reordered.together(about)
    if isinstance(guarantee, Guarantee):
        points += _beyond(about, guarantee)
        first = "The guarantee does not cover everything. What others can still learn:"
    points.append("Other columns of the original table were left out of this copy.")
    listed = f"<h2>What is not protected</h2><p>{first}</p>{items(points)}{more}"
    return f"<section>{listed}</section>"


def _beyond(about: About, guarantee: Guarantee) -> list[str]:
    """What can be told from more than the unit covers, and how little is guaranteed for that."""
    unit, points = guarantee.unit, list[str]()
    each = unit.each if isinstance(unit, Person) else unit
    near = isinstance(each, WithinDistance)
    less: Any
    if isinstance(each, (WithinDistance, Landmarks, Readings)) and each.meters is not None:
        far = replace(each, meters=10 * each.meters)
        less = guarantee.for_unit(far)
        points.append(
            f"The wider area: places {10 * each.meters:,.0f} meters apart have only {less.loss}."
        )
    elif isinstance(each, (Event, Window, Landmarks, Readings)):
        covered, many = _covered(each)
        wider = Window(many)
        time = "" if isinstance(each, (Landmarks, Readings)) else lasts(about, many)
        time = time and f" ({time})"
        less = guarantee.for_unit(
            Person(unit.max_series, wider) if isinstance(unit, Person) else wider
        )
        points.append(
            f"Habits, averages, trends: the guarantee covers {covered}, not what many readings "
            f"show together. For any {many} readings in a row{time} it is only {less.loss}."
        )
    if near:
        stay = shown(average(about, 0, 24) or math.nan)
        points.append(
            "Places where someone stays, or often returns to: 24 readings taken at one place give "
            f"it away to about {stay} meters when they are averaged."
        )
    elif points:
        points.append(
            "Readings that go together: where one reading lets you guess its neighbors, their "
            "released values together tell more about it than its own does."
        )
    points += mechanism_of(about).beyond_guarantee()
    if not isinstance(unit, Person) and about["series"] > 1:
        points.append("Several series of one person: each is protected alone; their losses add up.")
    return points


def _covered(unit: Unit) -> tuple[str, int]:
    """What a unit covers, and how many readings in a row are far more than that."""
    if isinstance(unit, Window):
        return f"{unit.length} steps in a row", 10 * unit.length
    if isinstance(unit, Readings):
        return f"{unit.count} readings", max(24, 10 * unit.count)
    if isinstance(unit, Landmarks):
        return "landmarks and one other reading", 24
    return "single readings", 24


def _pictures(about: About, sample: PublicSample | PrivateSample) -> str:
    released, kind = [*sample.released.traces.values()], kind_of(about)
    private = [*sample.private.traces.values()] if isinstance(sample, PrivateSample) else None
    names, known = about["columns"]["values"], about["columns"]["series"]
    dot = "" if kind == "numbers" else " dot"
    keys = [("released" + dot, "released"), *([("private" + dot, "private")] if private else [])]
    if kind == "numbers":
        keys += [("bound", "bounds")] if bounds_of(about, 0) is not None else []
        banded = not private and not mechanism_of(about).is_retimed
        keys += [("band", mechanism_of(about).report_texts.band)] if banded else []
    if kind == "alerts":
        keys = [("released dot", "released alert")]
        beside = [("private", "private"), ("bound", "threshold")]
        keys += beside if private else [("released", "output, until it ends")]
    if kind == "places":
        error = shown(about["expected_error"][0]["error"])
        keys.append(("ring", f"typical move{stated_without(about)}: {error} m"))
    legend = "".join(f'<span><i class="key {style}"></i>{text}</span>' for style, text in keys)
    rows = max((len(trace.ticks) for trace in released), default=0)
    n, every = len(released), about["series"]
    some = "the" if every == 1 else "each" if n == every else f"{n} of {every:,}"
    first = f"The first {rows:,} readings of {some} series." if rows else "No readings were kept."
    title = "Before and after" if private else "What the released values look like"
    parts = [f'<h2>{title}</h2><p>{first}</p><p class="legend">{legend}</p>']
    for column in range(1 if kind == "places" else min(len(names), MAX_PICTURED_COLUMNS)):
        parts.append(f'<div class="{"wide" if len(released) == 1 else "pair"}">')
        for name, svg in pictures(about, column, released, private) if released else ():
            caption = f"<figcaption>{escape(f'{known}: {name}')}</figcaption>" if known else ""
            parts.append(f"<figure>{caption}{svg}</figure>")
        parts.append("</div>")
    return f"<section>{''.join(parts)}</section>"


def _made(about: About, guarantee: Guarantee | NoGuarantee) -> str:
    ledger = ledger_sentence(about)
    done = "; ".join(about["treatment"]) or "taken as it was"
    facts = [
        ("Protected by", about["mechanism"][KIND]),
        ("Table before that", done[:1].upper() + done[1:] + "."),
        ("Randomness", about["randomness"]),
        ("Release id", about["release"]),
        ("Made", about["created"].replace("T", " ").replace("+00:00", " UTC")),
        ("Version", f"tempriv {about['tempriv']}"),
        ("Ledger", ledger[:1].upper() + ledger[1:] + "."),
        ("Guarantee of this copy", guarantee.sentence),
        ("Claim in the literature", guarantees.decode(about["published"]).sentence),
    ]
    return made_section(facts, about["mechanism"], _afterwards(about))


def _afterwards(about: About) -> str:
    if "after" not in about:
        return ""
    steps = [entry["sentence"] for entry in about["after"]]
    listed = items([step[:1].upper() + step[1:] + "." for step in steps])
    return f"<h3>Done afterwards</h3>{listed}<p>{escape(about['after_note'])}</p>"


def check_section(about: About) -> str:
    """How to check the release that ``about`` describes."""
    output = about.get("output", {"file": "FILE", "blake2b": "not written to a file yet"})
    file = escape(output["file"])
    return (
        "<section><h2>How to check</h2><p>Keep the file together with its description, "
        f"<code>{file}.release.json</code>, and run</p><pre>tempriv verify {file}</pre><p>Or "
        "compare the checksum of the file (BLAKE2b, 256 bits) yourself, for instance with "
        f"<code>b2sum -l 256 {file}</code>:</p><pre>{escape(output['blake2b'])}</pre></section>"
    )
