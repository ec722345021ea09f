"""A whole shapes campaign on one machine: every series is here, and each answers one question.

Whoever runs this holds all series, so the guarantee is towards those who get the shapes; where
series stay on devices, ``local.shapes.roles`` has the two roles. Noise is that of real devices and
answers are real messages, so what comes out may be handed out. ``through="grouped"`` draws what
equal sequences say together instead: the same distribution, far faster, and for trials only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tempriv._version import VERSION
from tempriv.errors import DataError, extra_packages, require
from tempriv.local.shapes.distance import ranked_distances
from tempriv.local.shapes.messages import ShapesQuestion
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.protocol import Shape, ShapesProtocol, enough_people, least_people
from tempriv.local.shapes.randomizer import (
    NO_CELL,
    LocalAnswers,
    group_with_labels,
    local_answers,
    sequences_of,
)
from tempriv.local.shapes.roles import ShapesServer, simulate_answers
from tempriv.local.shapes.sequences import Sequences
from tempriv.privacy import serialization
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.sampling.keys import Generator, Key, fresh_series_key, simulation
from tempriv.sampling.keystream import Keystream, StepRange

Integers = npt.NDArray[np.int64]
Through = Literal["messages", "grouped"]
Progress = Callable[[int], None]

BATCH_DEVICES = 1 << 15  # devices whose messages are there at a time
FALSE_SHAPE_PROBABILITY = (
    0.05  # the chance that any of the cells without anything in it looks surely frequent
)
NORMAL_95_DEVIATIONS = (
    1.959963984540054  # 95 % of the normal distribution lie within so many standard deviations
)


@dataclass(frozen=True)
class Round:
    """One question, in how many ways it could be answered, and how many answered it.

    A report supports its device's own cell with probability ``keep``, and any other cell with
    ``other``; both are 0 where scores of candidates decide instead.
    """

    kind: str
    oracle: str
    cells: int
    people: int
    keep: float = 0.0
    other: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What a campaign found, and what it may guarantee."""

    plan: ShapesPlan
    campaign: str
    method: str
    shapes: tuple[Shape, ...]
    rounds: tuple[Round, ...]
    guarantee: Guarantee | NoGuarantee

    @property
    def counted(self) -> int:
        """How many answered the last question: shapes are counted among these."""
        return self.rounds[-1].people

    def share(self, shape: Shape) -> tuple[float, float, float]:
        """The share with a ``shape`` among those who answered the last question, with a 95 %
        interval.

        Counts are unbiased and so also fall below 0 or above all; a share does not.
        """
        if self.counted == 0 or not math.isfinite(shape.error):
            return 0.0, 0.0, 1.0  # nobody was left to ask: nothing is known
        around = NORMAL_95_DEVIATIONS * shape.error
        counts = (shape.count, shape.count - around, shape.count + around)
        share, low, high = (min(1.0, max(0.0, count / self.counted)) for count in counts)
        return share, low, high

    def is_sure(self, shape: Shape) -> bool | None:
        """Whether noise hardly ever makes the count of a ``shape`` in any of all cells without
        anyone.

        Only where whole sequences were asked for: reports that support a cell without anyone follow
        a binomial distribution, so this is exact but for counting each cell as if it were alone.
        Where each device names the nearest of some candidates, every one of them may be named by
        devices that have none of them, and nothing can be said: None.
        """
        with extra_packages("shapes", "intervals of counts"):
            from scipy.special import bdtrc

        last = self.rounds[-1]
        if last.kind != "whole":
            return None
        support = round(shape.count * (last.keep - last.other) + last.people * last.other)
        return bool(
            support > 0
            and bdtrc(support - 1, last.people, last.other) < FALSE_SHAPE_PROBABILITY / last.cells
        )


