"""A fleet that talks to a server: it enrolls, follows campaigns and answers in batches.

Every answer is sent until the server has said what became of it, through any of ``Faults`` and
however often the server is away, unless the device is gone for good.
"""

from __future__ import annotations

import base64
import binascii
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
import msgspec
import numpy as np

from tempriv.collect.device.backoff import Backoff
from tempriv.collect.device.checks import campaign_of
from tempriv.collect.device.http import (
    HttpClient,
    UnreachableError,
    new_http,
    origin_of,
    read_json,
    reason_of,
)
from tempriv.collect.protocol.assignment import assignment_hash, in_range
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.server.tokens import parse
from tempriv.collect.simulation.faults import Faults
from tempriv.collect.simulation.fleet import Fleet, FleetAnswers, cut
from tempriv.errors import TemprivError, require
from tempriv.local.frequency.base import Flags, Integers

MSGPACK = {"content-type": "application/msgpack"}
TOKEN_BATCH, DEVICE_BATCH = 10_000, 1000  # at a time
TAKEN, THERE, LATE = range(3)
CONNECTIONS = 4  # requests at a time
POLL_SECONDS = (
    0.05,
    2.0,
)  # seconds between looks at a server that asks nothing, at first and at last
IDLE_SECONDS = (
    10.0  # seconds without a running campaign, after which none of those that wait is expected
)
OUTAGE_SECONDS = 900.0  # seconds that a server may be away
Value = TypeVar("Value")
Watch = Callable[[str, int, int], None]


class DeliveryOutcomes(msgspec.Struct):
    """A code for each answer of a batch."""

    outcomes: bytes
    reasons: list[str]


@dataclass(frozen=True)
class Tally:
    """What became of the answers to one question, each counted once, when it was acknowledged."""

    question: str
    taken: int = 0
    there_already: int = 0
    late: int = 0
    refused: int = 0
    unsent: int = 0
    """Of devices that were to answer when the question was found closed."""

    @property
    def acknowledged(self) -> int:
        return self.taken + self.there_already + self.late + self.refused


@dataclass(frozen=True)
class Summary:
    """Everything that a fleet got through."""

    tallies: tuple[Tally, ...] = ()
    requests: int = 0
    waits: int = 0
    """How often the server was not there, however often it was asked meanwhile."""
    seconds: float = 0.0

    def total(self, name: str) -> int:
        """Return the sum of the counts called ``name`` over all questions."""
        return sum(getattr(entry, name) for entry in self.tallies)


class Outages:
    """How often a server goes away, as requests find it that overlap each other.

    >>> seen = Outages()
    >>> for sent, found in ((0.0, True), (1.0, False), (1.1, False), (2.0, True), (3.0, False)):
    ...     seen.note(sent, found, now=sent + 0.5)
    >>> seen.count
    2
    """

    def __init__(self) -> None:
        self.count, self._reachable, self._since = 0, True, float("-inf")
        self._turn = threading.Lock()

    def note(self, sent_at: float, reachable: bool, now: float | None = None) -> None:
        """Note whether the server was reachable for a request.

        Parameters:
            sent_at: when the request was sent.
            reachable: whether there was a reply.
            now: when that is known; this moment by default.
            sent_at: when the request was sent.
            reachable: whether there was a reply.
            now: when that is known; this moment by default.
        """
        with self._turn:
            if reachable == self._reachable or sent_at < self._since:
                return
            self._reachable, self._since = reachable, time.monotonic() if now is None else now
            self.count += not reachable


@dataclass(frozen=True)
class EncodedBatch:
    """A batch of answers as it is sent, however often."""

    index: int
    count: int
    data: bytes


