"""The two roles of a stream over a population: a server that asks at each step, and devices.

A device knows its own value and its own time. It answers what its ledger allows: within any window
of steps no more than its limit, whatever the server says. The server sees reports and nothing else.
Messages between them are values (``streams_messages``), so it does not matter what carries them.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import BudgetRefusal, DataRefusal, StateRefusal, UsageRefusal, require
from tempriv.files import write_durably
from tempriv.guarantees import Guarantee, Pure
from tempriv.population.messages import MessageRefusal, campaign_name, new_token
from tempriv.population.streams_course import Course, Plan, rounded_down
from tempriv.population.streams_messages import Answer, Question, refuse_report
from tempriv.randomness import Key, Run, SeriesKey, Words, fresh_series_key, new_id
from tempriv.units import Window

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

AT_ONCE = 1 << 15  # reports kept before they are added up
STATE = "tempriv stream server 1"
REPORT = "stream report"


class WindowLedger:
    """What a device has answered about its latest steps, and the most that it may.

    Guarantees:
        - the epsilons of all answers about any ``window`` consecutive steps sum to at most
          ``limit``, exactly, whatever is asked by whomever;
        - with a ``path`` that holds after restarts and among processes: an answer is noted on
          disk before it leaves.

    >>> ledger = WindowLedger(window=2, limit=1.0)
    >>> ledger.spend("a" * 32, 10, "publish", 0.75)
    >>> ledger.left(11), ledger.left(12)
    (0.25, 1.0)
    """

    def __init__(self, window: int, limit: float, path: Path | None = None):
        self.unit = Window(window)
        require(0 < limit < float("inf"), f"limit={limit}: must be > 0 and finite")
        self.window, self.limit, self.path = window, float(limit), path
        self._charges: list[tuple[int, str, str, float]] = []
        with self._held():
            pass  # a damaged file, or one for another window, is refused at once

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.limit), self.unit)

    def left(self, step: int) -> float:
        """How much epsilon an answer about this step could still have, rounded down."""
        with self._held():
            return rounded_down(Fraction(self.limit) - self._spent(step))

    def spend(self, campaign: str, step: int, part: str, epsilon: float) -> None:
        """Note an answer, or refuse it."""
        require(epsilon > 0, f"epsilon={epsilon}: must be > 0")
        with self._held():
            latest = max((charge[0] for charge in self._charges), default=step)
            require(step >= latest, f"step {step} is past: step {latest} was told", BudgetRefusal)
            require(
                (step, campaign, part) not in [charge[:3] for charge in self._charges],
                "this device has answered this question; it answers a question once",
                BudgetRefusal,
            )
            require(
                self._spent(step) + Fraction(epsilon) <= Fraction(self.limit),
                f"epsilon={epsilon:g}: with the answers about the {self.window} steps up to "
                f"step {step}, more than this device's limit of {self.limit:g}",
                BudgetRefusal,
            )
            kept = [charge for charge in self._charges if step - charge[0] < self.window]
            self._charges = [*kept, (step, campaign, part, float(epsilon))]
            self._keep()

    def _spent(self, step: int) -> Fraction:
        """By answers about the steps of the window that ends here."""
        recent = [charge[3] for charge in self._charges if step - charge[0] < self.window]
        return sum(map(Fraction, recent), Fraction(0))

    @contextmanager
    def _held(self) -> Iterator[None]:
        """With what the file says, and nobody else at it."""
        if self.path is None:
            yield
            return
        lock = os.open(self.path.with_name(self.path.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._read()
            yield
        finally:
            os.close(lock)

    def _keep(self) -> None:
        if self.path is not None:
            kept = {"window": self.window, "limit": self.limit, "charges": self._charges}
            write_durably(self.path, json.dumps(kept).encode())

    def _read(self) -> None:
        assert self.path is not None
        if not self.path.exists():
            self._charges = []
            return
        try:
            kept = json.loads(self.path.read_bytes())
            charges = [(int(s), str(c), str(p), float(e)) for s, c, p, e in kept["charges"]]
            same = kept["window"] == self.window and kept["limit"] == self.limit
            sound = all(0 < charge[3] <= self.limit for charge in charges)
        except (ValueError, KeyError, TypeError):
            sound = same = False
        require(sound or same, f"{self.path}: not a ledger, or damaged", StateRefusal)
        require(
            sound and same,
            f"{self.path}: is damaged, or was kept with another window or limit",
            StateRefusal,
        )
        self._charges = charges


class Device:
    """One person's device: it knows its value at the present step, by its own clock.

    Guarantees:
        - it answers only about the present step, each question once, within its ledger;
        - each answer is drawn with fresh randomness of the operating system.

    >>> plan = Plan(method="LBU", epsilon=1.0, window=4, size=3, people=1)
    >>> server, device = Server(plan), Device(WindowLedger(window=4, limit=1.0))
    >>> device.observe(0, 2)
    >>> server.receive(device.answer(server.question))
    >>> server.received
    1
    """

    def __init__(self, ledger: WindowLedger):
        self.ledger = ledger
        self._now: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"Device({self.guarantee.sentence})"

    @property
    def guarantee(self) -> Guarantee:
        return self.ledger.guarantee

    def observe(self, step: int, value: int) -> None:
        """The time has come to this step, and this is the value."""
        require(
            self._now is None or step > self._now[0],
            f"step {step}: time goes on, from step {self._now and self._now[0]}",
        )
        self._now = (int(step), int(value))

    def answer(self, question: Question, key: SeriesKey | None = None) -> Answer:
        """The answer of this device; a key is for experiments only."""
        require(self._now is not None, "this device has no value yet", DataRefusal)
        assert self._now is not None
        step, value = self._now
        require(
            question.step == step,
            f"a question about step {question.step}: by this device's clock it is step {step}",
            MessageRefusal,
        )
        require(
            0 <= value < question.size,
            f"this device's value is none of the {question.size} that are asked about",
            DataRefusal,
        )
        # everything that can go wrong has its turn before anything is spent
        words = Words([Run(key or fresh_series_key(), 0, 1)], REPORT)
        report = question.frequency.report(value, words)
        self.ledger.spend(question.campaign, step, question.part, question.epsilon)
        return Answer(
            campaign=question.campaign, step=step, part=question.part,
            token=new_token(), report=report,
        )  # fmt: skip


class Server:
    """Asks at each step, counts, and releases shares; it never needs anything but answers.

    Guarantees:
        - an answer that is malformed, of another version or campaign, late, early, there already
          or more than were asked for is refused with a reason, and nothing changes;
        - a question that is closed stays closed, however few answered it.
    """

    def __init__(self, plan: Plan, campaign: str | None = None, first: int = 0):
        self.plan = plan
        campaign = campaign or new_id()
        campaign_name(campaign)
        self.course = Course.beginning(plan, campaign, first)
        self._begin()

    def _begin(self) -> None:
        self.received = 0
        self._tokens: set[bytes] = set()
        self._waiting: list[bytes] = []
        self._support = np.zeros(self.plan.size, dtype=np.int64)

    @property
    def question(self) -> Question:
        """What to ask the devices of ``asked``."""
        question = self.course.question
        require(question is not None, "this step is done: go on with next_step()")
        assert question is not None
        return question

    @property
    def asked(self) -> Integers:
        """The numbers of the devices, from 0, that the question is for."""
        return self.course.asked

    @property
    def is_done(self) -> bool:
        """Whether this step has its release."""
        return self.course.question is None

    @property
    def release(self) -> Floats:
        """The share of people with each value at this step; unbiased, so also below 0."""
        require(self.is_done, "this step has a question still: close it first")
        return np.array(self.course.release)

    def receive(self, answer: Answer | bytes) -> None:
        """Take one answer, or refuse it with a reason."""
        if not isinstance(answer, Answer):
            answer = Answer.from_bytes(answer)
        course = self.course
        require(
            answer.campaign == course.campaign,
            "the answer belongs to another campaign",
            MessageRefusal,
        )
        here = course.question
        # within a step comparing comes first, and by the alphabet too
        late = answer.step < course.step or (
            answer.step == course.step and (here is None or answer.part < here.part)
        )
        require(not late, "the answer is late", MessageRefusal)
        require(
            here is not None and (answer.step, answer.part) == (here.step, here.part),
            "nobody was asked that question yet",
            MessageRefusal,
        )
        assert here is not None
        require(answer.token not in self._tokens, "this answer is there already", MessageRefusal)
        require(
            self.received < len(course.asked),
            f"all {len(course.asked)} that were asked have answered",
            MessageRefusal,
        )
        refuse_report(here, answer.report)
        self._tokens.add(answer.token)
        self._waiting.append(answer.report)
        self.received += 1
        if len(self._waiting) >= AT_ONCE:
            self._add_up()

    def receive_many(self, answers: Iterable[bytes]) -> Counter[str]:
        """Take many; gives how many were refused, by reason."""
        refused: Counter[str] = Counter()
        for answer in answers:
            try:
                self.receive(answer)
            except MessageRefusal as reason:
                refused[str(reason)] += 1
        return refused

    def _add_up(self) -> None:
        if self._waiting:
            self._support = self._support + self.question.frequency.support(self._waiting)
            self._waiting = []

    def close_question(self) -> None:
        """Go on with what was received: to another question of this step, or to its release."""
        require(not self.is_done, "this step is done: go on with next_step()")
        self._add_up()
        self.course = self.course.after(self._support, self.received)
        self._begin()

    def next_step(self) -> None:
        self.course = self.course.next_step()
        self._begin()

    def state(self) -> bytes:
        """Everything needed to go on after a restart; no more than the answers themselves."""
        self._add_up()
        body = {
            "is": STATE,
            "plan": asdict(self.plan),
            "course": self.course.to_dict(),
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
            require(body["is"] == STATE, "not the state of a stream server")
            plan = Plan(**body["plan"])
            server = cls(plan, body["course"]["campaign"])
            server.course = Course.from_dict(plan, body["course"])
            support, received = np.array(body["support"], dtype=np.int64), int(body["received"])
            require(
                support.shape == (plan.size,) and bool((support >= 0).all()) and received >= 0,
                "the state is not one of this plan",
            )
            tokens = {base64.b64decode(token) for token in body["tokens"]}
            require(len(tokens) == received, "the state has tokens too many or too few")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise StateRefusal("the state of the server is damaged") from None
        server._support, server.received, server._tokens = support, received, tokens
        return server


def answers_of(question: Question, values: Any, key: Key | None = None) -> list[bytes]:
    """The messages of many devices that are all here and answer this for the first time.

    For trials on one machine: the same messages as of ``Device``, drawn together.
    """
    require(np.ndim(values) == 1, "values: one for each device", UsageRefusal)
    name = f"{question.step} {question.part}"
    chain = fresh_series_key() if key is None else key.again("stream answers", name)
    reports = question.frequency.reports(values, Words([Run(chain, 0, len(values))], REPORT))
    where = {"campaign": question.campaign, "step": question.step, "part": question.part}
    return [
        Answer(token=new_token(), report=row.tobytes(), **where).to_bytes()  # type: ignore[arg-type]
        for row in reports
    ]
