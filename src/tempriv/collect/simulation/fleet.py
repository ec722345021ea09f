"""Many made-up devices on one machine, which answer as real ones do; for trials and tests.

Everything about device number i follows from the fleet's key and i: its secret, what it holds, and
its noise for a question. So a fleet of a million takes no memory, any cutting into batches and any
repetition gives the same bits, and a campaign can be played again without a network.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.collect.protocol.assignment import assignment_hash, in_range
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.plans import (
    FrequencyCampaignPlan,
    StreamCampaignPlan,
    UploadCampaignPlan,
)
from tempriv.collect.protocol.kinds.runs import (
    ProtocolQuestion,
    ProtocolRun,
    StreamProtocolRun,
    beginning,
    upload_head,
)
from tempriv.collect.server.tokens import SECRET_BYTES, digest_of
from tempriv.data.series import Block
from tempriv.errors import require
from tempriv.local.frequency.base import Bytes, Flags, Integers
from tempriv.local.shapes import messages as shapes_messages
from tempriv.local.shapes import roles
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.randomizer import local_answers, sequences_of, with_labels
from tempriv.local.streams import messages as streams_messages
from tempriv.local.wire import TOKEN_BYTES
from tempriv.mechanisms.perturb import perturb_block
from tempriv.sampling.keys import EPOCH, Key, SeriesKey
from tempriv.sampling.keystream import Keystream
from tempriv.sampling.keystream import StepRange as Steps

Floats = npt.NDArray[np.float64]
POOL = 24  # made-up series
LONGEST = 4096  # readings of one
TURN = 48  # steps after which what people do comes round again
DATA, SECRETS, ANSWERS = "fleet data", "fleet secrets", "fleet answers"


@dataclass(frozen=True)
class NumberedWords:
    """Keyed words of devices, by their numbers (rising): the number is the step of a chain."""

    chain: SeriesKey
    numbers: Integers

    def __call__(self, purpose: str) -> Keystream:
        first = int(self.numbers[0])
        whole = Keystream([Steps(self.chain, first, int(self.numbers[-1]) - first + 1)], purpose)
        return whole.only(self.numbers - first)


class Fleet:
    """Devices of some ranges of numbers, each (first, count).

    A seed makes the same devices again; they are made up, so there is nothing to protect.

    >>> fleet = Fleet.from_seed(7, devices=1000)
    >>> len(fleet), fleet.secrets(np.array([5])).shape
    (1000, (1, 32))
    """

    def __init__(self, key: Key, ranges: Sequence[tuple[int, int]] = ()):
        self.key = key
        self.ranges: list[tuple[int, int]] = []
        for first, count in ranges:
            self.add(first, count)

    @classmethod
    def from_seed(cls, seed: int, devices: int = 0, first: int = 1) -> Fleet:
        return cls(Key.from_seed(seed), [(first, devices)] if devices else [])

    def add(self, first: int, count: int) -> None:
        """Devices that come after all that are there."""
        require(
            first >= 0 and count >= 1 and (not self.ranges or first >= sum(self.ranges[-1])),
            f"devices from {first} on: must come after those that are there",
        )
        if self.ranges and sum(self.ranges[-1]) == first:
            first, before = self.ranges.pop()
            count += before
        self.ranges.append((first, count))

    def __len__(self) -> int:
        return sum(count for _, count in self.ranges)

    def first(self, devices: int) -> Fleet:
        """So many of them."""
        found = Fleet(self.key)
        for first, count in self.ranges:
            if devices - len(found) > 0:
                found.add(first, min(count, devices - len(found)))
        return found

    def blocks(self) -> Iterator[Integers]:
        """All numbers, rising; some at a time, cut where a link of the key chain ends."""
        for first, count in self.ranges:
            low = first
            while low < first + count:
                high = min(first + count, (low // EPOCH + 1) * EPOCH)
                yield np.arange(low, high)
                low = high

    def secrets(self, numbers: Integers) -> Bytes:
        """Of each device, a row."""
        words = NumberedWords(self.key.again(SECRETS, ""), numbers)("secret")
        lanes = [words.take(lane) for lane in range(SECRET_BYTES // 8)]
        return np.stack(lanes, axis=1).view(np.uint8).reshape(-1, SECRET_BYTES)

    def digests(self, numbers: Integers) -> list[str]:
        """What a server is told of their secrets."""
        return [digest_of(row.tobytes()).hex() for row in self.secrets(numbers)]

    def choices(self, what: str, weights: Floats, numbers: Integers) -> Integers:
        """Which of some things each device has, one as often as its weight says."""
        words = NumberedWords(self.key.again(DATA, what), numbers)("choice").take()
        shares = np.cumsum(weights)[:-1] / weights.sum()
        cuts = np.array([min(int(share * 2.0**64), (1 << 64) - 1) for share in shares.tolist()])
        return np.searchsorted(cuts.astype(np.uint64), words, side="right").astype(np.int64)


def falling(count: int) -> Floats:
    """The first is the most frequent, as things are."""
    return 1 / np.arange(1, count + 1)


def made_up(readings: int) -> Floats:
    """A pool of series: waves, ramps, steps and humps, each begun at another moment."""
    time = np.arange(readings) / max(1, readings)
    rows = []
    for i in range(POOL):
        moved = (time + (i // 4) / (POOL // 4)) % 1.0
        turn = 2 * math.pi * moved
        forms: list[Any] = [
            np.sin(turn),
            2 * moved - 1,
            np.where(moved < 0.5, -1.0, 1.0),
            np.exp(-((moved - 0.5) ** 2) / 0.02) * 2 - 1,
        ]
        rows.append(forms[i % 4])
    return np.array(rows)


def shares_at(step: int, size: int) -> Floats:
    """How many devices have each category at a step of a stream; it comes and goes."""
    turn = 2 * math.pi * (step / TURN + np.arange(size) / size)
    return falling(size) * (1.2 + np.sin(turn))


class Drawing:
    """How the devices of a fleet answer one question; what they have in common is worked out once.

    Guarantees:
        - the answer of a device is a pure function of the fleet's key, the question's id and the
          device's number (and of what is asked).
    """

    def __init__(self, fleet: Fleet, campaign: Campaign, name: str, body: dict[str, Any]):
        self.fleet, self.campaign, self.id = fleet, campaign, name
        self._chain = fleet.key.again(ANSWERS, name)
        plan = campaign.plan
        if isinstance(plan, ShapesPlan):
            asked = shapes_messages.ShapesQuestion.from_json(json.dumps(body))
            self.head, self._reports = roles.head_of(asked), _of_shapes(self, asked)
        elif isinstance(plan, UploadCampaignPlan):
            self.head, self._reports = upload_head(campaign.id), self._uploads
        else:
            value = streams_messages.StreamQuestion.from_json(json.dumps(body))
            self.head = streams_messages.head_of(value)
            self._reports = functools.partial(self._values, value)

    def rows(self, numbers: Integers) -> Bytes:
        """The answers of these devices (rising numbers), a row of bytes each."""
        words = NumberedWords(self._chain, numbers)
        reports = self._reports(numbers, words)
        named = words("token")
        tokens = np.stack([named.take(0), named.take(1)], axis=1).view(np.uint8)
        begin = len(self.head)
        rows = np.empty((len(numbers), begin + TOKEN_BYTES + reports.shape[1]), dtype=np.uint8)
        rows[:, :begin] = np.frombuffer(self.head, dtype=np.uint8)
        rows[:, begin : begin + TOKEN_BYTES] = tokens
        rows[:, begin + TOKEN_BYTES :] = reports
        return rows

    def reports(self, numbers: Integers) -> Bytes:
        """The same without head and token."""
        return self.rows(numbers)[:, len(self.head) + TOKEN_BYTES :]

    def _values(
        self, question: streams_messages.StreamQuestion, numbers: Integers, words: NumberedWords
    ) -> Bytes:
        plan, size = self.campaign.plan, question.size
        assert isinstance(plan, (FrequencyCampaignPlan, StreamCampaignPlan))
        # a device's place among all is its own; what is where changes with the steps
        weights = (
            shares_at(question.step, size)
            if isinstance(plan, StreamCampaignPlan)
            else falling(size)
        )
        values = self.fleet.choices("category", weights, numbers)
        reports: Bytes = question.frequency.reports(values, words("report"))
        return reports

    def _uploads(self, numbers: Integers, words: NumberedWords) -> Bytes:
        plan = self.campaign.plan
        assert isinstance(plan, UploadCampaignPlan)
        low, high = plan.mechanism.domain.bounds[0]  # type: ignore[index]
        pool = low + (high - low) * (0.5 + 0.4 * made_up(plan.readings))
        which = self.fleet.choices("series", falling(POOL), numbers)
        keys = [self._chain.cipher_key(f"device {number}") for number in numbers.tolist()]
        count = len(numbers)
        block = Block(
            values=pool[which].reshape(-1, 1),
            missing=np.zeros((count * plan.readings, 1), bool),
            ids=tuple(map(str, numbers.tolist())),
            counts=np.full(count, plan.readings),
            starts=np.zeros(count, dtype=np.int64),
        )
        runs = [Steps(SeriesKey(key, 0), 0, plan.readings) for key in keys]
        out = perturb_block(plan.mechanism, block, runs, ending=True)
        values = np.where(out.missing, np.nan, out.values).astype("<f8")
        return np.ascontiguousarray(values.reshape(count, plan.readings)).view(np.uint8)


Reports = Callable[[Integers, NumberedWords], Bytes]


def _of_shapes(drawing: Drawing, question: shapes_messages.ShapesQuestion) -> Reports:
    """Devices with one series have one thing to say, before noise."""
    sax = question.sax
    pool = made_up(min(question.readings, sax.segment * sax.longest, LONGEST))
    found, which = sequences_of(sax, question.readings, pool).grouped()
    texts, labels = found.texts(), None
    if question.labels:
        own = np.arange(POOL) % len(question.labels)
        pairs, labels, which = with_labels(which, own)
        texts = [texts[i] for i in pairs]
    seen = local_answers(question, texts, labels)
    says: Integers = np.asarray(which, dtype=np.int64)

    def reports(numbers: Integers, words: NumberedWords) -> Bytes:
        held = drawing.fleet.choices("series", falling(POOL), numbers)
        sent: Bytes = seen.reports(says[held], words)  # type: ignore[arg-type]
        return sent

    return reports


# without a network

Answering = Callable[[str, Integers], Flags]


def everyone(question: str, numbers: Integers) -> Flags:
    return np.ones(len(numbers), dtype=np.bool_)


def participants_of(fleet: Fleet, campaign: Campaign) -> Integers:
    """The devices of a stream, by lot, as a server with no other devices draws them."""
    numbers = np.concatenate([*fleet.blocks()])
    order = np.argsort(assignment_hash(campaign.id, numbers), kind="stable")
    return np.sort(numbers[order[: campaign.people]])


def replayed(
    fleet: Fleet,
    campaign: Campaign,
    *,
    answering: Answering = everyone,
    first: int = 0,
    seen: Callable[[ProtocolRun], None] = lambda run: None,
) -> ProtocolRun:
    """The campaign as it goes when these devices answer, without a server or a network.

    ``answering`` says which devices are there at a question; a stream begins at its ``first`` step.
    With the devices whose answers a server has taken, it ends where the server ends. ``seen`` is
    called with how it stands after each question.

    >>> from datetime import UTC, datetime
    >>> plan = FrequencyCampaignPlan(epsilon=1.0, people=1000, categories=("gas", "oil", "other"))
    >>> campaign = Campaign.begin("frequency", "Heating", "How?", plan, nonce="0" * 32,
    ...                           now=datetime(2026, 1, 1, tzinfo=UTC))
    >>> found = replayed(Fleet.from_seed(1, devices=1000), campaign)
    >>> found.people, sum(found.support)
    (1000, 1000)
    """
    run: ProtocolRun = beginning(campaign)
    people = None
    if campaign.kind == "stream":
        run, people = StreamProtocolRun.beginning(campaign, first), participants_of(fleet, campaign)
    while not run.is_over:
        asked = run.asked
        if asked is None:
            assert isinstance(run, StreamProtocolRun)
            run = run.next_step()
            continue
        run = run.after(*_support_of(fleet, campaign, asked, people, answering))
        seen(run)
    return run


def _support_of(
    fleet: Fleet,
    campaign: Campaign,
    asked: ProtocolQuestion,
    people: Integers | None,
    answering: Answering,
) -> tuple[Integers, int]:
    drawing = Drawing(fleet, campaign, asked.id, asked.body)
    support, count = np.zeros(asked.cells, dtype=np.int64), 0
    for numbers in fleet.blocks():
        if people is not None:
            assert asked.places is not None
            there = asked.places[asked.places < len(people)]
            numbers = numbers[np.isin(numbers, people[there])]
        else:
            numbers = numbers[
                in_range(assignment_hash(campaign.id, numbers), asked.low, asked.high)
            ]
        numbers = numbers[answering(asked.id, numbers)]
        if len(numbers):
            reports = drawing.reports(numbers)
            count += len(numbers)
            if asked.cells:
                support += asked.support(reports)
    return support, count


def cut(rows: Iterator[Integers], size: int) -> Iterator[Integers]:
    """The same numbers in batches of ``size``; the last may be smaller.

    >>> [one.tolist() for one in cut(iter([np.arange(3), np.arange(3, 5)]), 2)]
    [[0, 1], [2, 3], [4]]
    """
    left = np.zeros(0, dtype=np.int64)
    for numbers in rows:
        left = np.concatenate([left, numbers])
        while len(left) >= size:
            yield left[:size]
            left = left[size:]
    if len(left):
        yield left
