"""What every part of the study on shapes shares: people, campaigns among them, and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.population.campaign import nearest
from tempriv.population.distance import Kind, distances
from tempriv.population.pattern_offline import OfflinePattern, Variant
from tempriv.population.pattern_pipelines import adjusted_rand, forest_accuracy, kmeans_centres
from tempriv.population.pattern_pipelines import nearest as nearest_centre
from tempriv.population.sax import Sax
from tempriv.population.sequences import Sequences
from tempriv.population.shapes_course import Course, Method, Plan, Shape
from tempriv.population.shapes_grouped import answered, try_out
from tempriv.randomness import Key, simulation
from tempriv.studies.privshape_data import Labelled, Task

Integers = npt.NDArray[np.int64]

BASELINE, PUBLISHED, NEAREST, AUTOMATIC = "baseline", "PrivShape", "nearest", "ours"
FIRST = "first symbol only"
AS_RUN, REPAIRED = "PatternLDP, as run", "PatternLDP, repaired"
METHODS: dict[str, Method] = {
    BASELINE: "baseline", PUBLISHED: "published", NEAREST: "nearest", AUTOMATIC: "automatic",
    FIRST: "one-shot",
}  # fmt: skip
VARIANTS: dict[str, Variant] = {AS_RUN: "as run", REPAIRED: "repaired"}
COMPARED = (BASELINE, PUBLISHED, NEAREST, AUTOMATIC)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
SEED = 2023  # the paper's own for its pictures


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of everything.

    ``runs`` of what is fast; ``slow`` of campaigns that ask for whole sequences, and of Symbols,
    which has thousands of them; ``swept`` for each point where something is varied. PatternLDP has
    ``perturbed`` people, and forests of ``trees``.
    """

    runs: int
    slow: int
    swept: int
    perturbed: int
    trees: int


QUICK = Size(runs=20, slow=6, swept=3, perturbed=3_000, trees=20)
FULL = Size(runs=40, slow=40, swept=20, perturbed=39_000, trees=100)


@dataclass(frozen=True)
class Inputs:
    symbols: Task
    trace: Task


@dataclass(frozen=True)
class People:
    """Who has which sequence and label, and the sequences that shapes are judged by."""

    sax: Sax
    names: tuple[str, ...]  # of the labels
    texts: list[str]
    counts: Integers
    labels: list[int]
    modes: tuple[str, ...]  # the most frequent sequence of each label
    tested: Sequences
    truth: Integers

    @property
    def size(self) -> int:
        return int(self.counts.sum())


def people_of(train: Labelled, test: Labelled, sax: Sax) -> People:
    names = np.unique(train.labels)
    sequences = sax.sequences(train.series)
    texts: list[str] = []
    labels: list[int] = []
    modes: list[str] = []
    counts: list[Integers] = []
    for j, name in enumerate(names):
        own, many = sequences.take(train.labels == name).distinct()
        modes.append(own.texts()[int(np.argmax(many))])
        texts += own.texts()
        labels += [j] * len(many)
        counts.append(many)
    return People(
        sax, tuple(map(str, names.tolist())), texts, np.concatenate(counts), labels, tuple(modes),
        sax.sequences(test.series), np.searchsorted(names, test.labels),
    )  # fmt: skip


def people_for(task: Task, sax: Sax | None = None) -> People:
    return people_of(task.train, task.test, sax or task.sax)


def plan_for(
    people: People, name: str, epsilon: float, distance: Kind, labelled: bool, low: int = 1
) -> Plan:
    """With the paper's parameters: c = 3, N = 100, 2, 8, 70 and 20 % of the people."""
    return Plan(
        epsilon=epsilon, shapes=len(people.names), people=people.size, sax=people.sax,
        distance=distance, method=METHODS[name], labels=people.names if labelled else (), low=low,
    )  # fmt: skip


def shapes_in(people: People, plan: Plan, seed: int) -> tuple[Shape, ...]:
    labels = people.labels if plan.labels else None
    return try_out(plan, people.texts, people.counts, Key.from_seed(seed), labels).shapes


@dataclass(frozen=True)
class Judged:
    """Accuracy or adjusted Rand index, and the share of class modes that are found exactly."""

    score: float
    recovered: float


