"""Many made-up devices on one machine, which answer as real ones do; for trials and tests.

Everything about device number i follows from the fleet's key and i: its secret, what it holds, and
its noise for a question. So a fleet of a million takes no memory, any cutting into batches and any
repetition gives the same bits, and a campaign can be played again without a network.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tempriv.collect.protocol.assignment import assignment_hash, in_range
from tempriv.collect.protocol.campaign import Campaign
from tempriv.collect.protocol.kinds.base import ProtocolQuestion, ProtocolState
from tempriv.collect.protocol.simulated import DeviceKeystreams, Floats
from tempriv.collect.server.tokens import SECRET_BYTES, digest_of
from tempriv.data.files import write_durably
from tempriv.errors import StateError, require
from tempriv.local.frequency.base import Bytes, Flags, Integers
from tempriv.local.wire import (
    DAMAGE_ERRORS,
    TOKEN_BYTES,
    members,
    require_state,
    strict_json,
    whole_number,
)
from tempriv.sampling.keys import EPOCH, Key, tokens

FILE_FIELDS = ("tempriv", "server", "seed", "ranges")
FILE_KIND = "fleet 1"
MAX_SEED = 1 << 128
DATA, SECRETS, ANSWERS = "fleet data", "fleet secrets", "fleet answers"


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
        """Return a fleet of ``devices`` from a ``seed``, numbered from ``first``."""
        return cls(Key.from_seed(seed), [(first, devices)] if devices else [])

    def add(self, first: int, count: int) -> None:
        """Add ``count`` devices, numbered from ``first``, after all that are there."""
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
        """Return a fleet of the first so many ``devices``."""
        fleet = Fleet(self.key)
        for first, count in self.ranges:
            if devices - len(fleet) > 0:
                fleet.add(first, min(count, devices - len(fleet)))
        return fleet

    def blocks(self) -> Iterator[Integers]:
        """All numbers, rising; some at a time, cut where a link of the key chain ends."""
        for first, count in self.ranges:
            low = first
            while low < first + count:
                high = min(first + count, (low // EPOCH + 1) * EPOCH)
                yield np.arange(low, high)
                low = high

    def secrets(self, numbers: Integers) -> Bytes:
        """Return the secrets of devices with these ``numbers``, a row each."""
        keystream = DeviceKeystreams(self.key.again(SECRETS, ""), numbers)("secret")
        columns = [keystream.read(index) for index in range(SECRET_BYTES // 8)]
        return np.stack(columns, axis=1).view(np.uint8).reshape(-1, SECRET_BYTES)

    def digests(self, numbers: Integers) -> list[str]:
        """Return what a server is told of the secrets of devices with these ``numbers``."""
        return [digest_of(row.tobytes()).hex() for row in self.secrets(numbers)]

    def choices(self, purpose: str, weights: Floats, numbers: Integers) -> Integers:
        """Return which of some things each device has, one as often as its weight says.

        Parameters:
            purpose: name of the draw.
            weights: how often each thing comes.
            numbers: numbers of the devices.
        """
        keystream = DeviceKeystreams(self.key.again(DATA, purpose), numbers)("choice").read()
        shares = np.cumsum(weights)[:-1] / weights.sum()
        cuts = np.array([min(int(share * 2.0**64), (1 << 64) - 1) for share in shares.tolist()])
        return np.searchsorted(cuts.astype(np.uint64), keystream, side="right").astype(np.int64)


class FleetAnswers:
    """How the devices of a fleet answer one question; what they have in common is worked out once.

    Guarantees:
        - the answer of a device is a pure function of the fleet's key, the question's id and the
          device's number (and of what is asked).

    Parameters:
        fleet: the devices.
        campaign: the campaign that asks.
        question: id of the question.
        body: what is asked.
    """

    def __init__(self, fleet: Fleet, campaign: Campaign, question: str, body: dict[str, Any]):
        self._chain = fleet.key.again(ANSWERS, question)
        self.head, self._reports = campaign.definition.simulate(campaign, body, fleet)

    def rows(self, numbers: Integers) -> Bytes:
        """Return the answers of devices with these rising ``numbers``, a row of bytes each."""
        keystreams = DeviceKeystreams(self._chain, numbers)
        reports = self._reports(numbers, keystreams)
        stream = keystreams("token")
        tokens = np.stack([stream.read(0), stream.read(1)], axis=1).view(np.uint8)
        begin = len(self.head)
        rows = np.empty((len(numbers), begin + TOKEN_BYTES + reports.shape[1]), dtype=np.uint8)
        rows[:, :begin] = np.frombuffer(self.head, dtype=np.uint8)
        rows[:, begin : begin + TOKEN_BYTES] = tokens
        rows[:, begin + TOKEN_BYTES :] = reports
        return rows

    def reports(self, numbers: Integers) -> Bytes:
        """Return the same for ``numbers``, without head and token."""
        return self.rows(numbers)[:, len(self.head) + TOKEN_BYTES :]


# between two runs


def open_fleet(path: Path, server: str, seed: int | None) -> Fleet:
    """Return the fleet that a file tells of; without one, a new fleet without devices.

    Parameters:
        path: the file.
        server: address of the server that the devices belong to.
        seed: seed of the devices; drawn if not given.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> place = Path(folder.name) / "fleet.json"
    >>> fleet = open_fleet(place, "http://127.0.0.1:8000", seed=7)
    >>> fleet.add(1, 1000)
    >>> keep_fleet(place, "http://127.0.0.1:8000", fleet)
    >>> len(open_fleet(place, "http://127.0.0.1:8000", seed=None))
    1000
    """
    require(seed is None or 0 <= seed <= MAX_SEED, "seed: must be from 0 to 2**128")
    if not path.exists():
        return Fleet.from_seed(int.from_bytes(tokens(1), "big") if seed is None else seed)
    try:
        document = members(strict_json(path.read_bytes()), FILE_FIELDS)
        require_state(document["tempriv"] == FILE_KIND and isinstance(document["server"], str))
        kept_seed = whole_number(document["seed"], most=MAX_SEED)
        fleet = Fleet.from_seed(kept_seed)
        for first, count in document["ranges"]:
            fleet.add(whole_number(first), whole_number(count, 1))
    except DAMAGE_ERRORS:
        raise StateError(f"{path}: is damaged, or tells of no fleet") from None
    require(
        document["server"] == server,
        f"{path}: has devices of the server {document['server']}; name another file with [[fleet]]",
        StateError,
    )
    require(
        seed is None or seed == kept_seed,
        f"{path}: has devices of another seed; name another file with [[fleet]]",
        StateError,
    )
    return fleet


def keep_fleet(path: Path, server: str, fleet: Fleet) -> None:
    """Write ``fleet`` of a ``server`` to ``path``; whoever reads it can answer as these devices."""
    document = {
        "tempriv": FILE_KIND,
        "server": server,
        "seed": fleet.key.seed,
        "ranges": fleet.ranges,
    }
    write_durably(path, json.dumps(document).encode())


# without a network

Answering = Callable[[str, Integers], Flags]


def everyone(question: str, numbers: Integers) -> Flags:
    """Let all devices with these ``numbers`` answer ``question``."""
    return np.ones(len(numbers), dtype=np.bool_)


def participants_of(fleet: Fleet, campaign: Campaign) -> Integers:
    """Return the devices of ``fleet`` that a server draws for a stream ``campaign``."""
    numbers = np.concatenate([*fleet.blocks()])
    order = np.argsort(assignment_hash(campaign.id, numbers), kind="stable")
    return np.sort(numbers[order[: campaign.people]])


def replayed(
    fleet: Fleet,
    campaign: Campaign,
    *,
    answering: Answering = everyone,
    first: int = 0,
    seen: Callable[[ProtocolState], None] = lambda state: None,
) -> ProtocolState:
    """Return where a campaign ends when these devices answer, without a server or a network.

    Parameters:
        fleet: the devices.
        campaign: the campaign.
        answering: which devices answer a question.
        first: the step that a stream begins at.
        seen: called with the state after each question.

    >>> from datetime import UTC, datetime
    >>> from tempriv.collect.protocol.kinds.frequency import FrequencyCampaignPlan
    >>> plan = FrequencyCampaignPlan(epsilon=1.0, people=1000, categories=("gas", "oil", "other"))
    >>> campaign = Campaign.begin("frequency", "Heating", "How?", plan, nonce="0" * 32,
    ...                           now=datetime(2026, 1, 1, tzinfo=UTC))
    >>> found = replayed(Fleet.from_seed(1, devices=1000), campaign)
    >>> found.people, sum(found.support)
    (1000, 1000)
    """
    state = campaign.start(first)
    participants = None if campaign.answers_once else participants_of(fleet, campaign)
    while not state.is_over:
        question = state.question
        if question is None:
            state = state.next_step()
            continue
        state = state.after(*_support_of(fleet, campaign, question, participants, answering))
        seen(state)
    return state


def _support_of(
    fleet: Fleet,
    campaign: Campaign,
    question: ProtocolQuestion,
    participants: Integers | None,
    answering: Answering,
) -> tuple[Integers, int]:
    answers = FleetAnswers(fleet, campaign, question.id, question.body)
    support, count = np.zeros(question.cells, dtype=np.int64), 0
    for numbers in fleet.blocks():
        if participants is not None:
            assert question.positions is not None
            present = question.positions[question.positions < len(participants)]
            numbers = numbers[np.isin(numbers, participants[present])]
        else:
            numbers = numbers[
                in_range(assignment_hash(campaign.id, numbers), question.low, question.high)
            ]
        numbers = numbers[answering(question.id, numbers)]
        if len(numbers):
            reports = answers.reports(numbers)
            count += len(numbers)
            if question.cells:
                support += question.support(reports)
    return support, count


def cut(rows: Iterator[Integers], size: int) -> Iterator[Integers]:
    """Return the numbers in ``rows`` in batches of ``size``; the last may be smaller.

    >>> [one.tolist() for one in cut(iter([np.arange(3), np.arange(3, 5)]), 2)]
    [[0, 1], [2, 3], [4]]
    """
    waiting = np.zeros(0, dtype=np.int64)
    for numbers in rows:
        waiting = np.concatenate([waiting, numbers])
        while len(waiting) >= size:
            yield waiting[:size]
            waiting = waiting[size:]
    if len(waiting):
        yield waiting
