"""The tables of the study on shapes, in the order of the paper's figures."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tempriv.local.shapes.distance import DistanceKind
from tempriv.local.shapes.sax import Sax, without_segments
from tempriv.local.shapes.sequences import longest_of
from tempriv.studies.common import ResultTable
from tempriv.studies.privshape.data import WAVE_LENGTHS, WAVES, Labelled, Task, shapes_of, waves
from tempriv.studies.privshape.experiment import (
    AUTOMATIC,
    BASELINE,
    COLUMNS,
    COMPARED,
    EPSILONS,
    FEW,
    FIGURE_9,
    FIGURE_11,
    FIRST,
    PUBLISHED,
    REPAIRED,
    RULES,
    SEED,
    SWEPT,
    VARIANTS,
    PrivShapeInputs,
    PrivShapeSize,
    SimulatedPeople,
    apart,
    asked_levels,
    each_of,
    first_of_each,
    first_symbols,
    pattern_accuracy,
    pattern_centers,
    pattern_rand,
    people_for,
    people_of,
    plan_for,
    scores,
    shapes_in,
    spread,
    tied,
)

T_SYMBOLS, T_TRACE = (4, 5, 6, 7, 8), (3, 4, 5, 6, 7)
W_SYMBOLS, W_TRACE = (15, 20, 25, 30, 40), (5, 10, 15, 20, 30)
KINDS: tuple[DistanceKind, ...] = ("dtw", "levenshtein", "euclidean")
USERS = (5_000, 10_000, 20_000, 39_000)
EDIT: DistanceKind = "levenshtein"  # Section V-B2: for Trace; DTW for Symbols
WARPED: DistanceKind = "dtw"
NAN = float("nan")


def data(inputs: PrivShapeInputs) -> ResultTable:
    """What the made series look like after SAX."""
    lines: list[tuple[Any, ...]] = []
    for task in (inputs.symbols, inputs.trace):
        found = shapes_of(task)
        for label, mode in found.modes.items():
            lines.append(
                (
                    task.name,
                    label,
                    mode,
                    found.shares[label],
                    found.different,
                    found.first_symbol,
                    len(task.train),
                    task.made_up,
                )
            )
    columns = ("data", "label", "mode", "share", "different", "first_symbol", "people", "made_up")
    return ResultTable("data", "class modes of the series at hand", columns, tuple(lines))


def figure_11(task: Task, size: PrivShapeSize) -> ResultTable:
    """Accuracy and recovery on Trace, by epsilon."""
    people, first = people_for(task), first_symbols(task)
    lines: list[tuple[Any, ...]] = []
    for epsilon in size.epsilons(FIGURE_11):
        runs = {name: size.runs_at(epsilon, name == AUTOMATIC) for name in COMPARED}
        for name, found in each_of(people, runs, epsilon, EDIT, True).items():
            lines.append((epsilon, name, *found.line))
        alone = scores(first, FIRST, epsilon, EDIT, True, size.runs_at(epsilon, False))
        # of one symbol no whole shape is known
        lines.append((epsilon, FIRST, alone.score, alone.score_error, 0.0, 0.0, alone.runs))
        if epsilon not in FIGURE_9:  # forests are slow
            continue
        for name in VARIANTS:
            accuracy = pattern_accuracy(task, name, epsilon, size)
            lines.append((epsilon, name, accuracy, NAN, NAN, NAN, 1))
    title = "accuracy on Trace and share of class modes recovered exactly"
    return ResultTable("figure-11", title, ("epsilon", "method", *COLUMNS), tuple(lines))


def figure_9(task: Task, size: PrivShapeSize) -> ResultTable:
    """Adjusted Rand index on Symbols, by epsilon."""
    people, first = people_for(task), first_symbols(task)
    lines: list[tuple[Any, ...]] = []
    for epsilon in size.epsilons(FIGURE_9):
        runs = dict.fromkeys(COMPARED, size.runs_at(epsilon, slow=True))
        for name, found in each_of(people, runs, epsilon, WARPED, False).items():
            lines.append((epsilon, name, *found.line))
        alone = scores(first, FIRST, epsilon, WARPED, False, size.runs_at(epsilon, slow=True))
        lines.append((epsilon, FIRST, alone.score, alone.score_error, 0.0, 0.0, alone.runs))
        if epsilon not in FEW:  # slow
            continue
        for name in VARIANTS:
            lines.append((epsilon, name, pattern_rand(task, name, epsilon, size), NAN, NAN, NAN, 1))
    title = "adjusted Rand index on Symbols and share of class modes recovered exactly"
    return ResultTable("figure-9", title, ("epsilon", "method", *COLUMNS), tuple(lines))


def ties(task: Task, size: PrivShapeSize) -> ResultTable:
    """PrivShape's shapes of Trace, read with other rules for what is equally near to two."""
    people = people_for(task)
    lines: list[tuple[Any, ...]] = []
    for epsilon in EPSILONS:
        plan = plan_for(people, PUBLISHED, epsilon, EDIT, True)
        each = [
            tied(people, shapes_in(people, plan, seed), EDIT, seed) for seed in range(size.runs)
        ]
        share = spread([one for _, one in each])[0]
        for rule in RULES:
            found = spread([one[rule] for one, _ in each])
            lines.append((epsilon, rule, *found, share, size.runs))
    columns = ("epsilon", "rule", "score", "score_error", "tied", "runs")
    title = "PrivShape's accuracy on Trace by the rule for equally near shapes"
    return ResultTable("ties", title, columns, tuple(lines))


