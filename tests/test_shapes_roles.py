"""The two roles of a shapes campaign: what each refuses, and how a campaign goes on."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tempriv.errors import BudgetRefusal, DataRefusal, UsageRefusal
from tempriv.population.sax import Sax
from tempriv.population.shapes import (
    Device,
    DeviceLedger,
    Server,
    answers_of,
    refuse_report,
    support_of,
)
from tempriv.population.shapes_course import Plan
from tempriv.population.shapes_messages import (
    HEAD,
    ORACLES,
    Answer,
    MessageRefusal,
    Question,
)
from tempriv.randomness import Key

CAMPAIGN = "00112233445566778899aabbccddeeff"
SAX = Sax(symbols=3, segment=1, longest=5)
METHODS = ("baseline", "published", "nearest", "one-shot", "automatic")


def plan_of(method="nearest", **given):
    return Plan(
        **{"epsilon": 4.0, "shapes": 2, "people": 600, "sax": SAX, "method": method, "least": 5,
           **given}
    )  # fmt: skip


def people(count, seed=0):
    """Series of two shapes, and which of the two each has."""
    rng = np.random.default_rng(seed)
    shapes = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 2.0]])
    which = rng.integers(2, size=count)
    return shapes[which] + rng.normal(size=(count, 3)) / 20, which


def asks_for_labels(server):
    return bool(server.question.labels)


def asked(server, series, labels, key=None):
    return answers_of(server.question, series, labels if asks_for_labels(server) else None, key)


def campaign(plan, seed=0):
    """A server at the beginning of each of its rounds, with the answers to come."""
    series, labels = people(plan.people, seed)
    server, begin = Server(plan, CAMPAIGN), 0
    while not server.is_over:
        rows = slice(begin, begin + server.wanted)
        begin += server.wanted
        messages = asked(server, series[rows], labels[rows], Key.from_seed(seed))
        yield server, messages
        server.close_round()


# the server


def changed(answer, **given):
    return replace(Answer.from_bytes(answer), **given).to_bytes()


@pytest.mark.parametrize("labels", [(), ("up", "down")], ids=["plain", "labels"])
@pytest.mark.parametrize("method", METHODS)
def test_a_server_refuses_with_a_reason_and_stays_as_it_is(method, labels):
    early = None
    for server, messages in campaign(plan_of(method, labels=labels)):
        first, second = messages[0], messages[-1]
        server.receive(first)
        bad = {
            "there already": first,
            "another campaign": changed(second, campaign="f" * 32),
            "asked that question yet": changed(second, round=server.question.round + 1),
            "version 2": second[:3] + b"\2" + second[4:],
            "too short": second[: HEAD.size],
            "must have": second + b"\0",
            "not a message": b"xx" + second[2:],
            "of this kind": server.question.to_bytes(),
        }
        if server.question.round:
            bad["late"] = changed(second, round=server.question.round - 1)
            assert early is not None
            bad["late "] = early
        before = server.state()
        for reason, message in bad.items():
            with pytest.raises(MessageRefusal, match=reason.strip()):
                server.receive(message)
            assert server.state() == before
        refused = server.receive_many([*bad.values(), None, "text", 7])
        assert sum(refused.values()) == len(bad) + 3
        assert server.state() == before
        assert not server.receive_many(messages[1:])
        assert server.received == len(messages)
        assert Counter(server.receive_many(messages)) == {
            "this answer is there already": len(messages)
        }
        early = first
    server.shapes  # noqa: B018
    with pytest.raises(MessageRefusal, match="over"):
        server.receive(early)
    assert server.receive_many([early]) == {"the campaign is over": 1}
    for over in (lambda: server.question, server.close_round):
        with pytest.raises(UsageRefusal, match="over"):
            over()


RANGES = {
    "length": {"oracles": ORACLES},
    "bigram": {"oracles": ORACLES},
    "level": {"oracles": [*ORACLES, "exponential"], "candidates": ("ab", "bc", "ca")},
    "refine": {"oracles": ORACLES, "candidates": ("ab", "bc"), "labels": ("x", "y", "z")},
    "whole": {"oracles": ORACLES, "high": 3},
}
EACH = [(kind, oracle) for kind, given in RANGES.items() for oracle in given["oracles"]]


def one_question(kind, oracle, **given):
    given = {**{k: v for k, v in RANGES[kind].items() if k != "oracles"}, **given}
    return Question(
        **{"campaign": CAMPAIGN, "round": 0, "kind": kind, "oracle": oracle, "epsilon": 1.0,
           "sax": SAX, "high": 5, **given}
    )  # fmt: skip


@pytest.mark.parametrize("kind, oracle", EACH)
def test_reports_that_no_device_sends(kind, oracle):
    question = one_question(kind, oracle)
    numbers = [0] * 300 if question.labels else None
    sent = answers_of(question, people(300)[0], numbers, Key.from_seed(1))
    good = [answer[HEAD.size :] for answer in sent]
    for report in good:
        refuse_report(question, report)
    found = 0
    rng = np.random.default_rng(2)
    for _ in range(200):
        report = rng.bytes(question.report_bytes)
        if rng.integers(2) and kind == "bigram":
            report = b"\0" + report[1:]
        rows = np.frombuffer(b"".join([*good[:5], report]), dtype=np.uint8).reshape(6, -1)
        try:
            refuse_report(question, report)
        except MessageRefusal as reason:
            assert str(reason)
            found += 1
            with pytest.raises(ValueError, match=r"\w"):  # together they are refused just so
                support_of(question, rows)
        else:
            support_of(question, rows)
    assert found > 10
    for length in {0, 1, question.report_bytes - 1, question.report_bytes + 1} - {
        question.report_bytes
    }:
        with pytest.raises(MessageRefusal, match="bytes"):
            refuse_report(question, bytes(length))


def test_a_bad_report_among_many_is_left_out_alone():
    server = Server(plan_of(), CAMPAIGN)
    messages = asked(server, *people(50), Key.from_seed(1))
    wrong = changed(messages[7], report=b"\xff", token=b"w" * 16)
    again = changed(messages[0], report=b"\0", token=Answer.from_bytes(messages[3]).token)
    refused = server.receive_many([*messages[:9], wrong, again, *messages[9:]])
    assert refused == {"value 255: must be below 5": 1, "this answer is there already": 1}
    other = Server(plan_of(), CAMPAIGN)
    for message in messages:
        other.receive(Answer.from_bytes(message))
    assert server.state() == other.state(), "the first of two is the one that counts"


def test_many_are_taken_as_one_by_one():
    for server, messages in campaign(plan_of("published")):
        other = Server.resume(server.state())
        assert not server.receive_many(iter(messages))
        for message in messages:
            other.receive(message)
        assert server.state() == other.state()
        assert server.received == len(messages)
        assert server.wanted == 0


@pytest.mark.parametrize("labels", [(), ("up", "down")], ids=["plain", "labels"])
@pytest.mark.parametrize("method", METHODS)
def test_a_server_resumes_anywhere_and_finds_the_same_shapes(method, labels):
    plan = plan_of(method, labels=labels)
    through = None
    for server, messages in campaign(plan):
        server.receive_many(messages)
        through = server
    shapes = through.shapes
    assert shapes
    series, which = people(plan.people)
    other, begin = Server(plan, CAMPAIGN), 0
    while not other.is_over:
        rows = slice(begin, begin + other.wanted)
        begin += other.wanted
        messages = asked(other, series[rows], which[rows], Key.from_seed(0))
        half = len(messages) // 2
        other = swapped(other, messages[:half])
        with pytest.raises(MessageRefusal, match="already"):
            other.receive(messages[0])
        other = swapped(other, messages[half:])
        other.close_round()
        other = Server.resume(other.state())
    assert other.shapes == shapes


def swapped(server, messages):
    server.receive_many(messages)
    state = server.state()
    other = Server.resume(state)
    assert other.state() == state
    return other


def test_states_that_are_none():
    server = Server(plan_of(), CAMPAIGN)
    server.receive_many(asked(server, *people(20)))
    body = json.loads(server.state())
    states = [b"", b"{}", b"[]", b"null", b"\xff", server.state()[:-2], b"[" * 100_000]
    for change in (
        {"is": "tempriv shapes server 2"},
        {"support": [-1, 0, 0, 0, 0]},
        {"support": [0]},
        {"support": [10**30] * 5},
        {"support": None},
        {"received": 3},
        {"received": "20"},
        {"tokens": body["tokens"][1:]},
        {"tokens": ["*"]},
        {"plan": {}},
        {"plan": body["plan"] | {"epsilon": -1}},
        {"course": body["course"] | {"campaign": 7}},
        {"pairs": 3},
        {"shapes": [{"text": "a"}]},
    ):
        states.append(json.dumps(body | change).encode())
    for state in states:
        with pytest.raises(MessageRefusal):
            Server.resume(state)
    for name in body:
        less = {key: value for key, value in body.items() if key != name}
        with pytest.raises(MessageRefusal):
            Server.resume(json.dumps(less).encode())


# rounds that fail


@pytest.mark.parametrize("labels", [(), ("up", "down")], ids=["plain", "labels"])
@pytest.mark.parametrize("method", METHODS)
def test_an_empty_campaign_comes_to_an_end(method, labels):
    server = Server(plan_of(method, labels=labels), CAMPAIGN)
    rounds = 0
    while not server.is_over:
        assert server.question.round == rounds, "a round that is closed stays closed"
        server.close_round()
        server = Server.resume(server.state())
        rounds += 1
        assert rounds < 30
    assert rounds >= 2
    server.shapes  # noqa: B018


@pytest.mark.parametrize("method", METHODS)
def test_each_round_may_fail_by_itself(method):
    """A round without answers is not asked again, and the others find shapes."""
    rounds = sum(1 for _ in filled(plan_of(method), ()))
    for empty in range(rounds):
        numbers = list(filled(plan_of(method), {empty}))
        assert numbers == sorted(set(numbers))
        assert empty in numbers


def filled(plan, empty):
    """The rounds of a campaign in which nobody answers some of them."""
    for server, messages in campaign(plan):
        yield server.question.round
        if server.question.round not in empty:
            assert not server.receive_many(messages)


@pytest.mark.parametrize("method", METHODS)
def test_a_campaign_asks_no_more_people_than_its_plan_has(method):
    asked_for = [server.wanted for server, _ in campaign(plan_of(method))]
    assert sum(asked_for) <= 600 + len(asked_for)  # each is rounded


def test_nobody_is_asked_twice_over_a_campaign():
    plan = plan_of(people=60)
    series, _ = people(60)
    devices = [Device(one) for one in series]
    server, waiting = Server(plan), list(range(60))
    while not server.is_over:
        now, waiting = waiting[: server.wanted], waiting[server.wanted :]
        for i in now:
            server.receive(devices[i].answer(server.question).to_bytes())
        for i in now:
            with pytest.raises(BudgetRefusal, match="answers one"):
                devices[i].answer(server.question)
        server.close_round()
    assert server.shapes


# the device


def test_a_device_answers_one_question_of_a_campaign():
    question = one_question("length", "grr")
    device = Device([0.0, 1.0])
    device.answer(question)
    for other in (question, replace(question, round=1), one_question("whole", "grr")):
        with pytest.raises(BudgetRefusal, match="answers one"):
            device.answer(other)
    device.answer(replace(question, campaign="1" * 32))
    assert device.ledger.spent() == 2.0


@pytest.mark.parametrize("folder", [True, False], ids=["folder", "memory"])
def test_a_refused_question_costs_nothing(folder, tmp_path):
    ledger = DeviceLedger(tmp_path / "ledger" if folder else None)
    device = Device([0.0, 1.0], label="x", ledger=ledger, most_epsilon=2.0)
    labelled = one_question("refine", "grr")
    cases = [
        (one_question("length", "grr", epsilon=2.5), device, BudgetRefusal, "nothing above 2"),
        (one_question("length", "grr", readings=1), device, DataRefusal, "more than 1 readings"),
        (replace(labelled, labels=("y", "z")), device, DataRefusal, "none of the labels"),
        (labelled, Device([0.0, 1.0], ledger=ledger), DataRefusal, "none of the labels"),
        (labelled, Device([], "x", ledger=ledger), DataRefusal, "empty"),
        (labelled, Device([0.0, np.nan], "x", ledger=ledger), DataRefusal, "missing"),
    ]
    for question, one, kind, reason in cases:
        with pytest.raises(kind, match=reason):
            one.answer(question)
        assert ledger.spent() == 0
    assert len(device.answer(labelled).report) == labelled.report_bytes
    assert ledger.spent() == 1.0


def test_a_device_does_not_show_what_it_holds():
    shown = repr(Device([123.0], label="secret"))
    assert "123" not in shown and "secret" not in shown
    assert not hasattr(Device([1.0]).answer(one_question("length", "grr")), "label")


@pytest.mark.parametrize("folder", [True, False], ids=["folder", "memory"])
def test_the_limit_of_a_device_adds_up(folder, tmp_path):
    place = tmp_path / "ledger" if folder else None
    ledger = DeviceLedger(place, limit=1.0)
    for number in range(4):
        ledger.spend(f"{number:032x}", 0.25)
    with pytest.raises(BudgetRefusal, match="limit of 1"):
        ledger.spend("f" * 32, 0.25)
    assert ledger.spent() == 1.0
    if folder:
        again = DeviceLedger(place, limit=1.25)
        assert again.spent() == 1.0
        with pytest.raises(BudgetRefusal, match="answers one"):
            again.spend("0" * 32, 0.25)
        again.spend("f" * 32, 0.25)
        assert {path.stat().st_mode & 0o77 for path in place.iterdir()} == {0}
    for limit in (0, -1, float("nan")):
        with pytest.raises(UsageRefusal, match="limit"):
            DeviceLedger(limit=limit)


def test_an_answer_that_was_begun_counts_as_all(tmp_path):
    (tmp_path / CAMPAIGN).touch()  # the power failed here
    ledger = DeviceLedger(tmp_path, limit=5.0)
    with pytest.raises(BudgetRefusal, match="answers one"):
        ledger.spend(CAMPAIGN, 1.0)
    with pytest.raises(BudgetRefusal, match="limit"):
        ledger.spend("f" * 32, 1.0)
    DeviceLedger(tmp_path).spend("f" * 32, 1.0)  # without a limit others go on


def _answer_many(folder, start, told):
    start.wait()
    won = 0
    for number in range(12):
        question = one_question("length", "grr", campaign=f"{number:032x}", epsilon=0.5)
        try:
            Device([0.0, 1.0], ledger=DeviceLedger(folder, limit=3.0)).answer(question)
            won += 1
        except BudgetRefusal:
            pass
    told.put(won)


def test_processes_share_the_ledger_of_a_device(tmp_path):
    context = multiprocessing.get_context("fork")
    start, told = context.Barrier(3), context.Queue()
    workers = [
        context.Process(target=_answer_many, args=(tmp_path / "ledger", start, told))
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    won = [told.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    # twelve campaigns, of which the limit allows six, however the three come in between
    assert sum(won) == 6
    assert DeviceLedger(tmp_path / "ledger").spent() == 3.0


def test_a_device_asked_by_another_process_refuses(tmp_path):
    question = one_question("length", "grr")
    Device([0.0, 1.0], ledger=DeviceLedger(tmp_path)).answer(question)
    # a ledger that looked before the other one wrote: the file itself decides
    late = DeviceLedger(tmp_path)
    late._has = lambda campaign: False
    with pytest.raises(BudgetRefusal, match="answers one"):
        Device([0.0, 1.0], ledger=late).answer(question)


def test_labels_that_the_question_does_not_have():
    question = one_question("refine", "grr")
    series, _ = people(3)
    for labels in ([0, 1, 3], [-1, 0, 0]):
        with pytest.raises(MessageRefusal, match="from 0 to 2"):
            answers_of(question, series, labels)
    with pytest.raises(MessageRefusal, match="asks for one"):
        answers_of(question, series)
    with pytest.raises(MessageRefusal, match="nobody asks"):
        answers_of(one_question("length", "grr"), series, [0, 0, 0])
