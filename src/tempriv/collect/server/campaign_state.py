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
FAILED = "failed"
"""What was received could not be evaluated; it is kept, and tried again when a server starts."""
REPORT_BATCH_ROWS = 1 << 15  # reports that wait before they are added up
PENDING_BATCH_ROWS = 1 << 14  # of the table of reports that are looked at together
REMEMBERED_QUESTIONS = 4  # of a stream, for which it is known who answered


def stamp(moment: datetime) -> str:
    """Return ``moment`` as a text, to the millisecond."""
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
        """Return which of these ``devices`` are asked, in the campaign with this id."""
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
    """Return a campaign from its rows.

    Parameters:
        db: the transaction.
        row: its row of the table of campaigns.
        enrolled: numbers of enrolled devices.
        withdrawn: numbers of withdrawn devices.
    """
    campaign = Campaign.from_json(row.spec)
    protocol = campaign.load_state(row.course)
    participants = None
    if row.participants is not None:
        participants = np.frombuffer(row.participants, dtype="<i8").astype(np.int64)
    active = ActiveCampaign(campaign, protocol, row.state, participants, None, enrolled, withdrawn)
    questions = schema.questions
    open_row = db.execute(
        select(questions).where(questions.c.campaign == row.id, questions.c.closed_at.is_(None))
    ).first()
    if open_row is not None:
        question = protocol.question
        assert question is not None and question.id == open_row.id
        active.open = OpenQuestion(
            open_row.number,
            open_row.scope,
            question,
            datetime.fromisoformat(open_row.closes_at),
            open_row.received,
            open_row.expected,
            _numbers(active, question),
        )
        active.open.expected = expected_of(db, active, active.open)
        rows = select(func.count()).where(schema.pending.c.question == open_row.number)
        active.open.waiting = db.execute(rows).scalar_one()
    return active


def _numbers(active: ActiveCampaign, question: ProtocolQuestion) -> Integers | None:
    if question.positions is None:
        return None
    assert active.participants is not None
    return active.participants[question.positions[question.positions < len(active.participants)]]


def expected_of(db: Connection, active: ActiveCampaign, question: OpenQuestion) -> int:
    """Return how many devices of ``active`` a ``question`` is for: enrolled, or answered in ``db``
    before.
    """
    name = active.campaign.id
    withdrawn = active.withdrawn[question.is_for(name, active.withdrawn)]
    answered = len(answered_of(db, question.scope, withdrawn)) if len(withdrawn) else 0
    return int(question.is_for(name, active.enrolled).sum()) + answered


def note_expected(db: Connection, question: OpenQuestion) -> None:
    """Write how many devices ``question`` is for to ``db``: some have come or gone."""
    where = schema.questions.c.number == question.number
    db.execute(update(schema.questions).where(where).values(expected=question.expected))


# going on


def ask(db: Connection, active: ActiveCampaign, now: datetime) -> None:
    """Open the next question of ``active`` in ``db`` at ``now``, if there is one."""
    protocol_question = active.protocol.question
    if protocol_question is None:
        return
    closes = min(active.protocol.closes_at(protocol_question, now), active.campaign.closes_at)
    question = OpenQuestion(
        0, 0, protocol_question, closes, 0, 0, _numbers(active, protocol_question)
    )
    question.expected = expected_of(db, active, question)
    questions = schema.questions
    inserted = db.execute(
        insert(questions).values(
            campaign=active.campaign.id,
            id=protocol_question.id,
            scope=0,
            kind=protocol_question.kind,
            opened_at=stamp(now),
            closes_at=stamp(closes),
            received=0,
            expected=question.expected,
            support=np.zeros(protocol_question.cells, dtype="<i8").tobytes(),
        )
    )
    assert inserted.inserted_primary_key is not None
    question.number = question.scope = int(inserted.inserted_primary_key[0])
    if active.campaign.answers_once:
        first = select(func.min(questions.c.number)).where(
            questions.c.campaign == active.campaign.id
        )
        question.scope = int(db.execute(first).scalar_one())
    where = questions.c.number == question.number
    db.execute(update(questions).where(where).values(scope=question.scope))
    active.open = question


