"""One HTML page about a shapes campaign: the shapes, how sure they are, what is guaranteed.

It is made of what the campaign found and nothing else, so it may be handed out like the shapes. It
loads nothing and runs nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from tempriv.local.shapes.sax import Sax, curve
from tempriv.local.shapes.simulate import format_count
from tempriv.privacy import guarantees
from tempriv.privacy.guarantees import NoGuarantee
from tempriv.releases.description import ledger_sentence
from tempriv.releases.meaning import meaning_of
from tempriv.report.accuracy import PERCENT, items, table
from tempriv.report.page import (
    FOOTER,
    facts_list,
    guarantee_section,
    made_section,
    whole_page,
    write_page,
)
from tempriv.report.svg import Frame, number_ticks, text

About = dict[str, Any]
POINTS = 240
MAX_PICTURED_SHAPES = 24
# one alone is as small as two beside each other
SIDE_BY_SIDE = "grid-template-columns:repeat(auto-fill,minmax(300px,1fr))"
QUESTIONS = {
    "length": "How long is your sequence?",
    "bigram": "Which two symbols follow each other, at a place drawn at random?",
    "level": "Which of these beginnings is yours most like?",
    "refine": "Which of these sequences is yours most like?",
    "whole": "Which sequence is yours, of all that are possible?",
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
    """Write the page.

    Parameters:
        path: the file; its name ends in .html.
        about: the description of the campaign.
        force: whether to replace a file.
    """
    return write_page(path, lambda: page(about), force)


def page(about: About) -> str:
    """The whole page about a campaign, described by ``about``, as text."""
    guarantee = guarantees.decode(about["guarantee"])
    headline = f"Shapes that {about['series']:,} series have in common"
    stated, alarm = guarantee_section(guarantee, meaning_of(None, guarantee, None)), ""
    if isinstance(guarantee, NoGuarantee):
        stated, alarm = "", stated
    body = [
        f"{alarm}<h1>{escape(headline)}</h1>{_lead(about)}",
        _shapes(about),
        stated,
        f"<section><h2>What is not protected</h2>{items(_sentences(about['not_protected']))}"
        "</section>",
        _trust(about),
        _asked(about),
        _made(about, guarantee),
        FOOTER,
    ]
    return whole_page(headline, body)


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
    parts += [_figure(shape, sax, about) for shape in shapes[:MAX_PICTURED_SHAPES]]
    parts.append("</div>")
    more = len(shapes) - MAX_PICTURED_SHAPES
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
    return f"{100 * share:.1f}{PERCENT}"


def _interval(shape: dict[str, Any]) -> str:
    return f"{100 * shape['low']:.1f} to {100 * shape['high']:.1f}{PERCENT}"


def _name(shape: dict[str, Any]) -> str:
    return f"{shape['shape']}{'' if shape['ends'] else '…'}"


def _labelled(shape: dict[str, Any]) -> str:
    return _name(shape) + ("" if shape["label"] is None else f", {shape['label']}")


def people_of(shape: dict[str, Any], about: About) -> str:
    """What a count says where nothing can be said about sureness.

    Parameters:
        shape: one of those found.
        about: the description of the campaign.
    """
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
    letters = zip(levels.tolist(), sax.alphabet, strict=True)
    drawn = [frame.y_axis([(level, letter, "") for level, letter in letters])]
    steps = frame.line(at, curve(shape["shape"], sax, POINTS), "steps")
    smooth = frame.line(at, curve(shape["shape"], sax, POINTS, line="smooth"), "released")
    drawn.append(steps.replace("<path", '<path style="stroke:var(--rule);stroke-width:6"'))
    drawn.append(smooth.replace("<path", '<path style="stroke-width:2.6"'))
    drawn.append(text(frame.end, frame.height - 6, "time →", "end", "label"))
    sureness = {True: "surely there", False: "not surely there", None: people_of(shape, about)}
    label = "" if shape["label"] is None else f", label {shape['label']}"
    caption = escape(f"{_name(shape)}{label}: {_percent(shape['share'])} ({_interval(shape)})")
    caption += f"<small>{escape(sureness[shape['sure']])}</small>"
    svg = frame.svg(f"{_name(shape)} over time", *drawn)
    return f"<figure><figcaption>{caption}</figcaption>{svg}</figure>"


def _frequencies(shapes: Sequence[dict[str, Any]]) -> str:
    """Bars of shares with their intervals."""
    some = shapes[:MAX_PICTURED_SHAPES]
    names = [_labelled(shape) for shape in some]
    names = [name if len(name) <= 30 else name[:29] + "…" for name in names]
    left = 18 + 7.4 * max(map(len, names))
    top = 1.05 * max(shape["high"] for shape in some) or 0.05
    height = 30.0 * len(some) + 48
    frame = Frame(760, height, (0.0, 100 * top), (0.0, float(len(some))), left, 38, top=6)
    drawn = [text(frame.end, height - 4, "share of series, %", "end", "label")]
    for value, label, _ in number_ticks(0.0, 100 * top, 8):
        x = frame.across(value)
        drawn.append(f'<path class="rule" d="M{x:.1f} {frame.top}V{frame.floor}"/>')
        drawn.append(text(x, frame.floor + 16, label))
    for row, (shape, name) in enumerate(zip(some, names, strict=True)):
        y = frame.down(len(some) - row - 0.5)
        bar = max(frame.across(100 * min(max(shape["share"], 0.0), top)) - left, 0.5)
        drawn.append(text(left - 10, y + 4, name, "end", "label"))
        style = f'x="{left:.1f}" y="{y - 9:.1f}" width="{bar:.1f}" height="18" rx="3"'
        drawn.append(f'<rect {style} style="fill:var(--band)"/>')
        ends = [frame.across(100 * shape[edge]) for edge in ("low", "high")]
        ticks = "".join(f"M{x:.1f} {y - 5:.1f}v10" for x in ends)
        line = f"M{ends[0]:.1f} {y:.1f}H{ends[1]:.1f}{ticks}"
        drawn.append(f'<path class="line released" style="stroke-width:2" d="{line}"/>')
    svg = frame.svg("Share of each shape with its interval", *drawn)
    return f'<div class="wide"><figure>{svg}</figure></div>'


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
    for shape in about["shapes"]:
        error = shape["standard_error"]
        cells = [
            *([str(shape["label"])] if labelled else []),
            _percent(shape["share"]),
            _interval(shape),
            format_count(shape["count"], error),
            "not known" if error is None else format_count(error, error),
            *(["yes" if shape["sure"] else "no"] if sure else []),
        ]
        rows.append([_name(shape), *cells])
    return _plain_table(head, rows)


def tells_sureness(about: About) -> bool:
    """Whether, by ``about``, it was asked in a way that can tell what noise alone would make."""
    return any(shape["sure"] is not None for shape in about["shapes"])


def _plain_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return table([*map(escape, head)], [[*map(escape, cells)] for cells in rows])


def counts_mean(about: About) -> str:
    """What is counted, by the method in ``about``."""
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
        if not all(shape["sure"] for shape in about["shapes"]):
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
    if not all(shape["ends"] for shape in about["shapes"]):
        points.append("a shape with … goes on beyond the length that was asked about")
    return f"<section><h2>How far to trust it</h2>{items(_sentences(points))}</section>"


def _asked(about: About) -> str:
    last, rows = len(about["rounds"]) - 1, []
    numbered = enumerate(about["rounds"])
    # the question about beginnings is asked again for each level of the tree
    for _, group in itertools.groupby(numbered, lambda item: (item[1]["kind"], item[1]["oracle"])):
        numbers, asked = zip(*group, strict=True)
        question = QUESTIONS[asked[0]["kind"]]
        if numbers[-1] == last and about["settings"]["labels"]:
            question = question[:-1] + ", and your label?"
        number = _span([i + 1 for i in numbers])
        people, cells = (_span([step[name] for step in asked]) for name in ("people", "cells"))
        each = " each" if len(asked) > 1 else ""
        rows.append([f"{number}. {question}", people + each, cells, ORACLES[asked[0]["oracle"]]])
    text = _plain_table(["Question", "Asked of", "Possible answers", "Noise"], rows)
    # a question is a sentence: it may take several lines
    text = text.replace('<th scope="row">', '<th scope="row" style="white-space:normal">')
    return (
        "<section><h2>What was asked</h2><p>Groups were drawn at random. Nobody was asked twice, "
        f"whatever was answered.</p>{text}</section>"
    )


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


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
        ("Guarantee", guarantee.sentence),
        ("Claim in the literature", _claim(about)),
    ]
    return made_section(facts, about["settings"])
