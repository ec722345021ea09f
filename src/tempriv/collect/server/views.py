"""What a server tells of campaigns, from what was committed."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.server import schema
from tempriv.collect.server.campaign_state import RUNNING, WAITING, OpenQuestion
from tempriv.collect.server.tokens import Caller
from tempriv.local.frequency.base import Integers

MAX_ROUNDS = 50  # that a document tells of, the latest


def campaign_rows(db: Connection, caller: Caller) -> list[Any]:
    """Return the rows of campaigns in ``db``, newest first; to a device as ``caller`` those that go
    on.
    """
    table = schema.campaigns
    columns = [column for column in table.c if column.name not in ("course", "participants")]
    query = select(*columns).order_by(table.c.number.desc())
    if not caller.is_staff:
        query = query.where(table.c.state.in_((WAITING, RUNNING)))
    return list(db.execute(query.limit(500)))


def campaign_row(db: Connection, name: str) -> Any:
    """Return the row of campaign ``name`` in ``db``; None if there is none."""
    table = schema.campaigns
    return db.execute(select(table).where(table.c.id == name)).first()


def document_of(db: Connection, row: Any) -> dict[str, Any]:
    """Return what is public of the campaign with this ``row`` in ``db``, for JSON."""
    campaign = Campaign.from_json(row.spec)
    questions = schema.questions
    query = select(questions).where(questions.c.campaign == row.id)
    latest = list(db.execute(query.order_by(questions.c.number.desc()).limit(MAX_ROUNDS)))
    rounds = [_round(entry, index) for index, entry in enumerate(reversed(latest))]
    now_open = [entry for entry in rounds if entry["closed_at"] is None]
    return {
        "id": row.id,
        "spec": campaign.to_dict(),
        "state": row.state,
        "made_at": row.made_at,
        "finished_at": row.finished_at,
        "sentence": campaign.guarantee.sentence,
        "sentences": campaign.sentences,
        "received": row.received,
        "question": now_open[0] if now_open else None,
        "rounds": [entry for entry in rounds if entry["closed_at"] is not None],
    }


def _round(row: Any, index: int) -> dict[str, Any]:
    return {
        "number": index,
        "id": row.id,
        "kind": row.kind,
        "received": row.received,
        "expected": row.expected,
        "opened_at": row.opened_at,
        "closes_at": row.closes_at,
        "closed_at": row.closed_at,
    }


def question_of(db: Connection, row: Any, caller: Caller) -> dict[str, Any] | None:
    """Return the open question of the campaign with this ``row`` in ``db``; to a device as
    ``caller`` also whether it is asked.
    """
    questions = schema.questions
    query = select(questions).where(questions.c.campaign == row.id, questions.c.closed_at.is_(None))
    question_row = db.execute(query).first()
    if question_row is None:
        return None
    campaign = Campaign.from_json(row.spec)
    protocol_question = campaign.load_state(row.course).question
    if protocol_question is None or protocol_question.id != question_row.id:
        return None
    numbers = None
    if protocol_question.positions is not None:
        people = np.frombuffer(row.participants, dtype="<i8").astype(np.int64)
        numbers = people[protocol_question.positions[protocol_question.positions < len(people)]]
    question = OpenQuestion(
        question_row.number,
        question_row.scope,
        protocol_question,
        campaign.closes_at,
        0,
        0,
        numbers,
    )
    document: dict[str, Any] = {
        "id": protocol_question.id,
        "kind": protocol_question.kind,
        "body": protocol_question.body,
        "lots": None
        if numbers is not None
        else [f"{protocol_question.low:016x}", f"{protocol_question.high:016x}"],
        "opened_at": question_row.opened_at,
        "closes_at": question_row.closes_at,
        "received": question_row.received,
        "expected": question_row.expected,
    }
    if caller.role == "device":
        document["asked"] = bool(question.is_for(row.id, np.array([caller.number]))[0])
    else:
        document["bitmap"] = None if numbers is None else _bitmap(numbers)
    return document


def _bitmap(numbers: Integers) -> str:
    bits = np.zeros(int(numbers.max(initial=0)) + 1, dtype=np.uint8)
    bits[numbers] = 1
    packed = np.packbits(bits, bitorder="little").tobytes()
    return base64.b64encode(zlib.compress(packed, 1)).decode()


def steps_of(db: Connection, name: str) -> list[dict[str, Any]]:
    """Return the records of the steps of campaign ``name`` in ``db``."""
    steps = schema.steps
    query = select(steps.c.told).where(steps.c.campaign == name).order_by(steps.c.step)
    return [json.loads(record) for record in db.execute(query).scalars()]


def uploads_of(db: Connection, name: str) -> list[tuple[int, bytes]]:
    """Return the reports that ``db`` keeps of campaign ``name``, with device numbers."""
    uploads, questions = schema.uploads, schema.questions
    scopes = select(questions.c.scope).where(questions.c.campaign == name)
    query = select(uploads.c.device, uploads.c.readings).where(uploads.c.scope.in_(scopes))
    return [
        (row.device, bytes(row.readings)) for row in db.execute(query.order_by(uploads.c.device))
    ]


def fleet_of(db: Connection) -> dict[str, int]:
    """Return how many devices ``db`` has, and how many one-time tokens are not used."""
    devices = schema.devices
    is_enrolled = devices.c.secret.is_not(None) & devices.c.withdrawn_at.is_(None)
    count = select(func.count()).select_from(devices)
    return {
        "enrolled": db.execute(count.where(is_enrolled)).scalar_one(),
        "waiting": db.execute(
            count.where(devices.c.secret.is_(None), devices.c.withdrawn_at.is_(None))
        ).scalar_one(),
    }
