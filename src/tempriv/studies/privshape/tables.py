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
from tempriv.studies.privshape.data import (
    WAVE_LENGTHS,
    WAVE_SERIES,
    Labelled,
    Task,
    shapes_of,
    waves,
)
from tempriv.studies.privshape.experiment import (
    AUTOMATIC,
    BASELINE,
    COARSE_EPSILONS,
    COLUMNS,
    COMPARED,
    EPSILONS,
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
    """What the made series of ``inputs`` look like after SAX."""
    lines: list[tuple[Any, ...]] = []
    for task in (inputs.symbols, inputs.trace):
        modes = shapes_of(task)
        for label, mode in modes.modes.items():
            lines.append(
                (
                    task.name,
                    label,
                    mode,
                    modes.shares[label],
                    modes.different,
                    modes.first_symbol,
                    len(task.train),
                    task.made_up,
                )
            )
    columns = ("data", "label", "mode", "share", "different", "first_symbol", "people", "made_up")
    return ResultTable("data", "class modes of the series at hand", columns, tuple(lines))


def _method_lines(
    people: SimulatedPeople,
    runs: dict[str, int],
    epsilon: float,
    labelled: bool,
    *key: Any,
    kind: DistanceKind | None = None,
) -> Iterator[tuple[Any, ...]]:
    """A line for each method: the ``key``, its name, and its scores."""
    kind = kind or (EDIT if labelled else WARPED)
    for name, means in each_of(people, runs, epsilon, kind, labelled).items():
        yield (*key, name, *means.line)


def _by_epsilon(
    task: Task,
    size: PrivShapeSize,
    labelled: bool,
    printed: tuple[float, ...],
    patterned: tuple[float, ...],
) -> Iterator[tuple[Any, ...]]:
    """Scores by epsilon, of PatternLDP only where it is worth the time."""
    people, first = people_for(task), first_symbols(task)
    for epsilon in size.epsilons(printed):
        # campaigns among Symbols are slow, as are those that ask for whole sequences
        runs = {name: size.runs_at(epsilon, not labelled or name == AUTOMATIC) for name in COMPARED}
        yield from _method_lines(people, runs, epsilon, labelled, epsilon)
        (alone,) = _method_lines(
            first, {FIRST: size.runs_at(epsilon, not labelled)}, epsilon, labelled, epsilon
        )
        # of one symbol no whole shape is known
        yield (*alone[:4], 0.0, 0.0, alone[-1])
        for name in VARIANTS if epsilon in patterned else ():
            score = (pattern_accuracy if labelled else pattern_rand)(task, name, epsilon, size)
            yield epsilon, name, score, NAN, NAN, NAN, 1


def figure_11(task: Task, size: PrivShapeSize) -> ResultTable:
    """Accuracy and recovery on a ``task`` like Trace, by epsilon, in a ``size``."""
    lines = tuple(_by_epsilon(task, size, True, FIGURE_11, FIGURE_9))  # forests are slow
    title = "accuracy on Trace and share of class modes recovered exactly"
    return ResultTable("figure-11", title, ("epsilon", "method", *COLUMNS), lines)


def figure_9(task: Task, size: PrivShapeSize) -> ResultTable:
    """Adjusted Rand index on a ``task`` like Symbols, by epsilon, in a ``size``."""
    lines = tuple(_by_epsilon(task, size, False, FIGURE_9, COARSE_EPSILONS))
    title = "adjusted Rand index on Symbols and share of class modes recovered exactly"
    return ResultTable("figure-9", title, ("epsilon", "method", *COLUMNS), lines)


def ties(task: Task, size: PrivShapeSize) -> ResultTable:
    """PrivShape's shapes of Trace, read with other rules for what is equally near to two.

    Parameters:
        task: the data set.
        size: how much of everything.
    """
    people = people_for(task)
    lines: list[tuple[Any, ...]] = []
    for epsilon in EPSILONS:
        plan = plan_for(people, PUBLISHED, epsilon, EDIT, True)
        each = [
            tied(people, shapes_in(people, plan, seed), EDIT, seed) for seed in range(size.runs)
        ]
        share = spread([share_tied for _, share_tied in each])[0]
        for rule in RULES:
            means = spread([accuracies[rule] for accuracies, _ in each])
            lines.append((epsilon, rule, *means, share, size.runs))
    columns = ("epsilon", "rule", "score", "score_error", "tied", "runs")
    title = "PrivShape's accuracy on Trace by the rule for equally near shapes"
    return ResultTable("ties", title, columns, tuple(lines))


def extracted(
    name: str, task: Task, labelled: bool, size: PrivShapeSize, epsilon: float = 4.0
) -> ResultTable:
    """Shapes of one campaign, that of the paper's seed, and how far off they are.

    Parameters:
        name: of the table.
        task: the data set.
        labelled: whether devices report a label too.
        size: how much of everything.
        epsilon: the budget.
    """
    people, kind = people_for(task), EDIT if labelled else WARPED
    lines: list[tuple[Any, ...]] = []
    for method in COMPARED:
        plan = plan_for(people, method, epsilon, kind, labelled)
        shapes = shapes_in(people, plan, SEED)
        texts = [shape.text for shape in shapes]
        if labelled:
            # each class by its own shape, as it is labeled
            nearest_texts = [s.text if s else texts[0] for s in first_of_each(people, shapes)]
            distances = [apart(people, [text], kind)[i] for i, text in enumerate(nearest_texts)]
        else:
            distances = apart(people, texts, kind)
        lines += _off(people, method, distances)
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
    people: SimulatedPeople, method: str, distances: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    each = zip(people.names, people.modes, distances, strict=True)
    return [(method, label, mode, *values) for label, mode, values in each]


def _wave_task(series: Labelled) -> Task:
    """All waves of a class are the same, so the test may be any of them."""
    some = Labelled(series.series[:200], series.labels[:200])
    return Task("waves", series, some, Sax(symbols=4, segment=10, longest=10))


def figures_16_17(size: PrivShapeSize) -> ResultTable:
    """Waves: the same shape in more points, and more of the shape; in a ``size``."""
    lines: list[tuple[Any, ...]] = []
    for figure, points in itertools.product((16, 17), WAVE_LENGTHS):
        length = points if figure == 16 else max(WAVE_LENGTHS)
        few = people_for(_wave_task(waves(length, 2, points)))
        people = replace(few, counts=few.counts * (WAVE_SERIES // 2))  # all of a class are the same
        runs = dict.fromkeys(COMPARED, size.swept)
        lines += _method_lines(people, runs, 4.0, True, figure, points)
        task = _wave_task(waves(length, min(WAVE_SERIES, size.perturbed // 2), points))
        accuracy = pattern_accuracy(task, REPAIRED, 4.0, size)
        lines.append((figure, points, REPAIRED, accuracy, NAN, NAN, NAN, 1))
    title = "accuracy on sines and cosines, epsilon 4, by the number of points"
    return ResultTable(
        "figures-16-17", title, ("figure", "points", "method", *COLUMNS), tuple(lines)
    )


def figure_18(task: Task, size: PrivShapeSize) -> ResultTable:
    """Trace without segments, and without compression.

    Parameters:
        task: the data set.
        size: how much of everything.
    """
    plain = task.sax
    longest = min(longest_of(plain.symbols), -(-task.train.series.shape[1] // plain.segment))
    forms = {
        "Compressive SAX": plain,
        "without SAX": without_segments(),
        "no compression": replace(plain, compressed=False, longest=longest),
    }
    runs = dict.fromkeys(SWEPT, size.swept)
    lines = tuple(
        line
        for form, sax in forms.items()
        for people in (people_for(task, sax),)
        for epsilon in EPSILONS
        for line in _method_lines(people, runs, epsilon, True, form, epsilon)
    )
    columns = ("form", "epsilon", "method", *COLUMNS)
    return ResultTable("figure-18", "accuracy on Trace without parts of SAX", columns, lines)


def figures_13_14(inputs: PrivShapeInputs, size: PrivShapeSize) -> ResultTable:
    """Other numbers of symbols and other segments, epsilon 4.

    Parameters:
        inputs: what the study runs on.
        size: how much of everything.
    """
    lines: list[tuple[Any, ...]] = []
    for task, labelled, symbols, segments in (
        (inputs.symbols, False, T_SYMBOLS, W_SYMBOLS),
        (inputs.trace, True, T_TRACE, W_TRACE),
    ):
        varied = [("symbols", t, replace(task.sax, symbols=t)) for t in symbols]
        varied += [("segment", w, replace(task.sax, segment=w)) for w in segments]
        for what, value, sax in varied:
            people, runs = people_for(task, sax), dict.fromkeys(SWEPT, size.swept)
            lines += _method_lines(people, runs, 4.0, labelled, task.name, what, value)
    columns = ("data", "varied", "value", "method", *COLUMNS)
    return ResultTable(
        "figures-13-14", "other symbols and segments, epsilon 4", columns, tuple(lines)
    )


def figure_15(inputs: PrivShapeInputs, size: PrivShapeSize) -> ResultTable:
    """Other distances, from ``inputs``, in a ``size``."""
    both = (
        (people_for(inputs.symbols), "Symbols", False),
        (people_for(inputs.trace), "Trace", True),
    )
    runs = dict.fromkeys(SWEPT, size.swept)
    lines = tuple(
        line
        for people, task, labelled in both
        for kind, epsilon in itertools.product(KINDS, (1.0, 4.0))
        for line in _method_lines(people, runs, epsilon, labelled, task, kind, epsilon, kind=kind)
    )
    columns = ("data", "distance", "epsilon", "method", *COLUMNS)
    return ResultTable("figure-15", "other distances", columns, lines)


def users(task: Task, size: PrivShapeSize) -> ResultTable:
    """Fewer people of a ``task``, epsilon 1, in a ``size``."""
    lines: list[tuple[Any, ...]] = []
    for many in sorted({min(many, len(task.train)) for many in USERS}):
        people = people_of(task.train.take(np.arange(many)), task.test, task.sax)
        runs = dict.fromkeys(SWEPT, size.swept)
        lines += _method_lines(people, runs, 1.0, True, many)
    return ResultTable(
        "users", "fewer people on Trace, epsilon 1", ("people", "method", *COLUMNS), tuple(lines)
    )


def theorem_4(inputs: PrivShapeInputs) -> ResultTable:
    """Candidates at each level for ``inputs``, and the paper's ratio for the worst case."""
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
    """Seconds for all people of a campaign, equal sequences together; PatternLDP with its model.

    Parameters:
        inputs: what the study runs on.
        size: how much of everything.
    """
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
    """All tables of the study, from ``inputs``, in a ``size``."""
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
