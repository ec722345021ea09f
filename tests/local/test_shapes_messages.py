"""Messages about shapes: both forms give the same value back, and anything else is refused."""

from __future__ import annotations

import base64
import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tempriv.local import wire
from tempriv.local.frequency import oracles
from tempriv.local.frequency.oracles import ORACLES
from tempriv.local.shapes import messages as shapes_messages
from tempriv.local.shapes import roles as shapes
from tempriv.local.shapes.domain import Bigrams, WholeSequences
from tempriv.local.shapes.messages import (
    DISTANCES,
    HEAD,
    MOST_CANDIDATES,
    MOST_LABELS,
    MOST_MESSAGE_BYTES,
    ShapesAnswer,
    ShapesQuestion,
)
from tempriv.local.shapes.sax import Sax
from tempriv.local.streams import messages as streams_messages
from tempriv.local.streams import roles as streams
from tempriv.local.wire import MessageError
from tests.support.paths import GOLDEN

GOLDEN_FILE = GOLDEN / "shapes"
CAMPAIGN = "00112233445566778899aabbccddeeff"
SAX = Sax(symbols=4, segment=10, longest=8)


def asked(kind, oracle="grr", **given):
    return ShapesQuestion(
        **{
            "campaign": CAMPAIGN,
            "round": 3,
            "kind": kind,
            "epsilon": 1.5,
            "sax": SAX,
            "oracle": oracle,
            "high": 5,
            **given,
        }
    )


QUESTIONS = {
    "length": asked("length", high=8),
    "bigram": asked("bigram", "oue"),
    "bigram with ends": asked("bigram", "hadamard", ends=True),
    "level": asked("level", "exponential", candidates=("ab", "ba"), distance="dtw"),
    "level with ends": asked("level", candidates=("a.", "ab", "ab."), ends=True, epsilon=4),
    "refine": asked("refine", candidates=("abc", "cba", "d"), distance="euclidean"),
    "refine with labels": asked(
        "refine", "oue", candidates=("abc", "dc."), ends=True, labels=("up", "ganz früh", "")
    ),
    "whole": asked("whole", "olh", high=4, readings=300),
    "whole with labels": asked(
        "whole",
        "hadamard",
        high=3,
        labels=("x", "y"),
        sax=Sax(
            symbols=3, segment=1, compressed=False, partial="drop", longest=9, values=(-0.5, 0.25)
        ),
    ),
}
ANSWERS = {
    name: ShapesAnswer(
        campaign=CAMPAIGN, round=3, token=bytes(range(16)), report=bytes(question.report_bytes)
    )
    for name, question in QUESTIONS.items()
}
MESSAGES = {
    **{f"question: {name}": one for name, one in QUESTIONS.items()},
    **{f"answer: {name}": one for name, one in ANSWERS.items()},
}


def good():
    """What the golden file holds: made once, for version 1, and never again."""
    return {
        name: {"json": one.to_json(), "bytes": base64.b64encode(one.to_bytes()).decode()}
        for name, one in MESSAGES.items()
    }


@pytest.mark.parametrize("name", MESSAGES)
def test_golden_messages_of_version_1(name):
    kept = json.loads((GOLDEN_FILE / "good.json").read_text())
    assert kept.keys() == MESSAGES.keys()
    message, written = MESSAGES[name], kept[name]
    assert message.to_json() == written["json"]
    assert message.to_bytes() == base64.b64decode(written["bytes"])
    kind = type(message)
    assert kind.from_json(written["json"]) == kind.from_json(written["json"].encode()) == message
    assert kind.from_bytes(base64.b64decode(written["bytes"])) == message


BAD = json.loads((GOLDEN_FILE / "bad.json").read_text())


@pytest.mark.parametrize("name", BAD)
def test_golden_messages_that_are_none(name):
    one = BAD[name]
    kind = {"question": ShapesQuestion, "answer": ShapesAnswer}[one["of"]]
    with pytest.raises(MessageError) as refused:
        if "json" in one:
            kind.from_json(one["json"])
        else:
            kind.from_bytes(base64.b64decode(one["bytes"]))
    assert one["reason"] in str(refused.value)


