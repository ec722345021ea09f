"""The two roles of a shapes campaign: a server that asks, and devices that answer once.

A device keeps its series. It answers one question of a campaign, with noise of its own, and never
a second one; the server sees reports and nothing else. Messages between them are values
(``local.shapes.messages``), so it does not matter what carries them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tempriv.errors import BudgetError, DataError, StateError, TemprivError, require
from tempriv.local.device_ledger import NOT_COPIED, DeviceLedger
from tempriv.local.report_server import ReportServer
from tempriv.local.shapes.messages import (
    ANSWER,
    HEAD,
    INDEX,
    MAGIC,
    VERSION,
    ShapesAnswer,
    ShapesQuestion,
)
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.protocol import Shape, ShapesProtocol
from tempriv.local.shapes.randomizer import (
    NO_LABEL,
    ReportKeystreams,
    group_with_labels,
    local_answers,
    sequences_of,
)
from tempriv.local.shapes.sax import numbers_of
from tempriv.local.wire import TOKEN_BYTES, MessageError, new_token
from tempriv.sampling.keys import Key, SeriesKey, fresh_series_key, new_id, tokens
from tempriv.sampling.keystream import StepRange

Integers = npt.NDArray[np.int64]

BATCH_ANSWERS = 1 << 12  # answers looked at together


@dataclass
class ShapesDevice:
    """One person's device: it holds a series, and a label if the campaign asks for one.

    Parameters:
        series: numbers in a row, at least one.
        label: a text, if the campaign asks for one.
        ledger: what the device has answered; in memory and without a limit by default.
        most_epsilon: a question above this is refused.

    Guarantees:
        - it answers at most one question of a campaign, and none above ``most_epsilon``; over all
          campaigns together no more than the limit of its ledger, which has none by default;
        - its answer is drawn with fresh randomness of the operating system and shows the series
          within the question's epsilon;
        - whether it refuses does not depend on its series or its label. Of a series that is longer
          than the campaign is for the beginning counts; with a label that nobody asks for it says
          anything, each equally likely.

    >>> import numpy as np
    >>> from tempriv.local.shapes.sax import Sax
    >>> sax = Sax(symbols=3, segment=4, longest=6)
    >>> plan = ShapesPlan(epsilon=2.0, shapes=2, people=100, sax=sax)
    >>> server = ShapesServer(plan)
    >>> device = ShapesDevice(np.sin(np.arange(24) / 4))
    >>> server.receive(device.answer(server.question))
    >>> server.received
    1
    """

    series: Any = field(repr=False)
    label: str | None = field(default=None, repr=False)
    ledger: DeviceLedger = field(default_factory=DeviceLedger)
    most_epsilon: float = 8.0

    def __post_init__(self) -> None:
        # here and not when it is asked: a refusal then would be an answer
        values = numbers_of(self.series, "the series")
        require(
            values.ndim == 1 and values.size > 0,
            "the series: must be numbers in a row, at least one; a device holds one series",
            DataError,
        )
        self.series = values.astype(np.float64)  # its own, whatever happens to the other
        require(
            bool(np.isfinite(self.series).all()),
            "the series: holds a missing or infinite value; fill it in, or leave it out",
            DataError,
        )
        require(
            self.label is None or isinstance(self.label, str), "the label: must be a text, or None"
        )

    def __reduce__(self) -> NoReturn:
        raise StateError(f"a device {NOT_COPIED}")

    def answer(self, question: ShapesQuestion, key: SeriesKey | None = None) -> ShapesAnswer:
        """The one answer of this device.

        Parameters:
            question: of a campaign that it has not answered yet.
            key: of the noise, for experiments only; fresh randomness by default.

        Raises:
            BudgetError: if the campaign has had its answer, or its epsilon is too large.
        """
        require(
            question.epsilon <= self.most_epsilon,
            f"epsilon={question.epsilon:g}: this device answers nothing above "
            f"{self.most_epsilon:g}",
            BudgetError,
        )
        numbers = None
        if question.labels:
            has_label = self.label is not None and self.label in question.labels
            numbers = [question.labels.index(str(self.label)) if has_label else NO_LABEL]
        # everything that can go wrong has its turn before the one answer is spent
        sequence = sequences_of(question.sax, question.readings, [self.series])
        answers = local_answers(question, sequence.texts(), numbers)
        self.ledger.spend(question.campaign, question.epsilon)
        keystreams = ReportKeystreams([StepRange(key or fresh_series_key(), 0, 1)])
        report = answers.reports(np.zeros(1, dtype=np.int64), keystreams)
        return ShapesAnswer(
            campaign=question.campaign,
            round=question.round,
            token=new_token(),
            report=report.tobytes(),
        )


class ShapesServer(ReportServer):
    """Asks, counts, and at the end knows shapes; it never needs anything but answers.

    Parameters:
        plan: what the campaign asks for.
        campaign: its name, 32 hexadecimal digits; a new one by default.

    Guarantees:
        - an answer that is malformed, of another version or campaign, late, early, or there
          already is refused with a reason, and nothing changes;
        - a round that is closed stays closed, however few answered it.
    """

    state_kind = "tempriv shapes server 2"
    no_question = "the campaign is over: nobody is asked any more"
    plan_type, protocol_type, answer_type = ShapesPlan, ShapesProtocol, ShapesAnswer

    plan: ShapesPlan
    protocol: ShapesProtocol

    def __init__(self, plan: ShapesPlan, campaign: str | None = None):
        super().__init__(plan, ShapesProtocol(plan, campaign or new_id()))

    @property
    def _cells(self) -> int:
        question = self.protocol.question
        if question is None:
            return 0
        return question.cells * (question.levels if question.kind == "bigram" else 1)

    @property
    def question(self) -> ShapesQuestion:
        """What to ask the next device."""
        question: ShapesQuestion = super().question
        return question

    @property
    def wanted(self) -> int:
        """How many answers this round is still for; more are taken, too."""
        return max(0, self.protocol.wanted - self.received)

    @property
    def is_over(self) -> bool:
        return self.protocol.question is None

    @property
    def shapes(self) -> tuple[Shape, ...]:
        require(self.is_over, "the campaign is not over: close its rounds first")
        return self.protocol.shapes

    def _refuse(self, answer: ShapesAnswer) -> None:
        question = self.protocol.question
        require(question is not None, "the campaign is over", MessageError)
        assert question is not None
        require(
            answer.campaign == question.campaign,
            "the answer belongs to another campaign",
            MessageError,
        )
        require(answer.round >= question.round, "the answer is late", MessageError)
        require(answer.round == question.round, "nobody was asked that question yet", MessageError)
        refuse_report(question, answer.report)
        require(answer.token not in self._tokens, "this answer is there already", MessageError)

    def receive_many(self, answers: Iterable[bytes]) -> Counter[str]:
        """Take many ``answers``; returns how many were refused, by reason."""
        refused: Counter[str] = Counter()
        answers = iter(answers)
        while batch := list(itertools.islice(answers, BATCH_ANSWERS)):
            refused += super().receive_many(self._received(batch))
        return refused

    def _received(self, answers: list[bytes]) -> list[bytes]:
        """Take all at once, if none is in doubt; returns those that were not taken."""
        question = self.protocol.question
        if question is None:
            return answers
        size, head = HEAD.size + question.report_bytes, head_of(question)
        fits: dict[bytes, int] = {}
        for i, answer in enumerate(answers):
            if type(answer) is bytes and len(answer) == size and answer.startswith(head):
                token = answer[len(head) : HEAD.size]
                if token not in self._tokens:
                    fits.setdefault(token, i)
        batch = [answers[i] for i in fits.values()]
        rows = np.frombuffer(b"".join(batch), dtype=np.uint8).reshape(-1, size)
        try:
            support = support_of(question, rows[:, HEAD.size :])
        except TemprivError:
            return answers
        self._support = self._support + support
        self._tokens.update(fits)
        self.received += len(batch)
        taken = set(fits.values())
        return [answer for i, answer in enumerate(answers) if i not in taken]

    def _support_of(self, reports: list[bytes]) -> Integers:
        joined = np.frombuffer(b"".join(reports), dtype=np.uint8)
        return support_of(self.question, joined.reshape(len(reports), -1))

    def close_round(self) -> None:
        """Go on with what was received."""
        self._close()


def refuse_report(question: ShapesQuestion, report: bytes) -> None:
    """Refuse a ``report`` that no device can have sent to this ``question``."""
    require(
        len(report) == question.report_bytes,
        f"a report of {len(report)} bytes: must have {question.report_bytes}",
        MessageError,
    )
    body = report
    if question.kind == "bigram":
        require(report[0] < question.levels, "a level that was not asked about", MessageError)
        body = report[1:]
    if question.frequency is None:
        (index,) = INDEX.unpack(body)
        require(index < len(question.candidates), "a candidate that is none", MessageError)
        return
    try:
        question.frequency.refuse(body)
    except DataError as reason:
        raise MessageError(str(reason)) from None


def fits(question: ShapesQuestion, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which ``rows`` of bytes are reports to a ``question``: those that ``refuse_report`` does not
    refuse.
    """
    levels: npt.NDArray[np.bool_] = np.ones(len(rows), dtype=np.bool_)
    if question.kind == "bigram":
        levels, rows = rows[:, 0] < question.levels, rows[:, 1:]
    if question.frequency is None:
        chosen = np.ascontiguousarray(rows).view(">u2")[:, 0]
        return np.asarray(chosen < len(question.candidates))
    return np.asarray(levels & question.frequency.fits(rows))


