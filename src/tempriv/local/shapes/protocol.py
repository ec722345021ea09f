"""How a campaign goes on: from what a round counted to the next question, and at last to shapes.

Nothing here sees an answer, only how many reports support each cell: the protocol is the same
whether devices answered or a population is simulated. Four ways of going:

``baseline`` and ``published`` are Algorithms 1 and 2 of Mao, Ye, Hu, Wang and Huang, "PrivShape"
(ICDE 2024). ``nearest`` grows the same tree, but devices name the nearest candidate through a
frequency oracle, sequences may end, and similar shapes are joined by weighted medoids.
``one-shot`` asks for the whole sequence at once, which is best where there are not too many.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import UsageError, require
from tempriv.local.frequency.oracles import GRR, choose, name_of
from tempriv.local.shapes.distance import distances
from tempriv.local.shapes.medoids import medoids
from tempriv.local.shapes.messages import (
    END,
    EXPONENTIAL,
    MOST_CANDIDATES,
    MOST_CELLS,
    ShapesQuestion,
)
from tempriv.local.shapes.plan import MOST_WHOLE_CELLS, ShapesPlan
from tempriv.local.shapes.sequences import LETTERS, Sequences
from tempriv.local.wire import (
    boolean,
    decode_campaign,
    finite,
    members,
    refuse_damage,
    require_state,
    unique_texts,
    whole_number,
)

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

COVERED_SHARE, ONE_SHOT_SHARE = 0.9, 0.5
"""Part of the sequences that are to end within the length that is asked about; and the least part
for which whole sequences are asked for, if no more of them can be distinguished."""

FALSE_SHAPE_PROBABILITY = (
    0.05  # the chance that any cell without anything in it is reported as a shape
)
SHAPES_PER_LABEL = 8  # shapes of a label at most
MOST_WHOLE_CANDIDATES = 256  # candidates out of whole sequences


@dataclass(frozen=True)
class Shape:
    """A frequent shape, about how many devices have it, and the standard error of that."""

    text: str
    count: float
    error: float
    label: str | None = None
    ends: bool = True


@dataclass(frozen=True)
class ShapesProtocol:
    """Where a campaign stands; a value, so that a refused answer changes nothing."""

    plan: ShapesPlan
    campaign: str
    round: int = 0
    stage: str = "length"
    method: str = ""
    length: int = 0
    level: int = 0
    pairs: tuple[tuple[str, ...], ...] = ()
    candidates: tuple[str, ...] = ()
    shapes: tuple[Shape, ...] = ()

    @property
    def kept(self) -> int:
        """How many candidates are followed from one level to the next."""
        return self.plan.breadth * self.plan.shapes

    @property
    def improved(self) -> bool:
        """Whether the method is not one of the paper's: sequences may end, oracles are chosen."""
        return self.method not in ("baseline", "published")

    @functools.cached_property
    def question(self) -> ShapesQuestion | None:
        """What to ask next; None when there is nothing left to ask."""
        plan = self.plan
        if self.stage == "done":
            return None
        common: dict[str, Any] = {
            "campaign": self.campaign,
            "round": self.round,
            "epsilon": plan.epsilon,
            "sax": plan.sax,
            "distance": plan.distance,
            "low": plan.low,
            "high": plan.sax.longest,
            "readings": plan.readings,
            "ends": self.improved,
        }
        if self.stage == "length":
            return ShapesQuestion(kind="length", oracle="grr", **common)
        common["high"] = self.length
        common["low"] = min(plan.low, self.length)
        if self.stage == "bigram":
            return ShapesQuestion(kind="bigram", oracle="grr", **common)
        if self.stage == "whole":
            cells = plan.whole_cells(self.length)
            oracle = name_of(choose(plan.epsilon, cells, self.wanted, one_shot=True))
            return ShapesQuestion(kind="whole", oracle=oracle, labels=plan.labels, **common)
        if self.stage == "level":
            oracle = EXPONENTIAL
            if self.improved:
                oracle = name_of(choose(plan.epsilon, max(2, len(self.candidates))))
            return ShapesQuestion(kind="level", oracle=oracle, candidates=self.candidates, **common)
        cells = max(2, len(self.candidates) * max(1, len(plan.labels)))
        # Section V-E: optimized unary encoding for labels; Section V-B: GRR
        oracle = "oue" if plan.labels else "grr"
        if self.improved:
            oracle = name_of(choose(plan.epsilon, cells))
        return ShapesQuestion(
            kind="refine", oracle=oracle, candidates=self.candidates, labels=plan.labels, **common
        )

    @property
    def wanted(self) -> int:
        """How many answers this round is for."""
        lengths, pairs, tree, last = self.plan.shares
        if self.stage == "length":
            share = lengths
        elif self.stage == "whole":
            share = 1 - lengths
        elif self.stage == "bigram":
            share = pairs
        elif self.method == "baseline":
            share = (1 - lengths) / max(1, self.length)
        elif self.stage == "level":
            # where sequences may end there is one more level, for those that end at the last
            share = tree / max(1, self.length + int(self.improved))
        else:
            share = last
        return max(1, round(share * self.plan.people))

    def after(self, support: Integers, people: int) -> ShapesProtocol:
        """The protocol after a round, none if it failed.

        Nobody who was asked is asked again: a round without answers goes on with what is known.

        Parameters:
            support: how many answers support each cell.
            people: how many devices answered.
        """
        question = self.question
        require(question is not None, "the campaign is over", UsageError)
        assert question is not None
        following = replace(self, round=self.round + 1)
        if self.stage == "length":
            return following._after_lengths(support, people)
        if self.stage == "bigram":
            return following._after_pairs(support.reshape(question.levels, -1), people)
        if self.stage == "level":
            counts = support.astype(np.float64)
            if question.frequency is not None and people:
                counts = question.frequency.estimate(support, people).counts
            return following._after_level(counts[: len(self.candidates)])
        estimate = question.frequency.estimate(support, max(people, 1))
        if people == 0:  # nobody answered, so nothing is known
            nothing = np.zeros(question.cells)
            estimate = replace(estimate, counts=nothing, standard_error=nothing + math.inf)
        return following._finished(question, estimate)

    # lengths

    def _after_lengths(self, support: Integers, people: int) -> ShapesProtocol:
        plan, method = self.plan, self.plan.method
        lengths = np.arange(plan.low, plan.sax.longest + 1)
        if people == 0:
            length = plan.sax.longest
        elif method in ("baseline", "published"):
            length = int(lengths[int(np.argmax(support[: len(lengths)]))])
        else:
            length = _covering_length(
                lengths, support[: len(lengths)], plan.epsilon, people, COVERED_SHARE
            )
        if method in ("automatic", "one-shot"):
            fits = [n for n in range(1, length + 1) if plan.whole_cells(n) <= MOST_WHOLE_CELLS]
            enough = bool(fits) and fits[-1] >= _covering_length(
                lengths, support[: len(lengths)], plan.epsilon, people, ONE_SHOT_SHARE
            )
            if method == "one-shot" or enough:
                return replace(self, method="one-shot", stage="whole", length=fits[-1])
            method = "nearest"
        following = replace(self, method=method, length=length)
        grows = method != "baseline" and (length > 1 or method == "nearest")
        return replace(following, stage="bigram") if grows else following._first_level()

    # the tree

    def _after_pairs(self, support: Integers, people: int) -> ShapesProtocol:
        question = replace(self, stage="bigram").question
        assert question is not None
        pairs = []
        for counts in support:
            order = np.argsort(-counts, kind="stable")[: self.kept]
            pairs.append(tuple(filter(None, (question.bigrams.text(int(i)) for i in order))))
        return replace(self, pairs=tuple(pairs))._first_level()

    def _first_level(self) -> ShapesProtocol:
        return self._at_level(1, tuple(LETTERS[: self.plan.sax.symbols]))

    def _at_level(self, level: int, candidates: tuple[str, ...]) -> ShapesProtocol:
        stage = "level"
        if self.method == "baseline" and self.plan.labels and level == self.length:
            stage = "refine"  # the last level is asked with labels
        return replace(self, stage=stage, level=level, candidates=candidates)

    def _after_level(self, counts: Floats) -> ShapesProtocol:
        plan = self.plan
        order = np.argsort(-counts, kind="stable")
        candidates = [self.candidates[i] for i in order[: self.kept]]
        if self.method == "baseline":
            candidates = [self.candidates[i] for i in order if counts[i] >= plan.least]
        if not candidates:
            candidates = [self.candidates[i] for i in order[: self.kept]]
        grown = self._grown(candidates) if self.level < self.length + int(self.improved) else ()
        if grown and set(grown) != set(self.candidates):
            return self._at_level(self.level + 1, grown)
        if self.method == "baseline":
            best = order[: plan.shapes]
            shapes = tuple(
                Shape(self.candidates[i], float(counts[i]), math.sqrt(max(counts[i], 0)), None)
                for i in best
            )
            return replace(self, stage="done", shapes=shapes)
        return replace(self, stage="refine", candidates=tuple(candidates))

    def _grown(self, candidates: list[str]) -> tuple[str, ...]:
        """Candidates one symbol longer, by the pairs that are frequent at this level."""
        grown: list[str] = []
        for candidate in candidates:
            if candidate.endswith(END):
                grown.append(candidate)
                continue
            if self.method == "baseline":
                last = candidate[-1] if self.plan.sax.compressed else ""
                grown += [candidate + s for s in LETTERS[: self.plan.sax.symbols] if s != last]
                continue
            next_pairs = self.pairs[self.level - 1] if self.level <= len(self.pairs) else ()
            longer = [candidate[:-1] + pair for pair in next_pairs if pair[0] == candidate[-1]]
            if self.improved and self.level == self.length:
                # it ends here, or goes on past what is asked about
                longer = [
                    candidate,
                    *(pair_candidate for pair_candidate in longer if pair_candidate.endswith(END)),
                ]
            grown += longer
        limit = min(MOST_CANDIDATES, MOST_CELLS // max(1, len(self.plan.labels)))
        return tuple(dict.fromkeys(grown))[:limit]

    # for a restart

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; an error that is not known is None."""
        return {
            **{name: getattr(self, name) for name in PLAIN_FIELDS},
            "pairs": [list(level) for level in self.pairs],
            "candidates": list(self.candidates),
            "shapes": [
                {**vars(shape), "error": shape.error if math.isfinite(shape.error) else None}
                for shape in self.shapes
            ],
        }

    @classmethod
    def from_dict(cls, plan: ShapesPlan, state: Any) -> ShapesProtocol:
        """The protocol of a ``plan``, of which ``to_dict`` gave ``state``; all else is refused."""
        with refuse_damage():
            body = members(state, (*PLAIN_FIELDS, "pairs", "candidates", "shapes"))
            campaign, number = decode_campaign(body["campaign"]), whole_number(body["round"])
            if body["stage"] == "length":
                protocol = cls(plan, campaign)
                require_state(protocol.to_dict() == body)
                return protocol
            method = body["method"]
            require_state(body["stage"] in STAGES[method])
            require_state(
                method == plan.method
                or (plan.method == "automatic" and method in AUTOMATIC_METHODS)
            )
            length = whole_number(body["length"], 1, plan.sax.longest)
            require_state(isinstance(body["pairs"], list) and isinstance(body["shapes"], list))
            protocol = cls(
                plan,
                campaign,
                number,
                body["stage"],
                method,
                length,
                whole_number(body["level"], 0, length + 1),
                tuple(map(unique_texts, body["pairs"])),
                unique_texts(body["candidates"]),
                tuple(_decode_shape(shape, plan) for shape in body["shapes"]),
            )
            protocol._check()
        return protocol

    def _check(self) -> None:
        """That such a protocol can be, and goes on."""
        asks = self.stage in ("level", "refine")
        require_state(bool(self.candidates) or not asks)
        require_state(not self.candidates or asks or self.stage == "done")
        require_state(not self.shapes or self.stage == "done")
        require_state(
            (self.level >= 1) == (asks or (self.stage == "done" and self.method != "one-shot"))
        )
        question = replace(self, stage="bigram", candidates=()).question
        assert question is not None
        pairs = {question.bigrams.text(i) for i in range(question.bigrams.size)}
        require_state(len(self.pairs) in (0, question.levels))
        require_state(
            not self.pairs or (self.method in ("published", "nearest") and self.level >= 1)
        )
        require_state(all(set(level) <= pairs for level in self.pairs))
        letters = set(self.plan.sax.alphabet)
        for candidate in self.candidates:
            body = candidate.removesuffix(END) if self.improved else candidate
            require_state(0 < len(body) <= self.plan.sax.longest and set(body) <= letters)
        require_state(self.stage == "done" or self.question is not None)

    # shapes

    def _finished(self, question: ShapesQuestion, estimate: Any) -> ShapesProtocol:
        labels = len(question.labels) or 1
        names = self.candidates
        used = len(estimate.counts) // labels if self.stage == "whole" else len(names)
        counts = estimate.counts[: used * labels].reshape(-1, labels)
        errors = estimate.standard_error[: used * labels].reshape(-1, labels)
        if self.stage == "whole":
            # of thousands of cells hardly any holds anything: those that surely do, or at least
            # as many as are followed otherwise
            order = np.argsort(-counts.max(axis=1), kind="stable")
            sure = int(
                (
                    counts.max(axis=1) > _certain_deviations(counts.size) * float(np.median(errors))
                ).sum()
            )
            followed = np.sort(order[: min(max(sure, self.kept), MOST_WHOLE_CANDIDATES)])
            names = tuple(question.domain.text(int(i)) for i in followed)
            counts, errors = counts[followed], errors[followed]
        if question.labels:
            shapes = self._of_each_label(names, counts, errors)
        else:
            shapes = self._apart(names, counts[:, 0], errors[:, 0])
        return replace(self, stage="done", candidates=names, shapes=shapes)

    def _shape(self, name: str, count: float, error: float, label: str | None) -> Shape:
        ends = name.endswith(END) or not self.improved
        return Shape(name.removesuffix(END), float(count), float(error), label, ends)

    def _of_each_label(
        self, names: tuple[str, ...], counts: Floats, errors: Floats
    ) -> tuple[Shape, ...]:
        """The most frequent shape of each label; of ours several that are likely its own.

        They are kept because several shapes a label classify better. Only likely: the bound counts
        the cells that are followed, not all that could have been.
        """
        shapes: list[Shape] = []
        whose, sure = counts.argmax(axis=1), counts > _certain_deviations(counts.size) * errors
        for j, label in enumerate(self.plan.labels):
            order = np.argsort(-counts[:, j], kind="stable")
            sure_shapes = order[(whose[order] == j) & sure[order, j]][:SHAPES_PER_LABEL]
            reported = sure_shapes if self.improved and len(sure_shapes) else order[:1]
            shapes += [self._shape(names[i], counts[i, j], errors[i, j], label) for i in reported]
        return tuple(shapes)

    def _apart(self, names: tuple[str, ...], counts: Floats, errors: Floats) -> tuple[Shape, ...]:
        """As many shapes as were asked for, none too like another (Section IV-C)."""
        bodies = Sequences.of_texts([name.removesuffix(END) for name in names], self.plan.sax)
        matrix = distances(self.plan.distance, bodies, bodies)
        count = min(self.plan.shapes, len(names))
        if self.improved:
            chosen = medoids(matrix, np.maximum(counts, 0.0), count)
        else:
            centers = medoids(matrix, np.ones(len(names)), count)
            nearest = matrix[:, centers].argmin(axis=1)
            groups = [np.flatnonzero(nearest == g) for g in range(count)]
            chosen = np.array([g[int(np.argmax(counts[g]))] for g in groups if len(g)])
        order = chosen[np.argsort(-counts[chosen], kind="stable")]
        return tuple(self._shape(names[i], counts[i], errors[i], None) for i in order)


PLAIN_FIELDS = ("campaign", "round", "stage", "method", "length", "level")
AUTOMATIC_METHODS = ("one-shot", "nearest")  # what automatic may take
STAGES = {
    "baseline": ("level", "refine", "done"),
    "published": ("bigram", "level", "refine", "done"),
    "nearest": ("bigram", "level", "refine", "done"),
    "one-shot": ("whole", "done"),
}


def _decode_shape(value: Any, plan: ShapesPlan) -> Shape:
    fields = members(value, ("text", "count", "error", "label", "ends"))
    text, label, error = fields["text"], fields["label"], fields["error"]
    require_state(type(text) is str and 0 < len(text) <= plan.sax.longest)
    require_state(set(text) <= set(plan.sax.alphabet))
    require_state(label in plan.labels if plan.labels else label is None)
    error = math.inf if error is None else finite(error)
    require_state(error >= 0)
    return Shape(text, finite(fields["count"]), error, label, boolean(fields["ends"]))


def least_people(plan: ShapesPlan) -> int:
    """How many people leave somebody for the last question of a ``plan``, whatever is answered.

    It looks at the plan alone. Automatic may find that it has to ask more often than its shortest
    way does: it then ends with what there is.
    """
    first = ShapesProtocol(plan, "0" * 32)
    if plan.method in ("automatic", "one-shot"):
        return first.wanted + 1
    needed = 0
    for length in range(1, plan.sax.longest + 1):
        at_length = replace(first, method=plan.method, length=length)
        levels = replace(at_length, stage="level").wanted
        before = (length - 1) * levels
        if plan.method != "baseline":
            before = (
                replace(at_length, stage="bigram").wanted
                + (length + int(at_length.improved)) * levels
            )
        needed = max(needed, first.wanted + before)
    return needed + 1


def enough_people(plan: ShapesPlan) -> int:
    """The next number of people with whom somebody is left for the last question of a ``plan``.

    Shares of the people are rounded, so of a few more of them there may be one too few again.

    >>> from tempriv.local.shapes.sax import Sax
    >>> given = {"epsilon": 1.0, "shapes": 2, "sax": Sax(longest=12)}
    >>> enough_people(ShapesPlan(method="nearest", people=10, **given))
    17
    """
    return next(
        people
        for people in itertools.count(plan.people)
        if least_people(replace(plan, people=people)) <= people
    )


def _certain_deviations(cells: int) -> float:
    """So many standard errors above nothing, for a cell among so many to be believed."""
    return NormalDist().inv_cdf(1 - FALSE_SHAPE_PROBABILITY / cells)


def _covering_length(
    lengths: Integers, support: Integers, epsilon: float, people: int, part: float
) -> int:
    """The least length within which that part of sequences ends, as far as noisy lengths tell."""
    if people == 0:
        return int(lengths[-1])
    counts = (
        GRR(epsilon=epsilon, size=max(2, len(lengths)))
        .estimate(np.resize(support, max(2, len(lengths))), people)
        .counts[: len(lengths)]
    )
    sure = np.maximum(counts, 0.0)
    if sure.sum() <= 0:
        return int(lengths[-1])
    ended = np.cumsum(sure) / sure.sum()
    return int(lengths[min(int(np.searchsorted(ended, part)), len(lengths) - 1)])
