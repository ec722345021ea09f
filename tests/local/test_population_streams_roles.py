"""Both roles of a stream over a population: what a device gives away, and what each refuses."""

from __future__ import annotations

import base64
import contextlib
import copy
import itertools
import json
import math
import multiprocessing
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest

from tempriv.errors import BudgetError, DataError, StateError, UsageError
from tempriv.local.device_ledger import WindowLedger
from tempriv.local.streams.messages import StreamAnswer, StreamQuestion
from tempriv.local.streams.roles import StreamDevice, StreamServer, simulate_answers
from tempriv.local.wire import MessageError
from tempriv.privacy.guarantees import Pure
from tempriv.privacy.units import Window
from tempriv.sampling.keys import Key
from tests.local.test_population_streams import CAMPAIGN, plan_of
from tests.local.test_shapes_devices import at_once

# the ledger of a device


def window_sums(told, window):
    return max(
        (sum((Fraction(e) for s, e in told if step - window < s <= step), Fraction(0)))
        for step, _ in told
    )


@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_ledger_refuses_just_what_would_pass_its_limit(window):
    for wishes in itertools.product((0.0, 0.25, 0.5, 1.0), repeat=5):
        ledger, told = WindowLedger(window, 1.0), []
        for step, epsilon in enumerate(wishes):
            if not epsilon:
                continue
            if window_sums([*told, (step, epsilon)], window) <= 1:
                ledger.spend(CAMPAIGN, step, "publish", epsilon)
                told.append((step, epsilon))
            else:
                with pytest.raises(BudgetError, match="limit of 1"):
                    ledger.spend(CAMPAIGN, step, "publish", epsilon)
        if told:
            assert window_sums(told, window) <= 1


class ForgetfulLedger(WindowLedger):
    def _spent(self, step):
        recent = [charge[3] for charge in self._charges if step - charge[0] < self.window - 1]
        return sum(map(Fraction, recent), Fraction(0))


def greedy(ledger, steps):
    """A server that asks for whatever is left."""
    told = []
    for step in range(steps):
        left = ledger.left(step)
        if left > 0:
            ledger.spend(CAMPAIGN, step, "publish", left)
            told.append((step, left))
    return told


def test_a_ledger_that_forgets_a_step_early_is_noticed():
    assert window_sums(greedy(WindowLedger(3, 1.0), 9), 3) == 1
    assert window_sums(greedy(ForgetfulLedger(3, 1.0), 9), 3) > 1


def test_tenths_sum_exactly():
    ledger = WindowLedger(20, 1.0)
    for step in range(9):
        ledger.spend(CAMPAIGN, step, "publish", 0.1)
    with pytest.raises(BudgetError):  # 0.1 is a little more than a tenth
        ledger.spend(CAMPAIGN, 9, "publish", 0.1)
    ledger.spend(CAMPAIGN, 9, "publish", ledger.left(9))
    assert ledger.left(9) == 0


def asked_at(step, size=3, **given):
    fields = {"campaign": CAMPAIGN, "part": "publish", "epsilon": 0.6, **given}
    return StreamQuestion(step=step, size=size, **fields)


def test_time_and_campaigns():
    device = StreamDevice(WindowLedger(3, 1.0), size=3)
    with pytest.raises(DataError, match="no value yet"):
        device.answer(asked_at(5))
    device.observe(5, 2)
    device.answer(asked_at(5))
    with pytest.raises(UsageError, match="time goes on"):
        device.observe(5, 1)
    with pytest.raises(BudgetError, match="limit of 1"):  # campaigns share the limit
        device.answer(asked_at(5, campaign="f" * 32))
    # a server cannot make a device forget by calling later steps
    for step in (4, 6, 5000):
        with pytest.raises(MessageError, match="by this device's clock"):
            device.answer(asked_at(step, epsilon=1))
    device.observe(7, 0)
    with pytest.raises(MessageError, match="about 4 values: this device has 3"):
        device.answer(asked_at(7, size=4, epsilon=0.4))
    assert device.ledger.left(7) == pytest.approx(0.4), "a refusal costs nothing"
    assert device.guarantee.loss == Pure(1.0)
    assert device.guarantee.unit == Window(3)
    assert "7" not in repr(device) and "3" in repr(device)