class Traffic:
    """Carries the answers of a fleet to a server, as ``token`` of an admin or analyst allows.

    ``batch`` answers go in a request, and ``lanes`` requests at a time.
    """

    def __init__(
        self,
        fleet: Fleet,
        url: str,
        token: str,
        *,
        faults: Faults | None = None,
        batch: int = 1000,
        connections: int = CONNECTIONS,
        http: httpx.Client | None = None,
        wait: Callable[[float], Any] | None = None,
        watch: Watch = lambda what, done, total: None,
    ):
        require(1 <= batch <= 4096, f"batch={batch}: must be from 1 to 4096 answers")
        require(connections >= 1, f"lanes={connections}: must be at least 1")
        self.fleet, self.faults, self.batch, self.connections = (
            fleet,
            faults or Faults(),
            batch,
            connections,
        )
        self._stopped = threading.Event()
        self._wait = wait or self._stopped.wait
        self._watch = watch
        self._own_http = http is None
        client = new_http(connections + 1) if http is None else http
        self._http, where = client, origin_of(url, plain=True)
        self._staff, self._devices = HttpClient(where, client, token), HttpClient(where, client)
        self._turn = threading.Lock()
        self._requests, self._outages = 0, Outages()
        self._tallies: list[Tally] = []
        self._began = time.monotonic()

    def __enter__(self) -> Traffic:
        return self

    def __exit__(self, *problem: object) -> None:
        self._stopped.set()
        if self._own_http:
            self._http.close()

    @property
    def summary(self) -> Summary:
        spent = time.monotonic() - self._began
        return Summary(tuple(self._tallies), self._requests, self._outages.count, spent)

    def role(self) -> str:
        """Of the token; refused with a reason if the server is not there or does not know it."""
        document = self._staff.need("GET", "/v1/me")
        return str(document.get("role")) if isinstance(document, dict) else ""

    def enrolled(self) -> int:
        """How many devices the server has."""
        document = self._staff.need("GET", "/v1/fleet")
        return int(document.get("enrolled", 0)) if isinstance(document, dict) else 0

    # being there

    def enroll(self, count: int, keep: Callable[[Fleet], None] = lambda fleet: None) -> None:
        """Enroll ``count`` more devices; ``keep`` is called with the fleet before, and after each
        part.
        """
        done = 0
        keep(self.fleet)  # a seed that was drawn is not drawn again
        while done < count:
            many = min(TOKEN_BATCH, count - done)
            tokens = self._new_tokens(many)
            for low in range(0, many, DEVICE_BATCH):
                part = tokens[low : low + DEVICE_BATCH]
                self._enroll_some(part)
                first = parse(part[0])
                assert first is not None
                self.fleet.add(first.number, len(part))
                keep(self.fleet)
                done += len(part)
                self._watch("enrolling", done, count)

    def _new_tokens(self, many: int) -> list[str]:
        body = {"count": many}
        document = self._patiently(lambda: self._staff.need("POST", "/v1/enrolments", body))
        return _tokens_of(document, many)

    def _enroll_some(self, tokens: list[str]) -> None:
        numbers = np.array([entry.number for entry in map(parse, tokens) if entry is not None])
        pairs = zip(tokens, self.fleet.digests(numbers), strict=True)
        body = [{"token": token, "secret_hash": digest} for token, digest in pairs]
        document = self._patiently(
            lambda: self._devices.need("POST", "/v1/devices", {"devices": body})
        )
        question = document.get("devices", []) if isinstance(document, dict) else []
        refused = sum(entry.get("outcome") == "refused" for entry in question)
        require(
            len(question) == len(tokens) and not refused,
            f"the server refuses to enroll {refused} of {len(tokens)} devices",
            TemprivError,
        )

    # going on

    def run(
        self,
        only: str | None = None,
        *,
        once: bool = False,
        follow: bool = False,
        close_questions: bool = False,
    ) -> Summary:
        """Answer whatever is asked, until no campaign runs.

        Parameters:
            only: id of the one campaign to answer.
            once: whether each campaign is looked at one time.
            follow: whether to wait for further campaigns, for ever.
            close_questions: whether a question is closed when all that will answer have.
        """
        answered: dict[str, str] = {}  # the last question of each campaign
        look = Backoff(*POLL_SECONDS, draw=lambda: 1.0)
        idle = 0.0
        while not self._stopped.is_set():
            going = self._going(only)
            running = [campaign for campaign, state in going if state == "running"]
            busy = [self._follow(entry, answered, close_questions) for entry in running]
            if once:
                break
            if any(busy):
                look.reset()
                continue
            idle = 0.0 if running else idle
            if not running and not follow and (not going or idle >= IDLE_SECONDS):
                break
            wait = look.next()
            idle += wait
            self._watch("waiting to be asked", 0, 0)
            self._wait(wait)
        return self.summary

    def _going(self, only: str | None) -> list[tuple[Campaign, str]]:
        """Campaigns that have not ended, with their states."""
        path = "/v1/campaigns" if only is None else f"/v1/campaigns/{only}"
        document = self._patiently(lambda: self._staff.need("GET", path))
        documents = document["campaigns"] if only is None else [document]
        return [
            (campaign_of(entry), entry["state"])
            for entry in documents
            if entry["state"] in ("running", "waiting")
        ]

    def _question(self, campaign: Campaign) -> dict[str, Any] | None:
        path = f"/v1/campaigns/{campaign.id}/question"
        document: dict[str, Any] | None = self._patiently(lambda: self._staff.need("GET", path))[
            "question"
        ]
        return document

    def _follow(self, campaign: Campaign, answered: dict[str, str], close: bool) -> bool:
        """Whether there was anything to do."""
        question = self._question(campaign)
        if question is None or answered.get(campaign.id) == question["id"]:
            return False
        self._tallies.append(self.answer(campaign, question))
        answered[campaign.id] = question["id"]
        if close:
            self._close(campaign, question["id"])
        return True

    def _close(self, campaign: Campaign, question: str) -> None:
        # refused if it closed by itself: no other one is closed in its place
        path, reference = f"/v1/campaigns/{campaign.id}/close-question", {"question": question}
        status, document = self._patiently(lambda: self._staff.ask("POST", path, reference))
        require(status in (200, 409), f"closing a question: {reason_of(document)}", TemprivError)

    # answering

    def asked_of(self, campaign: Campaign, question: dict[str, Any]) -> Iterator[Integers]:
        """Return the rising numbers of devices that answer a ``question`` of ``campaign``, some at
        a time.
        """
        chosen = None if question.get("bitmap") is None else _bits(question["bitmap"])
        bounds = question.get("lots")
        for numbers in self.fleet.blocks():
            if chosen is not None:
                known_numbers = numbers[numbers < len(chosen)]
                numbers = known_numbers[chosen[known_numbers]]
            elif bounds is not None:
                low, high = (int(entry, 16) for entry in bounds)
                numbers = numbers[in_range(assignment_hash(campaign.id, numbers), low, high)]
            yield numbers[~self.faults.gone_of(numbers)]

    def answer(self, campaign: Campaign, question: dict[str, Any]) -> Tally:
        """Send the answers of all devices that a ``question`` of ``campaign`` is for; return what
        became of them.
        """
        name, closed = question["id"], threading.Event()
        counts: Counter[str] = Counter()
        batches = self.faults.in_order(name, self._encoded(campaign, question))
        total = int(question.get("expected") or 0)

        def note(encoded: EncodedBatch, outcomes: Counter[str]) -> None:
            """Note the ``outcomes`` of a batch, ``encoded``."""
            counts.update(outcomes)
            if outcomes["late"] == encoded.count:
                closed.set()
            self._watch(name, sum(counts.values()), total)

        def delivered(encoded: EncodedBatch) -> Counter[str]:
            """Deliver the batch ``encoded``, unless the question is known to be closed."""
            if closed.is_set():
                return Counter(unsent=encoded.count)
            return self._deliver(name, encoded)

        if self.connections == 1:
            for encoded in batches:
                note(encoded, delivered(encoded))
        else:
            with ThreadPoolExecutor(self.connections) as pool:
                try:
                    for encoded, future in _bounded_calls(
                        pool, delivered, batches, 2 * self.connections
                    ):
                        note(encoded, future.result())
                except BaseException:
                    self._stopped.set()  # nobody waits for a server any more
                    raise
        return Tally(name, **counts)

    def _encoded(self, campaign: Campaign, question: dict[str, Any]) -> Iterator[EncodedBatch]:
        answers = FleetAnswers(self.fleet, campaign, question["id"], question["body"])
        for index, numbers in enumerate(cut(self.asked_of(campaign, question), self.batch)):
            data = msgspec.msgpack.encode(
                {
                    "question": question["id"],
                    "devices": numbers.astype(">u8").tobytes(),
                    "secrets": self.fleet.secrets(numbers).tobytes(),
                    "answers": answers.rows(numbers).tobytes(),
                }
            )
            yield EncodedBatch(index, len(numbers), data)

    def _deliver(self, question: str, encoded: EncodedBatch) -> Counter[str]:
        """Until a reply comes through; the first that does counts."""
        attempt = 0
        while True:
            fate = self.faults.fate(question, encoded.index, attempt)
            attempt += 1
            if fate.lost_there:
                continue
            outcomes = self._patiently(lambda: self._post(encoded))
            for _ in range(fate.copies - 1):
                self._patiently(lambda: self._post(encoded))
            if not fate.lost_back:
                return outcomes

    def _post(self, encoded: EncodedBatch) -> Counter[str]:
        with self._turn:
            self._requests += 1
        status, body = self._devices.send(
            "POST", "/v1/answers", content=encoded.data, headers=MSGPACK
        )
        if status != 200:
            raise TemprivError(
                f"the server refuses a batch of answers: {reason_of(read_json(body))}"
            )
        try:
            outcomes = msgspec.msgpack.decode(body, type=DeliveryOutcomes)
        except msgspec.DecodeError:
            raise UnreachableError("the server's reply to a batch makes no sense") from None
        if len(outcomes.outcomes) != encoded.count:
            raise UnreachableError("the server's reply is to another batch")
        codes = np.bincount(np.frombuffer(outcomes.outcomes, dtype=np.uint8), minlength=3)
        names = {"taken": codes[TAKEN], "there_already": codes[THERE], "late": codes[LATE]}
        counts = Counter({name: int(count) for name, count in names.items()})
        counts["refused"] = encoded.count - sum(counts.values())
        return counts

    def _patiently(self, call: Callable[[], Value]) -> Value:
        """Again and again while the server is away, as when it is restarted."""
        backoff, began = Backoff(first=0.1, most=5.0), time.monotonic()
        while True:
            began_at = time.monotonic()
            try:
                value = call()
            except UnreachableError as reason:
                self._outages.note(began_at, reachable=False)
                if self._stopped.is_set() or time.monotonic() - began > OUTAGE_SECONDS:
                    raise
                self._wait(backoff.next(reason.after))
            else:
                self._outages.note(began_at, reachable=True)
                return value


