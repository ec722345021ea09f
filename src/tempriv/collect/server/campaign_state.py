"""Campaigns as they stand: what is open, whom it is for, and how the next question follows.

Everything here happens in the one thread that writes, within a transaction. What is kept in memory
can be dropped at any moment and is read again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, func, insert, select, update

from tempriv.collect.protocol.assignment import assignment_hash, in_range
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.base import ProtocolQuestion, ProtocolState
from tempriv.collect.server import schema
from tempriv.collect.server.database import answered_of
from tempriv.errors import require
from tempriv.local.frequency.base import Flags, Integers
from tempriv.local.wire import MessageError

WAITING, RUNNING, FINISHED, CANCELLED = "waiting", "running", "finished", "cancelled"
AT_ONCE = 1 << 15  # reports that wait before they are added up
ROWS = 1 << 14  # of the table of reports that are looked at together
KEPT_QUESTIONS = 4  # of a stream, for which it is known who answered


def stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


@dataclass
class OpenQuestion:
    """A question that can be answered."""

    number: int
    scope: int
    asked: ProtocolQuestion
    closes_at: datetime
    received: int
    expected: int
    numbers: Integers | None = None
    """Of the devices of a stream that are asked, rising."""
    waiting: int = 0  # reports that were not added up

    def is_for(self, campaign: str, devices: Integers) -> Flags:
        """Which of these devices are asked."""
        if self.numbers is None:
            return in_range(assignment_hash(campaign, devices), self.asked.low, self.asked.high)
        if not len(self.numbers):
            return np.zeros(len(devices), dtype=np.bool_)
        place = np.minimum(np.searchsorted(self.numbers, devices), len(self.numbers) - 1)
        return np.asarray(self.numbers[place] == devices)


@dataclass
class ActiveCampaign:
    """A campaign that has not ended."""

    campaign: Campaign
    protocol: ProtocolState
    state: str
    participants: Integers | None = None
    open: OpenQuestion | None = None
    enrolled: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    withdrawn: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def is_complete(self) -> bool:
        """Whether all that are asked have answered, and as many have come as were announced."""
        return (
            self.open is not None
            and self.open.received >= self.open.expected
            and len(self.enrolled) + len(self.withdrawn) >= self.campaign.people
        )


# reading


def load(db: Connection, row: Any, enrolled: Integers, withdrawn: Integers) -> ActiveCampaign:
    """A campaign from its rows."""
    campaign = Campaign.from_json(row.spec)
    protocol = campaign.load_state(row.course)
    people = None
    if row.participants is not None:
        people = np.frombuffer(row.participants, dtype="<i8").astype(np.int64)
    found = ActiveCampaign(campaign, protocol, row.state, people, None, enrolled, withdrawn)
    questions = schema.questions
    open_row = db.execute(
        select(questions).where(questions.c.campaign == row.id, questions.c.closed_at.is_(None))
    ).first()
    if open_row is not None:
        asked = protocol.question
        assert asked is not None and asked.id == open_row.id
        found.open = OpenQuestion(
            open_row.number,
            open_row.scope,
            asked,
            datetime.fromisoformat(open_row.closes_at),
            open_row.received,
            open_row.expected,
            _numbers(found, asked),
        )
        found.open.expected = expected_of(db, found, found.open)
        rows = select(func.count()).where(schema.pending.c.question == open_row.number)
        found.open.waiting = db.execute(rows).scalar_one()
    return found


def _numbers(found: ActiveCampaign, asked: ProtocolQuestion) -> Integers | None:
    if asked.positions is None:
        return None
    assert found.participants is not None
    return found.participants[asked.positions[asked.positions < len(found.participants)]]


def expected_of(db: Connection, found: ActiveCampaign, question: OpenQuestion) -> int:
    """How many devices it is for: those enrolled, and those that answered and then withdrew."""
    name = found.campaign.id
    gone = found.withdrawn[question.is_for(name, found.withdrawn)]
    answered = len(answered_of(db, question.scope, gone)) if len(gone) else 0
    return int(question.is_for(name, found.enrolled).sum()) + answered


def note_expected(db: Connection, question: OpenQuestion) -> None:
    """For those who watch: devices have come or gone."""
    where = schema.questions.c.number == question.number
    db.execute(update(schema.questions).where(where).values(expected=question.expected))


# going on


def ask(db: Connection, found: ActiveCampaign, now: datetime) -> None:
    """Open the next question, if there is one."""
    asked = found.protocol.question
    if asked is None:
        return
    closes = min(found.protocol.closes_at(asked, now), found.campaign.closes_at)
    question = OpenQuestion(0, 0, asked, closes, 0, 0, _numbers(found, asked))
    question.expected = expected_of(db, found, question)
    questions = schema.questions
    done = db.execute(
        insert(questions).values(
            campaign=found.campaign.id,
            id=asked.id,
            scope=0,
            kind=asked.kind,
            opened_at=stamp(now),
            closes_at=stamp(closes),
            received=0,
            expected=question.expected,
            support=np.zeros(asked.cells, dtype="<i8").tobytes(),
        )
    )
    assert done.inserted_primary_key is not None
    question.number = question.scope = int(done.inserted_primary_key[0])
    if found.campaign.answers_once:
        first = select(func.min(questions.c.number)).where(
            questions.c.campaign == found.campaign.id
        )
        question.scope = int(db.execute(first).scalar_one())
    where = questions.c.number == question.number
    db.execute(update(questions).where(where).values(scope=question.scope))
    found.open = question


def add_up(db: Connection, question: OpenQuestion) -> Integers:
    """Count the reports that wait and forget them; gives the support of all so far."""
    pending, questions = schema.pending, schema.questions
    where = questions.c.number == question.number
    kept = db.execute(select(questions.c.support).where(where)).scalar_one()
    support = np.frombuffer(kept, dtype="<i8").astype(np.int64)
    while True:
        rows = db.execute(
            select(pending.c.number, pending.c.reports)
            .where(pending.c.question == question.number)
            .order_by(pending.c.number)
            .limit(ROWS)
        ).all()
        if not rows:
            break
        joined = np.frombuffer(b"".join(row.reports for row in rows), dtype=np.uint8)
        reports = joined.reshape(-1, question.asked.report_bytes)
        for low in range(0, len(reports), AT_ONCE):
            support = support + question.asked.support(reports[low : low + AT_ONCE])
        last = pending.c.number <= rows[-1].number
        db.execute(delete(pending).where(pending.c.question == question.number, last))
    db.execute(update(questions).where(where).values(support=support.astype("<i8").tobytes()))
    question.waiting = 0
    return support


def close(db: Connection, found: ActiveCampaign, now: datetime) -> None:
    """Go on with what was received: to the next question, the next step, or the end."""
    question = found.open
    require(question is not None, "no question is open now", MessageError)
    assert question is not None
    support = np.zeros(0, np.int64) if question.asked.keeps_reports else add_up(db, question)
    protocol = found.protocol.after(support, question.received)
    values = {
        "closed_at": stamp(now),
        "support": b"",
        "received": question.received,
        "expected": question.expected,
    }
    where = schema.questions.c.number == question.number
    db.execute(update(schema.questions).where(where).values(**values))
    found.protocol, found.open = protocol, None
    if not found.campaign.answers_once:
        _forget_old(db, found)
    _note_step(db, protocol, question.received)
    if protocol.is_over:
        found.state = FINISHED
    elif protocol.question is not None:
        ask(db, found, now)
    save(db, found, now)


def _forget_old(db: Connection, found: ActiveCampaign) -> None:
    """A closed step takes no answers, so nobody needs to know for long who gave one."""
    answered, questions = schema.answered, schema.questions
    old = (
        select(questions.c.scope)
        .where(questions.c.campaign == found.campaign.id)
        .order_by(questions.c.number.desc())
        .offset(KEPT_QUESTIONS)
        .limit(KEPT_QUESTIONS)
    )
    db.execute(delete(answered).where(answered.c.scope.in_(list(db.execute(old).scalars()))))


def _note_step(db: Connection, protocol: ProtocolState, people: int) -> None:
    record = protocol.step_record(people)
    if record is not None:
        values = {"step": record["step"], "told": json.dumps(record)}
        db.execute(insert(schema.steps).values(campaign=protocol.campaign.id, **values))


def save(db: Connection, found: ActiveCampaign, now: datetime) -> None:
    values: dict[str, Any] = {"state": found.state, "course": found.protocol.to_text()}
    if found.participants is not None:
        values["participants"] = found.participants.astype("<i8").tobytes()
    if found.state in (FINISHED, CANCELLED):
        values["finished_at"] = stamp(now)
    where = schema.campaigns.c.id == found.campaign.id
    db.execute(update(schema.campaigns).where(where).values(**values))


def follow_clock(db: Connection, found: ActiveCampaign, now: datetime) -> bool:
    """Whatever is due: opening, closing, steps; tells whether anything changed."""
    campaign, changed = found.campaign, False
    if found.state == WAITING and now >= campaign.opens_at:
        changed = _start(db, found, now)
    while found.state == RUNNING:
        if found.open is not None and (now >= found.open.closes_at or found.is_complete):
            close(db, found, now)
        elif found.open is None and _step_is_due(found, now):
            _next_step(db, found, now)
        else:
            break
        changed = True
    if found.state in (WAITING, RUNNING) and now >= campaign.closes_at:
        if found.open is not None:
            close(db, found, now)
        if found.state in (WAITING, RUNNING):
            _end_early(db, found, now)
        changed = True
    return changed


def _start(db: Connection, found: ActiveCampaign, now: datetime) -> bool:
    campaign = found.campaign
    if not campaign.answers_once:
        if len(found.enrolled) < campaign.people:
            return False  # a stream knows from its first step who takes part
        protocol = found.protocol.started(now)
        if protocol is None:
            found.state = FINISHED  # its time has passed while it waited
            save(db, found, now)
            return True
        lots = assignment_hash(campaign.id, found.enrolled)
        chosen = np.argsort(lots, kind="stable")[: campaign.people]
        found.participants = np.sort(found.enrolled[chosen])
        found.protocol = protocol
    found.state = RUNNING
    ask(db, found, now)
    save(db, found, now)
    return True


def _step_is_due(found: ActiveCampaign, now: datetime) -> bool:
    next_step = found.protocol.next_step_at
    return next_step is not None and now >= next_step


def _next_step(db: Connection, found: ActiveCampaign, now: datetime) -> None:
    """The step that it is now; of steps that passed while nobody was here nothing is known."""
    found.protocol = found.protocol.next_step(now)
    _note_step(db, found.protocol, 0)
    if found.protocol.is_over:
        found.state = FINISHED
    else:
        ask(db, found, now)
    save(db, found, now)


def _end_early(db: Connection, found: ActiveCampaign, now: datetime) -> None:
    """The deadline is here: rounds that are left have no answers."""
    if found.state == WAITING:
        found.state = FINISHED
        save(db, found, now)
    while found.state == RUNNING:
        if found.open is None:
            if not found.protocol.is_over and found.protocol.question is not None:
                ask(db, found, now)
            else:
                found.state = FINISHED
                save(db, found, now)
                return
        close(db, found, now)
