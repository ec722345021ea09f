"""A whole campaign tried out at once: equal sequences answer together, with the same law.

For studies and planning. Devices with the same sequence draw from the same law, so what a group of
them says together is one draw of a multinomial; nothing is sent, and nothing may be released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.local.shapes.messages import ShapesQuestion
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.protocol import ShapesProtocol
from tempriv.local.shapes.randomizer import NO_CELL, LocalAnswers, local_answers
from tempriv.sampling.keys import Generator, Key, simulation

Integers = npt.NDArray[np.int64]


def simulate_grouped(
    plan: ShapesPlan,
    texts: Sequence[str],
    counts: Integers,
    key: Key,
    labels: Sequence[int] | None = None,
    watch: Callable[[ShapesProtocol, int], None] = lambda course, asked: None,
) -> ShapesProtocol:
    """The end of a campaign among people of whom ``counts[i]`` have sequence ``texts[i]``.

    ``watch`` sees before each round where the campaign stands and how many are asked.
    """
    generator = simulation(key, "campaign")
    left = np.asarray(counts, dtype=np.int64).copy()
    require(len(left) == len(texts) and bool((left >= 0).all()), "counts: one for each sequence")
    course = ShapesProtocol(plan, "0" * 32)
    while course.question is not None:
        asked = min(course.wanted, int(left.sum()))
        watch(course, asked)
        group = generator.multivariate_hypergeometric(left, asked, method="marginals")
        left -= group
        course = course.after(answered(course.question, texts, group, labels, generator), asked)
    return course


def answered(
    question: ShapesQuestion,
    texts: Sequence[str],
    group: Integers,
    labels: Sequence[int] | None,
    generator: Generator,
) -> Integers:
    """The support that a group of devices gives to each cell."""
    here = np.flatnonzero(group).tolist()
    numbers = None if labels is None or not question.labels else [labels[i] for i in here]
    seen = local_answers(question, [texts[i] for i in here], numbers)
    many = group[here]
    if seen.scores is not None:
        return _chosen(seen, many, generator)
    if question.kind != "bigram":
        found: Integers = question.frequency.simulated(_said(seen, 0, many, generator), generator)
        return found
    spread = generator.multinomial(many, np.full(question.levels, 1 / question.levels))
    support = [
        question.frequency.simulated(_said(seen, level, spread[:, level], generator), generator)
        for level in range(question.levels)
    ]
    return np.concatenate(support)


def _said(seen: LocalAnswers, level: int, many: Integers, generator: Generator) -> Integers:
    """How many have each cell to say; those with none say any of them."""
    cells, size = seen.cells[:, level], seen.question.cells
    known = cells != NO_CELL
    told = np.bincount(cells[known], weights=many[known], minlength=size)
    blank = int(many[~known].sum())
    return (told + generator.multinomial(blank, np.full(size, 1 / size))).astype(np.int64)


def _chosen(seen: LocalAnswers, many: Integers, generator: Generator) -> Integers:
    """Of the exponential mechanism: a multinomial for each sequence."""
    found = generator.multinomial(many, seen.chances).sum(axis=0)
    return np.asarray(np.resize(np.append(found, np.zeros(2)), seen.question.cells), dtype=np.int64)