def test_there_are_bad_ones_of_every_sort():
    assert len(BAD) >= 40
    assert {(one["of"], "json" in one) for one in BAD.values()} == {
        (of, as_json) for of in ("question", "answer") for as_json in (True, False)
    }


def test_what_both_kinds_of_messages_share_is_there_once():
    """A repair of one would leave its copy as it was."""
    assert ORACLES is streams_messages.ORACLES is oracles.ORACLES
    assert set(ORACLES) == {oracles.name_of(one(epsilon=1.0, size=3)) for one in ORACLES.values()}
    assert shapes.new_token is streams.new_token is wire.new_token
    assert shapes_messages.json_object is streams_messages.json_object is wire.json_object


def test_a_fault_of_ours_is_not_taken_for_one_of_the_message(monkeypatch):
    def broken(self, report):
        raise ZeroDivisionError

    monkeypatch.setattr(oracles.GRR, "refuse", broken)
    with pytest.raises(ZeroDivisionError):
        shapes.refuse_report(QUESTIONS["length"], b"\0")


# any good message comes back equal


@st.composite
def any_sax(noise):
    symbols = noise(st.integers(2, 8))
    edges = None
    if noise(st.booleans()):
        numbers = st.floats(-1e6, 1e6)
        edges = noise(st.lists(numbers, min_size=symbols - 1, max_size=symbols - 1, unique=True))
        edges = tuple(sorted(edges))
    return Sax(
        symbols=symbols,
        segment=noise(st.integers(1, 1 << 31)),
        compressed=noise(st.booleans()),
        partial=noise(st.sampled_from(["keep", "drop"])),
        longest=noise(st.integers(1, 21)),
        values=edges,
    )


@st.composite
def any_question(noise):
    sax = noise(any_sax())
    kind = noise(st.sampled_from(["length", "bigram", "level", "refine", "whole"]))
    most = 3 if kind == "whole" else sax.longest
    high = noise(st.integers(1, min(most, sax.longest)))
    ends = noise(st.booleans())
    candidates, labels = (), ()
    if kind in ("level", "refine"):
        one = st.text(sax.alphabet, min_size=1, max_size=sax.longest)
        if ends:
            one = st.tuples(one, st.sampled_from(["", "."])).map("".join)
        candidates = tuple(noise(st.lists(one, min_size=1, max_size=6, unique=True)))
    if kind in ("refine", "whole"):
        labels = tuple(noise(st.lists(st.text(max_size=12), max_size=4, unique=True)))
    return ShapesQuestion(
        campaign=noise(st.binary(min_size=16, max_size=16)).hex(),
        round=noise(st.integers(0, 65535)),
        kind=kind,
        epsilon=noise(st.floats(0, 100, exclude_min=True) | st.integers(1, 100)),
        sax=sax,
        oracle=noise(st.sampled_from([*ORACLES, *(["exponential"] if kind == "level" else [])])),
        distance=noise(st.sampled_from(DISTANCES)),
        low=noise(st.integers(1, high)),
        high=high,
        candidates=candidates,
        ends=ends,
        labels=labels,
        readings=noise(st.integers(1, 1 << 40)),
    )


any_answer = st.builds(
    ShapesAnswer,
    campaign=st.binary(min_size=16, max_size=16).map(bytes.hex),
    round=st.integers(0, 65535),
    token=st.binary(min_size=16, max_size=16),
    report=st.binary(min_size=1, max_size=60),
)

often = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@often
@given(any_question() | any_answer)
def test_good_messages_come_back_equal(message):
    kind = type(message)
    assert kind.from_json(message.to_json()) == message
    assert kind.from_bytes(message.to_bytes()) == message
    assert kind.from_bytes(bytearray(message.to_bytes())) == message
    if kind is ShapesQuestion:
        assert message.report_bytes >= 1


