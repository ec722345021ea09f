"""One HTML page about a release, for people: what it promises, what not, and how to use it.

The public page knows released values only; the private one compares them with the readings and is
for the data owner alone. Both load nothing, run nothing, and can be read offline or on paper.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from tempriv import guarantees
from tempriv.clock import describe_step, describe_tick
from tempriv.errors import Refusal, require
from tempriv.files import follow_umask, write_durably
from tempriv.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.mechanisms.forms import Choices, Places
from tempriv.mechanisms.protocol import Mechanism
from tempriv.plots import About, Trace, bounds_of, kind_of, shown, trace_of
from tempriv.releases import Release, ledger_sentence
from tempriv.series import Block
from tempriv.spec import KIND
from tempriv.svg import pictures
from tempriv.units import Event, Near, Person, Window

PRIVATE = "Contains private data: do not hand out"
MOST_SERIES, MOST_ROWS = 4, 600
MOST_PICTURED = 6  # columns
PERCENT = "\N{NO-BREAK SPACE}%"
NOT_SINCE = (
    "These are the errors of the noise alone. Since then the values were worked on (see “How it "
    "was made”), which changes their errors in ways that depend on the data."
)
AVERAGED = (1, 24, 168, 720)
# the mean size of a nearly normal average, as a multiple of that of one draw over sqrt(n)
FACTOR = {"Gaussian": 1.0, "Laplace": 2 / math.pi**0.5, "PlanarLaplace": (3 * math.pi / 8) ** 0.5}


class Excerpt:
    """The first rows of the first few series, of however many blocks."""

    def __init__(self) -> None:
        self.traces: dict[str, Trace] = {}

    def add(self, block: Block) -> None:
        ends = np.cumsum(block.counts)
        for i, name in enumerate(block.ids):
            if name not in self.traces and len(self.traces) == MOST_SERIES:
                return  # series come one after the other: no more rows of those kept
            kept = self.traces.get(name, Trace(name, np.zeros(0, np.int64), block.values[:0]))
            count = min(MOST_ROWS - len(kept.ticks), int(block.counts[i]))
            rows = slice(int(ends[i] - block.counts[i]), int(ends[i] - block.counts[i]) + count)
            steps = block.starts[i] + np.arange(count)
            ticks = steps if block.times is None else block.times[rows]
            # what stands in the place of a missing value has no meaning
            values = np.where(block.missing[rows], np.nan, block.values[rows])
            self.traces[name] = Trace(name, np.append(kept.ticks, ticks),
                                      np.append(kept.values, values, axis=0))  # fmt: skip


class PublicSample:
    """Some released values to show; the private block is never looked at."""

    def __init__(self) -> None:
        self.released = Excerpt()

    def watch(self, private: Block, released: Block) -> None:
        self.released.add(released)

    @classmethod
    def of(cls, release: Release) -> PublicSample:
        """From a release that is complete, such as one that an earlier run had computed."""
        sample = cls()
        names = release.about["columns"]["series"]
        ids = [None] if names is None else release.table.column(names).unique().to_pylist()
        for name in ids[:MOST_SERIES]:
            trace = trace_of(release, None if name is None else str(name))
            first = Trace(trace.name, trace.ticks[:MOST_ROWS], trace.values[:MOST_ROWS])
            sample.released.traces[trace.name] = first
        return sample


class PrivateSample:
    """Some readings beside what was released for them, and how far apart all of them are.

    For the data owner only. It holds a few rows and sums, however long the table.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.form = mechanism.form
        self.private, self.released = Excerpt(), Excerpt()
        self.rows = 0
        self.compared, self.moved = np.zeros((2, self.form.columns), np.int64)
        self.magnitude, self.shift, self.square = np.zeros((3, self.form.columns))

    def watch(self, private: Block, released: Block) -> None:
        self.private.add(private)
        self.released.add(released)
        there = ~(private.missing | released.missing)
        before, after = (np.where(there, block.values, 0.0) for block in (private, released))
        if isinstance(self.form, Places):
            apart = (self.form.to_grid(after) - self.form.to_grid(before)) * self.form.grid
            size = np.broadcast_to(np.hypot(*apart.T)[:, None], apart.shape)
        else:
            apart = 1.0 * (after != before) if isinstance(self.form, Choices) else after - before
            size = np.abs(apart)
        if self.form.bounds is not None:
            low, high = np.array(self.form.bounds).T
            self.moved += (there & ((before < low) | (before > high))).sum(axis=0)
        self.rows += len(private)
        self.compared += there.sum(axis=0)
        self.magnitude += size.sum(axis=0, where=there)
        self.shift += apart.sum(axis=0, where=there)
        self.square += (apart**2).sum(axis=0, where=there)

    def measured(self, column: int) -> tuple[float, float, float]:
        """Mean magnitude of the error, its mean (the bias), and that mean's standard error."""
        n = max(int(self.compared[column]), 1)
        mean = self.shift[column] / n
        spread = max(self.square[column] / n - mean**2, 0.0)
        return float(self.magnitude[column] / n), float(mean), math.sqrt(spread / n)