def simulate(
    plan: ShapesPlan,
    series: Any,
    labels: Sequence[int] | None = None,
    *,
    through: Through = "messages",
    seed: int | None = None,
    campaign: str | None = None,
    progress: Progress = lambda done: None,
) -> Outcome:
    """Ask everyone one question, in groups drawn at random, until shapes are known.

    If nobody is left to be asked, the campaign ends with what it knows.

    Parameters:
        plan: what is asked for.
        series: a matrix or a list, a series for each person.
        labels: the number of each one's label, if the plan has labels.
        through: ``messages`` of devices, or ``grouped``: equal sequences answer together, fast and
            without a guarantee.
        seed: of the noise, which anyone can make again: nothing is guaranteed then.
        campaign: its name; a new one by default.
        progress: is told how many more have answered.

    Guarantees:
        - each series answers once, with the plan's epsilon;
        - nothing is refused once the first has answered;
        - without a seed, noise is that of devices: exact, from the operating system.

    >>> from tempriv.local.shapes.sax import Sax
    >>> waves = [np.sin(np.arange(60) / 6 + phase) for phase in (0, 3) for _ in range(500)]
    >>> plan = ShapesPlan(epsilon=4.0, shapes=2, people=1000, sax=Sax(symbols=3, longest=6))
    >>> found = simulate(plan, waves, seed=1)
    >>> [shape.text for shape in found.shapes], found.counted
    (['cacb', 'acab'], 980)
    """
    require(through in get_args(Through), f"through={through!r}: must be messages or grouped")
    # all are looked at before anyone answers: a refusal then costs nothing, and names the right one
    sequences = check_series(plan, series, labels)
    numbers = None if labels is None else np.asarray(labels, dtype=np.int64)
    if through == "grouped":
        protocol, rounds = _grouped(plan, sequences, numbers, seed, progress)
    else:
        name = campaign or (None if seed is None else _campaign(Key.from_seed(seed)))
        server = ShapesServer(plan, name)
        protocol, rounds = _by_messages(server, series, len(sequences), numbers, seed, progress)
    return Outcome(
        plan,
        campaign or protocol.campaign,
        protocol.method,
        protocol.shapes,
        tuple(rounds),
        guarantee_of(plan, through, seed),
    )


def check_series(plan: ShapesPlan, series: Any, labels: Sequence[int] | None = None) -> Sequences:
    """Refuse what cannot be run, before anyone answers and before anything is charged.

    Whether there are enough people follows from the plan alone, not from what they would answer.

    Parameters:
        plan: what is asked for.
        series: a matrix or a list.
        labels: the number of each one's label, if the plan has labels.

    Returns:
        The sequence of each series.
    """
    require(
        bool(plan.labels) == (labels is not None), "labels: must be given if the plan has labels"
    )
    sequences = sequences_of(plan.sax, plan.readings, series)
    people = len(sequences)
    require(people > 0, "no series: there is nothing to ask", DataError)
    require(
        labels is None or (len(labels) == people and set(labels) <= set(range(len(plan.labels)))),
        f"labels: must be numbers from 0 to {len(plan.labels) - 1}, one for each series",
        DataError,
    )
    longest = series.shape[1] if getattr(series, "ndim", 1) == 2 else max(map(len, series))
    require(
        longest <= plan.readings,
        f"readings={plan.readings}: a series has {longest} readings, and the guarantee is for that "
        "many at most; declare more, or cut the series",
        DataError,
    )
    alternative = (
        "" if plan.method in TWO_ROUND_METHODS else ", or take method one-shot, which asks twice"
    )
    if people < least_people(plan):
        enough = enough_people(replace(plan, people=people))
        raise DataError(
            f"{people} series are too few for method {plan.method}: each answers one question, and "
            f"somebody must be left for the last one; {enough} would do{alternative}"
        )
    return sequences


TWO_ROUND_METHODS = ("automatic", "one-shot")


def guarantee_of(
    plan: ShapesPlan, through: Through = "messages", seed: int | None = None
) -> Guarantee | NoGuarantee:
    """What a campaign of this ``plan`` may guarantee, by ``through`` and ``seed``."""
    if seed is not None:
        return NoGuarantee(f"the noise comes from seed {seed}, so anyone can take it off again")
    if through == "grouped":
        return NoGuarantee("the noise was drawn for a trial, with ordinary random numbers")
    return plan.guarantee


def describe_round(protocol: ShapesProtocol, people: int) -> Round:
    """The round that a ``protocol`` is at, answered by so many ``people``."""
    question = protocol.question
    assert question is not None
    oracle = question.frequency
    probabilities = (0.0, 0.0) if oracle is None else (float(oracle.keep), float(oracle.other))
    return Round(question.kind, question.oracle, question.cells, people, *probabilities)


def _by_messages(
    server: ShapesServer,
    series: Any,
    people: int,
    labels: Integers | None,
    seed: int | None,
    progress: Progress,
) -> tuple[ShapesProtocol, list[Round]]:
    key = None if seed is None else Key.from_seed(seed)
    chain = fresh_series_key() if key is None else key.again("campaign", "order")
    order = np.argsort(Keystream([StepRange(chain, 0, people)], "order").read())
    rounds: list[Round] = []
    asked_count = 0
    while not server.is_over:
        question = server.question
        group = order[asked_count : asked_count + server.wanted]
        asked_count += len(group)
        # one call draws with one key, so that a seeded round is not cut
        step = BATCH_DEVICES if key is None else max(1, len(group))
        for begin in range(0, len(group), step):
            devices = group[begin : begin + step]
            label_numbers = (
                None if labels is None or not question.labels else labels[devices].tolist()
            )
            refused = server.receive_many(
                simulate_answers(question, _rows(series, devices), label_numbers, key)
            )
            assert not refused, "a device's own message was refused"
            progress(len(devices))
        rounds.append(describe_round(server.protocol, len(group)))
        server.close_round()
    return server.protocol, rounds