def add_up(db: Connection, question: OpenQuestion) -> Integers:
    """Count the reports to ``question`` that wait in ``db`` and delete them; return all counts so
    far.
    """
    pending, questions = schema.pending, schema.questions
    where = questions.c.number == question.number
    stored = db.execute(select(questions.c.support).where(where)).scalar_one()
    support = np.frombuffer(stored, dtype="<i8").astype(np.int64)
    while True:
        rows = db.execute(
            select(pending.c.number, pending.c.reports)
            .where(pending.c.question == question.number)
            .order_by(pending.c.number)
            .limit(PENDING_BATCH_ROWS)
        ).all()
        if not rows:
            break
        joined = np.frombuffer(b"".join(row.reports for row in rows), dtype=np.uint8)
        reports = joined.reshape(-1, question.asked.report_bytes)
        for low in range(0, len(reports), REPORT_BATCH_ROWS):
            support = support + question.asked.support(reports[low : low + REPORT_BATCH_ROWS])
        last = pending.c.number <= rows[-1].number
        db.execute(delete(pending).where(pending.c.question == question.number, last))
    db.execute(update(questions).where(where).values(support=support.astype("<i8").tobytes()))
    question.waiting = 0
    return support


def close(db: Connection, active: ActiveCampaign, now: datetime) -> None:
    """Close the question of ``active`` in ``db`` at ``now``, and go on to the next one or to the
    end.
    """
    question = active.open
    require(question is not None, "no question is open now", MessageError)
    assert question is not None
    support = np.zeros(0, np.int64) if question.asked.keeps_reports else add_up(db, question)
    protocol = active.protocol.after(support, question.received)
    values = {
        "closed_at": stamp(now),
        "support": b"",
        "received": question.received,
        "expected": question.expected,
    }
    where = schema.questions.c.number == question.number
    db.execute(update(schema.questions).where(where).values(**values))
    active.protocol, active.open = protocol, None
    if not active.campaign.answers_once:
        _forget_old(db, active)
    _note_step(db, protocol, question.received)
    if protocol.is_over:
        active.state = FINISHED
    elif protocol.question is not None:
        ask(db, active, now)
    save(db, active, now)


def _forget_old(db: Connection, active: ActiveCampaign) -> None:
    """A closed step takes no answers, so nobody needs to know for long who gave one."""
    answered, questions = schema.answered, schema.questions
    old = (
        select(questions.c.scope)
        .where(questions.c.campaign == active.campaign.id)
        .order_by(questions.c.number.desc())
        .offset(REMEMBERED_QUESTIONS)
        .limit(REMEMBERED_QUESTIONS)
    )
    db.execute(delete(answered).where(answered.c.scope.in_(list(db.execute(old).scalars()))))


def _note_step(db: Connection, protocol: ProtocolState, people: int) -> None:
    record = protocol.step_record(people)
    if record is not None:
        values = {"step": record["step"], "told": json.dumps(record)}
        db.execute(insert(schema.steps).values(campaign=protocol.campaign.id, **values))


def save(db: Connection, active: ActiveCampaign, now: datetime) -> None:
    """Write where ``active`` stands to ``db``, with the time ``now`` if it has ended."""
    values: dict[str, Any] = {"state": active.state, "course": active.protocol.to_text()}
    if active.participants is not None:
        values["participants"] = active.participants.astype("<i8").tobytes()
    if active.state in (FINISHED, CANCELLED):
        values["finished_at"] = stamp(now)
    where = schema.campaigns.c.id == active.campaign.id
    db.execute(update(schema.campaigns).where(where).values(**values))


def fail(db: Connection, name: str) -> None:
    """Stop campaign ``name`` in ``db`` where it stands; what was received is kept."""
    where = schema.campaigns.c.id == name
    db.execute(update(schema.campaigns).where(where).values(state=FAILED))


