"""Streams over a population: what devices lose, who is asked, and what both roles refuse."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import multiprocessing
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from tempriv.errors import BudgetRefusal, DataRefusal, StateRefusal, UsageRefusal
from tempriv.guarantees import Pure
from tempriv.population.messages import MessageRefusal
from tempriv.population.streams import Device, Server, WindowLedger, answers_of
from tempriv.population.streams_course import METHODS, ONE, Course, Plan, drawn
from tempriv.population.streams_grouped import try_out
from tempriv.population.streams_messages import Answer, Question
from tempriv.randomness import Key, Run, Words
from tempriv.units import Window
from tests.reference import population_streams as reference
from tests.statistics import assert_cells

CAMPAIGN = "00112233445566778899aabbccddeeff"
ADAPTIVE = ("LBD", "LBA", "LPD", "LPA")


def plan_of(method, **given):
    return Plan(**{"method": method, "epsilon": 1.0, "window": 2, "size": 2, "people": 8, **given})


# every path that reports can take


def every_report(course, device, steps, told=()):
    """Each way on from here: what ``device`` was asked and reported, and how others could."""
    question = course.question
    if question is None:
        if steps == 1:
            yield told
            return
        yield from every_report(course.next_step(), device, steps - 1, told)
        return
    asked = course.asked
    there = device in asked
    others = len(asked) - there
    for support in range(others + 1):  # so many others report 1
        for own in (0, 1) if there else (0,):
            ones = support + (own if there else 0)
            after = course.after(np.array([len(asked) - ones, ones]), len(asked))
            more = ((course.step, question, own),) if there else ()
            yield from every_report(after, device, steps, told + more)


def losses(paths, steps, window):
    """The largest log ratio of the probabilities of a path, over all pairs of neighbours."""
    inputs = list(itertools.product((0, 1), repeat=steps))
    logs = np.zeros((len(paths), steps, 2))
    for row, path in enumerate(paths):
        for step, question, own in path:
            for value in (0, 1):
                logs[row, step, value] += log_chance(question, value, own)
    by_input = np.array([logs[:, np.arange(steps), x].sum(axis=1) for x in inputs])
    place = {x: i for i, x in enumerate(inputs)}
    return max(
        float((by_input[place[x]] - by_input[place[y]]).max())
        for x in inputs
        for y in Window(window).neighbours(x, (0, 1))
    )


@functools.cache
def log_chance(question, value, own):
    return math.log(question.frequency.outcomes(value)[bytes([own])])


def most_spent(paths, window):
    """What a device is asked for within any window, at most, exactly."""
    worst = Fraction(0)
    for path in paths:
        for step, _, _ in path:
            recent = (Fraction(q.epsilon) for s, q, _ in path if step - window < s <= step)
            worst = max(worst, sum(recent, Fraction(0)))
    return worst


SMALL = {
    # method: people, steps, epsilon, the largest loss as a part of epsilon
    "LBU": (2, 4, 1.0, 1.0),
    "LSP": (2, 4, 1.0, 1.0),
    "LBD": (2, 3, 3.0, 7 / 8),
    "LBA": (2, 3, 3.0, 1.0),
    "LPU": (4, 4, 1.0, 1.0),
    "LPD": (8, 3, 3.0, 1.0),
    "LPA": (8, 3, 3.0, 1.0),
}


@pytest.mark.parametrize("method", METHODS)
def test_every_path_of_reports_loses_at_most_epsilon(method):
    people, steps, epsilon, part = SMALL[method]
    plan = plan_of(method, people=people, epsilon=epsilon, oracle="grr")
    paths = list(every_report(Course.beginning(plan, CAMPAIGN), 0, steps))
    assert most_spent(paths, plan.window) <= Fraction(epsilon)
    found = losses(paths, steps, plan.window)
    assert found <= epsilon + 1e-12
    assert found == pytest.approx(part * epsilon, abs=1e-6), "the true worst case"
    if method in ("LBD", "LBA"):
        ways = {tuple(q.part for _, q, _ in path) for path in paths}
        assert len(ways) > 2, "some paths publish and others repeat"


def decided(course, moves, noted=None):
    """A step in which the reports look like the last release, or as far from it as can be."""
    while course.question is not None:
        if noted is not None:
            noted.append((course.step, course.question, set(course.asked.tolist())))
        people, oracle = len(course.asked), course.question.frequency
        one = course.release[1] if not moves else float(course.release[1] < 0.5)
        ones = round(people * (oracle.other + one * (oracle.keep - oracle.other)))
        ones = min(max(ones, 0), people) if not moves else people * int(one)
        course = course.after(np.array([people - ones, ones]), people)
    return course


def schedules(course, steps, told=()):
    """What is asked of whom, in each of the ways in which a stream can move or not."""
    for moves in (False, True):
        noted = []
        after = decided(course, moves, noted)
        if steps == 1:
            yield (*told, *noted)
        else:
            yield from schedules(after.next_step(), steps - 1, (*told, *noted))


def asked_of(device, path):
    return tuple((step, question, 0) for step, question, asked in path if device in asked)


@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("method", ADAPTIVE)
def test_no_way_of_deciding_asks_a_device_for_more_than_epsilon(method, window):
    plan = plan_of(method, window=window, people=400)
    course = Course.beginning(plan, CAMPAIGN)
    devices = (0, *course.asked[:2].tolist())
    ways = list(schedules(course, 2 * window + 2))
    assert 0 < most_spent([asked_of(one, way) for one in devices for way in ways], window) <= 1
    if not plan.divides_people:
        assert len({tuple(q.part for _, q, _ in way) for way in ways}) > window


class AbsorbsWithoutNullifying(Course):
    def _having_taken(self):
        return {**super()._having_taken(), "free": self.step + 1}


class AbsorbsFromBeforeTheLast(Course):
    def _having_taken(self):
        return {**super()._having_taken(), "free": self.free}


class ForgetsWhatItTook(Course):
    def _at_hand(self):
        return self.plan.half // 2


class ForgetsAStepEarly(Course):
    def _at_hand(self):
        recent = [a for step, a in self.taken if self.step - step < self.plan.window - 1]
        return (self.plan.half - sum(recent)) // 2


class RecyclesEarly(Course):
    def _rested(self):
        return np.flatnonzero(self.step - self.asked_at >= self.plan.window - 1)


class AsksAgainToPublish(Course):
    def _having_asked(self):
        return self if self.stage == "compare" else super()._having_asked()


MUTANTS = [
    ("LBA", AbsorbsWithoutNullifying),
    ("LBA", AbsorbsFromBeforeTheLast),
    ("LBD", ForgetsWhatItTook),
    ("LBD", ForgetsAStepEarly),
    ("LPD", RecyclesEarly),
    ("LPA", RecyclesEarly),
    ("LPA", AsksAgainToPublish),
]


@pytest.mark.parametrize("method, mutant", MUTANTS, ids=lambda one: getattr(one, "__name__", one))
def test_a_course_that_asks_too_much_is_noticed_and_devices_refuse(method, mutant):
    window = 3
    plan = plan_of(method, window=window, people=24 if method[1] == "P" else 4000)
    devices = range(plan.people) if method[1] == "P" else (0,)
    worst, refused = Fraction(0), 0
    for way in schedules(mutant.beginning(plan, CAMPAIGN), 5):
        for device in devices:
            path = asked_of(device, way)
            worst = max(worst, most_spent([path], window))
            if most_spent([path], window) > 1:
                assert refusals(path, window) > 0
                refused += 1
    assert worst > 1
    assert refused > 0


def refusals(path, window):
    """How many of these questions an honest device refuses; what it answers is within epsilon."""
    device, refused, told = Device(WindowLedger(window, 1.0)), 0, []
    for step, asked in itertools.groupby(path, key=lambda one: one[0]):
        device.observe(step, 1)
        for one in asked:
            try:
                device.answer(one[1])
                told.append(one)
            except BudgetRefusal:
                refused += 1
    assert most_spent([told], window) <= 1
    return refused


def test_a_device_that_answers_twice_loses_twice():
    plan = plan_of("LBU", people=2, oracle="grr")
    once = list(every_report(Course.beginning(plan, CAMPAIGN), 0, 2))
    # both answers are alike on some path
    twice = [path + path for path in once]
    assert losses(once, 2, 2) == pytest.approx(1.0)
    assert losses(twice, 2, 2) == pytest.approx(2.0)
    device = Device(WindowLedger(2, 1.0))
    device.observe(0, 1)
    question = Course.beginning(plan, CAMPAIGN).question
    device.answer(question)
    with pytest.raises(BudgetRefusal, match="answers a question once"):
        device.answer(question)


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
                with pytest.raises(BudgetRefusal, match="limit of 1"):
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
    with pytest.raises(BudgetRefusal):  # 0.1 is a little more than a tenth
        ledger.spend(CAMPAIGN, 9, "publish", 0.1)
    ledger.spend(CAMPAIGN, 9, "publish", ledger.left(9))
    assert ledger.left(9) == 0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 0.7, 3.3, 1e-3])
@pytest.mark.parametrize("method", METHODS)
def test_a_device_with_just_the_plans_limit_is_never_asked_too_much(method, epsilon):
    plan = plan_of(method, epsilon=epsilon, window=7, people=16)
    course = Course.beginning(plan, CAMPAIGN)
    devices = [Device(WindowLedger(7, epsilon)) for _ in range(16)]
    rng = np.random.default_rng(7)
    for step in range(22):
        values = rng.integers(2, size=16) if step % 5 else np.zeros(16, dtype=int)
        for device, value in zip(devices, values, strict=True):
            device.observe(step, int(value))
        while course.question is not None:
            reports = [devices[i].answer(course.question).report for i in course.asked]
            course = course.after(course.question.frequency.support(reports), len(reports))
        course = course.next_step()


def test_time_and_campaigns():
    device = Device(WindowLedger(3, 1.0))
    question = Question(campaign=CAMPAIGN, step=5, part="publish", epsilon=0.6, size=3)
    with pytest.raises(DataRefusal, match="no value yet"):
        device.answer(question)
    device.observe(5, 2)
    device.answer(question)
    with pytest.raises(UsageRefusal, match="time goes on"):
        device.observe(5, 1)
    other = Question(campaign="f" * 32, step=5, part="publish", epsilon=0.6, size=3)
    with pytest.raises(BudgetRefusal, match="limit of 1"):  # campaigns share the limit
        device.answer(other)
    # a server cannot make a device forget by calling later steps
    for step in (4, 6, 5000):
        with pytest.raises(MessageRefusal, match="by this device's clock"):
            device.answer(Question(campaign=CAMPAIGN, step=step, part="publish", epsilon=1, size=3))
    device.observe(7, 3)
    asked = Question(campaign=CAMPAIGN, step=7, part="publish", epsilon=0.4, size=3)
    with pytest.raises(DataRefusal, match="none of the 3"):
        device.answer(asked)
    assert device.ledger.left(7) == pytest.approx(0.4), "a refusal costs nothing"
    assert device.guarantee.loss == Pure(1.0)
    assert device.guarantee.unit == Window(3)
    assert "7" not in repr(device) and "3" in repr(device)


def test_a_ledger_on_disk(tmp_path):
    path = tmp_path / "ledger"
    WindowLedger(2, 1.0, path).spend(CAMPAIGN, 4, "compare", 0.75)
    again = WindowLedger(2, 1.0, path)
    assert (again.left(5), again.left(6)) == (0.25, 1.0)
    with pytest.raises(BudgetRefusal, match="once"):
        again.spend(CAMPAIGN, 4, "compare", 0.1)
    with pytest.raises(BudgetRefusal, match="past"):
        again.spend(CAMPAIGN, 3, "compare", 0.1)
    assert path.stat().st_mode & 0o77 == 0
    with pytest.raises(StateRefusal, match="another window or limit"):
        WindowLedger(2, 2.0, path)
    for damaged in (b"", b"{}", b"[1]", path.read_bytes()[:-3]):
        path.write_bytes(damaged)
        with pytest.raises(StateRefusal, match="damaged"):
            WindowLedger(2, 1.0, path)


def spend_some(path, campaign):
    for part in range(10):
        with contextlib.suppress(BudgetRefusal):
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


# the course


def test_budgets_of_a_window_by_hand():
    plan = plan_of("LBD", window=4, people=10**6)
    assert plan.terms(plan.one) == (1 / 8, 10**6)
    course = decided(Course.beginning(plan, CAMPAIGN), True)
    assert plan.terms(course.amount)[0] == 1 / 4
    course = decided(course.next_step(), True)
    assert plan.terms(course.amount)[0] == 1 / 8
    plan = plan_of("LBA", window=4, people=10**6)
    course = decided(Course.beginning(plan, CAMPAIGN), False)
    assert (course.published, plan.terms(course.amount)[0]) == (True, 1 / 8)  # there was nothing
    course = decided(course.next_step(), False)
    course = decided(course.next_step(), False)
    course = decided(course.next_step(), True)
    assert (course.published, plan.terms(course.amount)[0]) == (True, 3 / 8)
    for published in (False, False, True):  # two steps have given theirs away
        course = decided(course.next_step(), True)
        assert course.published == published
    assert plan.terms(course.amount)[0] == 1 / 8


@pytest.mark.parametrize("people", [16, 17, 40])
@pytest.mark.parametrize("method", ["LPU", "LPD", "LPA"])
def test_nobody_is_asked_twice_within_a_window(method, people):
    plan = plan_of(method, window=4, people=people)
    course = Course.beginning(plan, CAMPAIGN)
    rng = np.random.default_rng(people)
    asked = []
    for step in range(40):
        while course.question is not None:
            asked += [(step, int(i)) for i in course.asked]
            many = len(course.asked)
            ones = int(rng.integers(many + 1))
            course = course.after(np.array([many - ones, ones]), many)
        course = course.next_step()
    for one in range(people):
        steps = sorted(step for step, i in asked if i == one)
        assert all(b - a >= 4 for a, b in itertools.pairwise(steps))
    assert len({i for _, i in asked}) == people


def test_the_draw_is_fair_and_public():
    counts = np.zeros(6, dtype=np.int64)
    for step in range(3000):
        chosen = drawn(CAMPAIGN, step, "compare", np.array([1, 3, 4, 6, 7, 9]), 2)
        counts[np.searchsorted([1, 3, 4, 6, 7, 9], chosen)] += 1
        assert len(set(chosen.tolist())) == 2
    # two of six without return: the counts vary less than this test allows for
    assert_cells(counts, np.full(6, 1 / 6), detects=0.15)
    again = drawn(CAMPAIGN, 5, "compare", np.arange(1000), 10)
    assert (again == drawn(CAMPAIGN, 5, "compare", np.arange(1000), 10)).all()
    assert (again != drawn(CAMPAIGN, 5, "publish", np.arange(1000), 10)).any()
    with pytest.raises(UsageRefusal, match="not so many"):
        drawn(CAMPAIGN, 0, "compare", np.arange(3), 4)


def distance_of(plan, truth, people, release):
    """The mean of the estimated distance over every outcome of so many reports."""
    course = Course.beginning(plan, CAMPAIGN)
    object.__setattr__(course, "release", release)
    oracle = course.question.frequency
    law = reference.ones(truth, oracle.epsilon)
    total = 0.0
    for ones, chance in enumerate(law):
        support = np.array([people - ones, ones])
        shares = oracle.estimate(support, people).counts / people
        total += chance * course.distance(shares, people)[0]
    return total


def test_the_distance_is_unbiased_and_of_samples_only_if_their_drawing_counts():
    plan, release = plan_of("LBD", people=5, oracle="grr"), (0.3, 0.7)
    expected = ((2 / 5 - 0.3) ** 2 + (3 / 5 - 0.7) ** 2) / 2
    found = distance_of(plan, [1, 0, 1, 0, 1], 5, release)
    assert found == pytest.approx(expected, abs=1e-12)
    values = [1, 0, 1, 0, 1, 1, 0, 1]
    expected = ((3 / 8 - 0.3) ** 2 + (5 / 8 - 0.7) ** 2) / 2
    for counts_sampling, bias in ((True, 0.0), (False, 15 / 64 * 6 / (2 * 7))):
        plan = plan_of("LPD", counts_sampling=counts_sampling, oracle="grr")
        groups = list(itertools.combinations(values, 2))
        found = np.mean([distance_of(plan, group, 2, release) for group in groups])
        assert found == pytest.approx(expected + bias, abs=1e-12)


def test_a_question_without_answers_is_not_asked_again():
    for method in METHODS:
        plan = plan_of(method, people=100)
        course = Course.beginning(plan, CAMPAIGN)
        if plan.divides_people:
            before = course.asked
        course = course.after(np.zeros(2, dtype=np.int64), 0)
        assert (course.stage, course.published, course.release) == ("done", False, (0.0, 0.0))
        if plan.divides_people:
            assert not set(before) & set(course.next_step().asked)
        with pytest.raises(UsageRefusal, match="no more questions"):
            course.after(np.zeros(2, dtype=np.int64), 0)
    course = Course.beginning(plan_of("LBA", people=10**6), CAMPAIGN)
    course = course.after(np.array([10**6, 0]), 10**6)
    assert course.stage == "publish"
    course = course.after(np.zeros(2, dtype=np.int64), 0)
    assert course.taken == ((0, ONE),), "what was asked for is spent"


@pytest.mark.parametrize(
    "given, about",
    [
        ({"method": "LBX"}, "method"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"window": 0}, "window"),
        ({"size": 1}, "size"),
        ({"people": True}, "people"),
        ({"method": "LPA", "people": 3}, "needs at least 4"),
        ({"method": "LPU", "people": 1}, "needs at least 2"),
        ({"oracle": "none"}, "oracle"),
        ({"least": 0}, "least"),
        ({"counts_sampling": 1}, "counts_sampling"),
        ({"method": "LBA", "counts_sampling": True}, "for LPD and LPA"),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)
def test_plans_that_cannot_be_meant(given, about):
    with pytest.raises(UsageRefusal, match=about):
        plan_of(**{"method": "LBU", **given})


# the law of messages, of a trial, and by definition


def by_definition(method, rows, epsilon):
    def draw(step, part, free, count):
        return drawn(CAMPAIGN, step, part, np.array(free), count).tolist()

    return reference.law(method, rows, epsilon, 2, draw)


def assert_law(outcomes, law, detects):
    """In cells of neighbouring outcomes of at least a sixth of all."""
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    assert set(outcomes) <= set(law)
    seen, chances, cell = [], [], [0, 0.0]
    for supports in sorted(law, key=lambda one: (len(one), one)):
        cell = [cell[0] + outcomes[supports], cell[1] + law[supports]]
        if cell[1] > 1 / 6:
            seen.append(cell[0])
            chances.append(cell[1])
            cell = [0, 0.0]
    seen[-1] += cell[0]
    chances[-1] += cell[1]
    assert len(seen) >= 3
    assert_cells(seen, chances, detects=detects)


ROWS = {4: [[1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 1, 0]]}
ROWS[16] = [row * 4 for row in ROWS[4]]


def law_of(method):
    people = 16 if method[1] == "P" else 4
    return people, ROWS[people], by_definition(method, ROWS[people], 2.0)


@pytest.mark.parametrize("method", METHODS)
def test_a_trial_has_the_law_of_the_definition(method, monkeypatch):
    people, rows, law = law_of(method)
    plan = plan_of(method, people=people, epsilon=2.0, oracle="grr")
    outcomes = Counter()
    told = []

    class Noted(Course):
        def after(self, support, people):
            told.append(int(support[1]))
            return super().after(support, people)

    monkeypatch.setattr("tempriv.population.streams_grouped.Course", Noted)
    for run in range(700):
        told.clear()
        try_out(plan, lambda step: np.array(rows[step]), 3, Key.from_seed(run), CAMPAIGN)
        outcomes[tuple(told)] += 1
    assert_law(outcomes, law, detects=0.37)


@pytest.mark.parametrize("method", ["LBA", "LPD"])
def test_messages_have_the_law_of_the_definition(method):
    people, rows, law = law_of(method)
    plan = plan_of(method, people=people, epsilon=2.0, oracle="grr")
    outcomes = Counter()
    for run in range(700):
        server, told, key = Server(plan, CAMPAIGN), [], Key.from_seed(run)
        for step, values in enumerate(rows):
            if step:
                server.next_step()
            while not server.is_done:
                answers = answers_of(server.question, np.array(values)[server.asked], key)
                assert not server.receive_many(answers)
                server._add_up()
                told.append(int(server._support[1]))
                server.close_question()
        outcomes[tuple(told)] += 1
    assert_law(outcomes, law, detects=0.37)


@pytest.mark.parametrize("oracle", ["grr", "oue", "olh", "hadamard"])
def test_a_device_reports_what_its_oracle_says(oracle):
    question = Question(
        campaign=CAMPAIGN, step=3, part="publish", epsilon=0.5, size=5, oracle=oracle
    )
    for value in range(5):
        device = Device(WindowLedger(4, 1.0))
        device.observe(3, value)
        chain = Key.from_seed(value).series("device", oracle)
        answer = device.answer(question, key=chain)
        words = Words([Run(chain, 0, 1)], "stream report")
        assert answer.report == question.frequency.reports([value], words).tobytes()


@pytest.mark.parametrize("oracle", ["oue", "olh", "hadamard", "automatic"])
def test_other_oracles_find_the_shares_too(oracle):
    plan = plan_of("LPA", people=40_000, size=6, epsilon=4.0, oracle=oracle)
    values = np.arange(40_000) % 6 % 4
    trial = try_out(plan, lambda step: values, 4, Key.from_seed(3))
    # 10,000 answers at least: shares within 0.03, ten standard errors or so
    assert trial.published.any()
    assert np.abs(trial.releases[-1] - trial.truth[-1]).max() < 0.03


# the roles


def test_a_stream_by_messages():
    plan = plan_of("LPA", window=3, people=60, size=3, epsilon=2.0)
    server = Server(plan, first=100)
    devices = [Device(WindowLedger(3, 2.0)) for _ in range(60)]
    for step in range(100, 106):
        for number, device in enumerate(devices):
            device.observe(step, number % 3)
        while not server.is_done:
            question = Question.from_bytes(server.question.to_bytes())
            for number in server.asked:
                server.receive(devices[number].answer(question).to_bytes())
            server = Server.resume(server.state())  # at any time
            server.close_question()
        assert server.release.sum() == pytest.approx(1 if any(server.release) else 0)
        assert (server.course.question, len(server.asked)) == (None, 0)
        with pytest.raises(UsageRefusal, match="next_step"):
            server.question  # noqa: B018
        with pytest.raises(UsageRefusal, match="next_step"):
            server.close_question()
        server.next_step()
    with pytest.raises(UsageRefusal, match="close it first"):
        server.next_step()
    with pytest.raises(UsageRefusal, match="close it first"):
        server.release  # noqa: B018


def an_answer(question, **given):
    fields = {"campaign": question.campaign, "step": question.step, "part": question.part}
    return Answer(**{**fields, "token": b"0" * 16, "report": b"\0", **given})


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
    server = Server(plan_of("LBA", people=10**6), CAMPAIGN, first=7)
    server.course = server.course.after(np.array([10**6, 0]), 10**6)
    assert server.question.part == "publish"
    server.receive(an_answer(server.question, token=b"taken".ljust(16)))
    before = server.state()
    for message, reason in refused_answers(server):
        with pytest.raises(MessageRefusal, match=reason):
            server.receive(message)
        assert server.state() == before
    found = server.receive_many(message for message, _ in refused_answers(server))
    assert sum(found.values()) == 14
    server.close_question()
    with pytest.raises(MessageRefusal, match="late"):
        server.receive(an_answer(Question.from_bytes(asked(server)), token=b"2" * 16))


def asked(server):
    course = server.course
    return Question(
        campaign=course.campaign, step=course.step, part="publish", epsilon=1, size=2
    ).to_bytes()


def test_no_more_answers_than_were_asked_for():
    server = Server(plan_of("LPU", people=4))
    for number in range(2):
        server.receive(an_answer(server.question, token=bytes([number]) * 16))
    with pytest.raises(MessageRefusal, match="all 2 that were asked"):
        server.receive(an_answer(server.question, token=b"3" * 16))


@pytest.mark.parametrize("method", ["LBA", "LPD", "LSP"])
def test_a_resumed_server_goes_on_alike(method):
    plan = plan_of(method, people=16, epsilon=2.0)
    servers = [Server(plan, CAMPAIGN), Server(plan, CAMPAIGN)]
    for step in range(6):
        key = Key.from_seed(step)
        while not servers[0].is_done:
            answers = answers_of(servers[0].question, np.arange(16)[servers[0].asked] % 2, key)
            for server in servers:
                server.receive_many(answers)
            servers[1] = Server.resume(servers[1].state())
            for server in servers:
                server.close_question()
        assert (servers[0].release == servers[1].release).all()
        for server in servers:
            server.next_step()
        assert servers[0].state() == servers[1].state()


def test_damaged_states_are_refused():
    server = Server(plan_of("LPA", people=16), CAMPAIGN)
    server.receive(an_answer(server.question))
    state = json.loads(server.state())
    for path, value in (
        (("is",), "other"), (("plan", "window"), 0), (("plan", "people"), 17), (("received",), 2),
        (("support",), [1]), (("support",), [-1, 1]), (("course", "stage"), "x"),
        (("course", "release"), [0.0]), (("course", "asked_at"), "!"), (("course", "more"), 1),
        (("course",), None), (("tokens",), [3]),
    ):  # fmt: skip
        broken = json.loads(json.dumps(state))
        place = broken
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
        with pytest.raises(StateRefusal, match="damaged"):
            Server.resume(json.dumps(broken).encode())
    for damaged in (b"", b"[]", b"\xff", server.state()[:-5]):
        with pytest.raises(StateRefusal, match="damaged"):
            Server.resume(damaged)


# messages

QUESTION = Question(
    campaign=CAMPAIGN, step=70_000, part="compare", epsilon=0.125, size=5, oracle="oue"
)
ANSWER = Answer(
    campaign=CAMPAIGN, step=70_000, part="publish", token=bytes(range(16)), report=b"\x15"
)
GOLDEN = {
    "question": "74700101" + CAMPAIGN + "0000000000011170" + "00" + "00" * 16
    + "3fc0000000000000" + "00000005" + "01",
    "answer": "74700201" + CAMPAIGN + "0000000000011170" + "01"
    + "000102030405060708090a0b0c0d0e0f" + "15",
}  # fmt: skip
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
    ("question", "campaign", "0" * 31), ("question", "campaign", "G" * 32),
    ("question", "campaign", 5), ("question", "step", -1), ("question", "step", 1.0),
    ("question", "step", 2**63), ("question", "part", "other"), ("question", "part", []),
    ("question", "epsilon", 0), ("question", "epsilon", 101), ("question", "epsilon", "1"),
    ("question", "epsilon", True), ("question", "size", 1), ("question", "size", 2**21),
    ("question", "oracle", "none"), ("question", "oracle", []), ("question", "version", 2),
    ("question", "version", True), ("question", "version", None), ("question", "more", 1),
    ("answer", "token", "AAEC"), ("answer", "token", "?"), ("answer", "token", 3),
    ("answer", "report", ""), ("answer", "report", None), ("answer", "version", 0),
    ("answer", "step", None), ("answer", "tempriv", "stream question"),
]  # fmt: skip


@pytest.mark.parametrize("name, field, value", BAD, ids=repr)
def test_bad_messages_are_refused(name, field, value):
    kind = {"question": Question, "answer": Answer}[name]
    given = json.loads(GOLDEN_JSON[name])
    given[field] = value
    with pytest.raises(MessageRefusal):
        kind.from_json(json.dumps(given))


@pytest.mark.parametrize("text", ["", "[]", "{", "nan", "1" * 5000, "[" * 10**5, b"\xff", 5, None])
def test_what_is_no_json_object_is_refused(text):
    for kind in (Question, Answer):
        with pytest.raises(MessageRefusal, match="not a stream"):
            kind.from_json(text)


def test_messages_survive_fuzzing():
    rng = np.random.default_rng(1)
    starts = [bytes.fromhex(one) for one in GOLDEN.values()]
    texts = [one.encode() for one in GOLDEN_JSON.values()]
    for _ in range(1000):
        for kind, read, given in (
            (Question, Question.from_bytes, starts[0]), (Answer, Answer.from_bytes, starts[1]),
            (Question, Question.from_json, texts[0]), (Answer, Answer.from_json, texts[1]),
        ):  # fmt: skip
            data = bytearray(given)
            for place in rng.integers(len(data), size=rng.integers(1, 4)):
                data[place] = rng.integers(256)
            if rng.random() < 0.2:
                del data[int(rng.integers(len(data))) :]
            try:
                found = read(bytes(data))
            except MessageRefusal:
                continue
            assert kind.from_bytes(found.to_bytes()) == found
            assert kind.from_json(found.to_json()) == found


# errors


def test_published_shares_err_as_planned():
    plan = plan_of("LBU", people=5000, size=4, epsilon=2.0)
    values = np.repeat(np.arange(4), [2500, 1500, 1000, 0])
    trial = try_out(plan, lambda step: values, 1000, Key.from_seed(5))
    planned = plan.error(plan.terms(plan.uniform)[0], 5000)
    # of a mean of 1,000 sums of three squares at least: 2.6 % is its standard error at most
    assert trial.squared_errors.mean() == pytest.approx(planned, rel=0.17)


def test_a_stream_that_moves_is_followed_and_a_still_one_is_repeated():
    rates = np.where(np.arange(30) < 15, 0.1, 0.6)
    values = [np.arange(20_000) % 100 < 100 * rate for rate in rates]
    for method in ADAPTIVE:
        plan = plan_of(method, people=20_000, window=5, epsilon=4.0)
        trial = try_out(plan, lambda step: values[step].astype(int), 30, Key.from_seed(2))
        assert np.abs(trial.releases[[14, 29], 1] - rates[[14, 29]]).max() < 0.1
        assert 2 <= trial.published.sum() <= 25
    with pytest.raises(DataRefusal, match="one for each|whole number for each"):
        try_out(plan, lambda step: values[step][:5], 2, Key.from_seed(2))
    with pytest.raises(DataRefusal, match="from 0 to 1"):
        try_out(plan, lambda step: np.full(20_000, 2), 2, Key.from_seed(2))