def _campaign(key: Key) -> str:
    return key.again("campaign", "name").cipher_key("name")[:16].hex()


def _rows(series: Any, who: Integers) -> Any:
    if isinstance(series, np.ndarray) and series.ndim == 2:
        return series[who]
    return [series[i] for i in who.tolist()]


def _grouped(
    plan: ShapesPlan,
    sequences: Sequences,
    labels: Integers | None,
    seed: int | None,
    progress: Progress,
) -> tuple[ShapesProtocol, list[Round]]:
    distinct, which = sequences.grouped()
    texts: list[str] = distinct.texts()
    numbers: list[int] | None = None
    if labels is not None:
        text_numbers, numbers, which = group_with_labels(which, labels)
        texts = [texts[i] for i in text_numbers]
    counts = np.bincount(which, minlength=len(texts)).astype(np.int64)
    rounds: list[Round] = []

    def watch(protocol: ShapesProtocol, people: int) -> None:
        """Note where the ``protocol`` stands and how many ``people`` are asked."""
        rounds.append(describe_round(protocol, people))
        progress(people)

    key = Key.generate() if seed is None else Key.from_seed(seed)
    return simulate_grouped(plan, texts, counts, key, numbers, watch), rounds


def nearest(
    shapes: Sequence[Shape], sequences: Sequences, distance: Any
) -> tuple[Integers, npt.NDArray[np.float64]]:
    """The number of the nearest shape for each sequence, and how far it is.

    A shape that goes on beyond what was asked about is compared with as much of a sequence. Of
    equally near ones it is the one nearer symbol by symbol, then the most frequent.

    Parameters:
        shapes: to choose from.
        sequences: that are classified.
        distance: how sequences are compared.

    >>> shapes = [Shape("ab", 5.0, 1.0), Shape("ba", 9.0, 1.0), Shape("ba", 3.0, 1.0)]
    >>> found, far = nearest(shapes, Sequences.of(["aba", "ba"], symbols=2), "levenshtein")
    >>> found.tolist(), far.tolist()
    ([0, 1], [1.0, 0.0])
    """
    by_count = sorted(range(len(shapes)), key=lambda i: -shapes[i].count)
    ranked = [shapes[i] for i in by_count]
    candidates = Sequences.of([shape.text for shape in ranked], symbols=sequences.symbols)
    distinct, which = sequences.grouped()
    matrix = np.empty((len(distinct), len(ranked)))
    for ends in (True, False):
        columns = [i for i, shape in enumerate(ranked) if shape.ends == ends]
        if columns:
            matrix[:, columns] = ranked_distances(
                distance, distinct, candidates.take(columns), prefix=not ends
            )
    best = matrix.argmin(axis=1)
    distances = matrix[np.arange(len(distinct)), best]
    if distance != "euclidean":
        distances = np.floor(distances)  # without what tells equal ones apart
    return np.array(by_count, dtype=np.int64)[best][which], distances[which]


def with_label(outcome: Outcome, label: str) -> Outcome:
    """The ``outcome`` with this ``label`` for all shapes, where there is no other."""
    return replace(outcome, shapes=tuple(replace(shape, label=label) for shape in outcome.shapes))


LABELS_FROM_TABLE = (
    "which labels there are: they were taken from the table, so a label that one person alone has "
    "gives away that somebody has it"
)


def describe_outcome(outcome: Outcome, declared: bool = True) -> dict[str, Any]:
    """Everything public of a campaign in plain values, for JSON and reports.

    Parameters:
        outcome: of the campaign.
        declared: whether the labels, if there are any, were not taken from the data.
    """
    plan, shapes = outcome.plan, []
    for shape in outcome.shapes:
        share, low, high = outcome.share(shape)
        error = shape.error if math.isfinite(shape.error) else None
        shapes.append(
            {
                "shape": shape.text,
                "label": shape.label,
                "count": shape.count,
                "standard_error": error,
                "share": share,
                "low": low,
                "high": high,
                "sure": outcome.is_sure(shape),
                "ends": shape.ends,
            }
        )
    guarantee = outcome.guarantee
    return {
        "tempriv": VERSION,
        "campaign": outcome.campaign,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "series": plan.people,
        "counted": outcome.counted,
        "method": outcome.method,
        "settings": plan.to_dict(),
        "shapes": shapes,
        "rounds": [vars(round_) for round_ in outcome.rounds],
        "guarantee": serialization.encode(guarantee),
        "sentence": guarantee.sentence,
        "published": None if plan.published is None else serialization.encode(plan.published),
        "randomness": "AES-256 in counter mode, keys from the operating system, gone"
        if isinstance(guarantee, Guarantee)
        else guarantee.reason,
        "not_protected": [
            "how many series there are",
            "the settings: they were declared, not taken from the data",
            *([LABELS_FROM_TABLE] if plan.labels and not declared else []),
            "anything at all towards whoever held the table and ran this: all series were there",
        ],
        "ledger": None,
    }


