"""What every part of the study on shapes shares: people, campaigns among them, and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.local.shapes.distance import DistanceKind, distances
from tempriv.local.shapes.plan import Method, ShapesPlan
from tempriv.local.shapes.protocol import Shape, ShapesProtocol
from tempriv.local.shapes.sax import Sax
from tempriv.local.shapes.sequences import Sequences
from tempriv.local.shapes.simulate import nearest, simulate_grouped
from tempriv.sampling.keys import Key, simulation
from tempriv.studies.common import mean_and_error
from tempriv.studies.privshape.baselines import (
    adjusted_rand,
    forest_accuracy,
    kmeans_centers,
    kshape_centers,
)
from tempriv.studies.privshape.baselines import nearest as nearest_center
from tempriv.studies.privshape.data import Labelled, Task
from tempriv.studies.privshape.pattern_ldp import OfflinePattern, Variant

Integers = npt.NDArray[np.int64]

BASELINE, PUBLISHED, NEAREST, AUTOMATIC = "baseline", "PrivShape", "nearest", "ours"
FIRST = "first symbol only"
AS_RUN, REPAIRED = "PatternLDP, as run", "PatternLDP, repaired"
METHODS: dict[str, Method] = {
    BASELINE: "baseline",
    PUBLISHED: "published",
    NEAREST: "nearest",
    AUTOMATIC: "automatic",
    FIRST: "one-shot",
}
VARIANTS: dict[str, Variant] = {AS_RUN: "as run", REPAIRED: "repaired"}
COMPARED = (BASELINE, PUBLISHED, NEAREST, AUTOMATIC)
SWEPT = (PUBLISHED, NEAREST, AUTOMATIC)  # where something else is varied
EPSILONS = (0.5, 1.0, 2.0, 4.0)  # where methods are compared with many runs
FIGURE_9 = (0.1, 0.5, *(float(n) for n in range(1, 11)))  # Section V-D
FIGURE_11 = (0.1, 0.5, *(n / 2 for n in range(2, 17)))  # Section V-E
COARSE_EPSILONS = (0.1, *EPSILONS, 8.0)
SEED = 2023  # the paper's own for its pictures


@dataclass(frozen=True, kw_only=True)
class PrivShapeSize:
    """How much of everything.

    ``runs`` of what is fast; ``slow`` of campaigns that ask for whole sequences, and of Symbols,
    which has thousands of them; ``others`` at epsilons other than those of ``EPSILONS``; ``swept``
    for each point where something else is varied. PatternLDP has ``perturbed`` people, and forests
    of ``trees``; k-Shape takes ``shaped`` of them. ``fine`` is every epsilon of the paper, and a
    few of them otherwise.
    """

    runs: int
    slow: int
    others: int
    swept: int
    perturbed: int
    trees: int
    shaped: int
    fine: bool

    def epsilons(self, printed: tuple[float, ...]) -> tuple[float, ...]:
        """Those of the epsilons that are ``printed`` in the paper which are run."""
        return (
            printed
            if self.fine
            else tuple(epsilon for epsilon in printed if epsilon in COARSE_EPSILONS)
        )

    def runs_at(self, epsilon: float, slow: bool) -> int:
        """How many runs there are at an ``epsilon``; fewer of ``slow`` campaigns."""
        if epsilon not in EPSILONS:
            return self.others
        return self.slow if slow else self.runs


QUICK = PrivShapeSize(
    runs=20, slow=6, others=2, swept=2, perturbed=2_000, trees=20, shaped=300, fine=False
)
FULL = PrivShapeSize(
    runs=40, slow=40, others=10, swept=5, perturbed=39_000, trees=20, shaped=1_000, fine=True
)


@dataclass(frozen=True)
class PrivShapeInputs:
    symbols: Task
    trace: Task


@dataclass(frozen=True)
class SimulatedPeople:
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


def people_of(train: Labelled, test: Labelled, sax: Sax) -> SimulatedPeople:
    """The people that a campaign asks.

    Parameters:
        train: their series and labels.
        test: series that shapes are judged by.
        sax: how series become sequences.
    """
    names = np.unique(train.labels)
    sequences = sax.sequences(train.series)
    texts: list[str] = []
    labels: list[int] = []
    modes: list[str] = []
    counts: list[Integers] = []
    for j, name in enumerate(names):
        texts_of_label, many = sequences.take(train.labels == name).distinct()
        modes.append(texts_of_label.texts()[int(np.argmax(many))])
        texts += texts_of_label.texts()
        labels += [j] * len(many)
        counts.append(many)
    return SimulatedPeople(
        sax,
        tuple(map(str, names.tolist())),
        texts,
        np.concatenate(counts),
        labels,
        tuple(modes),
        sax.sequences(test.series),
        np.searchsorted(names, test.labels),
    )


def people_for(task: Task, sax: Sax | None = None) -> SimulatedPeople:
    """The people of a ``task``, their series as ``sax`` makes them, the task's own by default."""
    return people_of(task.train, task.test, sax or task.sax)


