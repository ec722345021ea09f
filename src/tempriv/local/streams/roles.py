"""The two roles of a stream over a population: a server that asks at each step, and devices.

A device knows its own value and its own time. It answers what its ledger allows: within any window
of steps no more than its limit, whatever the server says. The server sees reports and nothing else.
Messages between them are values (``local.streams.messages``), whatever carries them.
"""

from __future__ import annotations

import numbers
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, StateError, UsageError, require
from tempriv.local.device_ledger import NOT_COPIED, WindowLedger
from tempriv.local.report_server import ReportServer
from tempriv.local.streams.messages import (
    MOST_STEPS,
    MOST_VALUES,
    StreamAnswer,
    StreamQuestion,
    refuse_report,
)
from tempriv.local.streams.protocol import StreamPlan, StreamProtocol
from tempriv.local.wire import MessageError, new_token, require_campaign
from tempriv.privacy.guarantees import Guarantee
from tempriv.sampling.keys import Key, SeriesKey, fresh_series_key, new_id
from tempriv.sampling.keystream import Keystream, StepRange

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

REPORT = "stream report"


class StreamDevice:
    """One person's device: it knows its value at the present step, by its own clock.

    Parameters:
        ledger: what it has answered, and the most that it may within a window.
        size: how many values there are, numbered from 0. That is declared here, not by whoever
            asks: a device that refused a question because its value is out of the question's range
            would give its value away.

    Guarantees:
        - it answers only about the present step, each question once, within its ledger;
        - each answer is drawn with fresh randomness of the operating system;
        - whether it refuses does not depend on its value.

    >>> plan = StreamPlan(method="LBU", epsilon=1.0, window=4, size=3, people=1)
    >>> server, device = StreamServer(plan), StreamDevice(WindowLedger(window=4, limit=1.0), size=3)
    >>> device.observe(0, 2)
    >>> server.receive(device.answer(server.question))
    >>> server.received
    1
    """

    def __init__(self, ledger: WindowLedger, *, size: int):
        require(
            _is_whole(size) and 2 <= size <= MOST_VALUES,
            f"size={size}: must be a whole number from 2 to {MOST_VALUES}",
        )
        self.ledger, self.size = ledger, int(size)
        self._now: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"Device({self.guarantee.sentence})"

    def __reduce__(self) -> NoReturn:
        raise StateError(f"a device {NOT_COPIED}")

    @property
    def guarantee(self) -> Guarantee:
        return self.ledger.guarantee

    def observe(self, step: int, value: int) -> None:
        """The time has come to this ``step``, and this is the ``value``."""
        require(
            _is_whole(step) and 0 <= step <= MOST_STEPS,
            f"step={step}: must be a whole number >= 0",
        )
        require(
            self._now is None or step > self._now[0],
            f"step {step}: time goes on, from step {self._now and self._now[0]}",
        )
        require(
            _is_whole(value) and 0 <= value < self.size,
            f"value: must be a whole number from 0 to {self.size - 1}, as the device was made for",
            DataError,
        )
        self._now = (int(step), int(value))

    def answer(self, question: StreamQuestion, key: SeriesKey | None = None) -> StreamAnswer:
        """The answer of this device.

        Parameters:
            question: about the present step.
            key: of the noise, for experiments only; fresh randomness by default.

        Raises:
            MessageError: if the question is about another step or other values.
            BudgetError: if the ledger does not agree.
        """
        require(
            question.size == self.size,
            f"a question about {question.size} values: this device has {self.size}",
            MessageError,
        )
        require(self._now is not None, "this device has no value yet", DataError)
        assert self._now is not None
        step, value = self._now
        require(
            question.step == step,
            f"a question about step {question.step}: by this device's clock it is step {step}",
            MessageError,
        )
        # everything that can go wrong has its turn before anything is spent
        keystream = Keystream([StepRange(key or fresh_series_key(), 0, 1)], REPORT)
        report = question.frequency.report(value, keystream)
        self.ledger.spend(question.campaign, step, question.part, question.epsilon)
        return StreamAnswer(
            campaign=question.campaign,
            step=step,
            part=question.part,
            token=new_token(),
            report=report,
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


class StreamServer(ReportServer):
    """Asks at each step, counts, and releases shares; it never needs anything but answers.

    Parameters:
        plan: what the stream asks for.
        campaign: its name, 32 hexadecimal digits; a new one by default.
        first: the first time step.

    Guarantees:
        - an answer that is malformed, of another version or campaign, late, early, there already
          or more than were asked for is refused with a reason, and nothing changes;
        - a question that is closed stays closed, however few answered it.
    """

    state_kind = "tempriv stream server 1"
    no_question = "this step is done: go on with next_step()"
    plan_type, protocol_type, answer_type = StreamPlan, StreamProtocol, StreamAnswer

    plan: StreamPlan
    protocol: StreamProtocol

    def __init__(self, plan: StreamPlan, campaign: str | None = None, first: int = 0):
        campaign = campaign or new_id()
        require_campaign(campaign)
        super().__init__(plan, StreamProtocol.start(plan, campaign, first))

    @property
    def _cells(self) -> int:
        return self.plan.size

    @property
    def _answer_limit(self) -> int:
        return len(self.asked)

    @property
    def question(self) -> StreamQuestion:
        """What to ask the devices of ``asked``."""
        question: StreamQuestion = super().question
        return question

    @property
    def asked(self) -> Integers:
        """The numbers of the devices, from 0, that the question is for."""
        return self.protocol.asked

    @property
    def is_done(self) -> bool:
        """Whether this step has its release."""
        return self.protocol.question is None

    @property
    def release(self) -> Floats:
        """The share of people with each value at this step; unbiased, so also below 0."""
        require(self.is_done, "this step has a question still: close it first")
        return np.array(self.protocol.release)

    def _refuse(self, answer: StreamAnswer) -> None:
        protocol = self.protocol
        require(
            answer.campaign == protocol.campaign,
            "the answer belongs to another campaign",
            MessageError,
        )
        question = protocol.question
        # within a step comparing comes first, and by the alphabet too
        late = answer.step < protocol.step or (
            answer.step == protocol.step and (question is None or answer.part < question.part)
        )
        require(not late, "the answer is late", MessageError)
        require(
            question is not None and (answer.step, answer.part) == (question.step, question.part),
            "nobody was asked that question yet",
            MessageError,
        )
        assert question is not None
        require(answer.token not in self._tokens, "this answer is there already", MessageError)
        require(
            self.received < len(protocol.asked),
            f"all {len(protocol.asked)} that were asked have answered",
            MessageError,
        )
        refuse_report(question, answer.report)

    def _support_of(self, reports: list[bytes]) -> Integers:
        return self.question.frequency.support(reports)

    def close_question(self) -> None:
        """Go on with what was received: to another question of this step, or to its release."""
        self._close()

    def next_step(self) -> None:
        """Go on to the next time step, once this one has its release."""
        self.protocol = self.protocol.next_step()
        self._begin()


def simulate_answers(question: StreamQuestion, values: Any, key: Key | None = None) -> list[bytes]:
    """The messages of many devices that are all here and answer this for the first time.

    For trials on one machine: the same messages as of ``StreamDevice``, drawn together.

    Parameters:
        question: what they are asked.
        values: that of each device.
        key: of the noise, for experiments only.
    """
    require(np.ndim(values) == 1, "values: one for each device", UsageError)
    name = f"{question.step} {question.part}"
    chain = fresh_series_key() if key is None else key.again("stream answers", name)
    reports = question.frequency.reports(
        values, Keystream([StepRange(chain, 0, len(values))], REPORT)
    )
    place = {"campaign": question.campaign, "step": question.step, "part": question.part}
    return [
        StreamAnswer(token=new_token(), report=row.tobytes(), **place).to_bytes()  # type: ignore[arg-type]
        for row in reports
    ]