def write_report(
    path: Path, about: About, sample: PublicSample | PrivateSample, force: bool = False
) -> Path:
    """Write the page; with a PrivateSample it is the owner's, and only the owner can read it."""
    path = Path(path)
    require(path.suffix.lower() in (".html", ".htm"), f"{path}: a report must end in .html")
    require(path.parent.is_dir(), f"{path.parent}: no such directory")
    remedy = "choose another name, or replace it with --force"
    require(force or not path.exists(), f"{path}: exists already; {remedy}", Refusal)
    write_durably(path, page(about, sample).encode())
    if not isinstance(sample, PrivateSample):
        follow_umask(path)
    return path


def page(about: About, sample: PublicSample | PrivateSample) -> str:
    """The whole page as text."""
    guarantee = guarantees.decode(about["guarantee"])
    names = about["columns"]["values"]
    columns = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    headline, promise, alarm = f"A protected copy of {columns}", _promise(guarantee), ""
    if isinstance(guarantee, NoGuarantee):
        headline, promise, alarm = f"A copy of {columns} without any promise", "", promise
    secret = f'<p class="secret">{PRIVATE}</p>' if isinstance(sample, PrivateSample) else ""
    body = [
        secret + alarm,
        f"<h1>{escape(headline)}</h1>{_lead(about, guarantee)}{promise}",
        _not_protected(about, guarantee),
        _trust(about, sample),
        _pictures(about, sample),
        _made(about, guarantee),
        _check(about),
        f"<footer>This page loads nothing and runs nothing.</footer>{secret}",
    ]
    title = escape(f"{PRIVATE} | {headline}" if secret else headline)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_style()}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _style() -> str:
    return Path(__file__).with_name("report.css").read_text()