def format_count(count: float, error: float | None) -> str:
    """A count to as many digits as its error lets matter.

    >>> [format_count(639.16, 30.7), format_count(19.48, 1.72), format_count(0.0, None)]
    ['639', '19.5', '0']
    """
    if error is None or error <= 0:
        return f"{count:,.3g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{count:,.{min(digits, 6) if error < 10 else 0}f}"


def simulate_grouped(
    plan: ShapesPlan,
    texts: Sequence[str],
    counts: Integers,
    key: Key,
    labels: Sequence[int] | None = None,
    watch: Callable[[ShapesProtocol, int], None] = lambda protocol, people: None,
) -> ShapesProtocol:
    """The end of a campaign among people of whom ``counts[i]`` have sequence ``texts[i]``.

    For studies and planning. Devices with the same sequence draw from the same distribution, so
    what a group of them says together is one draw of a multinomial; nothing is sent or may be
    released.

    Parameters:
        plan: what is asked for.
        texts: the different sequences.
        counts: how many people have each.
        key: of the noise.
        labels: the number of each sequence's label, if the plan has labels.
        watch: sees before each round where the campaign stands and how many are asked.
    """
    generator = simulation(key, "campaign")
    unasked = np.asarray(counts, dtype=np.int64).copy()
    require(
        len(unasked) == len(texts) and bool((unasked >= 0).all()), "counts: one for each sequence"
    )
    protocol = ShapesProtocol(plan, "0" * 32)
    while protocol.question is not None:
        people = min(protocol.wanted, int(unasked.sum()))
        watch(protocol, people)
        group = generator.multivariate_hypergeometric(unasked, people, method="marginals")
        unasked -= group
        protocol = protocol.after(
            simulate_round(protocol.question, texts, group, labels, generator), people
        )
    return protocol


def simulate_round(
    question: ShapesQuestion,
    texts: Sequence[str],
    group: Integers,
    labels: Sequence[int] | None,
    generator: Generator,
) -> Integers:
    """The support that a group of devices gives to each cell of a question.

    Parameters:
        question: what is asked.
        texts: the different sequences.
        group: how many devices have each.
        labels: the number of each sequence's label, if the plan has labels.
        generator: of ordinary random numbers.
    """
    occupied = np.flatnonzero(group).tolist()
    numbers = None if labels is None or not question.labels else [labels[i] for i in occupied]
    answers = local_answers(question, [texts[i] for i in occupied], numbers)
    people = group[occupied]
    if answers.scores is not None:
        return _choice_counts(answers, people, generator)
    if question.kind != "bigram":
        counts = _cell_counts(answers, 0, people, generator)
        return np.asarray(question.frequency.simulate_support(counts, generator), dtype=np.int64)
    spread = generator.multinomial(people, np.full(question.levels, 1 / question.levels))
    support = [
        question.frequency.simulate_support(
            _cell_counts(answers, level, spread[:, level], generator), generator
        )
        for level in range(question.levels)
    ]
    return np.concatenate(support)


def _cell_counts(
    answers: LocalAnswers, level: int, people: Integers, generator: Generator
) -> Integers:
    """How many have each cell to say; those with none say any of them."""
    cells, size = answers.cells[:, level], answers.question.cells
    has_cell = cells != NO_CELL
    counts = np.bincount(cells[has_cell], weights=people[has_cell], minlength=size)
    blank = int(people[~has_cell].sum())
    return (counts + generator.multinomial(blank, np.full(size, 1 / size))).astype(np.int64)


def _choice_counts(answers: LocalAnswers, people: Integers, generator: Generator) -> Integers:
    """Of the exponential mechanism: a multinomial for each sequence."""
    choices = generator.multinomial(people, answers.chances).sum(axis=0)
    return np.asarray(
        np.resize(np.append(choices, np.zeros(2)), answers.question.cells), dtype=np.int64
    )
