"""A device's answer to a question before any noise, and the distribution of its report.

Everything here is a plain function of the question and of one sequence (and label). Devices draw
from the distribution and audits list it: there is no second description of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.local.shapes.distance import distances, ranked_distances
from tempriv.local.shapes.messages import END, INDEX, ShapesQuestion
from tempriv.local.shapes.sax import Sax, numbers_of
from tempriv.local.shapes.sequences import Sequences
from tempriv.local.wire import MessageError
from tempriv.sampling.distributions import UniformChoice
from tempriv.sampling.exponential import ExponentialChoice, probabilities_of
from tempriv.sampling.keystream import Keystream

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]

DISTANCE_OFFSET = (
    0.1  # Section III-C gives a score in proportion to 1 / distance; this keeps it finite
)
NO_CELL = -1
"""Of a device that has nothing to say: it says any of the cells, each equally likely."""
NO_LABEL = -1
"""Of a device with none of the labels that are asked for."""


@dataclass(frozen=True)
class LocalAnswers:
    """The cell of each sequence at each level, or its scores of candidates, before noise."""

    question: ShapesQuestion
    cells: Integers  # sequences by levels; one level but for bigrams
    scores: Floats | None = None

    def reports(self, sequence_numbers: Integers, keystreams: ReportKeystreams) -> Bytes:
        """One report for each device.

        Parameters:
            sequence_numbers: which sequence each device has.
            keystreams: of the devices.
        """
        question = self.question
        if self.scores is not None:
            chosen = np.empty(len(sequence_numbers), dtype=np.int64)
            choices = keystreams("choice").cached()
            order = np.argsort(sequence_numbers, kind="stable")
            for rows in np.split(order, np.flatnonzero(np.diff(sequence_numbers[order])) + 1):
                if len(rows):
                    choice = ExponentialChoice(
                        self.scores[sequence_numbers[rows[0]]], question.epsilon, 1.0
                    )
                    chosen[rows] = choice.sample(choices.rows(rows))
            return chosen.astype(">u2")[:, None].view(np.uint8)
        levels = np.zeros(len(sequence_numbers), dtype=np.int64)
        if question.kind == "bigram":
            # drawn before the sequence is looked at, so that it tells nothing of its length
            levels = UniformChoice(question.levels).sample(keystreams("level"))
        cells = self.cells[sequence_numbers, levels]
        blank = np.flatnonzero(cells == NO_CELL)
        if len(blank):
            cells[blank] = UniformChoice(question.cells).sample(keystreams("blank").rows(blank))
        sent: Bytes = question.frequency.reports(cells, keystreams("report"))
        if question.kind != "bigram":
            return sent
        return np.concatenate([levels.astype(np.uint8)[:, None], sent], axis=1)

    def outcomes(self, number: int) -> dict[bytes, float]:
        """Every report that a device with sequence ``number`` may send, with its probability."""
        question = self.question
        if self.scores is not None:
            choice = ExponentialChoice(self.scores[number], question.epsilon, 1.0)
            return {INDEX.pack(i): p for i, p in enumerate(choice.probabilities.tolist())}
        probabilities: dict[bytes, float] = {}
        levels = self.cells.shape[1]
        for level in range(levels):
            cell = int(self.cells[number, level])
            level_byte = bytes([level]) if question.kind == "bigram" else b""
            blank = range(question.cells) if cell == NO_CELL else (cell,)
            for value in blank:
                for report, p in question.frequency.outcomes(value).items():
                    sent = level_byte + report
                    probabilities[sent] = probabilities.get(sent, 0.0) + p / len(blank) / levels
        return probabilities

    @property
    def chances(self) -> Floats:
        """Of every candidate, for each sequence, where scores decide."""
        assert self.scores is not None
        return probabilities_of(self.scores, self.question.epsilon, 1.0)


class ReportKeystreams:
    """The keystreams of some devices, one for each purpose."""

    def __init__(self, runs: Any):
        self._runs = runs

    def __call__(self, purpose: str) -> Keystream:
        return Keystream(self._runs, purpose)


def sequences_of(sax: Sax, longest: int, series: Any) -> Sequences:
    """The sequences that devices make of series, whatever these are like.

    A device that refused would tell something of its series for nothing: of one that is too long
    the ``longest`` first readings count, and one that is shorter than a segment is a segment.

    Parameters:
        sax: how.
        longest: readings that count.
        series: a matrix or a list.
    """
    whole = replace(sax, partial="keep")
    if getattr(series, "ndim", 1) == 2:
        matrix = numbers_of(series, "the matrix")[:, :longest]
        return (whole if matrix.shape[1] < sax.segment else sax).sequences(matrix)
    rows = [numbers_of(values, f"series {i}") for i, values in enumerate(series)]
    flat = all(row.ndim == 1 for row in rows)
    require(flat, "give a matrix with a row for each series, or a list of series", DataError)
    cut = [row[:longest] for row in rows]
    if sax.partial == "keep":
        return sax.sequences(cut)
    codes = whole.sequences(cut).codes.copy()
    long = [i for i, row in enumerate(cut) if row.size >= sax.segment]
    codes[long] = sax.sequences([cut[i] for i in long]).codes
    return Sequences(symbols=sax.symbols, codes=codes)


def group_with_labels(which: Integers, labels: Any) -> tuple[Integers, list[int], Integers]:
    """Group equal sequences with equal labels.

    Parameters:
        which: the sequence number of each device.
        labels: the label of each device.

    Returns:
        The sequence of each pair, its label, and the pair of each device.

    >>> which = np.array([5, 2, 5])
    >>> [part.tolist() for part in map(np.asarray, group_with_labels(which, [1, 0, 1]))]
    [[2, 5], [0, 1], [1, 0, 1]]
    """
    rows = np.stack([which, np.asarray(labels, dtype=np.int64)], axis=1)
    pairs, pair_numbers = np.unique(rows, axis=0, return_inverse=True)
    return pairs[:, 0], pairs[:, 1].tolist(), np.ravel(pair_numbers)


def local_answers(
    question: ShapesQuestion, texts: Sequence[str], labels: Sequence[int] | None = None
) -> LocalAnswers:
    """The answers of devices before noise.

    Parameters:
        question: what is asked.
        texts: a sequence of each.
        labels: number of each one's label, where the question asks for it.
    """
    require(
        bool(question.labels) == (labels is not None),
        "labels: the question asks for one" if question.labels else "labels: nobody asks for one",
        MessageError,
    )
    if question.kind == "length":
        cells = [min(max(len(text), question.low), question.high) - question.low for text in texts]
        return LocalAnswers(question, _column(cells))
    if question.kind == "bigram":
        rows = [
            [_or_none(question.bigrams.index(text, level)) for level in range(question.levels)]
            for text in texts
        ]
        return LocalAnswers(
            question, np.array(rows, dtype=np.int64).reshape(len(texts), question.levels)
        )
    if question.kind == "whole":
        cells = [question.domain.index(text) for text in texts]
        return LocalAnswers(question, _with_label_cells(question, cells, labels))
    if question.frequency is None:
        scores = _scores(_distances(question, texts, distances))
        return LocalAnswers(question, np.zeros((len(texts), 1), dtype=np.int64), scores)
    matrix = _distances(question, texts, ranked_distances)
    return LocalAnswers(
        question, _with_label_cells(question, matrix.argmin(axis=1).tolist(), labels)
    )


def _or_none(cell: int | None) -> int:
    return NO_CELL if cell is None else cell


def _column(cells: Sequence[int]) -> Integers:
    return np.array(cells, dtype=np.int64)[:, None]


def _with_label_cells(
    question: ShapesQuestion, cells: Sequence[int], labels: Sequence[int] | None
) -> Integers:
    column = _column(cells)
    if labels is None:
        return column
    numbers = (*range(len(question.labels)), NO_LABEL)
    require(
        len(labels) == len(cells) and set(labels) <= set(numbers),
        f"labels: must be numbers from 0 to {len(question.labels) - 1}, one for each sequence",
        MessageError,
    )
    label_column = _column(labels)
    return np.where(label_column == NO_LABEL, NO_CELL, column * len(question.labels) + label_column)


def _distances(
    question: ShapesQuestion, texts: Sequence[str], measured: Callable[..., Floats]
) -> Floats:
    """From each sequence to each candidate.

    A beginning is compared with the beginning of the sequence; a candidate that ends, and at last
    any candidate of those that say nothing of ends, with all of it.
    """
    bodies = [candidate.removesuffix(END) for candidate in question.candidates]
    sequences = Sequences.of(texts, symbols=question.sax.symbols)
    candidates = Sequences.of(bodies, symbols=question.sax.symbols)
    whole = np.array(
        [
            candidate.endswith(END) if question.ends else question.kind == "refine"
            for candidate in question.candidates
        ]
    )
    matrix = np.empty((len(texts), len(bodies)))
    for all_of_it in (True, False):
        some = np.flatnonzero(whole == all_of_it)
        if len(some):
            matrix[:, some] = measured(
                question.distance, sequences, candidates.take(some), prefix=not all_of_it
            )
    return matrix


def _scores(matrix: Floats) -> Floats:
    """1 / distance, from 0 for the worst candidate to 1 for the best."""
    raw = 1 / (matrix + DISTANCE_OFFSET)
    low, high = raw.min(axis=1, keepdims=True), raw.max(axis=1, keepdims=True)
    flat = high == low
    return np.asarray(np.where(flat, 1.0, (raw - low) / np.where(flat, 1.0, high - low)))