def judged(people: People, plan: Plan, shapes: Sequence[Shape]) -> Judged:
    which = nearest(shapes, people.tested, plan.distance)[0]
    if not plan.labels:
        found = {shape.text for shape in shapes if shape.ends}
        modes = set(people.modes)
        return Judged(adjusted_rand(people.truth, which), len(found & modes) / len(modes))
    given = np.array([people.names.index(str(shape.label)) for shape in shapes])
    right = float(np.mean(given[which] == people.truth))
    first = first_of_each(people, shapes)
    whole = [
        shape is not None and shape.ends and shape.text == mode
        for shape, mode in zip(first, people.modes, strict=True)
    ]
    return Judged(right, float(np.mean(whole)))


def first_of_each(people: People, shapes: Sequence[Shape]) -> list[Shape | None]:
    """The most frequent shape of each label."""
    return [
        max((s for s in shapes if s.label == name), key=lambda s: s.count, default=None)
        for name in people.names
    ]


@dataclass(frozen=True)
class Scores:
    """Means over runs, with their standard errors."""

    score: float
    score_error: float
    recovered: float
    recovered_error: float
    runs: int

    @property
    def line(self) -> tuple[Any, ...]:
        return (self.score, self.score_error, self.recovered, self.recovered_error, self.runs)


COLUMNS = ("score", "score_error", "recovered", "recovered_error", "runs")


def mean_of(found: Sequence[Judged]) -> Scores:
    return Scores(
        *_mean([one.score for one in found]), *_mean([one.recovered for one in found]), len(found)
    )


def _mean(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 2:
        return float(np.mean(values)), float("nan")
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def scores(
    people: People, name: str, epsilon: float, distance: Kind, labelled: bool, runs: int
) -> Scores:
    """A campaign again and again, the people's sequences being the same."""
    plan = plan_for(people, name, epsilon, distance, labelled)
    return mean_of([judged(people, plan, shapes_in(people, plan, seed)) for seed in range(runs)])


def first_symbols(task: Task) -> People:
    """What is left of the people if all but the first symbol is forgotten."""
    return people_for(task, replace(task.sax, longest=1))


# PatternLDP


def pattern_accuracy(task: Task, name: str, epsilon: float, size: Size, seed: int = SEED) -> float:
    """A forest from series and labels that PatternLDP has perturbed."""
    key, some = (
        Key.from_seed(seed),
        task.train.take(np.arange(min(size.perturbed, len(task.train)))),
    )
    mechanism = OfflinePattern(epsilon=epsilon, variant=VARIANTS[name], classes=task.classes)
    sent = mechanism.perturbed(some.series, key, some.labels)
    return forest_accuracy(
        sent.series, sent.labels, task.test.series, task.test.labels, key, trees=size.trees
    )


def pattern_centres(task: Task, name: str, epsilon: float, size: Size, seed: int = SEED) -> Any:
    """The centres of clusters of series that PatternLDP has perturbed."""
    key, some = (
        Key.from_seed(seed),
        task.train.take(np.arange(min(size.perturbed, len(task.train)))),
    )
    sent = OfflinePattern(epsilon=epsilon, variant=VARIANTS[name]).perturbed(some.series, key)
    return kmeans_centres(sent.series, len(task.classes), key)


def pattern_rand(task: Task, name: str, epsilon: float, size: Size) -> float:
    centres = pattern_centres(task, name, epsilon, size)
    return adjusted_rand(task.test.labels, nearest_centre(task.test.series, centres))


# how far shapes are from those of the classes


def apart(
    people: People, texts: Sequence[str], kind: Kind
) -> list[tuple[str, float, float, float]]:
    """For each class mode the nearest text, and how far it is: DTW, edits, Euclidean."""
    modes = Sequences.of_texts(list(people.modes), people.sax)
    found = Sequences.of_texts(list(texts), people.sax)
    best = distances(kind, modes, found).argmin(axis=1)
    kinds: tuple[Kind, ...] = ("dtw", "levenshtein", "euclidean")
    each = [distances(one, modes, found)[np.arange(len(best)), best] for one in kinds]
    return [(texts[b], *(float(one[i]) for one in each)) for i, b in enumerate(best)]


# what is asked


def asked_levels(people: People, plan: Plan, seed: int) -> list[tuple[int, int]]:
    """Level and number of candidates of each question about the tree."""
    generator = simulation(Key.from_seed(seed), "campaign")
    left, course = people.counts.copy(), Course(plan, "0" * 32)
    found = []
    while course.question is not None:
        if course.question.kind == "level":
            found.append((course.level, len(course.candidates)))
        asked = min(course.wanted, int(left.sum()))
        group = generator.multivariate_hypergeometric(left, asked, method="marginals")
        left -= group
        labels = people.labels if plan.labels else None
        support = answered(course.question, people.texts, group, labels, generator)
        course = course.after(support, asked)
    return found
