"""What the servers of both kinds of campaign share: answers are taken once, added up, and saved."""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.local.wire import (
    MAX_WHOLE_NUMBER,
    MessageError,
    decode_received,
    refuse_damage,
    state_object,
)

Integers = npt.NDArray[np.int64]

BATCH_REPORTS = 1 << 15  # reports kept before they are added up
STATE_FIELDS = ("plan", "course", "support", "received", "tokens")


class ReportServer(ABC):
    """Takes answers to the open question of a protocol, each once, and adds up their reports.

    Parameters:
        plan: what the campaign asks for.
        protocol: where the campaign stands.
    """

    state_kind: ClassVar[str]
    no_question: ClassVar[str]
    plan_type: ClassVar[Any]
    protocol_type: ClassVar[Any]
    answer_type: ClassVar[Any]

    def __init__(self, plan: Any, protocol: Any):
        self.plan, self.protocol = plan, protocol
        self._begin()

    def _begin(self) -> None:
        self.received = 0
        self._tokens: set[bytes] = set()
        self._waiting: list[bytes] = []
        self._support = np.zeros(self._cells, dtype=np.int64)

    @property
    @abstractmethod
    def _cells(self) -> int:
        """How many sums of the open question there are."""

    @property
    def _answer_limit(self) -> int:
        """How many answers the open question may have."""
        return 0 if self.protocol.question is None else MAX_WHOLE_NUMBER

    @abstractmethod
    def _refuse(self, answer: Any) -> None:
        """Raise MessageError for an ``answer`` that is not one to the open question."""

    @abstractmethod
    def _support_of(self, reports: list[bytes]) -> Integers:
        """How many of the ``reports`` support each cell."""

    @property
    def question(self) -> Any:
        """What to ask the next device."""
        require(self.protocol.question is not None, self.no_question)
        return self.protocol.question

    def receive(self, answer: Any) -> None:
        """Take one ``answer``, or refuse it with a reason (MessageError)."""
        if not isinstance(answer, self.answer_type):
            answer = self.answer_type.from_bytes(answer)
        self._refuse(answer)
        self._tokens.add(answer.token)
        self._waiting.append(answer.report)
        self.received += 1
        if len(self._waiting) >= BATCH_REPORTS:
            self._add_up()

    def receive_many(self, answers: Iterable[bytes]) -> Counter[str]:
        """Take many ``answers``; returns how many were refused, by reason."""
        refused: Counter[str] = Counter()
        for answer in answers:
            try:
                self.receive(answer)
            except MessageError as reason:
                refused[str(reason)] += 1
        return refused

    def _add_up(self) -> None:
        if self._waiting:
            self._support = self._support + self._support_of(self._waiting)
            self._waiting = []

    def _close(self) -> None:
        require(self.protocol.question is not None, self.no_question)
        self._add_up()
        self.protocol = self.protocol.after(self._support, self.received)
        self._begin()

    def state(self) -> bytes:
        """Everything needed to go on after a restart; no more than the answers themselves."""
        self._add_up()
        body = {
            "is": self.state_kind,
            "plan": asdict(self.plan),
            "course": self.protocol.to_dict(),
            "support": self._support.tolist(),
            "received": self.received,
            "tokens": [base64.b64encode(token).decode() for token in sorted(self._tokens)],
        }
        return json.dumps(body, sort_keys=True, allow_nan=False).encode()

    @classmethod
    def resume(cls, state: bytes) -> Self:
        """A server that goes on from a ``state`` of another one."""
        with refuse_damage():
            body = state_object(state, cls.state_kind, STATE_FIELDS)
            plan = cls.plan_type.from_dict(body["plan"])
            server = cls.__new__(cls)
            ReportServer.__init__(server, plan, cls.protocol_type.from_dict(plan, body["course"]))
            received = decode_received(body, server._cells, server._answer_limit)
        server._support, server.received, server._tokens = received
        return server