def retry(db: Connection) -> None:
    """Let campaigns in ``db`` that failed go on: perhaps this version can evaluate them."""
    table, questions = schema.campaigns, schema.questions
    failed = update(table).where(table.c.state == FAILED)
    begun = table.c.id.in_(select(questions.c.campaign))
    db.execute(failed.where(begun).values(state=RUNNING))
    db.execute(failed.where(~begun).values(state=WAITING))


def cancel_failed(db: Connection, name: str, now: datetime) -> bool:
    """End campaign ``name`` in ``db`` at ``now`` if it failed, and delete what was received."""
    table, questions = schema.campaigns, schema.questions
    values = {"state": CANCELLED, "finished_at": stamp(now)}
    failed = (table.c.id == name) & (table.c.state == FAILED)
    if not db.execute(update(table).where(failed).values(**values)).rowcount:
        return False
    own = questions.c.campaign == name
    for table_of_reports, column in ((schema.pending, "number"), (schema.uploads, "scope")):
        of_campaign = select(questions.c[column]).where(own)
        key = table_of_reports.c["question" if column == "number" else "scope"]
        db.execute(delete(table_of_reports).where(key.in_(of_campaign)))
    unanswered = own & questions.c.closed_at.is_(None)
    db.execute(update(questions).where(unanswered).values(closed_at=stamp(now), support=b""))
    return True


def follow_clock(db: Connection, active: ActiveCampaign, now: datetime) -> bool:
    """Open, close or go on as is due at ``now`` for ``active`` in ``db``; return whether it
    changed.
    """
    campaign, changed = active.campaign, False
    if active.state == WAITING and now >= campaign.opens_at:
        changed = _start(db, active, now)
    while active.state == RUNNING:
        if active.open is not None and (now >= active.open.closes_at or active.is_complete):
            close(db, active, now)
        elif active.open is None and _step_is_due(active, now):
            _next_step(db, active, now)
        else:
            break
        changed = True
    if active.state in (WAITING, RUNNING) and now >= campaign.closes_at:
        if active.open is not None:
            close(db, active, now)
        if active.state in (WAITING, RUNNING):
            _end_early(db, active, now)
        changed = True
    return changed


def _start(db: Connection, active: ActiveCampaign, now: datetime) -> bool:
    campaign = active.campaign
    if not campaign.answers_once:
        if len(active.enrolled) < campaign.people:
            return False  # a stream knows from its first step who takes part
        protocol = active.protocol.started(now)
        if protocol is None:
            active.state = FINISHED  # its time has passed while it waited
            save(db, active, now)
            return True
        hashes = assignment_hash(campaign.id, active.enrolled)
        chosen = np.argsort(hashes, kind="stable")[: campaign.people]
        active.participants = np.sort(active.enrolled[chosen])
        active.protocol = protocol
    active.state = RUNNING
    ask(db, active, now)
    save(db, active, now)
    return True


def _step_is_due(active: ActiveCampaign, now: datetime) -> bool:
    next_step = active.protocol.next_step_at
    return next_step is not None and now >= next_step


def _next_step(db: Connection, active: ActiveCampaign, now: datetime) -> None:
    """The step that it is now; of steps that passed while nobody was here nothing is known."""
    active.protocol = active.protocol.next_step(now)
    _note_step(db, active.protocol, 0)
    if active.protocol.is_over:
        active.state = FINISHED
    else:
        ask(db, active, now)
    save(db, active, now)


def _end_early(db: Connection, active: ActiveCampaign, now: datetime) -> None:
    """The deadline is here: rounds that are left have no answers."""
    if active.state == WAITING:
        active.state = FINISHED
        save(db, active, now)
    while active.state == RUNNING:
        if active.open is None:
            if not active.protocol.is_over and active.protocol.question is not None:
                ask(db, active, now)
            else:
                active.state = FINISHED
                save(db, active, now)
                return
        close(db, active, now)