def plan_for(
    people: SimulatedPeople,
    name: str,
    epsilon: float,
    distance: DistanceKind,
    labelled: bool,
    low: int = 1,
) -> ShapesPlan:
    """With the paper's parameters: c = 3, N = 100, 2, 8, 70 and 20 % of the people.

    Parameters:
        people: those who answer.
        name: of the method.
        epsilon: the budget.
        distance: by which devices name the nearest shape.
        labelled: whether devices report a label too.
        low: the least length of a sequence.
    """
    return ShapesPlan(
        epsilon=epsilon,
        shapes=len(people.names),
        people=people.size,
        sax=people.sax,
        distance=distance,
        method=METHODS[name],
        labels=people.names if labelled else (),
        low=low,
    )


def campaign_in(people: SimulatedPeople, plan: ShapesPlan, seed: int) -> ShapesProtocol:
    """A campaign by a ``plan`` among some ``people``; ``seed`` is that of all randomness."""
    labels = people.labels if plan.labels else None
    return simulate_grouped(plan, people.texts, people.counts, Key.from_seed(seed), labels)


def shapes_in(people: SimulatedPeople, plan: ShapesPlan, seed: int) -> tuple[Shape, ...]:
    """The shapes of a campaign by a ``plan`` among some ``people``, by a ``seed``."""
    return campaign_in(people, plan, seed).shapes


@dataclass(frozen=True)
class Judged:
    """Accuracy or adjusted Rand index, and the share of class modes that are found exactly."""

    score: float
    recovered: float


def judged(people: SimulatedPeople, plan: ShapesPlan, shapes: Sequence[Shape]) -> Judged:
    """How good the ``shapes`` of a ``plan`` are for some ``people``."""
    which = nearest(shapes, people.tested, plan.distance)[0]
    if not plan.labels:
        texts = {shape.text for shape in shapes if shape.ends}
        modes = set(people.modes)
        return Judged(adjusted_rand(people.truth, which), len(texts & modes) / len(modes))
    shape_labels = np.array([people.names.index(str(shape.label)) for shape in shapes])
    right = float(np.mean(shape_labels[which] == people.truth))
    first = first_of_each(people, shapes)
    whole = [
        shape is not None and shape.ends and shape.text == mode
        for shape, mode in zip(first, people.modes, strict=True)
    ]
    return Judged(right, float(np.mean(whole)))


def first_of_each(people: SimulatedPeople, shapes: Sequence[Shape]) -> list[Shape | None]:
    """The most frequent of the ``shapes`` for each label of the ``people``."""
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


