"""The two roles of a shapes campaign: a server that asks, and devices that answer once.

A device keeps its series. It answers one question of a campaign, with noise of its own, and never
a second one; the server sees reports and nothing else. Messages between them are values
(``shapes_messages``), so it does not matter what carries them.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import BudgetRefusal, DataRefusal, Refusal, require
from tempriv.files import sync_directory
from tempriv.population.messages import TOKEN_BYTES
from tempriv.population.sax import Sax
from tempriv.population.shapes_course import Course, Plan, Shape
from tempriv.population.shapes_messages import (
    ANSWER,
    HEAD,
    INDEX,
    MAGIC,
    VERSION,
    Answer,
    MessageRefusal,
    Question,
    new_token,
)
from tempriv.population.shapes_views import WordsOf, views
from tempriv.randomness import Key, Run, SeriesKey, fresh_series_key, new_id, tokens

Integers = npt.NDArray[np.int64]

AT_ONCE = 1 << 15  # reports kept before they are added up
TOGETHER = 1 << 12  # answers looked at together
STATE = "tempriv shapes server 1"
DAMAGE = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)


class DeviceLedger:
    """What a device has answered: one question of a campaign, and no more than its limit in all.

    A file for each campaign in a folder of its own, made before the answer leaves and never twice,
    whatever else runs on the device; without a folder, in memory.
    """

    def __init__(self, folder: Path | None = None, limit: float = float("inf")):
        require(limit > 0, f"limit={limit}: must be > 0")
        self.folder, self.limit = folder, limit
        self._answered: dict[str, float] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def spent(self) -> float:
        """Epsilon of all answers together."""
        if self.folder is None:
            return sum(self._answered.values())
        # what cannot be read was begun and is counted as all there is
        return sum(_epsilon_in(path) for path in self.folder.iterdir())

    def spend(self, campaign: str, epsilon: float) -> None:
        """Refused if the campaign has had its answer, or the limit is reached."""
        with self._alone():
            self._spend(campaign, epsilon)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process adds up the folder at the same time: two could pass the limit."""
        if self.folder is None:
            yield
            return
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _spend(self, campaign: str, epsilon: float) -> None:
        require(
            not self._has(campaign),
            "this device has answered a question of this campaign; it answers one",
            BudgetRefusal,
        )
        require(
            self.spent() + epsilon <= self.limit * (1 + 1e-12),
            f"epsilon={epsilon:g}: with what this device has answered before, more than its limit "
            f"of {self.limit:g}",
            BudgetRefusal,
        )
        if self.folder is None:
            self._answered[campaign] = epsilon
            return
        try:
            descriptor = os.open(
                self.folder / campaign, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600
            )
        except FileExistsError:
            raise BudgetRefusal(
                "this device has answered a question of this campaign; it answers one"
            ) from None
        with os.fdopen(descriptor, "w") as file:
            file.write(repr(float(epsilon)))
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self.folder)

    def _has(self, campaign: str) -> bool:
        if self.folder is None:
            return campaign in self._answered
        return (self.folder / campaign).exists()


def _epsilon_in(path: Path) -> float:
    try:
        return float(path.read_text())
    except ValueError:
        return float("inf")


@dataclass
class Device:
    """One person's device: it holds a series, and a label if the campaign asks for one.

    Guarantees:
        - it answers at most one question of a campaign, and none above ``most_epsilon``; over all
          campaigns together no more than the limit of its ledger, which has none by default;
        - its answer is drawn with fresh randomness of the operating system and shows the series
          within the question's epsilon. That it refuses to answer (its series is too long, its
          label is none of those asked about) is not hidden.

    >>> import numpy as np
    >>> plan = Plan(epsilon=2.0, shapes=2, people=100, sax=Sax(symbols=3, segment=4, longest=6))
    >>> server = Server(plan)
    >>> device = Device(np.sin(np.arange(24) / 4))
    >>> server.receive(device.answer(server.question))
    >>> server.received
    1
    """

    series: Any = field(repr=False)
    label: str | None = field(default=None, repr=False)
    ledger: DeviceLedger = field(default_factory=DeviceLedger)
    most_epsilon: float = 8.0

    def answer(self, question: Question, key: SeriesKey | None = None) -> Answer:
        """The one answer of this device; a key is for experiments only."""
        require(
            question.epsilon <= self.most_epsilon,
            f"epsilon={question.epsilon:g}: this device answers nothing above "
            f"{self.most_epsilon:g}",
            BudgetRefusal,
        )
        require(
            len(self.series) <= question.readings,
            f"the series has more than {question.readings} readings, which the campaign is for",
            DataRefusal,
        )
        numbers = None
        if question.labels:
            require(
                self.label in question.labels,
                "this device has none of the labels that the question asks for",
                DataRefusal,
            )
            assert self.label is not None
            numbers = [question.labels.index(self.label)]
        # everything that can go wrong has its turn before the one answer is spent
        seen = views(question, question.sax.sequences([self.series]).texts(), numbers)
        self.ledger.spend(question.campaign, question.epsilon)
        words = WordsOf([Run(key or fresh_series_key(), 0, 1)])
        report = seen.reports(np.zeros(1, dtype=np.int64), words)
        return Answer(
            campaign=question.campaign,
            round=question.round,
            token=new_token(),
            report=report.tobytes(),
        )