def extracted(
    name: str, task: Task, labelled: bool, size: PrivShapeSize, epsilon: float = 4.0
) -> ResultTable:
    """Shapes of one campaign, that of the paper's seed, and how far off they are."""
    people, kind = people_for(task), EDIT if labelled else WARPED
    lines: list[tuple[Any, ...]] = []
    for method in COMPARED:
        plan = plan_for(people, method, epsilon, kind, labelled)
        shapes = shapes_in(people, plan, SEED)
        texts = [shape.text for shape in shapes]
        if labelled:
            # each class by its own shape, as it is labeled
            own = [s.text if s else texts[0] for s in first_of_each(people, shapes)]
            found = [apart(people, [text], kind)[i] for i, text in enumerate(own)]
        else:
            found = apart(people, texts, kind)
        lines += _off(people, method, found)
    for method in VARIANTS:
        # the captions of Figures 8 and 10: KMeans and KShape, matched by DTW
        centers = pattern_centers(task, method, epsilon, size, shaped=labelled)
        lines += _off(people, method, apart(people, people.sax.sequences(centers).texts(), WARPED))
    columns = ("method", "label", "mode", "shape", *KINDS, "symbols", "segment")
    symbols, segment = people.sax.symbols, people.sax.segment
    return ResultTable(
        name,
        f"shapes of {task.name} at epsilon {epsilon:g}, one campaign",
        columns,
        tuple((*line, symbols, segment) for line in lines),
    )