def mean_of(results: Sequence[Judged]) -> Scores:
    """The scores of some ``results``."""
    return Scores(
        *spread([result.score for result in results]),
        *spread([result.recovered for result in results]),
        len(results),
    )


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The mean of ``values``, and its standard error; NaN of one value."""
    return mean_and_error(values, alone=float("nan"))


def each_of(
    people: SimulatedPeople,
    runs: dict[str, int],
    epsilon: float,
    distance: DistanceKind,
    labelled: bool,
) -> dict[str, Scores]:
    """The scores of methods, with so many campaigns each; the same seeds for all.

    Parameters:
        people: those who answer.
        runs: of each method, by its name.
        epsilon: the budget.
        distance: by which devices name the nearest shape.
        labelled: whether devices report a label too.
    """
    results: dict[str, dict[int, Judged]] = {name: {} for name in runs}
    for name in sorted(runs, key=lambda method: method != AUTOMATIC):
        plan = plan_for(people, name, epsilon, distance, labelled)
        for seed in range(runs[name]):
            if seed in results[name]:
                continue
            course = campaign_in(people, plan, seed)
            results[name][seed] = judged(people, plan, course.shapes)
            if name == AUTOMATIC and course.method == METHODS[NEAREST] and NEAREST in runs:
                results[NEAREST][seed] = results[name][seed]  # it was the same campaign
    return {
        name: mean_of([results[name][seed] for seed in range(many)]) for name, many in runs.items()
    }


def first_symbols(task: Task) -> SimulatedPeople:
    """What is left of the people of a ``task`` if all but the first symbol is forgotten."""
    return people_for(task, replace(task.sax, longest=1))


# ties


RULES = ("by place", "most frequent", "at random", "first")


def tied(
    people: SimulatedPeople, shapes: Sequence[Shape], kind: DistanceKind, seed: int
) -> tuple[dict[str, float], float]:
    """Accuracy by each rule for series that are equally near to two shapes; and how many are.

    The shapes are the same for all: only who reads them chooses another one. "first" is in the
    order of labels; what a rule leaves open goes to the most frequent.

    Parameters:
        people: those who answer.
        shapes: those that were found.
        kind: of the distance.
        seed: of ties decided at random.
    """
    place = sorted(range(len(shapes)), key=lambda i: -shapes[i].count)
    shapes = [shapes[i] for i in place]
    others = Sequences.of_texts([shape.text for shape in shapes], people.sax)
    apart = distances(kind, people.tested, others)
    near = apart == apart.min(axis=1, keepdims=True)
    drawn = simulation(Key.from_seed(seed), "ties").random(near.shape)
    counts = np.array([shape.count for shape in shapes])
    preferred = {
        "by place": -distances("euclidean", people.tested, others),
        "most frequent": np.broadcast_to(counts, near.shape),
        "at random": drawn,
        "first": -np.broadcast_to(place, near.shape),
    }
    shape_labels = np.array([people.names.index(str(shape.label)) for shape in shapes])
    accuracies = {}
    for rule in RULES:
        which = np.where(near, preferred[rule], -np.inf).argmax(axis=1)
        accuracies[rule] = float(np.mean(shape_labels[which] == people.truth))
    return accuracies, float(np.mean(near.sum(axis=1) > 1))


# PatternLDP


def pattern_accuracy(
    task: Task, name: str, epsilon: float, size: PrivShapeSize, seed: int = SEED
) -> float:
    """A forest from series and labels that PatternLDP has perturbed.

    Parameters:
        task: the data set.
        name: of the variant.
        epsilon: the budget.
        size: how much of everything.
        seed: of the random numbers.
    """
    key, some = Key.from_seed(seed), _first(task, size.perturbed)
    mechanism = OfflinePattern(epsilon=epsilon, variant=VARIANTS[name], classes=task.classes)
    sent = mechanism.perturbed(some.series, key, some.labels)
    return forest_accuracy(
        sent.series, sent.labels, task.test.series, task.test.labels, key, trees=size.trees
    )


def pattern_centers(
    task: Task, name: str, epsilon: float, size: PrivShapeSize, shaped: bool = False
) -> Any:
    """The centers of clusters of series that PatternLDP has perturbed: KMeans or k-Shape.

    Parameters:
        task: the data set.
        name: of the variant.
        epsilon: the budget.
        size: how much of everything.
        shaped: whether by k-Shape.
    """
    key, some = Key.from_seed(SEED), _first(task, size.shaped if shaped else size.perturbed)
    sent = OfflinePattern(epsilon=epsilon, variant=VARIANTS[name]).perturbed(some.series, key)
    if shaped:
        return kshape_centers(sent.series, len(task.classes), key, starts=1)
    return kmeans_centers(sent.series, len(task.classes), key)


def _first(task: Task, count: int) -> Labelled:
    return task.train.take(np.arange(min(count, len(task.train))))


def pattern_rand(task: Task, name: str, epsilon: float, size: PrivShapeSize) -> float:
    """How well clusters of a ``task`` agree with its labels, by a variant's ``name``.

    Parameters:
        task: the data set.
        name: of the variant.
        epsilon: the budget.
        size: how much of everything.
    """
    centers = pattern_centers(task, name, epsilon, size)
    return adjusted_rand(task.test.labels, nearest_center(task.test.series, centers))


# how far shapes are from those of the classes


def apart(
    people: SimulatedPeople, texts: Sequence[str], kind: DistanceKind
) -> list[tuple[str, float, float, float]]:
    """For each class mode the nearest text, and how far it is: DTW, edits, Euclidean.

    Parameters:
        people: those who answer.
        texts: the shapes that were found.
        kind: of the distance.
    """
    modes = Sequences.of_texts(list(people.modes), people.sax)
    sequences = Sequences.of_texts(list(texts), people.sax)
    best = distances(kind, modes, sequences).argmin(axis=1)
    kinds: tuple[DistanceKind, ...] = ("dtw", "levenshtein", "euclidean")
    each = [distances(measure, modes, sequences)[np.arange(len(best)), best] for measure in kinds]
    return [(texts[b], *(float(row[i]) for row in each)) for i, b in enumerate(best)]


# what is asked


def asked_levels(people: SimulatedPeople, plan: ShapesPlan, seed: int) -> list[tuple[int, int]]:
    """Level and number of candidates of each question about the tree.

    Parameters:
        people: those who answer.
        plan: of the campaign.
        seed: of the random numbers.
    """
    levels: list[tuple[int, int]] = []

    def watch(course: ShapesProtocol, asked: int) -> None:
        """Note what the campaign ``course`` asks next; ``asked`` people have answered."""
        if course.question is not None and course.question.kind == "level":
            levels.append((course.level, len(course.candidates)))

    labels = people.labels if plan.labels else None
    simulate_grouped(plan, people.texts, people.counts, Key.from_seed(seed), labels, watch)
    return levels
