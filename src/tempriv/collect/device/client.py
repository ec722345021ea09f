"""A device that takes part in campaigns over a network, within what its owner agreed to.

    client = Client("https://collect.example.org", "device-home", enrollment="enrol-17.…")
    client.hold(series=readings, label="flat", category="gas")
    client.run()

The device keeps its data. It recomputes what a campaign guarantees, refuses what exceeds its
owner's limits or does not follow from the published plan, and sends one protected answer where it
is asked.
"""

from __future__ import annotations

import base64
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import httpx

from tempriv.collect.device.answers import DeviceAnswers, OwnedData, copied_series, text_or_none
from tempriv.collect.device.backoff import Backoff, jitter
from tempriv.collect.device.checks import campaign_of, verified_question
from tempriv.collect.device.home import CLOSED, Home
from tempriv.collect.device.http import (
    AccessError,
    HttpClient,
    UnreachableError,
    new_http,
    origin_of,
    reason_of,
    refuse_access,
)
from tempriv.collect.device.limits import DeviceLimits, default_kinds
from tempriv.collect.device.outbox import Outbox, PendingAnswer
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.base import VerifiedQuestion
from tempriv.errors import BudgetError, StateError, TemprivError, require
from tempriv.local.device_ledger import NOT_COPIED
from tempriv.local.wire import DAMAGE_ERRORS
from tempriv.privacy.units import Unit

VISIT_SECONDS = 60.0  # seconds between two visits
MIN_VISIT_SECONDS = 1.0
SENSELESS = "the campaign makes no sense to this device"
TAKEN, THERE = "taken", "there already"
MAX_CAMPAIGNS = 1000
_UNCHANGED: Any = object()


@dataclass(frozen=True)
class CampaignOffer:
    """A campaign as this device sees it: what it means here, and why it is not answered, if so."""

    campaign: Campaign
    sentences: tuple[str, ...]
    refusal: str | None


@dataclass(frozen=True)
class Visit:
    """What came of looking in at the server: nothing here depends on what the device holds.

    Parameters:
        reached: whether the server answered.
        taken: answers that it took.
        there_already: answers that it had.
        waiting: answers that are still to be sent.
        refused: why it took none of some answers, for good.
        declined: why the device gave no answer, by campaign.
        problem: why the server was not reached.
    """

    reached: bool = True
    taken: int = 0
    there_already: int = 0
    waiting: int = 0
    refused: tuple[str, ...] = ()
    declined: dict[str, str] = field(default_factory=dict)
    problem: str | None = None


