"""The two roles of a shapes campaign: a server that asks, and devices that answer once.

A device keeps its series. It answers one question of a campaign, with noise of its own, and never
a second one; the server sees reports and nothing else. Messages between them are values
(``local.shapes.messages``), so it does not matter what carries them.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tempriv.errors import BudgetError, DataError, StateError, TemprivError, require
from tempriv.local.device_ledger import NOT_COPIED, DeviceLedger
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
    WordsOf,
    group_with_labels,
    local_answers,
    sequences_of,
)
from tempriv.local.shapes.sax import numbers_of
from tempriv.local.wire import (
    MAX_WHOLE_NUMBER,
    TOKEN_BYTES,
    MessageError,
    decode_received,
    new_token,
    refuse_damage,
    state_object,
)
from tempriv.sampling.keys import Key, SeriesKey, fresh_series_key, new_id, tokens
from tempriv.sampling.keystream import StepRange

Integers = npt.NDArray[np.int64]

BATCH_REPORTS = 1 << 15  # reports kept before they are added up
BATCH_ANSWERS = 1 << 12  # answers looked at together
STATE_KIND = "tempriv shapes server 2"
STATE_FIELDS = ("plan", "course", "support", "received", "tokens")


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
        own = numbers_of(self.series, "the series")
        require(
            own.ndim == 1 and own.size > 0,
            "the series: must be numbers in a row, at least one; a device holds one series",
            DataError,
        )
        self.series = own.astype(np.float64)  # its own, whatever happens to the other
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
            known = self.label is not None and self.label in question.labels
            numbers = [question.labels.index(str(self.label)) if known else NO_LABEL]
        # everything that can go wrong has its turn before the one answer is spent
        own = sequences_of(question.sax, question.readings, [self.series])
        seen = local_answers(question, own.texts(), numbers)
        self.ledger.spend(question.campaign, question.epsilon)
        words = WordsOf([StepRange(key or fresh_series_key(), 0, 1)])
        report = seen.reports(np.zeros(1, dtype=np.int64), words)
        return ShapesAnswer(
            campaign=question.campaign,
            round=question.round,
            token=new_token(),
            report=report.tobytes(),
        )


class ShapesServer:
    """Asks, counts, and at the end knows shapes; it never needs anything but answers.

    Parameters:
        plan: what the campaign asks for.
        campaign: its name, 32 hexadecimal digits; a new one by default.

    Guarantees:
        - an answer that is malformed, of another version or campaign, late, early, or there
          already is refused with a reason, and nothing changes;
        - a round that is closed stays closed, however few answered it.
    """

    def __init__(self, plan: ShapesPlan, campaign: str | None = None):
        self.plan = plan
        self.protocol = ShapesProtocol(plan, campaign or new_id())
        self._begin()

    def _begin(self) -> None:
        self.received = 0
        self._tokens: set[bytes] = set()
        self._waiting: list[bytes] = []
        question = self.protocol.question
        size = 0
        if question is not None:
            size = question.cells * (question.levels if question.kind == "bigram" else 1)
        self._support = np.zeros(size, dtype=np.int64)

    @property
    def question(self) -> ShapesQuestion:
        """What to ask the next device."""
        question = self.protocol.question
        require(question is not None, "the campaign is over: nobody is asked any more")
        assert question is not None
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

    def receive(self, answer: ShapesAnswer | bytes) -> None:
        """Take one ``answer``, or refuse it with a reason (MessageError)."""
        if not isinstance(answer, ShapesAnswer):
            answer = ShapesAnswer.from_bytes(answer)
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
        self._tokens.add(answer.token)
        self._waiting.append(answer.report)
        self.received += 1
        if len(self._waiting) >= BATCH_REPORTS:
            self._add_up()

    def receive_many(self, answers: Iterable[bytes]) -> Counter[str]:
        """Take many ``answers``; returns how many were refused, by reason."""
        refused: Counter[str] = Counter()
        answers = iter(answers)
        while some := list(itertools.islice(answers, BATCH_ANSWERS)):
            for answer in self._received(some):
                try:
                    self.receive(answer)
                except MessageError as reason:
                    refused[str(reason)] += 1
        return refused

    def _received(self, answers: list[bytes]) -> list[bytes]:
        """Take all at once, if none is in doubt; gives those that were not taken."""
        question = self.protocol.question
        if question is None:
            return answers
        size, head = HEAD.size + question.report_bytes, head_of(question)
        fits: dict[bytes, int] = {}
        for i, one in enumerate(answers):
            if type(one) is bytes and len(one) == size and one.startswith(head):
                token = one[len(head) : HEAD.size]
                if token not in self._tokens:
                    fits.setdefault(token, i)
        some = [answers[i] for i in fits.values()]
        rows = np.frombuffer(b"".join(some), dtype=np.uint8).reshape(-1, size)
        try:
            support = support_of(question, rows[:, HEAD.size :])
        except TemprivError:
            return answers
        self._support = self._support + support
        self._tokens.update(fits)
        self.received += len(some)
        taken = set(fits.values())
        return [one for i, one in enumerate(answers) if i not in taken]

    def _add_up(self) -> None:
        if self._waiting:
            joined = np.frombuffer(b"".join(self._waiting), dtype=np.uint8)
            reports = joined.reshape(len(self._waiting), -1)
            self._support = self._support + support_of(self.question, reports)
            self._waiting = []

    def close_round(self) -> None:
        """Go on with what was received."""
        require(not self.is_over, "the campaign is over")
        self._add_up()
        self.protocol = self.protocol.after(self._support, self.received)
        self._begin()

    def state(self) -> bytes:
        """Everything needed to go on after a restart; no more than the answers themselves."""
        self._add_up()
        body = {
            "is": STATE_KIND,
            "plan": self.plan.to_dict(),
            "course": self.protocol.to_dict(),
            "support": self._support.tolist(),
            "received": self.received,
            "tokens": [base64.b64encode(token).decode() for token in sorted(self._tokens)],
        }
        return json.dumps(body, sort_keys=True, allow_nan=False).encode()

    @classmethod
    def resume(cls, state: bytes) -> ShapesServer:
        """A server that goes on from a ``state`` of another one."""
        with refuse_damage():
            body = state_object(state, STATE_KIND, STATE_FIELDS)
            plan = ShapesPlan.from_dict(body["plan"])
            protocol = ShapesProtocol.from_dict(plan, body["course"])
            server = cls(plan, protocol.campaign)
            server.protocol = protocol
            server._begin()
            received = decode_received(
                body, server._support.size, 0 if server.is_over else MAX_WHOLE_NUMBER
            )
        server._support, server.received, server._tokens = received
        return server


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
    """Which rows of bytes are reports: those that ``refuse_report`` does not."""
    levels: npt.NDArray[np.bool_] = np.ones(len(rows), dtype=np.bool_)
    if question.kind == "bigram":
        levels, rows = rows[:, 0] < question.levels, rows[:, 1:]
    if question.frequency is None:
        chosen = np.ascontiguousarray(rows).view(">u2")[:, 0]
        return np.asarray(chosen < len(question.candidates))
    return np.asarray(levels & question.frequency.fits(rows))


def head_of(question: ShapesQuestion) -> bytes:
    """Of every answer to it, up to the token."""
    campaign = bytes.fromhex(question.campaign)
    return HEAD.pack(MAGIC, ANSWER, VERSION, campaign, question.round, b"")[:-TOKEN_BYTES]


def support_of(question: ShapesQuestion, reports: npt.NDArray[np.uint8]) -> Integers:
    """How many reports support each cell (of each level); refused if one of them is none."""
    if question.frequency is None:
        chosen = np.ascontiguousarray(reports).view(">u2")[:, 0].astype(np.int64)
        known = bool((chosen < len(question.candidates)).all())
        require(known, "a candidate that is none", MessageError)
        return np.bincount(chosen, minlength=question.cells).astype(np.int64)
    if question.kind != "bigram":
        found: Integers = question.frequency.support(reports)
        return found
    asked = bool((reports[:, 0] < question.levels).all())
    require(asked, "a level that was not asked about", MessageError)
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
        own, numbers, which = group_with_labels(which, labels)
        texts = [texts[i] for i in own]
        require(
            NO_LABEL not in numbers,
            f"labels: must be numbers from 0 to {len(question.labels) - 1}, one for each sequence",
            MessageError,
        )
    chain = fresh_series_key() if key is None else key.again("answers", str(question.round))
    seen = local_answers(question, texts, numbers)
    reports = seen.reports(np.asarray(which), WordsOf([StepRange(chain, 0, len(which))]))
    names = tokens(len(reports)) if key is None else _tokens(chain, len(reports))
    rows = np.empty((len(reports), HEAD.size + reports.shape[1]), dtype=np.uint8)
    head = head_of(question)
    rows[:, : len(head)] = np.frombuffer(head, dtype=np.uint8)
    rows[:, len(head) : HEAD.size] = np.frombuffer(names, dtype=np.uint8).reshape(-1, TOKEN_BYTES)
    rows[:, HEAD.size :] = reports
    return [row.tobytes() for row in rows]


def _tokens(chain: SeriesKey, count: int) -> bytes:
    words = WordsOf([StepRange(chain, 0, count)])("token")
    return np.stack([words.read(0), words.read(1)], axis=1).tobytes()