def _bounded_calls(
    pool: ThreadPoolExecutor,
    call: Callable[[EncodedBatch], Value],
    batches: Iterator[EncodedBatch],
    limit: int,
) -> Iterator[tuple[EncodedBatch, Future[Value]]]:
    """Calls in the pool, at most so many under way; memory stays flat."""
    waiting: list[tuple[EncodedBatch, Future[Value]]] = []
    for encoded in batches:
        waiting.append((encoded, pool.submit(call, encoded)))
        if len(waiting) >= limit:
            yield waiting.pop(0)
    yield from waiting


def _tokens_of(document: Any, count: int) -> list[str]:
    """One-time tokens, of devices that are numbered in a row."""
    given_tokens = document.get("tokens") if isinstance(document, dict) else None
    tokens: list[str] = given_tokens if isinstance(given_tokens, list) else []
    numbers = [entry.number for entry in map(parse, tokens) if entry is not None]
    require(
        len(numbers) == count and numbers == list(range(numbers[0], numbers[0] + count)),
        "the server's reply about one-time tokens makes no sense",
        TemprivError,
    )
    return tokens


def _bits(text: str) -> Flags:
    """Which numbers are asked, of a bitmap as a server tells it."""
    try:
        packed = zlib.decompress(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error, zlib.error):
        raise UnreachableError("the server's bitmap makes no sense") from None
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), bitorder="little")
    return bits.astype(np.bool_)