def test_the_largest_question_comes_back():
    labels = tuple(chr(0x10000 + i) * 200 for i in range(MOST_LABELS))
    question = asked("refine", "olh", candidates=("a", "b"), labels=labels)
    assert ShapesQuestion.from_bytes(question.to_bytes()) == question
    bodies = WholeSequences(symbols=2, longest=12, compressed=False)
    candidates = tuple(bodies.text(bodies.ended + i) for i in range(MOST_CANDIDATES))
    question = asked("level", candidates=candidates, sax=Sax(symbols=2, longest=12))
    assert ShapesQuestion.from_bytes(question.to_bytes()) == question
    assert len(question.to_bytes()) < MOST_MESSAGE_BYTES


# and anything else is refused


def refused_or_good(kind, read, message):
    """Gives a value that says the same again, or refuses; nothing else happens."""
    try:
        found = read(message)
    except MessageError as reason:
        assert str(reason)
        return None
    assert kind.from_bytes(found.to_bytes()) == kind.from_json(found.to_json()) == found
    return found


@pytest.mark.parametrize("name", MESSAGES)
def test_cut_and_changed_bytes(name):
    message = MESSAGES[name]
    kind, data = type(message), message.to_bytes()
    body = data[HEAD.size :]
    for end in range(len(data)):
        found = refused_or_good(kind, kind.from_bytes, data[:end])
        assert found is None or (kind is ShapesAnswer and end > HEAD.size)
    for place in range(len(data)):
        for change in (1, 0x20, 0x80, 0xFF):
            other = bytes([*data[:place], data[place] ^ change, *data[place + 1 :]])
            found = refused_or_good(kind, kind.from_bytes, other)
            # a letter that is spelt out as a number may be spelt in two ways
            assert found != message or json.loads(other[HEAD.size :]) == json.loads(body)
    for more in (b"\0", b"{}", data):
        found = refused_or_good(kind, kind.from_bytes, data + more)
        assert found is None or kind is ShapesAnswer


@often
@given(st.binary(max_size=200), st.sampled_from(sorted(MESSAGES)))
def test_any_bytes(noise, name):
    message = MESSAGES[name]
    kind = type(message)
    for data in (noise, message.to_bytes()[: HEAD.size] + noise):
        refused_or_good(kind, kind.from_bytes, data)
        refused_or_good(kind, kind.from_json, data)


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 1 << 63, 1 << 64, 65536, -1, 0])
    | st.floats(allow_nan=True)
    | st.text(max_size=8)
    | st.sampled_from(["\ud800", "a" * 300, "٣" * 32, "AB" * 16, " " * 32, "exponential", "."])
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner)
)


@settings(often, max_examples=200)
@given(st.sampled_from(sorted(MESSAGES)), st.integers(0, 30), anything, st.booleans())
def test_members_of_any_other_kind(name, which, value, inside):
    message = MESSAGES[name]
    kind, body = type(message), json.loads(message.to_json())
    place = body["sax"] if inside and kind is ShapesQuestion else body
    members = sorted(place)
    place[members[which % len(members)]] = value
    text = json.dumps(body)
    found = refused_or_good(kind, kind.from_json, text)
    if kind is ShapesQuestion:
        refused_or_good(kind, kind.from_bytes, message.to_bytes()[: HEAD.size] + text.encode())
    if "NaN" in text or "Infinity" in text:
        assert found is None


@pytest.mark.parametrize("name", MESSAGES)
def test_members_too_few_too_many_or_twice(name):
    message = MESSAGES[name]
    kind, body = type(message), json.loads(message.to_json())
    for member in body:
        less = {key: value for key, value in body.items() if key != member}
        assert refused_or_good(kind, kind.from_json, json.dumps(less)) is None
        twice = message.to_json()[:-1] + f", {json.dumps(member)}: {json.dumps(body[member])}}}"
        assert refused_or_good(kind, kind.from_json, twice) is None
    assert refused_or_good(kind, kind.from_json, json.dumps(body | {"more": 1})) is None
    for odd in (None, 3, [], {}, "[]", "[" * 100_000, '"x"', "", b"\xff\xfe", json.dumps([body])):
        assert refused_or_good(kind, kind.from_json, odd) is None
        assert refused_or_good(kind, kind.from_bytes, odd) is None
    long = message.to_json() + " " * MOST_MESSAGE_BYTES
    assert refused_or_good(kind, kind.from_json, long) is None


