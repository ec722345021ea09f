"""The device of a shapes campaign: it answers once, and no refusal tells anything of its series."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest

from tempriv.errors import BudgetError, DataError, StateError, TemprivError, UsageError
from tempriv.local.device_ledger import DeviceLedger
from tempriv.local.shapes.messages import HEAD
from tempriv.local.shapes.roles import ShapesDevice, simulate_answers
from tempriv.local.shapes.sax import Sax
from tempriv.local.wire import MessageError
from tempriv.sampling.keys import Key
from tests.local.test_shapes_roles import CAMPAIGN, one_question


def test_a_device_answers_one_question_of_a_campaign():
    question = one_question("length", "grr")
    device = ShapesDevice([0.0, 1.0])
    device.answer(question)
    for other in (question, replace(question, round=1), one_question("whole", "grr")):
        with pytest.raises(BudgetError, match="answers one"):
            device.answer(other)
    device.answer(replace(question, campaign="1" * 32))
    assert device.ledger.spent() == 2.0


@pytest.mark.parametrize("folder", [True, False], ids=["folder", "memory"])
def test_a_refused_question_costs_nothing(folder, tmp_path):
    ledger = DeviceLedger(tmp_path / "ledger" if folder else None)
    device = ShapesDevice([0.0, 1.0], label="x", ledger=ledger, most_epsilon=2.0)
    with pytest.raises(BudgetError, match="nothing above 2"):
        device.answer(one_question("length", "grr", epsilon=2.5))
    assert ledger.spent() == 0
    labelled = one_question("refine", "grr")
    assert len(device.answer(labelled).report) == labelled.report_bytes
    assert ledger.spent() == 1.0


SHORT = Sax(symbols=3, segment=4, longest=5, partial="drop")
ASKED = {
    "length": one_question("length", "grr"),
    "one reading": one_question("length", "grr", readings=1),
    "whole, dropped": one_question("whole", "grr", sax=SHORT, high=3),
    "bigram": one_question("bigram", "oue"),
    "level": one_question("level", "exponential"),
    "labels": one_question("refine", "grr"),
    "other labels": one_question("refine", "oue", labels=("never", "nowhere")),
    "whole with labels": one_question("whole", "hadamard", high=2, labels=("x", "y")),
}
HELD = [
    (np.zeros(1), None),
    (np.arange(3.0), "x"),
    (np.arange(4.0), "never"),
    (np.zeros(50), ""),
    (np.sin(np.arange(2000)), "z"),
    (np.array([1e308, -1e308, 5e-324]), "y"),
]


@pytest.mark.parametrize("name", ASKED)
def test_no_refusal_depends_on_what_a_device_holds(name):
    """Whether it answers is told for nothing: so it answers, whatever its series and label are."""
    question = ASKED[name]
    for series, label in HELD:
        device = ShapesDevice(series, label)
        assert len(device.answer(question).report) == question.report_bytes
        assert device.ledger.spent() == question.epsilon


@pytest.mark.parametrize("partial", ["keep", "drop"])
def test_a_series_that_is_too_long_or_too_short_counts_as_far_as_it_goes(partial):
    sax = Sax(symbols=3, segment=4, longest=5, partial=partial)
    question = one_question("whole", "grr", epsilon=8.0, sax=sax, high=3, readings=10)
    rng = np.random.default_rng(1)
    series = [rng.normal(size=length) for length in (1, 3, 4, 7, 10, 11, 40)]
    key = Key.from_seed(3)
    together = simulate_answers(question, series, key=key)
    assert together == simulate_answers(question, [one[:10] for one in series], key=key)
    chain = key.again("answers", "0")
    assert ShapesDevice(series[0]).answer(question, chain).report == together[0][HEAD.size :]
    matrix = np.stack([np.resize(one, 12) for one in series])
    assert simulate_answers(question, matrix, key=key) == simulate_answers(
        question, list(matrix), key=key
    )
    narrow = matrix[:, :3]
    assert simulate_answers(question, narrow, key=key) == simulate_answers(
        question, list(narrow), key=key
    )
    kept = replace(question, sax=replace(sax, partial="keep"))
    assert simulate_answers(question, narrow, key=key) == simulate_answers(kept, narrow, key=key)


@pytest.mark.parametrize(
    "series, said",
    [
        ([], "at least one"),
        (3.0, "in a row"),
        (np.zeros((3, 3)), "in a row"),
        ([0.0, np.nan], "missing or infinite"),
        ([np.inf, 1.0], "missing or infinite"),
        ("abc", "numbers"),
        (["a", "b"], "numbers"),
        (None, "numbers"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), "missing"),
        ([[1.0], [1.0, 2.0]], "numbers"),
    ],
    ids=[
        "none",
        "number",
        "matrix",
        "nan",
        "infinite",
        "text",
        "texts",
        "nothing",
        "masked",
        "ragged",
    ],
)
def test_what_is_no_series_is_refused_when_the_device_is_made(series, said):
    with pytest.raises(DataError, match=said):
        ShapesDevice(series)
    with pytest.raises(UsageError, match="label"):
        ShapesDevice([1.0], label=3)


def test_a_device_keeps_its_series_for_itself():
    series = np.arange(6.0)
    device = ShapesDevice(series)
    series[2] = np.nan
    device.answer(one_question("length", "grr"))


def test_a_device_is_not_copied():
    """Two copies would each answer, with noise of their own."""
    device = ShapesDevice([0.0, 1.0])
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        for one in (device, device.ledger):
            with pytest.raises(TemprivError, match="not copied"):
                way(one)


def test_a_device_does_not_show_what_it_holds():
    shown = repr(ShapesDevice([123.0], label="secret"))
    assert "123" not in shown and "secret" not in shown
    assert not hasattr(ShapesDevice([1.0]).answer(one_question("length", "grr")), "label")


@pytest.mark.parametrize("folder", [True, False], ids=["folder", "memory"])
def test_the_limit_of_a_device_adds_up(folder, tmp_path):
    place = tmp_path / "ledger" if folder else None
    ledger = DeviceLedger(place, limit=1.0)
    for number in range(4):
        ledger.spend(f"{number:032x}", 0.25)
    with pytest.raises(BudgetError, match="limit of 1"):
        ledger.spend("f" * 32, 0.25)
    assert ledger.spent() == 1.0
    if folder:
        again = DeviceLedger(place, limit=1.25)
        assert again.spent() == 1.0
        with pytest.raises(BudgetError, match="answers one"):
            again.spend("0" * 32, 0.25)
        again.spend("f" * 32, 0.25)
        assert {path.stat().st_mode & 0o77 for path in place.iterdir()} == {0}
    for limit in (0, -1, float("nan")):
        with pytest.raises(UsageError, match="limit"):
            DeviceLedger(limit=limit)


def test_an_answer_that_was_begun_counts_as_all(tmp_path):
    (tmp_path / CAMPAIGN).touch()  # the power failed here
    ledger = DeviceLedger(str(tmp_path), limit=5.0)
    with pytest.raises(BudgetError, match="answers one"):
        ledger.spend(CAMPAIGN, 1.0)
    with pytest.raises(BudgetError, match="limit"):
        ledger.spend("f" * 32, 1.0)
    DeviceLedger(tmp_path).spend("f" * 32, 1.0)  # without a limit others go on


@pytest.mark.parametrize(
    "held",
    [b"-100.0\n", b"nan\n", b"inf\n", b"0.0\n", b"1.", b"1.0", b"\xff\n", None],
    ids=["below 0", "nan", "infinite", "nothing", "cut", "no end", "bytes", "folder"],
)
def test_what_was_not_written_so_counts_as_all(held, tmp_path):
    ledger = DeviceLedger(tmp_path, limit=4.0)
    ledger.spend("a" * 32, 1.0)
    other = tmp_path / ("b" * 32)
    if held is None:
        other.mkdir()
    else:
        other.write_bytes(held)
    assert ledger.spent() == float("inf")
    with pytest.raises(BudgetError, match="limit of 4"):
        ledger.spend("c" * 32, 1.0)


@pytest.mark.parametrize("epsilon", [0, -5.0, float("nan"), float("inf"), True, "1"], ids=repr)
def test_nothing_but_a_charge_is_charged(epsilon, tmp_path):
    for ledger in (DeviceLedger(), DeviceLedger(tmp_path)):
        with pytest.raises(UsageError, match="epsilon="):
            ledger.spend(CAMPAIGN, epsilon)
        assert ledger.spent() == 0
        with pytest.raises(MessageError, match="campaign"):
            ledger.spend("../escaped", 1.0)


def test_a_disk_that_fails_is_a_refusal(tmp_path):
    ledger = DeviceLedger(tmp_path / "ledger")
    (tmp_path / "ledger").rmdir()
    for wanted in (ledger.spent, lambda: ledger.spend(CAMPAIGN, 1.0)):
        with pytest.raises(StateError, match="ledger cannot be used: No such file"):
            wanted()
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match="ledger cannot be used"):
        DeviceLedger(tmp_path / "file")


def at_once(spend, threads):
    """How many of these threads spend, all at the same moment."""
    start, won = threading.Barrier(threads), []

    def one(number):
        start.wait()
        try:
            spend(number)
        except BudgetError:
            return
        won.append(number)

    workers = [threading.Thread(target=one, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return len(won)


class SlowLedger(DeviceLedger):
    """Another thread comes in between looking and spending."""

    def _has(self, campaign):
        found = super()._has(campaign)
        threading.Event().wait(0.002)
        return found


@pytest.mark.parametrize("folder", [True, False], ids=["folder", "memory"])
def test_threads_share_the_ledger_of_a_device(folder, tmp_path):
    ledger = SlowLedger(tmp_path if folder else None)
    assert at_once(lambda number: ledger.spend(f"{number % 2:032x}", 1.0), 8) == 2
    assert ledger.spent() == 2.0


def _answer_many(folder, start, told):
    start.wait()
    won = 0
    for number in range(12):
        question = one_question("length", "grr", campaign=f"{number:032x}", epsilon=0.5)
        try:
            ShapesDevice([0.0, 1.0], ledger=DeviceLedger(folder, limit=3.0)).answer(question)
            won += 1
        except BudgetError:
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
    ShapesDevice([0.0, 1.0], ledger=DeviceLedger(tmp_path)).answer(question)
    # a ledger that looked before the other one wrote: the file itself decides
    late = DeviceLedger(tmp_path)
    late._has = lambda campaign: False
    with pytest.raises(BudgetError, match="answers one"):
        ShapesDevice([0.0, 1.0], ledger=late).answer(question)


def test_a_charge_that_was_only_begun_costs_nothing(tmp_path, monkeypatch):
    ledger = DeviceLedger(tmp_path, limit=1.0)
    monkeypatch.setattr(os, "link", lambda *_: os._exit(0))
    if os.fork() == 0:
        ledger.spend("a" * 32, 0.5)
    os.wait()
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) == 1  # what a kill leaves
    assert ledger.spent() == 0
    ledger.spend("a" * 32, 0.75)
    assert ledger.spent() == 0.75