def _items(sentences: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def _facts(facts: Sequence[tuple[str, str]], style: str) -> str:
    """Values are HTML already."""
    cells = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    return f'<dl class="{style}">{cells}</dl>'


def _lasts(about: About, readings: int) -> str:
    """How long so many readings take, where that is known."""
    clock, step = about["times"]["clock"], about["times"]["step"]
    known = step is not None and clock in ("date", "datetime")
    return describe_step(clock, readings * step) if known else ""


def _lead(about: About, guarantee: Guarantee | NoGuarantee) -> str:
    done = {"numbers": "random noise was added to each of them",
            "categories": "each of them was kept or exchanged at random",
            "places": "each of them was moved at random"}[kind_of(about)]  # fmt: skip
    purpose = (
        "before this copy left its owner. Read here what that protects, what it does not, and how "
        "far the values can be trusted."
        if isinstance(guarantee, Guarantee)
        else "but that does not protect anyone. Treat this copy like the original."
    )
    times, file = about["times"], about.get("output", {}).get("file")
    facts = [("Rows", f"{about['rows']:,}"), ("Series", f"{about['series']:,}")]
    if times["clock"] != "index" and times["first"] is not None:
        facts += [(f"{end.title()} time", describe_tick(times["clock"], times[end]))
                  for end in ("first", "last")]  # fmt: skip
    if times["clock"] != "index" and times["step"] is not None:
        facts.append(("Time step", describe_step(times["clock"], times["step"])))
    goes = f"This page goes with the file <code>{escape(file)}</code>. " if file else ""
    return (
        f'<p class="lead">{goes}The values in it are not the originals: {done}, {purpose}</p>'
        + _facts(facts, "facts")
    )


def _promise(guarantee: Guarantee | NoGuarantee) -> str:
    said = f"<p>{escape(guarantee.sentence)}</p><p>{escape(guarantee.plain)}</p>"
    if isinstance(guarantee, NoGuarantee):
        return f'<div class="alarm" role="alert"><h2>No privacy promise</h2>{said}</div>'
    loss, delta = guarantee.loss, getattr(guarantee.loss, "delta", 1e-6)
    epsilon = loss.epsilon_at(delta)
    but = "" if isinstance(loss, Pure) else f", but for a probability of {delta:.3g}"
    # from even odds, the chance to be right
    right = {e: 1 / (1 + math.exp(-e)) for e in (epsilon, 0.1, 0.5, 1, 2, 4, 8)}
    bars = "".join(
        f'<div class="guess {style}"><span>{label}</span><span class="track">'
        f'<span style="width:{100 * share:.2f}%"></span></span><b>{_percent(share)}</b></div>'
        for label, share, style in (
            ("before seeing this copy", 0.5, ""),
            ("after seeing it, at most", right[epsilon], "after"),
            ("if they saw the original", 1.0, ""),
        )
    )
    scale = ", ".join(f"{e:g} allows {_percent(right[e])}" for e in (0.1, 0.5, 1, 2, 4, 8))
    return (
        f'<section class="promise"><h2>The promise</h2>{said}<h3>How sure can an observer become?'
        "</h3><p>Someone wavers between two guesses and finds both equally likely. The guesses are "
        f"about {escape(guarantee.unit.sentence)}. Their chance to be right:</p>{bars}"
        f'<p class="note">This is for epsilon = {epsilon:.3g}{but}. For comparison, epsilon '
        f"{scale}.</p></section>"
    )


def _percent(share: float) -> str:
    """Rounded, but never to a certainty that is none."""
    digits = 3 if 0.95 < share < 1 else 2
    return ("nearly 100" if 0.999 < share < 1 else shown(100 * share, digits)) + PERCENT


def _not_protected(about: About, guarantee: Guarantee | NoGuarantee) -> str:
    points = [point[:1].upper() + point[1:].rstrip(".") + "." for point in about["not_protected"]]
    name = about["columns"]["series"]
    if name is not None:
        points.append(
            f"Ids: those in “{name}” are pseudonyms, but who knows when someone's readings were "
            "taken, or how many there are, may still recognise the series."
            if about["pseudonyms"]
            else f"Ids: those in “{name}” are shown as they are."
        )
    first = "Nothing in this copy is protected. These things are not even changed:"
    if isinstance(guarantee, Guarantee):
        points += _beyond(about, guarantee)
        first = "The promise does not cover everything. What others can still learn:"
    points.append("Other columns of the original table were left out of this copy.")
    return f"<section><h2>What is not protected</h2><p>{first}</p>{_items(points)}</section>"


def _beyond(about: About, guarantee: Guarantee) -> list[str]:
    """What can be told from more than the unit covers, and how little is promised for that."""
    unit, said = guarantee.unit, []
    each = unit.each if isinstance(unit, Person) else unit
    if isinstance(each, Near):
        far, stay = Near(10 * each.metres), _average(about, 0, 24) or math.nan
        less: Any = guarantee.for_unit(far)
        said = [
            f"The wider area: places {far.metres:,.0f} metres apart have only {less.loss}.",
            "Places where someone stays, or often returns to: 24 readings taken at one place give "
            f"it away to about {shown(stay)} metres when they are averaged.",
        ]
    elif isinstance(each, (Event, Window)):
        longer = Window(24 if isinstance(each, Event) else 10 * each.length)
        wider = Person(unit.max_series, longer) if isinstance(unit, Person) else longer
        less = guarantee.for_unit(wider)
        covered = "single readings" if isinstance(each, Event) else f"{each.length} steps in a row"
        lasts = f" ({_lasts(about, longer.length)})".replace(" ()", "")
        said = [
            f"Habits, averages, trends: the promise covers {covered}, not what many readings show "
            f"together. For any {longer.length} readings in a row{lasts} it is only {less.loss}.",
            "Readings that go together: where one reading lets you guess its neighbours, their "
            "released values together tell more about it than its own does.",
        ]
    if not isinstance(unit, Person) and about["series"] > 1:
        said.append("Several series of one person: each is protected alone; their losses add up.")
    return said


def _average(about: About, column: int, n: int) -> float | None:
    """The typical size of the noise in an average over n readings, where it is known."""
    factor = 1.0 if n == 1 else FACTOR.get(about["mechanism"][KIND])
    error = about["expected_error"][column]["error"]
    return None if factor is None else float(factor * error / math.sqrt(n))


def _trust(about: About, sample: PublicSample | PrivateSample) -> str:
    kind, columns = kind_of(about), range(len(about["columns"]["values"]))
    judge = {"numbers": _number, "categories": _category, "places": _place}[kind]
    explained = {
        "numbers": "Typical errors (the mean of their size) in the unit of the column; below "
        "them, their part of the range between the bounds. Released values outside the bounds are "
        "no mistake: leave them in, or every average would be shifted.",
        "categories": "One value: how often another category stands there. A share, counted over "
        "so many readings and corrected as said below: its typical error in percentage points.",
        "places": "Typical distances (their mean) from the true place, in metres; for averages, of "
        "readings taken at one place. A way through released places comes out too long.",
    }[kind]
    if kind == "numbers" and bounds_of(about, 0) is None:
        explained = (
            "Expected errors in the unit of the column. Released values below zero are no mistake: "
            "leave them in, or every average would be shifted."
        )
    judged = [judge(about, column) for column in (columns[:1] if kind == "places" else columns)]
    what = "share" if kind == "categories" else "average"
    over = [f"{what} over {n}<small>{_lasts(about, n)}</small>" for n in AVERAGED[1:]]
    return (
        f"<section><h2>How far the values can be trusted</h2><p>{explained}</p>"
        + _table(["Column", "one value", *over], [cells for cells, _ in judged])
        + _items([sentence for _, sentence in judged])
        + (f'<p class="note">{NOT_SINCE}</p>' if "after" in about else "")
        + (_measured(about, sample) if isinstance(sample, PrivateSample) else "")
        + "</section>"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
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
    bounds = bounds_of(about, column)
    if bounds is None:
        errors = (_average(about, column, n) for n in AVERAGED)
        shares = ["–" if error is None else shown(error) for error in errors]
        measure = about["expected_error"][column]["measure"]
        return [escape(name), *shares], f"{name}: {shown(one)} ({measure})."
    low, high = bounds
    part = one / (high - low)
    cells = [f"{escape(name)}<small>{low:,g} to {high:,g}</small>"]
    for error in (_average(about, column, n) for n in AVERAGED):
        share = f"{shown(100 * part * (error or 0.0) / one, 2)}{PERCENT}"
        cells.append("–" if error is None else f"{shown(error)}<small>{share}</small>")
    use = "alone says little" if part >= 0.5 else "is a rough hint" if part >= 0.1 else "is useful"
    said = (
        f"{name}: one released value {use}. It is typically {shown(one)} off, where readings "
        + (f"lie between {low:,g} and {high:,g}.")
    )
    needed = math.ceil((FACTOR.get(about["mechanism"][KIND], 0) * part / 0.05) ** 2)
    if needed > 1:
        said += f" An average over {needed:,} readings is off by about 5{PERCENT} of that range."
    return cells, said


def _category(about: About, column: int) -> tuple[list[str], str]:
    name, error = about["columns"]["values"][column], about["expected_error"][column]["error"]
    k = len(about["mechanism"]["categories"][column])
    kept, other = 1 - error, error / (k - 1)
    # the noise in a share is greatest where all readings are of, or all not of, the category
    worst = max(kept * error, other * (1 - other)) * 2 / math.pi
    cells = [f"{escape(name)}<small>{k} categories</small>", _percent(error)]
    for n in AVERAGED[1:]:
        off = 100 * math.sqrt(worst / n) / max(kept - other, 1e-9)
        cells.append(f"{off:.1f} points" if off < 50 else "no use")
    return cells, (
        f"{name}: the category shown is the true one in {_percent(kept)} of readings (by a blind "
        f"guess: {_percent(1 / k)}). The true share of a category is about (s − {other:.4f}) / "
        f"{kept - other:.4f}, where s is its share among the released values."
    )


def _place(about: About, column: int) -> tuple[list[str], str]:
    name = " and ".join(about["columns"]["values"])
    errors = [_average(about, column, n) or math.nan for n in AVERAGED]
    return [escape(name), *(f"{shown(error)} m" for error in errors)], (
        f"{name}: a released place is typically {shown(errors[0])} metres from the true one. "
        "Draw conclusions about areas several times as wide."
    )


def _measured(about: About, sample: PrivateSample) -> str:
    kind, rows = kind_of(about), []
    scale, unit = {"numbers": (1, ""), "categories": (100, PERCENT), "places": (1, " m")}[kind]
    for i, expected in enumerate(about["expected_error"]):
        (size, bias, doubt), n = sample.measured(i), int(sample.compared[i])
        places = len(shown(doubt, 2).partition(".")[2])
        rows.append([
            escape(expected["column"]),
            *(f"{shown(scale * error)}{unit}" for error in (expected["error"], size)),
            "–" if kind == "categories" else f"{bias:+,.{places}f} ± {shown(doubt, 2)}{unit}",
            f"{n:,}<small>{_percent(n / max(sample.rows, 1))} of rows</small>",
            "–" if kind == "categories" else f"{sample.moved[i]:,}",
        ])  # fmt: skip
    head = ["Column", "expected error", "measured error", "bias", "compared", "moved to bounds"]
    return (
        "<h3>Measured against the private readings</h3><p>Error: the mean size of released value "
        "minus reading (of categories: how often they differ). Bias: its mean, ± one standard "
        "error. Readings outside the bounds were moved to the nearest bound before noise was "
        f"added.</p>{_table(head, rows)}"
    )


def _pictures(about: About, sample: PublicSample | PrivateSample) -> str:
    released, kind = [*sample.released.traces.values()], kind_of(about)
    private = [*sample.private.traces.values()] if isinstance(sample, PrivateSample) else None
    names, known = about["columns"]["values"], about["columns"]["series"]
    dot = "" if kind == "numbers" else " dot"
    keys = [("released" + dot, "released"), *([("private" + dot, "private")] if private else [])]
    if kind == "numbers":
        keys += [("bound", "bounds")] if bounds_of(about, 0) is not None else []
        keys += [] if private else [("band", "± expected error")]
    if kind == "places":
        keys.append(("ring", f"typical move: {shown(about['expected_error'][0]['error'])} m"))
    legend = "".join(f'<span><i class="key {style}"></i>{text}</span>' for style, text in keys)
    rows = max((len(trace.ticks) for trace in released), default=0)
    n, every = len(released), about["series"]
    some = "the" if every == 1 else "each" if n == every else f"{n} of {every:,}"
    first = f"The first {rows:,} readings of {some} series." if rows else "No readings were kept."
    title = "Before and after" if private else "What the released values look like"
    parts = [f'<h2>{title}</h2><p>{first}</p><p class="legend">{legend}</p>']
    for column in range(1 if kind == "places" else min(len(names), MOST_PICTURED)):
        parts.append(f'<div class="{"wide" if len(released) == 1 else "pair"}">')
        for name, svg in pictures(about, column, released, private) if released else ():
            caption = f"<figcaption>{escape(f'{known}: {name}')}</figcaption>" if known else ""
            parts.append(f"<figure>{caption}{svg}</figure>")
        parts.append("</div>")
    return f"<section>{''.join(parts)}</section>"


def _made(about: About, guarantee: Guarantee | NoGuarantee) -> str:
    spec = about["mechanism"].items()
    inner = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in spec)
    ledger = ledger_sentence(about)
    done = "; ".join(about["treatment"]) or "taken as it was"
    facts = [
        ("Mechanism", about["mechanism"][KIND]),
        ("Table before that", done[:1].upper() + done[1:] + "."),
        ("Randomness", about["randomness"]),
        ("Release id", about["release"]),
        ("Made", about["created"].replace("T", " ").replace("+00:00", " UTC")),
        ("Version", f"tempriv {about['tempriv']}"),
        ("Ledger", ledger[:1].upper() + ledger[1:] + "."),
        ("Promise of this copy", guarantee.sentence),
        ("Claim in the literature", guarantees.decode(about["published"]).sentence),
    ]
    return (
        "<section><h2>How it was made</h2>"
        + _facts([(name, escape(str(value))) for name, value in facts], "made")
        + _afterwards(about)
        + f"<h3>All settings</h3><pre>{{\n{escape(inner)}\n}}</pre></section>"
    )


def _afterwards(about: About) -> str:
    if "after" not in about:
        return ""
    steps = [entry["sentence"] for entry in about["after"]]
    said = _items([step[:1].upper() + step[1:] + "." for step in steps])
    return f"<h3>Done afterwards</h3>{said}<p>{escape(about['after_note'])}</p>"


def _check(about: About) -> str:
    output = about.get("output", {"file": "FILE", "blake2b": "not written to a file yet"})
    file = escape(output["file"])
    return (
        "<section><h2>How to check</h2><p>Keep the file together with its description, "
        f"<code>{file}.release.json</code>, and run</p><pre>tempriv verify {file}</pre><p>Or "
        "compare the checksum of the file (BLAKE2b, 256 bits) yourself, for instance with "
        f"<code>b2sum -l 256 {file}</code>:</p><pre>{escape(output['blake2b'])}</pre></section>"
    )