class Server:
    """Asks, counts, and at the end knows shapes; it never needs anything but answers.

    Guarantees:
        - an answer that is malformed, of another version or campaign, late, early, or there
          already is refused with a reason, and nothing changes;
        - a round that is closed stays closed, however few answered it.
    """

    def __init__(self, plan: Plan, campaign: str | None = None):
        self.plan = plan
        self.course = Course(plan, campaign or new_id())
        self._begin()

    def _begin(self) -> None:
        self.received = 0
        self._tokens: set[bytes] = set()
        self._waiting: list[bytes] = []
        question = self.course.question
        size = 0
        if question is not None:
            size = question.cells * (question.levels if question.kind == "bigram" else 1)
        self._support = np.zeros(size, dtype=np.int64)

    @property
    def question(self) -> Question:
        """What to ask the next device."""
        question = self.course.question
        require(question is not None, "the campaign is over: nobody is asked any more")
        assert question is not None
        return question

    @property
    def wanted(self) -> int:
        """How many answers this round is still for; more are taken, too."""
        return max(0, self.course.wanted - self.received)

    @property
    def is_over(self) -> bool:
        return self.course.question is None

    @property
    def shapes(self) -> tuple[Shape, ...]:
        require(self.is_over, "the campaign is not over: close its rounds first")
        return self.course.shapes

    def receive(self, answer: Answer | bytes) -> None:
        """Take one answer, or refuse it with a reason."""
        if not isinstance(answer, Answer):
            answer = Answer.from_bytes(answer)
        question = self.course.question
        require(question is not None, "the campaign is over", MessageRefusal)
        assert question is not None
        require(
            answer.campaign == question.campaign,
            "the answer belongs to another campaign",
            MessageRefusal,
        )
        require(answer.round >= question.round, "the answer is late", MessageRefusal)
        require(
            answer.round == question.round, "nobody was asked that question yet", MessageRefusal
        )
        refuse_report(question, answer.report)
        require(answer.token not in self._tokens, "this answer is there already", MessageRefusal)
        self._tokens.add(answer.token)
        self._waiting.append(answer.report)
        self.received += 1
        if len(self._waiting) >= AT_ONCE:
            self._add_up()

    def receive_many(self, answers: Iterable[bytes]) -> Counter[str]:
        """Take many; gives how many were refused, by reason."""
        refused: Counter[str] = Counter()
        answers = iter(answers)
        while some := list(itertools.islice(answers, TOGETHER)):
            for answer in self._received(some):
                try:
                    self.receive(answer)
                except MessageRefusal as reason:
                    refused[str(reason)] += 1
        return refused

    def _received(self, answers: list[bytes]) -> list[bytes]:
        """Take all at once, if none is in doubt; gives those that were not taken."""
        question = self.course.question
        if question is None:
            return answers
        size, head = HEAD.size + question.report_bytes, _head(question)
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
        except Refusal:
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
        self.course = self.course.after(self._support, self.received)
        self._begin()

    def state(self) -> bytes:
        """Everything needed to go on after a restart; no more than the answers themselves."""
        self._add_up()
        course = self.course
        body = {
            "is": STATE,
            "plan": self.plan.to_dict(),
            "course": {
                name: getattr(course, name)
                for name in ("campaign", "round", "stage", "method", "length", "level")
            },
            "pairs": course.pairs,
            "candidates": course.candidates,
            "shapes": [vars(shape) for shape in course.shapes],
            "support": self._support.tolist(),
            "received": self.received,
            "tokens": [base64.b64encode(token).decode() for token in sorted(self._tokens)],
        }
        return json.dumps(body, sort_keys=True).encode()

    @classmethod
    def resume(cls, state: bytes) -> Server:
        """A server that stands where the other one stood."""
        try:
            body = json.loads(state)
            require(body["is"] == STATE, "not the state of a shapes server", MessageRefusal)
            given = dict(body["plan"])
            given["sax"] = Sax.from_dict(given["sax"])
            for name in ("labels", "shares"):
                given[name] = tuple(given[name])
            server = cls(Plan(**given), body["course"]["campaign"])
            server.course = replace(
                server.course,
                **body["course"],
                pairs=tuple(tuple(level) for level in body["pairs"]),
                candidates=tuple(body["candidates"]),
                shapes=tuple(Shape(**shape) for shape in body["shapes"]),
            )
            server._begin()
            support = np.array(body["support"], dtype=np.int64)
            require(
                support.shape == server._support.shape and not (support < 0).any(),
                "the state of the server is damaged",
                MessageRefusal,
            )
            server._support, server.received = support, body["received"]
            server._tokens = {base64.b64decode(token) for token in body["tokens"]}
            require(
                type(server.received) is int and len(server._tokens) == server.received,
                "the state of the server is damaged",
                MessageRefusal,
            )
        except MessageRefusal:
            raise
        except DAMAGE:
            raise MessageRefusal("the state of the server is damaged") from None
        return server