def _off(
    people: SimulatedPeople, method: str, found: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    each = zip(people.names, people.modes, found, strict=True)
    return [(method, label, mode, *one) for label, mode, one in each]


def _wave_task(series: Labelled) -> Task:
    """All waves of a class are the same, so the test may be any of them."""
    some = Labelled(series.series[:200], series.labels[:200])
    return Task("waves", series, some, Sax(symbols=4, segment=10, longest=10))


def figures_16_17(size: PrivShapeSize) -> ResultTable:
    """Waves: the same shape in more points, and more of the shape."""
    lines: list[tuple[Any, ...]] = []
    for figure, points in itertools.product((16, 17), WAVE_LENGTHS):
        length = points if figure == 16 else max(WAVE_LENGTHS)
        few = people_for(_wave_task(waves(length, 2, points)))
        people = replace(few, counts=few.counts * (WAVES // 2))  # all of a class are the same
        runs = dict.fromkeys(COMPARED, size.swept)
        for name, found in each_of(people, runs, 4.0, EDIT, True).items():
            lines.append((figure, points, name, *found.line))
        task = _wave_task(waves(length, min(WAVES, size.perturbed // 2), points))
        accuracy = pattern_accuracy(task, REPAIRED, 4.0, size)
        lines.append((figure, points, REPAIRED, accuracy, NAN, NAN, NAN, 1))
    title = "accuracy on sines and cosines, epsilon 4, by the number of points"
    return ResultTable(
        "figures-16-17", title, ("figure", "points", "method", *COLUMNS), tuple(lines)
    )


def figure_18(task: Task, size: PrivShapeSize) -> ResultTable:
    """Trace without segments, and without compression."""
    plain = task.sax
    longest = min(longest_of(plain.symbols), -(-task.train.series.shape[1] // plain.segment))
    forms = {
        "Compressive SAX": plain,
        "without SAX": without_segments(),
        "no compression": replace(plain, compressed=False, longest=longest),
    }
    runs = dict.fromkeys(SWEPT, size.swept)
    lines = tuple(
        (form, epsilon, name, *found.line)
        for form, sax in forms.items()
        for people in (people_for(task, sax),)
        for epsilon in EPSILONS
        for name, found in each_of(people, runs, epsilon, EDIT, True).items()
    )
    columns = ("form", "epsilon", "method", *COLUMNS)
    return ResultTable("figure-18", "accuracy on Trace without parts of SAX", columns, lines)


def figures_13_14(inputs: PrivShapeInputs, size: PrivShapeSize) -> ResultTable:
    """Other numbers of symbols and other segments, epsilon 4."""
    lines: list[tuple[Any, ...]] = []
    for task, labelled, symbols, segments in (
        (inputs.symbols, False, T_SYMBOLS, W_SYMBOLS),
        (inputs.trace, True, T_TRACE, W_TRACE),
    ):
        varied = [("symbols", t, replace(task.sax, symbols=t)) for t in symbols]
        varied += [("segment", w, replace(task.sax, segment=w)) for w in segments]
        for what, value, sax in varied:
            people = people_for(task, sax)
            kind, runs = EDIT if labelled else WARPED, dict.fromkeys(SWEPT, size.swept)
            for name, found in each_of(people, runs, 4.0, kind, labelled).items():
                lines.append((task.name, what, value, name, *found.line))
    columns = ("data", "varied", "value", "method", *COLUMNS)
    return ResultTable(
        "figures-13-14", "other symbols and segments, epsilon 4", columns, tuple(lines)
    )


def figure_15(inputs: PrivShapeInputs, size: PrivShapeSize) -> ResultTable:
    """Other distances."""
    both = (
        (people_for(inputs.symbols), "Symbols", False),
        (people_for(inputs.trace), "Trace", True),
    )
    runs = dict.fromkeys(SWEPT, size.swept)
    lines = tuple(
        (task, kind, epsilon, name, *found.line)
        for people, task, labelled in both
        for kind, epsilon in itertools.product(KINDS, (1.0, 4.0))
        for name, found in each_of(people, runs, epsilon, kind, labelled).items()
    )
    columns = ("data", "distance", "epsilon", "method", *COLUMNS)
    return ResultTable("figure-15", "other distances", columns, lines)


def users(task: Task, size: PrivShapeSize) -> ResultTable:
    """Fewer people, epsilon 1."""
    lines: list[tuple[Any, ...]] = []
    for many in sorted({min(many, len(task.train)) for many in USERS}):
        people = people_of(task.train.take(np.arange(many)), task.test, task.sax)
        runs = dict.fromkeys(SWEPT, size.swept)
        for name, found in each_of(people, runs, 1.0, EDIT, True).items():
            lines.append((many, name, *found.line))
    return ResultTable(
        "users", "fewer people on Trace, epsilon 1", ("people", "method", *COLUMNS), tuple(lines)
    )


def theorem_4(inputs: PrivShapeInputs) -> ResultTable:
    """Candidates at each level, and the paper's ratio for the worst case."""
    lines: list[tuple[Any, ...]] = []
    for task, labelled in ((inputs.symbols, False), (inputs.trace, True)):
        people = people_for(task)
        t, wide = people.sax.symbols, 3 * len(people.names)
        many: dict[str, dict[int, int]] = {}
        for name in (BASELINE, PUBLISHED):
            plan = plan_for(people, name, 4.0, EDIT if labelled else WARPED, labelled)
            many[name] = dict(asked_levels(people, plan, SEED))
        for level in sorted(set(many[BASELINE]) & set(many[PUBLISHED])):
            theirs, ours = many[BASELINE][level], many[PUBLISHED][level]
            worst = t * (t - 1) ** (level - 1)
            lines.append(
                (
                    task.name,
                    level,
                    theirs,
                    ours,
                    theirs / ours,
                    worst / wide**2,
                    worst,
                    wide * min(t - 1, wide),
                )
            )
    columns = (
        "data",
        "level",
        "baseline",
        "published",
        "ratio",
        "theorem",
        "worst_baseline",
        "worst_published",
    )
    title = "candidates that a device compares with, epsilon 4, one campaign"
    return ResultTable("theorem-4", title, columns, tuple(lines))


def table_5(inputs: PrivShapeInputs, size: PrivShapeSize) -> ResultTable:
    """Seconds for all people of a campaign, equal sequences together; PatternLDP with its model."""
    lines: list[tuple[Any, ...]] = []
    for task, labelled in ((inputs.symbols, False), (inputs.trace, True)):
        people = people_for(task)
        for name in COMPARED:
            plan = plan_for(people, name, 4.0, EDIT if labelled else WARPED, labelled)
            shapes_in(people, plan, 0)
            begin = time.process_time()
            shapes_in(people, plan, 1)
            lines.append((task.name, name, people.size, time.process_time() - begin))
        begin = time.process_time()
        (pattern_accuracy if labelled else pattern_rand)(task, REPAIRED, 4.0, size)
        many = min(size.perturbed, people.size)
        lines.append((task.name, REPAIRED, many, time.process_time() - begin))
    columns = ("data", "method", "people", "seconds")
    return ResultTable(
        "table-5", "processor seconds of a campaign, epsilon 4", columns, tuple(lines)
    )


def tables(inputs: PrivShapeInputs, size: PrivShapeSize) -> Iterator[ResultTable]:
    yield data(inputs)
    yield figure_11(inputs.trace, size)
    yield ties(inputs.trace, size)
    yield figure_9(inputs.symbols, size)
    yield extracted("table-3", inputs.symbols, False, size)
    yield extracted("table-4", inputs.trace, True, size)
    yield extracted("figure-12", inputs.trace, True, size, epsilon=8.0)
    yield figures_16_17(size)
    yield figure_18(inputs.trace, size)
    yield figures_13_14(inputs, size)
    yield figure_15(inputs, size)
    yield users(inputs.trace, size)
    yield theorem_4(inputs)
    yield table_5(inputs, size)