@pytest.mark.parametrize("asked", [2, 3, 7, 8, 9, 200])
def test_no_refusal_depends_on_a_value(asked):
    """A server that asks for one size after the other learns the same from every device."""
    said = set()
    for value in range(8):
        device = StreamDevice(WindowLedger(3, 1.0), size=8)
        device.observe(0, value)
        try:
            device.answer(asked_at(0, size=asked))
            said.add("answered")
        except MessageError as reason:
            assert device.ledger.left(0) == 1.0
            said.add(str(reason))
    assert len(said) == 1
    assert (said == {"answered"}) == (asked == 8)


@pytest.mark.parametrize("value", [-1, 3, 2.0, 2.7, True, "1", None, float("nan")], ids=repr)
def test_a_device_observes_whole_numbers_of_its_size(value):
    device = StreamDevice(WindowLedger(3, 1.0), size=3)
    with pytest.raises(DataError, match="from 0 to 2") as refused:
        device.observe(0, value)
    assert repr(value) not in str(refused.value).replace("0 to 2", "")
    for step in (-1, 0.0, True, "0"):
        with pytest.raises(UsageError, match="step"):
            device.observe(step, 1)
    device.observe(np.int64(0), np.uint8(2))
    assert device.answer(asked_at(0)).step == 0


@pytest.mark.parametrize("size", [0, 1, True, 2.0, 1 << 21, None], ids=repr)
def test_a_device_has_a_size(size):
    with pytest.raises(UsageError, match="size="):
        StreamDevice(WindowLedger(3, 1.0), size=size)


def test_neither_a_device_nor_its_ledger_is_copied():
    device = StreamDevice(WindowLedger(3, 1.0), size=2)
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        for one in (device, device.ledger):
            with pytest.raises(StateError, match="not copied"):
                way(one)


class SlowLedger(WindowLedger):
    """Another thread comes in between looking and spending."""

    def _spent(self, step):
        found = super()._spent(step)
        threading.Event().wait(0.002)
        return found


@pytest.mark.parametrize("on_disk", [True, False], ids=["disk", "memory"])
def test_threads_share_a_ledger(on_disk, tmp_path):
    ledger = SlowLedger(2, 1.0, str(tmp_path / "ledger") if on_disk else None)
    spent = at_once(lambda number: ledger.spend(CAMPAIGN, 0, str(number), 0.5), 8)
    assert (spent, ledger.left(0)) == (2, 0.0)


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), True, "1"], ids=repr)
def test_nothing_but_a_charge_is_charged(epsilon):
    ledger = WindowLedger(2, 1.0)
    with pytest.raises(UsageError, match="epsilon="):
        ledger.spend(CAMPAIGN, 0, "publish", epsilon)
    assert ledger.left(0) == 1.0


def test_a_ledger_on_disk(tmp_path):
    path = tmp_path / "ledger"
    WindowLedger(2, 1.0, path).spend(CAMPAIGN, 4, "compare", 0.75)
    again = WindowLedger(2, 1.0, path)
    assert (again.left(5), again.left(6)) == (0.25, 1.0)
    with pytest.raises(BudgetError, match="once"):
        again.spend(CAMPAIGN, 4, "compare", 0.1)
    with pytest.raises(BudgetError, match="past"):
        again.spend(CAMPAIGN, 3, "compare", 0.1)
    assert path.stat().st_mode & 0o77 == 0
    with pytest.raises(StateError, match="another window or limit"):
        WindowLedger(2, 2.0, path)
    good = path.read_bytes()
    for damaged in (
        *(b"", b"{}", b"[1]", good[:-3], good.replace(b"0.75", b"NaN"), b"[" * 100_000),
        *(good.replace(b"0.75", b"1e400"), good.replace(b"[[4", b"[[1e400")),
        *(good.replace(b"0.75", b"-0.75"), good.replace(b"[[4", b"[[4.5"), b"\xff"),
        good[:-1] + b', "charges": []}',
    ):
        path.write_bytes(damaged)
        with pytest.raises(StateError, match="damaged"):
            WindowLedger(2, 1.0, path)


def test_a_disk_that_fails_is_a_refusal(tmp_path):
    with pytest.raises(StateError, match="ledger cannot be used: No such file"):
        WindowLedger(2, 1.0, tmp_path / "none" / "ledger")
    ledger = WindowLedger(2, 1.0, tmp_path / "ledger")
    (tmp_path / "ledger").mkdir()
    with pytest.raises(StateError, match="ledger cannot be used: Is a directory"):
        ledger.spend(CAMPAIGN, 0, "publish", 0.5)