WRONG = {
    "version": (0, 2, 1.0, True, "1", None),
    "campaign": ("", "0" * 31, "0" * 33, "g" * 32, CAMPAIGN.upper(), b"0" * 32, 3),
    "round": (-1, 65536, 1.0, True, None),
    "kind": ("lengths", None, ["length"], {}),
    "epsilon": (0, -1.0, float("nan"), float("inf"), 100.1, 10**400, True, "1", None),
    "sax": (None, {}, "sax"),
    "oracle": ("GRR", "exponential", None, ["grr"], {}),
    "distance": ("", "hamming", None, ["dtw"]),
    "low": (0, 9, 1.0, True),
    "high": (0, 9, 5.0, None),
    "candidates": (("a",), ["a"], None),
    "ends": (1, None, "true"),
    "labels": (("a",), ["a"], None),
    "readings": (0, (1 << 40) + 1, 10**400, 1.0),
}


@pytest.mark.parametrize("name", WRONG)
def test_values_that_no_question_has(name):
    for value in WRONG[name]:
        with pytest.raises(MessageError):
            replace(QUESTIONS["length"], **{name: value})


@pytest.mark.parametrize(
    "candidates, ends",
    [
        ((), False),
        ((".",), True),
        (("a.",), False),
        (("a..",), True),
        (("e",), False),
        (("",), False),
        (("a", "a"), False),
        (("abcdabcda",), False),
        (("A",), False),
        (("é",), False),
        ((3,), False),
        (("a" * 201,), False),
    ],
)
def test_candidates_that_are_none(candidates, ends):
    with pytest.raises(MessageError, match="candidates"):
        asked("level", candidates=candidates, ends=ends)


def test_more_cells_than_anyone_counts():
    with pytest.raises(MessageError, match="cells"):
        asked("whole", "olh", high=20, sax=Sax(symbols=8, longest=20))
    with pytest.raises(MessageError, match="different texts"):
        asked("whole", labels=("x", "x"))
    for wrong in ({"token": b"1" * 15}, {"report": b""}, {"campaign": "z" * 32}, {"version": True}):
        with pytest.raises(MessageError):
            replace(ANSWERS["length"], **wrong)


# numbers for sequences


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("symbols, longest", [(2, 1), (2, 4), (3, 3), (4, 3)])
def test_every_sequence_has_a_number_of_its_own(symbols, longest, compressed):
    domain = WholeSequences(symbols=symbols, longest=longest, compressed=compressed)
    texts = [domain.text(i) for i in range(domain.size)]
    assert len(set(texts)) == domain.size
    for i, text in enumerate(texts):
        body = text.removesuffix(".")
        assert not compressed or all(a != b for a, b in itertools.pairwise(body))
        # of one that goes on, any next symbol will do
        assert domain.index(body if text != body else body + ("b" if body[-1] == "a" else "a")) == i


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("symbols", [2, 3, 5])
def test_every_pair_has_a_number_of_its_own(symbols, compressed, ends):
    pairs = Bigrams(symbols=symbols, compressed=compressed, ends=ends)
    texts = [pairs.text(i) for i in range(pairs.size)]
    assert len(set(texts)) == pairs.size
    for i, text in enumerate(texts):
        assert pairs.index(text.removesuffix("."), 0) == i
        assert pairs.index("a" + text.removesuffix("."), 1) == i
    assert pairs.index("ab", 1) == (pairs.pairs + 1 if ends else None)
    assert pairs.index("ab", 7) == (pairs.size - 1 if ends else None)
