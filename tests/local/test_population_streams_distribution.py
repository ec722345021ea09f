"""A stream over a population, by messages and tried out at once, has the law of its definition."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tempriv.errors import DataError
from tempriv.local.device_ledger import WindowLedger
from tempriv.local.streams.messages import StreamQuestion
from tempriv.local.streams.protocol import METHODS, StreamProtocol, draw_devices
from tempriv.local.streams.roles import StreamDevice, StreamServer, simulate_answers
from tempriv.local.streams.simulate import simulate_grouped
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import Keystream, StepRange
from tests.local.test_population_streams import ADAPTIVE, CAMPAIGN, plan_of
from tests.reference import population_streams as reference
from tests.support.statistics import assert_cells


def by_definition(method, rows, epsilon):
    def draw(step, part, free, count):
        return draw_devices(CAMPAIGN, step, part, np.array(free), count).tolist()

    return reference.law(method, rows, epsilon, 2, draw)


def assert_law(outcomes, law, detects):
    """In cells of neighboring outcomes of at least a sixth of all."""
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
def test_a_trial_has_the_distribution_of_the_definition(method, monkeypatch):
    people, rows, law = law_of(method)
    plan = plan_of(method, people=people, epsilon=2.0, oracle="grr")
    outcomes = Counter()
    told = []

    class Noted(StreamProtocol):
        def after(self, support, people):
            told.append(int(support[1]))
            return super().after(support, people)

    monkeypatch.setattr("tempriv.local.streams.simulate.StreamProtocol", Noted)
    for run in range(700):
        told.clear()
        simulate_grouped(plan, lambda step: np.array(rows[step]), 3, Key.from_seed(run), CAMPAIGN)
        outcomes[tuple(told)] += 1
    assert_law(outcomes, law, detects=0.37)


@pytest.mark.parametrize("method", ["LBA", "LPD"])
def test_messages_have_the_distribution_of_the_definition(method):
    people, rows, law = law_of(method)
    plan = plan_of(method, people=people, epsilon=2.0, oracle="grr")
    outcomes = Counter()
    for run in range(700):
        server, told, key = StreamServer(plan, CAMPAIGN), [], Key.from_seed(run)
        for step, values in enumerate(rows):
            if step:
                server.next_step()
            while not server.is_done:
                answers = simulate_answers(server.question, np.array(values)[server.asked], key)
                assert not server.receive_many(answers)
                server._add_up()
                told.append(int(server._support[1]))
                server.close_question()
        outcomes[tuple(told)] += 1
    assert_law(outcomes, law, detects=0.37)


@pytest.mark.parametrize("oracle", ["grr", "oue", "olh", "hadamard"])
def test_a_device_reports_what_its_oracle_says(oracle):
    question = StreamQuestion(
        campaign=CAMPAIGN, step=3, part="publish", epsilon=0.5, size=5, oracle=oracle
    )
    for value in range(5):
        device = StreamDevice(WindowLedger(4, 1.0), size=5)
        device.observe(3, value)
        chain = Key.from_seed(value).series("device", oracle)
        answer = device.answer(question, key=chain)
        words = Keystream([StepRange(chain, 0, 1)], "stream report")
        assert answer.report == question.frequency.reports([value], words).tobytes()


@pytest.mark.parametrize("oracle", ["oue", "olh", "hadamard", "automatic"])
def test_other_oracles_find_the_shares_too(oracle):
    plan = plan_of("LPA", people=40_000, size=6, epsilon=4.0, oracle=oracle)
    values = np.arange(40_000) % 6 % 4
    trial = simulate_grouped(plan, lambda step: values, 4, Key.from_seed(3))
    # 10,000 answers at least: shares within 0.03, ten standard errors or so
    assert trial.published.any()
    assert np.abs(trial.releases[-1] - trial.truth[-1]).max() < 0.03


# errors


def test_published_shares_err_as_planned():
    plan = plan_of("LBU", people=5000, size=4, epsilon=2.0)
    values = np.repeat(np.arange(4), [2500, 1500, 1000, 0])
    trial = simulate_grouped(plan, lambda step: values, 1000, Key.from_seed(5))
    planned = plan.noise_variance(plan.epsilon_and_people(plan.uniform_share)[0], 5000)
    # of a mean of 1,000 sums of three squares at least: 2.6 % is its standard error at most
    assert trial.squared_errors.mean() == pytest.approx(planned, rel=0.17)


def test_a_stream_that_moves_is_followed_and_a_still_one_is_repeated():
    rates = np.where(np.arange(30) < 15, 0.1, 0.6)
    values = [np.arange(20_000) % 100 < 100 * rate for rate in rates]
    for method in ADAPTIVE:
        plan = plan_of(method, people=20_000, window=5, epsilon=4.0)
        trial = simulate_grouped(plan, lambda step: values[step].astype(int), 30, Key.from_seed(2))
        assert np.abs(trial.releases[[14, 29], 1] - rates[[14, 29]]).max() < 0.1
        assert 2 <= trial.published.sum() <= 25
    with pytest.raises(DataError, match="one for each|whole number for each"):
        simulate_grouped(plan, lambda step: values[step][:5], 2, Key.from_seed(2))
    with pytest.raises(DataError, match="from 0 to 1"):
        simulate_grouped(plan, lambda step: np.full(20_000, 2), 2, Key.from_seed(2))