def spend_some(path, campaign):
    for part in range(10):
        with contextlib.suppress(BudgetError):
            WindowLedger(2, 1.0, path).spend(campaign, 0, str(part), 0.25)


def test_processes_share_a_ledger_on_disk(tmp_path):
    path = tmp_path / "ledger"
    context = multiprocessing.get_context("fork")
    names = [f"{number:032x}" for number in range(4)]
    workers = [context.Process(target=spend_some, args=(path, name)) for name in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(json.loads(path.read_bytes())["charges"]) == 4


# the roles


def test_a_stream_by_messages():
    plan = plan_of("LPA", window=3, people=60, size=3, epsilon=2.0)
    server = StreamServer(plan, first=100)
    devices = [StreamDevice(WindowLedger(3, 2.0), size=3) for _ in range(60)]
    for step in range(100, 106):
        for number, device in enumerate(devices):
            device.observe(step, number % 3)
        while not server.is_done:
            question = StreamQuestion.from_bytes(server.question.to_bytes())
            for number in server.asked:
                server.receive(devices[number].answer(question).to_bytes())
            server = StreamServer.resume(server.state())  # at any time
            server.close_question()
        assert server.release.sum() == pytest.approx(1 if any(server.release) else 0)
        assert (server.protocol.question, len(server.asked)) == (None, 0)
        with pytest.raises(UsageError, match="next_step"):
            server.question  # noqa: B018
        with pytest.raises(UsageError, match="next_step"):
            server.close_question()
        server.next_step()
    with pytest.raises(UsageError, match="close it first"):
        server.next_step()
    with pytest.raises(UsageError, match="close it first"):
        server.release  # noqa: B018


def an_answer(question, **given):
    fields = {"campaign": question.campaign, "step": question.step, "part": question.part}
    return StreamAnswer(**{**fields, "token": b"0" * 16, "report": b"\0", **given})


def refused_answers(server):
    """Each with what is said of it."""
    question = server.question
    good = an_answer(question, token=b"1" * 16).to_bytes()
    yield an_answer(question, token=b"taken".ljust(16)).to_bytes(), "there already"
    yield an_answer(question, campaign="a" * 32).to_bytes(), "another campaign"
    yield an_answer(question, step=question.step - 1).to_bytes(), "late"
    yield an_answer(question, part="compare").to_bytes(), "late"
    yield an_answer(question, step=question.step + 1).to_bytes(), "nobody was asked"
    yield an_answer(question, report=b"\2").to_bytes(), "below 2"
    yield an_answer(question, report=b"\0\0").to_bytes(), "2 bytes"
    yield good[:3] + b"\2" + good[4:], "version 2"
    yield b"xx" + good[2:], "not a message"
    yield good[:2] + b"\1" + good[3:], "not a message"
    yield good[:28] + b"\7" + good[29:], "part"
    yield good[:20], "too short"
    yield b"", "too short"
    yield question.to_bytes(), "not a message"


def test_a_server_refuses_with_a_reason_and_nothing_changes():
    server = StreamServer(plan_of("LBA", people=10**6), CAMPAIGN, first=7)
    server.protocol = server.protocol.after(np.array([10**6, 0]), 10**6)
    assert server.question.part == "publish"
    server.receive(an_answer(server.question, token=b"taken".ljust(16)))
    before = server.state()
    for message, reason in refused_answers(server):
        with pytest.raises(MessageError, match=reason):
            server.receive(message)
        assert server.state() == before
    found = server.receive_many(message for message, _ in refused_answers(server))
    assert sum(found.values()) == 14
    server.close_question()
    with pytest.raises(MessageError, match="late"):
        server.receive(an_answer(StreamQuestion.from_bytes(asked(server)), token=b"2" * 16))


def asked(server):
    protocol = server.protocol
    return StreamQuestion(
        campaign=protocol.campaign, step=protocol.step, part="publish", epsilon=1, size=2
    ).to_bytes()


def test_no_more_answers_than_were_asked_for():
    server = StreamServer(plan_of("LPU", people=4))
    for number in range(2):
        server.receive(an_answer(server.question, token=bytes([number]) * 16))
    with pytest.raises(MessageError, match="all 2 that were asked"):
        server.receive(an_answer(server.question, token=b"3" * 16))


@pytest.mark.parametrize("method", ["LBA", "LPD", "LSP"])
def test_a_resumed_server_goes_on_alike(method):
    plan = plan_of(method, people=16, epsilon=2.0)
    servers = [StreamServer(plan, CAMPAIGN), StreamServer(plan, CAMPAIGN)]
    for step in range(6):
        key = Key.from_seed(step)
        while not servers[0].is_done:
            answers = simulate_answers(
                servers[0].question, np.arange(16)[servers[0].asked] % 2, key
            )
            for server in servers:
                server.receive_many(answers)
            servers[1] = StreamServer.resume(servers[1].state())
            for server in servers:
                server.close_question()
        assert (servers[0].release == servers[1].release).all()
        for server in servers:
            server.next_step()
        assert servers[0].state() == servers[1].state()


DAMAGED = [
    (("is",), "other"),
    (("extra",), 1),
    (("plan", "window"), 0),
    (("plan", "people"), 17),
    (("plan", "epsilon"), math.nan),
    (("plan", "method"), ["LPA"]),
    (("plan",), []),
    (("plan", "more"), 1),
    (("received",), 2),
    (("received",), True),
    (("received",), 1.0),
    (("received",), math.inf),
    (("support",), [1]),
    (("support",), [-1, 1]),
    (("support",), [1.0, 0]),
    (("support",), [2, 0]),
    (("support",), [math.inf, 0]),
    (("support",), [10**30, 0]),
    (("support",), None),
    (("tokens",), [3]),
    (("tokens",), ["AA=="]),
    (("tokens",), ["!" + "A" * 21 + "=="]),
    (("course", "stage"), "x"),
    (("course", "stage"), ["done"]),
    (("course", "stage"), "publish"),
    (("course", "release"), [0.0]),
    (("course", "release"), [math.nan, 0.0]),
    (("course", "release"), ["0", "1"]),
    (("course", "asked_at"), "!"),
    (("course", "asked_at"), ""),
    (("course", "more"), 1),
    (("course",), None),
    (("course",), []),
    (("course", "step"), -5),
    (("course", "step"), "0"),
    (("course", "step"), 1.5),
    (("course", "first"), 3),
    (("course", "amount"), 10**9),
    (("course", "amount"), 1.5),
    (("course", "free"), 10**9),
    (("course", "free"), None),
    (("course", "published"), "x"),
    (("course", "taken"), [[1]]),
    (("course", "taken"), [[5, 1]]),
    (("course", "taken"), [[0, 0]]),
    (("course", "taken"), {}),
    (("course", "campaign"), "zz"),
    (("course", "plan"), 3),
]


@pytest.mark.parametrize("path, value", DAMAGED, ids=repr)
def test_damaged_states_are_refused(path, value):
    server = StreamServer(plan_of("LPA", people=16), CAMPAIGN)
    server.receive(an_answer(server.question))
    broken = json.loads(server.state())
    place = broken
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(StateError, match="damaged"):
        StreamServer.resume(json.dumps(broken).encode())


def test_what_is_no_state_is_refused():
    server = StreamServer(plan_of("LPA", people=16), CAMPAIGN)
    state = server.state()
    twice = state[:-1] + b', "received": 0}'
    for damaged in (b"", b"[]", b"\xff", state[:-5], b"[" * 100_000, None, 7, twice):
        with pytest.raises(StateError, match="damaged"):
            StreamServer.resume(damaged)
    everyone = base64.b64encode(np.zeros(16, dtype="<i8").tobytes()).decode()
    nobody_left = json.loads(state)
    nobody_left["course"]["asked_at"] = everyone  # all were asked at this very step
    with pytest.raises(StateError, match="damaged"):
        StreamServer.resume(json.dumps(nobody_left).encode())


# messages

QUESTION = StreamQuestion(
    campaign=CAMPAIGN, step=70_000, part="compare", epsilon=0.125, size=5, oracle="oue"
)
ANSWER = StreamAnswer(
    campaign=CAMPAIGN, step=70_000, part="publish", token=bytes(range(16)), report=b"\x15"
)
GOLDEN = {
    "question": "74700101"
    + CAMPAIGN
    + "0000000000011170"
    + "00"
    + "00" * 16
    + "3fc0000000000000"
    + "00000005"
    + "01",
    "answer": "74700201"
    + CAMPAIGN
    + "0000000000011170"
    + "01"
    + "000102030405060708090a0b0c0d0e0f"
    + "15",
}
GOLDEN_JSON = {
    "question": '{"campaign": "00112233445566778899aabbccddeeff", "epsilon": 0.125, '
    '"oracle": "oue", "part": "compare", "size": 5, "step": 70000, '
    '"tempriv": "stream question", "version": 1}',
    "answer": '{"campaign": "00112233445566778899aabbccddeeff", "part": "publish", '
    '"report": "FQ==", "step": 70000, "tempriv": "stream answer", '
    '"token": "AAECAwQFBgcICQoLDA0ODw==", "version": 1}',
}


@pytest.mark.parametrize("name, message", [("question", QUESTION), ("answer", ANSWER)], ids=str)
def test_messages_are_what_they_always_were(name, message):
    kind = type(message)
    assert message.to_bytes().hex() == GOLDEN[name]
    assert message.to_json() == GOLDEN_JSON[name]
    assert kind.from_bytes(bytes.fromhex(GOLDEN[name])) == message
    assert kind.from_json(GOLDEN_JSON[name]) == message
    assert kind.from_json(GOLDEN_JSON[name].encode()) == message


BAD = [
    ("question", "campaign", "0" * 31),
    ("question", "campaign", "G" * 32),
    ("question", "campaign", 5),
    ("question", "step", -1),
    ("question", "step", 1.0),
    ("question", "step", 2**63),
    ("question", "part", "other"),
    ("question", "part", []),
    ("question", "epsilon", 0),
    ("question", "epsilon", 101),
    ("question", "epsilon", "1"),
    ("question", "epsilon", True),
    ("question", "size", 1),
    ("question", "size", 2**21),
    ("question", "oracle", "none"),
    ("question", "oracle", []),
    ("question", "version", 2),
    ("question", "version", True),
    ("question", "version", 1.0),
    ("answer", "version", 1.0),
    ("question", "version", None),
    ("question", "more", 1),
    ("answer", "token", "AAEC"),
    ("answer", "token", "?"),
    ("answer", "token", 3),
    ("answer", "report", ""),
    ("answer", "report", None),
    ("answer", "version", 0),
    ("answer", "step", None),
    ("answer", "tempriv", "stream question"),
]


@pytest.mark.parametrize("name, field, value", BAD, ids=repr)
def test_bad_messages_are_refused(name, field, value):
    kind = {"question": StreamQuestion, "answer": StreamAnswer}[name]
    given = json.loads(GOLDEN_JSON[name])
    given[field] = value
    with pytest.raises(MessageError):
        kind.from_json(json.dumps(given))


@pytest.mark.parametrize("text", ["", "[]", "{", "nan", "1" * 5000, "[" * 10**5, b"\xff", 5, None])
def test_what_is_no_json_object_is_refused(text):
    for kind in (StreamQuestion, StreamAnswer):
        with pytest.raises(MessageError, match="not a message about a stream"):
            kind.from_json(text)


@pytest.mark.parametrize("name", GOLDEN_JSON)
def test_a_member_that_is_there_twice_is_refused(name):
    """One reader takes the first of them, another the last."""
    kind = {"question": StreamQuestion, "answer": StreamAnswer}[name]
    for member, value in json.loads(GOLDEN_JSON[name]).items():
        twice = GOLDEN_JSON[name][:-1] + f", {json.dumps(member)}: {json.dumps(value)}}}"
        with pytest.raises(MessageError, match="not a message about a stream: no JSON object"):
            kind.from_json(twice)


def test_messages_survive_fuzzing():
    rng = np.random.default_rng(1)
    starts = [bytes.fromhex(one) for one in GOLDEN.values()]
    texts = [one.encode() for one in GOLDEN_JSON.values()]
    for _ in range(1000):
        for kind, read, given in (
            (StreamQuestion, StreamQuestion.from_bytes, starts[0]),
            (StreamAnswer, StreamAnswer.from_bytes, starts[1]),
            (StreamQuestion, StreamQuestion.from_json, texts[0]),
            (StreamAnswer, StreamAnswer.from_json, texts[1]),
        ):
            data = bytearray(given)
            for place in rng.integers(len(data), size=rng.integers(1, 4)):
                data[place] = rng.integers(256)
            if rng.random() < 0.2:
                del data[int(rng.integers(len(data))) :]
            try:
                found = read(bytes(data))
            except MessageError:
                continue
            assert kind.from_bytes(found.to_bytes()) == found
            assert kind.from_json(found.to_json()) == found