class Client:
    """One person's device.

    ``most_epsilon`` is the most for one campaign, ``limit`` for all together that are answered
    once; ``stream_limit`` for streams, within any ``stream_seconds``. ``kinds`` are those that the
    owner agreed to, and ``agree`` is asked about each campaign that is within all this.

    All limits are those of ``home``, a folder for one server: a second folder has limits of its
    own, and what the owner gives away is what all folders give away together. A home must never be
    copied or put back from a copy. Once the server has refused the device, or has heard that it
    withdraws, a new ``enrollment`` begins again in the same home, with what is left of its limits.

    Guarantees:
        - over the whole life of its home, whatever any server says, it gives away no more than
          these limits;
        - every answer is on disk before it is sent, and is sent again with the same bytes;
        - a kill at any moment loses at most an answer and what was paid for it;
        - whether it answers does not depend on what it holds, only on whether it holds something;
        - what it holds is never written, and in no repr, log or refusal.

    >>> import tempfile
    >>> home = tempfile.TemporaryDirectory()
    >>> enrollment = "enrol-17." + "A" * 43
    >>> client = Client("http://127.0.0.1:8000", home.name, enrollment=enrollment)
    >>> client.hold(series=[0.2, 0.4, 3.1], category="gas")
    >>> client
    Client(device 17 at http://127.0.0.1:8000)
    >>> client.close()
    """

    def __init__(
        self,
        url: str,
        home: str | Path,
        *,
        enrollment: str | None = None,
        most_epsilon: float = 2.0,
        limit: float = 8.0,
        stream_limit: float = 4.0,
        stream_seconds: float = 3600.0,
        kinds: tuple[str, ...] | None = None,
        upload_unit: Unit | None = None,
        most_delta: float = 0.0,
        agree: Callable[[Campaign], bool] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        http: httpx.Client | None = None,
        plain: bool = False,
    ):
        self.limits = DeviceLimits(
            most_epsilon=most_epsilon,
            limit=limit,
            stream_limit=stream_limit,
            stream_seconds=stream_seconds,
            kinds=default_kinds() if kinds is None else kinds,
            upload_unit=upload_unit,
            most_delta=most_delta,
        )
        self.url = origin_of(url, plain)
        self._agree, self._clock, self._stopped = agree, clock, threading.Event()
        self._turn, self._closed = threading.RLock(), False
        self._home = Home(home)
        try:
            identity = self._home.begin(self.url, enrollment)
            self._answers = DeviceAnswers(self._home.folder, self.limits, self._second())
            self._outbox = Outbox(self._home.folder / "outbox")
            self._leave_links_behind()
        except BaseException:
            self._home.close()
            raise
        self.number = identity.number
        self._own_http = http is None
        self._http = new_http() if http is None else http
        self._wire = HttpClient(self.url, self._http, identity.token)
        self._data = OwnedData()
        self._agreed: dict[str, bool] = {}
        self._latest: dict[str, str] = {}  # question that was answered, by campaign
        self._pause, self._after = (
            VISIT_SECONDS,
            0.0,
        )  # until the next visit; as the server wants it

    def __repr__(self) -> str:
        return f"Client(device {self.number} at {self.url})"

    def __reduce__(self) -> NoReturn:
        raise StateError(f"a device {NOT_COPIED}")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another process be this device; what waits to be sent stays on disk.

        A visit that is under way in another thread comes to its end first.
        """
        self.stop()
        with self._turn:
            self._closed = True
            if self._own_http:
                self._http.close()
            self._home.close()

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        """One thread at a time, and none after ``close``."""
        with self._turn:
            self._require_open()
            try:
                yield
            except AccessError:
                if not self._home.identity.over:
                    self._home.is_over("refused")  # from now on another token may be given
                raise

    def _require_open(self) -> None:
        require(not self._closed, CLOSED, StateError)

    # what the device has

    def hold(
        self,
        *,
        series: Any = _UNCHANGED,
        label: str | None = _UNCHANGED,
        category: str | None = _UNCHANGED,
        categories: tuple[str, ...] | None = _UNCHANGED,
    ) -> None:
        """What to answer with from now on; what is not given stays as it was.

        A series is for shapes and uploads, a label goes with it; a category is for campaigns about
        one. ``categories`` are all that it could have been: then only campaigns that know all of
        them are answered. Without them a category that a campaign does not know, or None, becomes
        any of its own, each equally likely.
        """
        self._require_open()
        fields = dict(vars(self._data))
        if series is not _UNCHANGED:
            fields["series"] = copied_series(series)
        if label is not _UNCHANGED:
            fields["label"] = text_or_none("label", label)
        require(not isinstance(categories, str), "categories: must be names, not one text")
        if categories is not _UNCHANGED:
            fields["categories"] = None if categories is None else tuple(map(str, categories))
        if category is not _UNCHANGED:
            fields["category"], fields["has_category"] = text_or_none("category", category), True
        require(
            not fields["has_category"]
            or fields["categories"] is None
            or fields["category"] is None
            or fields["category"] in fields["categories"],
            "the category: must be one of categories",
        )
        self._data = OwnedData(**fields)

    def observe(self, value: str | None) -> None:
        """Set what the device has from now on, for streams: ``value``, or None for nothing that
        could be told.

        Which step of a campaign that belongs to, the device's clock says.
        """
        self._require_open()
        fields = dict(vars(self._data)) | {
            "observed": text_or_none("value", value),
            "has_observed": True,
        }
        self._data = OwnedData(**fields)

    # what it is asked for

    def consent(self, campaign: Campaign) -> list[str]:
        """What a campaign means for this device, worked out here and not by the server."""
        self._require_open()
        cost, limits = self.limits.cost(campaign), self.limits
        if not campaign.answers_once:
            sentence = (
                f"Answers within {limits.stream_seconds:g} seconds come to epsilon = {cost:g} at "
                f"most; this device's limit is {limits.stream_limit:g}."
            )
        else:
            sentence = (
                f"It costs epsilon = {cost:g} of this device's {limits.limit:g}; "
                f"{self._answers.once.spent():g} of that is spent."
            )
        return [*campaign.sentences, sentence]

    def offers(self) -> list[CampaignOffer]:
        """What the server asks for now, and what this device makes of it; nothing is answered."""
        with self._open():
            require(not self._home.identity.has_withdrawn, "this device has withdrawn", StateError)
            self._enroll()
            campaigns, _ = self._campaigns()
            return [self._offer(campaign) for campaign in campaigns]

    def _offer(self, campaign: Campaign) -> CampaignOffer:
        try:
            sentences = tuple(self.consent(campaign))
            return CampaignOffer(campaign, sentences, self._refusal(campaign, ask_owner=False))
        except DAMAGE_ERRORS as reason:
            return CampaignOffer(campaign, (), _sentence(reason, SENSELESS))

    def spent(self) -> float:
        """Epsilon of all campaigns that were answered once, together."""
        self._require_open()
        return self._answers.once.spent()

    def _refusal(self, campaign: Campaign, ask_owner: bool = True) -> str | None:
        """Why a campaign is not answered, if so; what the device holds plays no part."""
        try:
            self.limits.refuse(campaign, self._answers.once.spent())
        except BudgetError as reason:
            return str(reason)
        if not campaign.definition.can_answer(campaign.plan, self._data):
            return f"this device holds nothing for a campaign of kind {campaign.kind}"
        if self._agree is not None and ask_owner:
            if campaign.id not in self._agreed:
                self._agreed[campaign.id] = bool(self._agree(campaign))
            if not self._agreed[campaign.id]:
                return "the owner of this device has not agreed"
        return None

    # taking part

    def run_once(self) -> Visit:
        """Send what waits, answer what is asked now, and send that.

        A server that cannot be reached is no error: what waits is sent another time. A server that
        does not know the device, or refuses to enroll it, is one. A device that has withdrawn only
        tells the server so, until it has heard.
        """
        with self._open():
            return self._visit()

    def _visit(self) -> Visit:
        counts: Counter[str] = Counter()
        refused: list[str] = []
        declined: dict[str, str] = {}
        problem = None
        self._pause = VISIT_SECONDS
        try:
            if self._home.identity.has_withdrawn:
                self._leave()
            else:
                self._take_part(counts, refused, declined)
        except UnreachableError as reason:
            problem, self._after = str(reason), reason.after
        return Visit(
            reached=problem is None,
            taken=counts[TAKEN],
            there_already=counts[THERE],
            waiting=len(self._outbox),
            refused=tuple(refused),
            declined=declined,
            problem=problem,
        )

    def _take_part(
        self, counts: Counter[str], refused: list[str], declined: dict[str, str]
    ) -> None:
        self._enroll()
        self._flush(counts, refused)
        campaigns, unreadable = self._campaigns()
        declined.update(unreadable)
        for campaign in campaigns:
            try:
                reason = self._look_at(campaign)
            except (UnreachableError, AccessError):
                raise
            except DAMAGE_ERRORS as problem:  # of one campaign, and no reason to leave out others
                reason = _sentence(problem, SENSELESS)
            if reason is not None:
                declined[campaign.id] = reason
            self._flush(counts, refused)

    def run(
        self, until: datetime | Callable[[], bool] | None = None, *, pause: float = VISIT_SECONDS
    ) -> None:
        """Look in again and again, until then, or until ``stop()`` is called from elsewhere.

        ``pause`` is how many seconds pass between visits, about; less where a stream has shorter
        steps. While the server cannot be reached the device waits longer every time.
        """
        self._require_open()
        backoff = Backoff()
        self._stopped.clear()
        while not self._is_over(until):
            with self._turn:
                if self._stopped.is_set():
                    break
                visit = self.run_once()
            if visit.reached:
                backoff.reset()
                wait = min(pause, self._pause) * (0.5 + jitter())
            else:
                wait = backoff.next(self._after)
            if isinstance(until, datetime):
                wait = min(wait, max(0.0, (until - self._clock()).total_seconds()))
            self._wait(wait)

    def stop(self) -> None:
        """Let ``run`` return."""
        self._stopped.set()

    def withdraw(self) -> None:
        """Take part no more, for good: nothing is answered, and nothing that waits is sent.

        That is on disk before the server is told to forget the device. If it cannot be reached, or
        refuses, that is an error, and every further visit tells it again. What was taken before
        stays counted.
        """
        self.stop()
        with self._open():
            if not self._home.identity.has_withdrawn:
                self._home.is_over("leaving")
            self._leave()

    def _leave(self) -> None:
        self._outbox.clear()
        if self._home.identity.over == "left":
            return
        status, document = self._wire.ask("DELETE", f"/v1/devices/{self.number}")
        require(
            status in (200, 401, 404),  # the others: it is not there any more
            f"the server refuses to withdraw this device: {reason_of(document)}",
            TemprivError,
        )
        self._home.is_over("left")

    def _wait(self, seconds: float) -> None:
        self._stopped.wait(seconds)

    def _is_over(self, until: datetime | Callable[[], bool] | None) -> bool:
        if until is None:
            return False
        return self._clock() >= until if isinstance(until, datetime) else bool(until())

    def _second(self) -> int:
        return int(self._clock().timestamp())

    def _leave_links_behind(self) -> None:
        """A kill may have come between keeping an answer and this."""
        pending_answers = list(self._outbox)
        require(
            len(pending_answers) == len(self._outbox),
            f"{self._outbox.folder}: an answer cannot be read now",
            StateError,
        )
        for pending in pending_answers:
            self._home.advance(pending.link)
        if not self._home.identity.enrolled:  # so they are of another number, for its questions
            self._outbox.clear()

    def _enroll(self) -> None:
        """Once; sent again it is the same request, and the server says that it is there already."""
        identity = self._home.identity
        if identity.enrolled:
            return
        request = {"token": identity.enrollment, "secret_hash": identity.digest}
        wire = HttpClient(self.url, self._http)
        status, document = wire.ask("POST", "/v1/devices", {"devices": [request]})
        try:
            (reply,) = document["devices"] if status == 200 else [{"outcome": "refused"}]
            outcome, number = reply["outcome"], reply.get("number", identity.number)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise UnreachableError("the server's reply about enrolling makes no sense") from None
        require(
            outcome in ("enrolled", THERE) and number == identity.number,
            "the server refuses to enroll this device: the one-time token is not valid, or another "
            "device has used it; ask for a new one, and give it to a Client of the same folder",
            AccessError,
        )
        self._home.is_enrolled()

    def _campaigns(self) -> tuple[list[Campaign], dict[str, str]]:
        """Those that the server shows, and why some were none."""
        reply = self._wire.need("GET", "/v1/campaigns")
        documents = reply.get("campaigns") if isinstance(reply, dict) else None
        if not isinstance(documents, list):
            raise UnreachableError("the server's list of campaigns makes no sense")
        campaigns, unreadable = [], {}
        for document in documents[:MAX_CAMPAIGNS]:
            try:
                campaigns.append(campaign_of(document))
            except DAMAGE_ERRORS as reason:
                name = document.get("id") if isinstance(document, dict) else None
                unreadable[str(name)[:32]] = _sentence(reason, "not a campaign")
        return campaigns, unreadable

    def _look_at(self, campaign: Campaign) -> str | None:
        """Answer the open question of a campaign, if it is for this device; else say why not."""
        if self._answers.has_answered(campaign):
            return None
        reason = self._refusal(campaign)
        if reason is not None:
            return reason
        visit_seconds = campaign.definition.visit_seconds(campaign.plan)
        self._pause = max(MIN_VISIT_SECONDS, min(self._pause, visit_seconds))
        if not campaign.opens_at <= self._clock() <= campaign.closes_at:
            return None
        status, document = self._wire.ask("GET", f"/v1/campaigns/{campaign.id}/question")
        if status != 401:  # the token is as good as it was for the list
            require(
                status < 300,
                f"the server refuses its question: {reason_of(document)}",
                TemprivError,
            )
        refuse_access(status, document)
        # a reply may be held back: what is asked, what is paid and what is told are of this moment
        now, data = self._clock(), self._data
        question_document = document.get("question") if isinstance(document, dict) else None
        question = verified_question(campaign, question_document, self.number, now)
        if question is not None and not self._has_sent(question):
            self._answer(campaign, question, data, int(now.timestamp()))
        return None

    def _has_sent(self, question: VerifiedQuestion) -> bool:
        """Whether the question has its answer since the start; before that, the ledger knows."""
        return self._latest.get(question.id.partition("/")[0]) == question.id

    def _answer(
        self, campaign: Campaign, question: VerifiedQuestion, data: OwnedData, second: int
    ) -> None:
        """Pay, draw, keep; and leave the key behind before anything is sent."""
        link = self._home.link
        answer = self._answers.draw(campaign, question, data, link, second)
        self._outbox.put(
            PendingAnswer(campaign.id, question.id, answer, campaign.deadline, link.epoch)
        )
        self._home.advance(link.epoch)
        self._latest[campaign.id] = question.id

    def _flush(self, counts: Counter[str], refused: list[str]) -> None:
        for pending in self._outbox:
            if self._clock() > pending.closes_at:
                self._outbox.remove(pending)  # nobody takes it any more
                continue
            body = {
                "question": pending.question,
                "answer": base64.b64encode(pending.answer).decode(),
            }
            path = f"/v1/campaigns/{pending.campaign}/answers"
            status, document = self._wire.ask("POST", path, body)
            refuse_access(status, document)
            outcome = document.get("outcome") if isinstance(document, dict) else None
            if status == 200 and outcome in (TAKEN, THERE):
                counts[outcome] += 1
            elif 400 <= status < 500 and isinstance(document, dict) and "reason" in document:
                refused.append(reason_of(document))
            else:
                raise UnreachableError("the server's reply to an answer makes no sense")
            self._outbox.remove(pending)


def _sentence(reason: BaseException, otherwise: str) -> str:
    return str(reason) if isinstance(reason, TemprivError) else otherwise