def refuse_report(question: Question, report: bytes) -> None:
    """Refuse what no device can have sent to this question."""
    require(
        len(report) == question.report_bytes,
        f"a report of {len(report)} bytes: must have {question.report_bytes}",
        MessageRefusal,
    )
    body = report
    if question.kind == "bigram":
        require(report[0] < question.levels, "a level that was not asked about", MessageRefusal)
        body = report[1:]
    if question.frequency is None:
        (index,) = INDEX.unpack(body)
        require(index < len(question.candidates), "a candidate that is none", MessageRefusal)
        return
    try:
        question.frequency.refuse(body)
    except MessageRefusal:
        raise
    except Exception as reason:
        raise MessageRefusal(str(reason)) from None


def _head(question: Question) -> bytes:
    """Of every answer to it, up to the token."""
    campaign = bytes.fromhex(question.campaign)
    return HEAD.pack(MAGIC, ANSWER, VERSION, campaign, question.round, b"")[:-TOKEN_BYTES]


def support_of(question: Question, reports: npt.NDArray[np.uint8]) -> Integers:
    """How many reports support each cell (of each level); refused if one of them is none."""
    if question.frequency is None:
        chosen = np.ascontiguousarray(reports).view(">u2")[:, 0].astype(np.int64)
        known = bool((chosen < len(question.candidates)).all())
        require(known, "a candidate that is none", MessageRefusal)
        return np.bincount(chosen, minlength=question.cells).astype(np.int64)
    if question.kind != "bigram":
        found: Integers = question.frequency.support(reports)
        return found
    asked = bool((reports[:, 0] < question.levels).all())
    require(asked, "a level that was not asked about", MessageRefusal)
    levels = [
        question.frequency.support(reports[reports[:, 0] == level, 1:])
        for level in range(question.levels)
    ]
    return np.concatenate(levels)


def answers_of(
    question: Question,
    series: Any,
    labels: Sequence[int] | None = None,
    key: Key | None = None,
) -> list[bytes]:
    """The messages of many devices that are all here, each asked for the first time.

    For trials on one machine: the same messages as of ``Device``, drawn together.
    """
    found = question.sax.sequences(series)
    distinct, which = found.grouped()
    texts = distinct.texts()
    numbers = None
    if labels is not None:
        pairs, which = np.unique(
            np.stack([which, np.asarray(labels)], axis=1), axis=0, return_inverse=True
        )
        texts = [texts[i] for i in pairs[:, 0]]
        numbers = pairs[:, 1].tolist()
    chain = fresh_series_key() if key is None else key.again("answers", str(question.round))
    seen = views(question, texts, numbers)
    reports = seen.reports(np.asarray(which), WordsOf([Run(chain, 0, len(which))]))
    names = tokens(len(reports)) if key is None else _tokens(chain, len(reports))
    rows = np.empty((len(reports), HEAD.size + reports.shape[1]), dtype=np.uint8)
    head = _head(question)
    rows[:, : len(head)] = np.frombuffer(head, dtype=np.uint8)
    rows[:, len(head) : HEAD.size] = np.frombuffer(names, dtype=np.uint8).reshape(-1, TOKEN_BYTES)
    rows[:, HEAD.size :] = reports
    return [row.tobytes() for row in rows]


def _tokens(chain: SeriesKey, count: int) -> bytes:
    words = WordsOf([Run(chain, 0, count)])("token")
    return np.stack([words.take(0), words.take(1)], axis=1).tobytes()