def head_of(question: ShapesQuestion) -> bytes:
    """The head of every answer to a ``question``, up to the token."""
    campaign = bytes.fromhex(question.campaign)
    return HEAD.pack(MAGIC, ANSWER, VERSION, campaign, question.round, b"")[:-TOKEN_BYTES]


def support_of(question: ShapesQuestion, reports: npt.NDArray[np.uint8]) -> Integers:
    """How many ``reports`` support each cell of a ``question`` (of each level); any wrong one is
    refused.
    """
    if question.frequency is None:
        chosen = np.ascontiguousarray(reports).view(">u2")[:, 0].astype(np.int64)
        valid = bool((chosen < len(question.candidates)).all())
        require(valid, "a candidate that is none", MessageError)
        return np.bincount(chosen, minlength=question.cells).astype(np.int64)
    if question.kind != "bigram":
        support: Integers = question.frequency.support(reports)
        return support
    valid_levels = bool((reports[:, 0] < question.levels).all())
    require(valid_levels, "a level that was not asked about", MessageError)
    levels = [
        question.frequency.support(reports[reports[:, 0] == level, 1:])
        for level in range(question.levels)
    ]
    return np.concatenate(levels)


def simulate_answers(
    question: ShapesQuestion,
    series: Any,
    labels: Sequence[int] | None = None,
    key: Key | None = None,
) -> list[bytes]:
    """The messages of many devices that are all here, each asked for the first time.

    For trials on one machine: the same messages as of ``ShapesDevice``, drawn together.

    Parameters:
        question: what they are asked.
        series: a matrix or a list.
        labels: the number of each one's label, if the question asks for it.
        key: of the noise, for experiments only.
    """
    distinct, which = sequences_of(question.sax, question.readings, series).grouped()
    texts, numbers = distinct.texts(), None
    if labels is not None:
        text_numbers, numbers, which = group_with_labels(which, labels)
        texts = [texts[i] for i in text_numbers]
        require(
            NO_LABEL not in numbers,
            f"labels: must be numbers from 0 to {len(question.labels) - 1}, one for each sequence",
            MessageError,
        )
    chain = fresh_series_key() if key is None else key.again("answers", str(question.round))
    local = local_answers(question, texts, numbers)
    reports = local.reports(np.asarray(which), ReportKeystreams([StepRange(chain, 0, len(which))]))
    token_bytes = tokens(len(reports)) if key is None else _tokens(chain, len(reports))
    rows = np.empty((len(reports), HEAD.size + reports.shape[1]), dtype=np.uint8)
    head = head_of(question)
    rows[:, : len(head)] = np.frombuffer(head, dtype=np.uint8)
    rows[:, len(head) : HEAD.size] = np.frombuffer(token_bytes, dtype=np.uint8).reshape(
        -1, TOKEN_BYTES
    )
    rows[:, HEAD.size :] = reports
    return [row.tobytes() for row in rows]


def _tokens(chain: SeriesKey, count: int) -> bytes:
    keystream = ReportKeystreams([StepRange(chain, 0, count)])("token")
    return np.stack([keystream.read(0), keystream.read(1)], axis=1).tobytes()
