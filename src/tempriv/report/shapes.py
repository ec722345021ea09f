"""One HTML page about a shapes campaign: the shapes, how sure they are, what is guaranteed.

It is made of what the campaign found and nothing else, so it may be handed out like the shapes. It
loads nothing and runs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from tempriv.data.files import follow_umask, write_durably
from tempriv.errors import TemprivError, require
from tempriv.local.shapes.sax import Sax, curve
from tempriv.local.shapes.simulate import format_count
from tempriv.privacy import guarantees
from tempriv.privacy.guarantees import NoGuarantee
from tempriv.releases.description import ledger_sentence
from tempriv.report.accuracy import items
from tempriv.report.page import facts_list, promise_section, style_sheet
from tempriv.report.svg import Frame, number_ticks

About = dict[str, Any]
POINTS = 240
MOST_PICTURED = 24
# one alone is as small as two beside each other
SIDE_BY_SIDE = "grid-template-columns:repeat(auto-fill,minmax(300px,1fr))"
QUESTIONS = {
    "length": "how long is your sequence?",
    "bigram": "which two symbols follow each other, at a place drawn at random?",
    "level": "which of these beginnings is yours most like?",
    "refine": "which of these sequences is yours most like?",
    "whole": "which sequence is yours, of all that are possible?",
}
ORACLES = {
    "grr": "randomized response",
    "oue": "optimized unary encoding",
    "olh": "optimized local hashing",
    "hadamard": "Hadamard response",
    "exponential": "exponential mechanism",
}
METHODS = {
    "one-shot": "one-shot: whole sequences were asked for at once",
    "nearest": "nearest: candidates grew symbol by symbol, and devices named the nearest",
    "published": "published: PrivShape (Mao, Ye, Hu, Wang and Huang 2024, Algorithm 2)",
    "baseline": "baseline: candidates grew symbol by symbol (the same, Algorithm 1)",
}


def write_report(path: Path, about: About, force: bool = False) -> Path:
    """Write the page."""
    path = Path(path)
    require(path.suffix.lower() in (".html", ".htm"), f"{path}: a report must end in .html")
    require(path.parent.is_dir(), f"{path.parent}: no such directory")
    remedy = "choose another name, or replace it with [[force=True]]"
    require(force or not path.exists(), f"{path}: exists already; {remedy}", TemprivError)
    write_durably(path, page(about).encode())
    follow_umask(path)
    return path


def page(about: About) -> str:
    """The whole page as text."""
    guarantee = guarantees.decode(about["guarantee"])
    headline = f"Shapes that {about['series']:,} series have in common"
    promise, alarm = promise_section(guarantee), ""
    if isinstance(guarantee, NoGuarantee):
        promise, alarm = "", promise
    body = [
        f"{alarm}<h1>{escape(headline)}</h1>{_lead(about)}",
        _shapes(about),
        promise,
        f"<section><h2>What is not protected</h2>{items(_sentences(about['not_protected']))}"
        "</section>",
        _trust(about),
        _asked(about),
        _made(about, guarantee),
        "<footer>This page loads nothing and runs nothing.</footer>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(headline)}</title>\n<style>{style_sheet()}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _sentences(points: Sequence[str]) -> list[str]:
    return [point[:1].upper() + point[1:].rstrip(".") + "." for point in points]


def _lead(about: About) -> str:
    settings = about["settings"]
    facts = [
        ("Series", f"{about['series']:,}"),
        ("Epsilon of each", f"{settings['epsilon']:g}"),
        ("Shapes", str(len({shape["shape"] for shape in about["shapes"]}))),
        ("Asked in", f"{len(about['rounds'])} round{'s' * (len(about['rounds']) > 1)}"),
    ]
    if settings["labels"]:
        facts.insert(3, ("Labels", str(len(settings["labels"]))))
    return (
        '<p class="lead">A shape is the order of ups and downs, whatever the level, the scale and '
        "the pace. Each series answered one question about its own, through noise; the shapes here "
        "were put together from the answers alone.</p>" + facts_list(facts, "facts")
    )


# pictures


def _shapes(about: About) -> str:
    parts = ["<section><h2>The shapes</h2>"]
    sax, shapes = Sax.from_dict(about["settings"]["sax"]), about["shapes"]
    if not shapes:
        return f"{parts[0]}<p>None was found.</p></section>"
    parts.append(_frequencies(shapes))
    parts.append(f'<div class="pair" style="{SIDE_BY_SIDE}">')
    parts += [_figure(one, sax, about) for one in shapes[:MOST_PICTURED]]
    parts.append("</div>")
    more = len(shapes) - MOST_PICTURED
    if more > 0:
        parts.append(f'<p class="note">{more} more are in the table only.</p>')
    how = "each letter has an equal share of the width, as how long it lasted is left out"
    if not sax.compressed:
        how = f"each letter stands for {sax.segment} readings"
    parts.append(
        f'<p class="note">Letters go from {sax.alphabet[0]}, the lowest, to {sax.alphabet[-1]}, in '
        f"standard deviations from the mean of a series; {how}. Gray steps are what was found, the "
        "line is drawn through them.</p>"
    )
    return "".join(parts) + _table(about) + "</section>"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _interval(shape: dict[str, Any]) -> str:
    return f"{100 * shape['low']:.1f} to {100 * shape['high']:.1f} %"


def _name(shape: dict[str, Any]) -> str:
    return f"{shape['shape']}{'' if shape['ends'] else '…'}"


def _labelled(shape: dict[str, Any]) -> str:
    return _name(shape) + ("" if shape["label"] is None else f", {shape['label']}")


def people_of(shape: dict[str, Any], about: About) -> str:
    """What a count says where nothing can be said about sureness."""
    counted = about["counted"]
    count = f"{min(max(round(shape['count']), 0), counted):,}"
    if about["rounds"][-1]["kind"] == "level":
        return f"named in {count} of {counted:,} noisy reports"
    return f"nearest to about {count} people of {counted:,}"


def _figure(shape: dict[str, Any], sax: Sax, about: About) -> str:
    levels = np.array(sax.levels)
    low, high = float(levels[0]), float(levels[-1])
    room = 0.16 * (high - low)
    frame = Frame(372, 190, (0.0, POINTS), (low - room, high + room), 26, 26, top=12)
    at = np.arange(POINTS) + 0.5
    end = frame.width - frame.right
    drawn = []
    for letter, level in zip(sax.alphabet, levels.tolist(), strict=True):
        y = frame.down(level)
        drawn.append(f'<path class="rule" d="M{frame.left} {y:.1f}H{end}"/>')
        drawn.append(_text(frame.left - 10, y + 4, letter, "end"))
    steps = frame.line(at, curve(shape["shape"], sax, POINTS), "steps")
    smooth = frame.line(at, curve(shape["shape"], sax, POINTS, line="smooth"), "released")
    drawn.append(steps.replace("<path", '<path style="stroke:var(--rule);stroke-width:6"'))
    drawn.append(smooth.replace("<path", '<path style="stroke-width:2.6"'))
    drawn.append(_text(end, frame.height - 6, "time →", "end", "label"))
    said = {True: "surely there", False: "not surely there", None: people_of(shape, about)}
    label = "" if shape["label"] is None else f", label {shape['label']}"
    caption = escape(f"{_name(shape)}{label}: {_percent(shape['share'])} ({_interval(shape)})")
    caption += f"<small>{escape(said[shape['sure']])}</small>"
    svg = (
        f'<svg viewBox="0 0 {frame.width:g} {frame.height:g}" role="img" '
        f'aria-label="{escape(_name(shape))} over time">{"".join(drawn)}</svg>'
    )
    return f"<figure><figcaption>{caption}</figcaption>{svg}</figure>"


def _frequencies(shapes: Sequence[dict[str, Any]]) -> str:
    """Bars of shares with their intervals."""
    some = shapes[:MOST_PICTURED]
    names = [_labelled(one) for one in some]
    names = [name if len(name) <= 30 else name[:29] + "…" for name in names]
    left = 18 + 7.4 * max(map(len, names))
    top = 1.05 * max(one["high"] for one in some) or 0.05
    height = 30.0 * len(some) + 48
    frame = Frame(760, height, (0.0, 100 * top), (0.0, float(len(some))), left, 38, top=6)
    floor = height - frame.bottom
    drawn = [_text(frame.width - frame.right, height - 4, "share of series, %", "end", "label")]
    for value, label, _ in number_ticks(0.0, 100 * top, 8):
        x = frame.across(value)
        drawn.append(f'<path class="rule" d="M{x:.1f} {frame.top}V{floor}"/>')
        drawn.append(_text(x, floor + 16, label))
    for row, (one, name) in enumerate(zip(some, names, strict=True)):
        y = frame.down(len(some) - row - 0.5)
        bar = max(frame.across(100 * min(max(one["share"], 0.0), top)) - left, 0.5)
        drawn.append(_text(left - 10, y + 4, name, "end", "label"))
        style = f'x="{left:.1f}" y="{y - 9:.1f}" width="{bar:.1f}" height="18" rx="3"'
        drawn.append(f'<rect {style} style="fill:var(--band)"/>')
        ends = [frame.across(100 * one[edge]) for edge in ("low", "high")]
        ticks = "".join(f"M{x:.1f} {y - 5:.1f}v10" for x in ends)
        line = f"M{ends[0]:.1f} {y:.1f}H{ends[1]:.1f}{ticks}"
        drawn.append(f'<path class="line released" style="stroke-width:2" d="{line}"/>')
    svg = (
        f'<svg viewBox="0 0 {frame.width:g} {frame.height:g}" role="img" aria-label="Share of each '
        f'shape with its interval">{"".join(drawn)}</svg>'
    )
    return f'<div class="wide"><figure>{svg}</figure></div>'


def _text(x: float, y: float, text: str, anchor: str = "middle", style: str = "mark") -> str:
    place = f'class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(text)}</text>"


# words


def _table(about: About) -> str:
    labelled = bool(about["settings"]["labels"])
    sure = tells_sureness(about)
    head = [
        "Shape",
        *(["Label"] if labelled else []),
        "Share",
        "95 % interval",
        "Count",
        "Standard error",
        *(["Surely there"] if sure else []),
    ]
    rows = []
    for one in about["shapes"]:
        error = one["standard_error"]
        cells = [
            *([str(one["label"])] if labelled else []),
            _percent(one["share"]),
            _interval(one),
            format_count(one["count"], error),
            "not known" if error is None else format_count(error, error),
            *(["yes" if one["sure"] else "no"] if sure else []),
        ]
        rows.append([_name(one), *cells])
    return _rows(head, rows)


def tells_sureness(about: About) -> bool:
    """Whether it was asked in a way that can tell what noise alone would make."""
    return any(one["sure"] is not None for one in about["shapes"])


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr><th>{escape(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for first, *cells in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def counts_mean(about: About) -> str:
    """What is counted, by method."""
    if about["method"] == "one-shot":
        return "a share is that of series with just this sequence of letters"
    if about["method"] == "baseline" and not about["settings"]["labels"]:
        return (
            "a share is that of reports that named this shape: noise is in it, so it says which "
            "shapes are more frequent and not how frequent they are"
        )
    return "a share is that of series that this shape was nearest to, of all that were asked about"


def _trust(about: About) -> str:
    points = [
        f"{counts_mean(about)}; it is counted among the {about['counted']:,} that were asked last",
        "errors come from the noise. An interval holds one true share 95 times in 100, each by "
        "itself",
        "shapes were chosen because their noisy counts are large, so counts that noise made large "
        "are chosen more often: of rare shapes the share tends to be too high",
    ]
    if tells_sureness(about):
        points.append(
            "a shape is surely there if noise alone makes counts like this in less than one "
            "campaign in 20, whatever number of shapes could be named"
        )
        if not all(one["sure"] for one in about["shapes"]):
            points.append(
                "some shapes here are not surely there: with so few series, or so small an "
                "epsilon, noise can make them up"
            )
    else:
        points.append(
            "every device named some shape, if only the least unlike: that many are nearest to a "
            "shape does not say that anybody has just that one"
        )
    if about["counted"] == 0:
        points.append("nobody was left for the last question: how common these are is not known")
    if not all(one["ends"] for one in about["shapes"]):
        points.append("a shape with … goes on beyond the length that was asked about")
    return f"<section><h2>How far to trust it</h2>{items(_sentences(points))}</section>"


def _asked(about: About) -> str:
    rows = [
        [
            f"{number}. {QUESTIONS[one['kind']]}",
            f"{one['people']:,}",
            f"{one['cells']:,}",
            ORACLES[one["oracle"]],
        ]
        for number, one in enumerate(about["rounds"], 1)
    ]
    rows = [[_with_label(row[0], about, i), *row[1:]] for i, row in enumerate(rows)]
    table = _rows(["Question", "Asked of", "Possible answers", "Noise"], rows)
    # a question is a sentence: it may take several lines
    table = table.replace("<tbody><tr><th>", '<tbody><tr><th style="white-space:normal">')
    table = table.replace("</tr><tr><th>", '</tr><tr><th style="white-space:normal">')
    return (
        "<section><h2>What was asked</h2><p>Groups were drawn at random. Nobody was asked twice, "
        f"whatever was answered.</p>{table}</section>"
    )


def _with_label(question: str, about: About, number: int) -> str:
    last = number == len(about["rounds"]) - 1
    return question[:-1] + ", and your label?" if last and about["settings"]["labels"] else question


def _claim(about: About) -> str:
    if about["published"] is None:
        return "none: not from the paper"
    return str(guarantees.decode(about["published"]).sentence)


def _made(about: About, guarantee: Any) -> str:
    ledger = ledger_sentence(about)
    facts = [
        ("Method", METHODS[about["method"]]),
        ("Randomness", about["randomness"]),
        ("Campaign", about["campaign"]),
        ("Made", about["created"].replace("T", " ").replace("+00:00", " UTC")),
        ("Version", f"tempriv {about['tempriv']}"),
        ("Ledger", ledger[:1].upper() + ledger[1:] + "."),
        ("Promise", guarantee.sentence),
        ("Claim in the literature", _claim(about)),
    ]
    settings = about["settings"].items()
    inner = ",\n".join(
        f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in settings
    )
    return (
        "<section><h2>How it was made</h2>"
        + facts_list([(name, escape(str(value))) for name, value in facts], "made")
        + f"<h3>All settings</h3><pre>{{\n{escape(inner)}\n}}</pre></section>"
    )
