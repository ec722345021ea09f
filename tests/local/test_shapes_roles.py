"""The two roles of a shapes campaign: what each refuses, and how a campaign goes on."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tempriv.errors import BudgetError, StateError, UsageError
from tempriv.local.frequency.oracles import ORACLES
from tempriv.local.shapes.messages import HEAD, ShapesAnswer, ShapesQuestion
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.roles import (
    ShapesDevice,
    ShapesServer,
    refuse_report,
    simulate_answers,
    support_of,
)
from tempriv.local.shapes.sax import Sax
from tempriv.local.wire import MessageError
from tempriv.sampling.keys import Key

CAMPAIGN = "00112233445566778899aabbccddeeff"
SAX = Sax(symbols=3, segment=1, longest=5)
METHODS = ("baseline", "published", "nearest", "one-shot", "automatic")


def plan_of(method="nearest", **given):
    return ShapesPlan(
        **{
            "epsilon": 4.0,
            "shapes": 2,
            "people": 600,
            "sax": SAX,
            "method": method,
            "least": 5,
            **given,
        }
    )


def people(count, seed=0):
    """Series of two shapes, and which of the two each has."""
    rng = np.random.default_rng(seed)
    shapes = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 2.0]])
    which = rng.integers(2, size=count)
    return shapes[which] + rng.normal(size=(count, 3)) / 20, which


def asks_for_labels(server):
    return bool(server.question.labels)


def asked(server, series, labels, key=None):
    return simulate_answers(
        server.question, series, labels if asks_for_labels(server) else None, key
    )


def campaign(plan, seed=0):
    """A server at the beginning of each of its rounds, with the answers to come."""
    series, labels = people(plan.people, seed)
    server, begin = ShapesServer(plan, CAMPAIGN), 0
    while not server.is_over:
        rows = slice(begin, begin + server.wanted)
        begin += server.wanted
        messages = asked(server, series[rows], labels[rows], Key.from_seed(seed))
        yield server, messages
        server.close_round()


# the server


def changed(answer, **given):
    return replace(ShapesAnswer.from_bytes(answer), **given).to_bytes()


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
            with pytest.raises(MessageError, match=reason.strip()):
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
    with pytest.raises(MessageError, match="over"):
        server.receive(early)
    assert server.receive_many([early]) == {"the campaign is over": 1}
    for over in (lambda: server.question, server.close_round):
        with pytest.raises(UsageError, match="over"):
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
    return ShapesQuestion(
        **{
            "campaign": CAMPAIGN,
            "round": 0,
            "kind": kind,
            "oracle": oracle,
            "epsilon": 1.0,
            "sax": SAX,
            "high": 5,
            **given,
        }
    )


@pytest.mark.parametrize("kind, oracle", EACH)
def test_reports_that_no_device_sends(kind, oracle):
    question = one_question(kind, oracle)
    numbers = [0] * 300 if question.labels else None
    sent = simulate_answers(question, people(300)[0], numbers, Key.from_seed(1))
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
        except MessageError as reason:
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
        with pytest.raises(MessageError, match="bytes"):
            refuse_report(question, bytes(length))


def test_a_bad_report_among_many_is_left_out_alone():
    server = ShapesServer(plan_of(), CAMPAIGN)
    messages = asked(server, *people(50), Key.from_seed(1))
    wrong = changed(messages[7], report=b"\xff", token=b"w" * 16)
    again = changed(messages[0], report=b"\0", token=ShapesAnswer.from_bytes(messages[3]).token)
    refused = server.receive_many([*messages[:9], wrong, again, *messages[9:]])
    assert refused == {"value 255: must be below 5": 1, "this answer is there already": 1}
    other = ShapesServer(plan_of(), CAMPAIGN)
    for message in messages:
        other.receive(ShapesAnswer.from_bytes(message))
    assert server.state() == other.state(), "the first of two is the one that counts"


def test_many_are_taken_as_one_by_one():
    for server, messages in campaign(plan_of("published")):
        other = ShapesServer.resume(server.state())
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
    other, begin = ShapesServer(plan, CAMPAIGN), 0
    while not other.is_over:
        rows = slice(begin, begin + other.wanted)
        begin += other.wanted
        messages = asked(other, series[rows], which[rows], Key.from_seed(0))
        half = len(messages) // 2
        other = swapped(other, messages[:half])
        with pytest.raises(MessageError, match="already"):
            other.receive(messages[0])
        other = swapped(other, messages[half:])
        other.close_round()
        other = ShapesServer.resume(other.state())
    assert other.shapes == shapes


def swapped(server, messages):
    server.receive_many(messages)
    state = server.state()
    other = ShapesServer.resume(state)
    assert other.state() == state
    return other


def changed_state(body, path, value):
    """A state with one of its members changed."""
    broken = json.loads(json.dumps(body))
    place = broken
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return json.dumps(broken).encode()


FIRST = [
    (("is",), "tempriv shapes server 1"),
    (("extra",), 3),
    (("support",), [-1, 0, 0, 0, 0]),
    (("support",), [0]),
    (("support",), [10**30, 0, 0, 0, 0]),
    (("support",), None),
    (("support",), [1.0, 0, 0, 0, 0]),
    (("support",), [21, 0, 0, 0, 0]),
    (("support",), [True, 0, 0, 0, 0]),
    (("support",), [math.inf, 0, 0, 0, 0]),
    (("received",), 3),
    (("received",), "20"),
    (("received",), 20.0),
    (("received",), True),
    (("tokens",), ["*"]),
    (("tokens",), ["QQ=="] * 20),
    (("tokens", 0), "QQ=="),
    (("tokens", 0), "A" * 21 + "=!="),
    (("tokens", 0), 7),
    (("plan",), {}),
    (("plan", "epsilon"), -1),
    (("plan", "epsilon"), True),
    (("plan", "epsilon"), math.nan),
    (("plan", "shares"), [math.nan] * 4),
    (("plan", "labels"), [1, 2]),
    (("plan", "more"), 1),
    (("plan", "sax"), None),
    (("course", "campaign"), 7),
    (("course", "campaign"), "ZZ"),
    (("course", "round"), -5),
    (("course", "round"), 1),
    (("course", "stage"), "foo"),
    (("course", "stage"), []),
    (("course", "method"), "foo"),
    (("course", "length"), 3),
    (("course", "level"), "x"),
    (("course", "pairs"), 3),
    (("course", "pairs"), [["zz"]]),
    (("course", "candidates"), [1]),
    (("course", "shapes"), [{"text": "a"}]),
    (("course", "plan"), 3),
]
LEVEL = [
    (("course", "stage"), "whole"),
    (("course", "stage"), "length"),
    (("course", "stage"), "done"),
    (("course", "method"), "published"),
    (("course", "method"), "one-shot"),
    (("course", "round"), "x"),
    (("course", "round"), -1),
    (("course", "round"), 1.0),
    (("course", "round"), 70_000),
    (("course", "length"), 0),
    (("course", "length"), 6),
    (("course", "length"), 3.5),
    (("course", "level"), 0),
    (("course", "level"), 9),
    (("course", "candidates"), []),
    (("course", "candidates"), ["a", "a"]),
    (("course", "candidates"), ["z"]),
    (("course", "candidates"), [1]),
    (("course", "pairs"), [["ab"]]),
    (("course", "pairs", 0), ["ab", "ab"]),
    (("course", "pairs", 0), ["aa"]),
    (("course", "pairs", 0), "ab"),
    (
        ("course", "shapes"),
        [{"text": "a", "count": 1.0, "error": 1.0, "label": None, "ends": True}],
    ),
]
SHAPE = [
    ("text", 3),
    ("text", ""),
    ("text", "z"),
    ("text", "abcabc"),
    ("count", None),
    ("count", math.nan),
    ("count", "1"),
    ("error", -1.0),
    ("error", math.inf),
    ("error", True),
    ("label", "up"),
    ("label", 4),
    ("ends", "x"),
    ("ends", 1),
    ("more", 1),
]


def reached(stage, method="nearest"):
    """The state of a server that has come to a stage."""
    for server, messages in campaign(plan_of(method)):
        server.receive_many(messages[:20])
        if server.protocol.stage == stage:
            return server.state()
    assert stage == "done"
    return server.state()


@pytest.mark.parametrize(
    "stage, changes",
    [
        ("length", FIRST),
        ("level", LEVEL),
        ("done", [(("course", "shapes", 0, name), value) for name, value in SHAPE]),
    ],
    ids=["length", "level", "done"],
)
def test_states_that_are_none(stage, changes):
    state = reached(stage)
    body = json.loads(state)
    ShapesServer.resume(state)
    for path, value in changes:
        with pytest.raises(StateError, match="damaged"):
            ShapesServer.resume(changed_state(body, path, value))
    for name in body:
        less = {key: value for key, value in body.items() if key != name}
        with pytest.raises(StateError):
            ShapesServer.resume(json.dumps(less).encode())
    twice = state[:-1] + b', "received": 20}'
    for odd in (b"", b"{}", b"[]", b"null", b"\xff", state[:-2], b"[" * 100_000, None, 7, twice):
        with pytest.raises(StateError, match="damaged"):
            ShapesServer.resume(odd)


def test_a_state_is_json_whatever_happened():
    """Nobody answered: errors are not known, and JSON has no name for infinity."""
    server = ShapesServer(plan_of("one-shot"), CAMPAIGN)
    while not server.is_over:
        server.close_round()
    state = server.state()
    json.loads(state, parse_constant=pytest.fail)
    assert math.isinf(server.shapes[0].error)
    assert ShapesServer.resume(state).shapes == server.shapes


# rounds that fail


@pytest.mark.parametrize("labels", [(), ("up", "down")], ids=["plain", "labels"])
@pytest.mark.parametrize("method", METHODS)
def test_an_empty_campaign_comes_to_an_end(method, labels):
    server = ShapesServer(plan_of(method, labels=labels), CAMPAIGN)
    rounds = 0
    while not server.is_over:
        assert server.question.round == rounds, "a round that is closed stays closed"
        server.close_round()
        server = ShapesServer.resume(server.state())
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
    devices = [ShapesDevice(one) for one in series]
    server, waiting = ShapesServer(plan), list(range(60))
    while not server.is_over:
        now, waiting = waiting[: server.wanted], waiting[server.wanted :]
        for i in now:
            server.receive(devices[i].answer(server.question).to_bytes())
        for i in now:
            with pytest.raises(BudgetError, match="answers one"):
                devices[i].answer(server.question)
        server.close_round()
    assert server.shapes


def test_labels_that_the_question_does_not_have():
    question = one_question("refine", "grr")
    series, _ = people(3)
    for labels in ([0, 1, 3], [-1, 0, 0]):
        with pytest.raises(MessageError, match="from 0 to 2"):
            simulate_answers(question, series, labels)
    with pytest.raises(MessageError, match="asks for one"):
        simulate_answers(question, series)
    with pytest.raises(MessageError, match="nobody asks"):
        simulate_answers(one_question("length", "grr"), series, [0, 0, 0])
