"""What a server does, one job at a time: enroll, take answers, begin and end campaigns."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.server import campaign_state, schema
from tempriv.collect.server.campaign_state import (
    CANCELLED,
    REPORT_BATCH_ROWS,
    RUNNING,
    WAITING,
    ActiveCampaign,
    OpenQuestion,
    stamp,
)
from tempriv.collect.server.database import (
    Database,
    add_answered,
    add_uploads,
    answered_of,
    execute,
    placeholder,
    secrets_of,
)
from tempriv.collect.server.logging import log_problem
from tempriv.collect.server.tokens import SECRET_BYTES, Token, digest_of, matches, new_secret
from tempriv.errors import require
from tempriv.local.frequency.base import Bytes, Integers
from tempriv.local.wire import DAMAGE_ERRORS, MessageError

Clock = Callable[[], datetime]
Codes = Any

NO_DIGEST = bytes(32)  # a digest that no secret has
TAKEN, THERE, LATE, NOT_ASKED, UNKNOWN, MALFORMED, NO_QUESTION = range(7)
REASONS = (
    "taken",
    "there already",
    "late: the question is closed",
    "not asked: this question is for other devices",
    "unknown device, or a wrong secret",
    "malformed: no answer to this question",
    "no such question",
)


def now_in_utc() -> datetime:
    return datetime.now(UTC)


class CollectionService:
    """The jobs of a server; each runs in the thread that writes, within a transaction.

    Guarantees:
        - a device's answer to a question is counted once, and in a campaign in which devices answer
          once there is one answer of each, whatever is sent again;
        - answers are counted only while their question is open, and of devices that it is for;
        - reports are stored apart from who sent them, and gone when they are added up.
    """

    def __init__(self, store: Database, clock: Clock = now_in_utc):
        self.store, self.clock = store, clock
        self.taken = 0  # since the start, for metrics
        self.refused = 0
        self.changes = 0
        """Goes up once something is on disk that somebody may be watching."""
        self._touched = False
        self._campaigns: dict[str, ActiveCampaign] | None = None
        self._enrolled: Integers | None = None
        store.on_rollback, store.on_commit = self._forget, self._tell

    def _forget(self) -> None:
        """Something in memory may be ahead of the tables: read them again."""
        self._campaigns, self._enrolled = None, None

    def _tell(self) -> None:
        self.changes += self._touched
        self._touched = False

    # devices

    def enrolled(self, db: Connection) -> Integers:
        """Return the rising numbers of enrolled devices, read in the transaction ``db``."""
        if self._enrolled is None:
            devices = schema.devices
            is_enrolled = devices.c.secret.is_not(None) & devices.c.withdrawn_at.is_(None)
            query = select(devices.c.number).where(is_enrolled).order_by(devices.c.number)
            self._enrolled = np.array([row[0] for row in db.execute(query)], dtype=np.int64)
        return self._enrolled

    def withdrawn(self, db: Connection) -> Integers:
        """Return the numbers of devices that were enrolled once, read in ``db``; few."""
        devices = schema.devices
        is_withdrawn = devices.c.secret.is_not(None) & devices.c.withdrawn_at.is_not(None)
        rows = db.execute(select(devices.c.number).where(is_withdrawn).order_by(devices.c.number))
        return np.array([row[0] for row in rows], dtype=np.int64)

    def _add_enrolled(self, db: Connection, fresh: Integers) -> None:
        """Devices that the tables do not tell of yet.

        Most come with the highest numbers, in groups: nothing is done for all others again.
        """
        campaigns, before = self.campaigns(db).values(), self.enrolled(db)
        numbers = np.append(before, fresh)
        if len(before) and fresh[0] < before[-1]:
            numbers.sort()
        self._enrolled = numbers
        for active in campaigns:
            active.enrolled = numbers
            if active.open is not None and active.open.numbers is None:
                active.open.expected += int(active.open.is_for(active.campaign.id, fresh).sum())
                campaign_state.note_expected(db, active.open)
        self._touched = True

    def _drop_enrolled(self, db: Connection, number: int) -> None:
        campaigns, before = self.campaigns(db).values(), self.enrolled(db)
        self._enrolled, withdrawn = before[before != number], self.withdrawn(db)
        for active in campaigns:
            active.enrolled, active.withdrawn = self._enrolled, withdrawn
            if active.open is not None:
                active.open.expected = campaign_state.expected_of(db, active, active.open)
                campaign_state.note_expected(db, active.open)
        self._touched = True

    def make_tokens(self, db: Connection, count: int) -> list[str]:
        """Return ``count`` new one-time tokens; ``db`` keeps only what they hash to."""
        devices = schema.devices
        first = (db.execute(select(func.max(devices.c.number))).scalar() or 0) + 1
        new_tokens = [Token("enrol", first + i, new_secret()) for i in range(count)]
        moment = stamp(self.clock())
        rows = [
            {"number": token.number, "token": token.digest, "made_at": moment}
            for token in new_tokens
        ]
        db.execute(insert(devices), rows)
        self._touched = True
        return [token.text for token in new_tokens]

    def enroll(self, db: Connection, requests: list[tuple[Token | None, bytes]]) -> list[str]:
        """Enroll devices and return what became of each.

        Parameters:
            db: the transaction.
            requests: one-time token of each, and the digest of a secret that the device has made.
        """
        devices = schema.devices
        numbers = {0 if token is None else token.number for token, _ in requests}
        low, high = min(numbers), max(numbers)
        where = devices.c.number.in_(numbers)
        if high - low < 2 * len(requests):  # most come in a row
            where = devices.c.number.between(low, high)
        rows = {row.number: row for row in db.execute(select(devices).where(where))}
        outcomes: list[str] = []
        fresh: dict[int, bytes] = {}
        for token, secret in requests:
            row = None if token is None else rows.get(token.number)
            matching = token is not None and matches(
                token.secret, None if row is None else row.token
            )
            if row is None or not matching or row.withdrawn_at is not None:
                outcomes.append("refused")
                continue
            known_secret = fresh.get(row.number, row.secret)
            if known_secret is None:
                fresh[row.number] = secret
            outcomes.append(
                "enrolled"
                if known_secret is None
                else "there already"
                if known_secret == secret
                else "refused"
            )
        if fresh:
            self._add_enrolled(db, np.array(sorted(fresh), dtype=np.int64))
            self._write_secrets(db, fresh, stamp(self.clock()))
        return outcomes

    def _write_secrets(self, db: Connection, fresh: dict[int, bytes], moment: str) -> None:
        mark = placeholder(db)
        db.exec_driver_sql(
            f"UPDATE devices SET secret = {mark}, enrolled_at = {mark} WHERE number = {mark}",
            [(secret, moment, number) for number, secret in fresh.items()],
        )

    def withdraw(self, db: Connection, number: int) -> bool:
        """Let device ``number`` take part no more, in ``db``; what it answered stays counted."""
        devices = schema.devices
        where = (devices.c.number == number) & devices.c.withdrawn_at.is_(None)
        updated = db.execute(update(devices).where(where).values(withdrawn_at=stamp(self.clock())))
        if updated.rowcount:
            self._drop_enrolled(db, number)
        return bool(updated.rowcount)

    # staff

    def make_staff(self, db: Connection, role: Any, name: str) -> Token:
        """Return a new token for a colleague with this ``role`` and ``name``; ``db`` keeps its
        digest.
        """
        secret = new_secret()
        inserted = db.execute(
            insert(schema.staff).values(
                role=role, name=name, digest=digest_of(secret), made_at=stamp(self.clock())
            )
        )
        assert inserted.inserted_primary_key is not None
        return Token(role, int(inserted.inserted_primary_key[0]), secret)

    def first_admin(self, db: Connection) -> Token | None:
        """Return an admin's token for a store that nobody can use yet; None if ``db`` has staff."""
        if db.execute(select(func.count()).select_from(schema.staff)).scalar():
            return None
        return self.make_staff(db, "admin", "first admin")

    def revoke(self, db: Connection, number: int, by: int) -> bool:
        """Revoke the token of staff ``number``, as staff ``by`` asked, in ``db``; False if it was
        not valid.
        """
        require(number != by, "you cannot revoke your own token", MessageError)
        staff = schema.staff
        caller_query = select(staff.c.number).where(
            staff.c.number == by, staff.c.revoked_at.is_(None)
        )
        require(
            db.execute(caller_query).first() is not None, "your token was revoked", MessageError
        )
        where = (staff.c.number == number) & staff.c.revoked_at.is_(None)
        updated = db.execute(update(staff).where(where).values(revoked_at=stamp(self.clock())))
        return bool(updated.rowcount)

    # campaigns

    def campaigns(self, db: Connection) -> dict[str, ActiveCampaign]:
        """Return the campaigns that have not ended, by id, read in ``db`` once."""
        if self._campaigns is None:
            table = schema.campaigns
            query = select(table).where(table.c.state.in_((WAITING, RUNNING)))
            enrolled, withdrawn = self.enrolled(db), self.withdrawn(db)
            self._campaigns = {}
            for row in db.execute(query).all():
                try:
                    self._campaigns[row.id] = campaign_state.load(db, row, enrolled, withdrawn)
                except (*DAMAGE_ERRORS, AssertionError) as problem:  # the others go on
                    self._fail(db, row.id, problem)
        return self._campaigns

    def begin(self, db: Connection, campaign: Campaign, by: int) -> str:
        """Publish ``campaign``, as staff ``by`` asked, in ``db``; return its id."""
        moment = self.clock()
        require(campaign.closes_at > moment, "deadline: it has passed already", MessageError)
        table = schema.campaigns
        existing = db.execute(select(table.c.id).where(table.c.id == campaign.id)).first()
        require(existing is None, "this campaign is there already", MessageError)
        protocol = campaign.start()
        db.execute(
            insert(table).values(
                id=campaign.id,
                spec=campaign.to_json(),
                state=WAITING,
                made_by=by,
                made_at=stamp(moment),
                course=protocol.to_text(),
                received=0,
            )
        )
        active = ActiveCampaign(
            campaign, protocol, WAITING, enrolled=self.enrolled(db), withdrawn=self.withdrawn(db)
        )
        campaigns = self.campaigns(db)
        campaign_state.follow_clock(db, active, moment)
        campaigns[campaign.id] = active
        self._ended(db, active)
        return campaign.id

    def _going(self, db: Connection, name: str) -> ActiveCampaign:
        active = self.campaigns(db).get(name)
        require(active is not None, "this campaign does not run", MessageError)
        assert active is not None
        return active

    def _go_on(self, db: Connection, active: ActiveCampaign) -> None:
        """Do for a campaign what is due by the clock in ``db``."""

        def follow() -> None:
            if campaign_state.follow_clock(db, active, self.clock()):
                self._ended(db, active)

        self._or_fail(db, active, follow)

    def _or_fail(self, db: Connection, active: ActiveCampaign, job: Callable[[], object]) -> None:
        """Do a ``job`` for a campaign whole or not at all; one that cannot be done fails it.

        What other devices sent in the same transaction is kept, and other campaigns go on.
        """
        try:
            with db.begin_nested():
                job()
        except SQLAlchemyError:  # the store, not the campaign
            raise
        except Exception as problem:
            self._fail(db, active.campaign.id, problem)

    def _fail(self, db: Connection, name: str, problem: Exception) -> None:
        log_problem("campaign", problem, campaign=name)
        campaign_state.fail(db, name)
        if self._campaigns is not None:
            self._campaigns.pop(name, None)
        self._touched = True

    def _ended(self, db: Connection, active: ActiveCampaign) -> None:
        self._touched = True
        if active.state not in (WAITING, RUNNING):
            self.campaigns(db).pop(active.campaign.id, None)

    def start(self, db: Connection) -> None:
        """Do what was due in ``db`` while no server ran, and try again what failed."""
        campaign_state.retry(db)
        self._forget()
        self.tick(db)

    def tick(self, db: Connection) -> None:
        """Do whatever is due by the clock in ``db``, and add up reports that wait."""
        for active in list(self.campaigns(db).values()):
            self._go_on(db, active)
            if active.open is not None and active.open.waiting:
                self._or_fail(db, active, partial(campaign_state.add_up, db, active.open))

    def close_question(self, db: Connection, name: str, question: str) -> None:
        """Go on with what was received to a question; no other one is closed in its place.

        Parameters:
            db: the transaction.
            name: id of the campaign.
            question: id of the question.
        """
        active = self._going(db, name)
        require(
            active.open is not None and active.open.asked.id == question,
            "this question is not open",
            MessageError,
        )

        def close() -> None:
            campaign_state.close(db, active, self.clock())
            campaign_state.follow_clock(db, active, self.clock())
            self._ended(db, active)

        self._or_fail(db, active, close)

    def cancel(self, db: Connection, name: str) -> None:
        """End campaign ``name`` in ``db`` without a result; reports that wait are deleted."""
        if campaign_state.cancel_failed(db, name, self.clock()):
            self._touched = True
            return
        active = self._going(db, name)
        moment = self.clock()
        if active.open is not None:
            where = schema.questions.c.number == active.open.number
            values = {"closed_at": stamp(moment), "support": b"", "received": active.open.received}
            db.execute(update(schema.questions).where(where).values(**values))
            pending, uploads = schema.pending, schema.uploads
            db.execute(pending.delete().where(pending.c.question == active.open.number))
            db.execute(uploads.delete().where(uploads.c.scope == active.open.scope))
        active.state, active.open = CANCELLED, None
        campaign_state.save(db, active, moment)
        self._ended(db, active)

    # answers

    def take(
        self,
        db: Connection,
        question: str,
        devices: Integers,
        secrets: bytes | None,
        answers: bytes,
    ) -> Codes:
        """Return what became of each answer, a code of ``REASONS`` each.

        Parameters:
            db: the transaction.
            question: id of the question.
            devices: numbers of the devices.
            secrets: their secrets, one after the other; None if the devices are known already.
            answers: their answers, one after the other.
        """
        known = None if secrets is None else _right(db, devices, secrets)
        active = self._campaigns_question(db, question)
        if active is not None and active.open is not None and self.clock() >= active.open.closes_at:
            self._go_on(db, active)
        if active is None or active.open is None or active.open.asked.id != question:
            codes = self._too_late(db, question, devices)
        else:
            codes = self._take(db, active, active.open, devices, known, answers)
        if known is not None:
            codes[~known] = UNKNOWN
        self.refused += int((codes > THERE).sum())
        return codes

    def _campaigns_question(self, db: Connection, question: str) -> ActiveCampaign | None:
        return self.campaigns(db).get(question.partition("/")[0])

    def _too_late(self, db: Connection, question: str, devices: Integers) -> Codes:
        table = schema.questions
        row = db.execute(select(table.c.scope).where(table.c.id == question)).first()
        codes = np.full(len(devices), NO_QUESTION if row is None else LATE, dtype=np.uint8)
        if row is not None:
            answered = answered_of(db, row.scope, devices)
            codes[np.isin(devices, list(answered))] = THERE
        return codes

    def _take(
        self,
        db: Connection,
        active: ActiveCampaign,
        question: OpenQuestion,
        devices: Integers,
        known: Any,
        answers: bytes,
    ) -> Codes:
        asked = question.asked
        codes = np.zeros(len(devices), dtype=np.uint8)
        if len(answers) != len(devices) * asked.answer_bytes:
            codes[:] = MALFORMED
            return codes
        rows = np.frombuffer(answers, dtype=np.uint8).reshape(len(devices), asked.answer_bytes)
        codes[~question.is_for(active.campaign.id, devices)] = NOT_ASKED
        head = np.frombuffer(asked.head, dtype=np.uint8)
        reports = rows[:, asked.answer_bytes - asked.report_bytes :]
        fits = (rows[:, : len(head)] == head).all(axis=1) & asked.fits(reports)
        codes[~fits] = MALFORMED
        if known is not None:
            codes[~known] = UNKNOWN
        valid = np.flatnonzero(codes == TAKEN)
        if len(valid) > 1 and not (np.diff(devices[valid]) > 0).all():
            _, first = np.unique(devices[valid], return_index=True)
            codes[np.delete(valid, first)] = THERE
            valid = valid[first]  # by rising number
        if len(valid) and not add_answered(db, question.scope, devices[valid]):
            answered = answered_of(db, question.scope, devices[valid])
            is_known = np.isin(devices[valid], list(answered))
            codes[valid[is_known]] = THERE
            valid = valid[~is_known]
            add_answered(db, question.scope, devices[valid])
        if len(valid):
            self._count(db, active, question, devices[valid], reports[valid])
        return codes

    def _count(
        self,
        db: Connection,
        active: ActiveCampaign,
        question: OpenQuestion,
        devices: Integers,
        reports: Bytes,
    ) -> None:
        if question.asked.keeps_reports:
            add_uploads(db, question.scope, devices, [row.tobytes() for row in reports])
        else:
            # sorted, so that their order does not tell whose they are
            order = np.lexsort(reports.T[::-1])
            mark = placeholder(db)
            query = f"INSERT INTO pending (question, reports) VALUES ({mark}, {mark})"
            execute(db, query, question.number, reports[order].tobytes())
            question.waiting += len(devices)
        self._note(db, active, question, len(devices))
        if question.waiting >= REPORT_BATCH_ROWS:
            campaign_state.add_up(db, question)
        if active.is_complete:
            self._go_on(db, active)

    def _note(
        self, db: Connection, active: ActiveCampaign, question: OpenQuestion, count: int
    ) -> None:
        question.received += count
        self.taken += count
        self._touched = True
        mark = placeholder(db)
        execute(
            db,
            f"UPDATE questions SET received = received + {mark}, expected = {mark} "
            f"WHERE number = {mark}",
            *(count, question.expected, question.number),
        )
        execute(
            db,
            f"UPDATE campaigns SET received = received + {mark} WHERE id = {mark}",
            *(count, active.campaign.id),
        )


def _right(db: Connection, devices: Integers, secrets: bytes) -> Any:
    """Which devices sent their own secret."""
    kept = [digest or NO_DIGEST for digest in secrets_of(db, devices)]
    size, sha256 = SECRET_BYTES, hashlib.sha256
    digests = [sha256(secrets[i : i + size]).digest() for i in range(0, len(secrets), size)]
    if hmac.compare_digest(b"".join(digests), b"".join(kept)):
        return np.ones(len(devices), dtype=np.bool_)
    pairs = zip(digests, kept, strict=True)
    return np.array([hmac.compare_digest(*pair) for pair in pairs], dtype=np.bool_)
