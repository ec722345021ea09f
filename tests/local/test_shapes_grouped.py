"""A campaign tried out at once has the law of one by messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tempriv.errors import UsageError
from tempriv.local.shapes.messages import HEAD, ShapesQuestion
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.randomizer import NO_LABEL, LocalAnswers, local_answers
from tempriv.local.shapes.roles import ShapesServer, simulate_answers, support_of
from tempriv.local.shapes.sax import Sax
from tempriv.local.shapes.simulate import simulate_grouped, simulate_round
from tempriv.sampling.keys import Key

CAMPAIGN = "00112233445566778899aabbccddeeff"
SAX = Sax(symbols=3, segment=1, longest=4)
SERIES = {"a": [-2, 0, 0, 2], "acb": [-3.0, 3.0, 0.0], "ba": [0.9, -0.9], "cac": [2.0, -4.0, 2.0]}
TEXTS = SAX.sequences([np.array(one, dtype=float) for one in SERIES.values()]).texts()
COUNTS = np.array([9, 0, 14, 7, 5])[: len(TEXTS)]
LABELS = [0, 1, 1, 0]

KINDS = {
    "length": {},
    "bigram": {},
    "bigram with ends": {"ends": True},
    "level": {"candidates": ("ac", "ba", "cb")},
    "refine": {"candidates": ("acb", "ba", "c."), "ends": True, "labels": ("x", "y")},
    "whole": {"high": 2},
}
# OUE and OLH have many reports to list: where there are few cells, and once
EACH = [
    *((kind, oracle) for kind in KINDS for oracle in ("grr", "hadamard")),
    *(("length", "oue"), ("bigram", "oue"), ("refine", "oue"), ("level", "olh")),
    ("level", "exponential"),
]


def asked(kind, oracle, **given):
    given = {"high": 3, "epsilon": 0.5 if oracle == "olh" else 1.0, **KINDS[kind], **given}
    return ShapesQuestion(
        campaign=CAMPAIGN, round=0, kind=kind.split()[0], oracle=oracle, sax=SAX, **given
    )


def labels_of(question):
    return LABELS if question.labels else None


def _supports(question, rows):
    """The support that each report gives by itself."""
    different, which = np.unique(rows, axis=0, return_inverse=True)
    if (key := (question, different.tobytes())) not in KNOWN:
        KNOWN[key] = np.array([support_of(question, row[None]) for row in different], dtype=float)
    return KNOWN[key][which.ravel()]


KNOWN = {}


def moments(question, counts):
    """Mean and covariance of the support that these people give, from every report."""
    seen = local_answers(question, TEXTS, labels_of(question))
    mean, covariance = 0.0, 0.0
    for one in np.flatnonzero(counts).tolist():
        law = seen.outcomes(one)
        rows = np.frombuffer(b"".join(law), dtype=np.uint8).reshape(len(law), -1)
        each = _supports(question, rows)
        chances = np.array(list(law.values()))
        own = chances @ each
        mean = mean + counts[one] * own
        covariance = covariance + counts[one] * ((each.T * chances) @ each - np.outer(own, own))
    return mean, covariance


FAR = 7.0
"""Standard errors that a mean or variance may be off: alpha 3e-12 by the normal law."""


def is_like(runs, mean, covariance):
    """Whether many sums have these moments: of each cell, and of some sums of cells.

    With 3,000 runs a mean that is off by 0.13 of a standard deviation is noticed, and a variance
    that is off by a fifth.
    """
    cells = runs.shape[1]
    signs = np.random.default_rng(3).choice([-1.0, 0.0, 1.0], size=(12, cells))
    for direction in [*np.eye(cells), np.ones(cells), *signs]:
        found, spread = runs @ direction, direction @ covariance @ direction
        if spread < 1e-9:
            if not np.allclose(found, direction @ mean):
                return False
            continue
        off = abs(found.mean() - direction @ mean) / np.sqrt(spread / len(runs))
        # the fourth moment of a sum of many is hardly above that of the normal law
        more = abs(found.var() / spread - 1) / np.sqrt(3 / len(runs))
        if off > FAR or more > FAR:
            return False
    return True


# every kind and every oracle once; the rest of the pairs takes half a minute
ONCE = {
    ("refine", "grr"),
    ("bigram", "oue"),
    ("level", "olh"),
    ("length", "hadamard"),
    ("level", "exponential"),
}
SOME = [
    pytest.param(*pair, marks=() if pair in ONCE else pytest.mark.long, id="-".join(pair))
    for pair in EACH
]


@pytest.mark.parametrize("kind, oracle", SOME)
def test_a_group_answers_as_its_devices_do(kind, oracle):
    question = asked(kind, oracle)
    mean, covariance = moments(question, COUNTS)
    generator = np.random.default_rng(11)
    times = 3000
    grouped = np.array(
        [
            simulate_round(question, TEXTS, COUNTS, labels_of(question), generator)
            for _ in range(times)
        ]
    )
    assert grouped.shape[1] == len(mean)
    assert is_like(grouped, mean, covariance)
    assert is_like(by_messages(question, 500), mean, covariance)
    wrong = moments(replace(question, epsilon=1.5 * question.epsilon), COUNTS)
    if wrong[0].shape == mean.shape:  # OLH has other cells at another epsilon
        assert not is_like(grouped, *wrong)
    # a few people more are noticed, too
    assert not is_like(grouped, *moments(question, COUNTS + np.array([0, 0, 3, 0])))


def by_messages(question, times):
    """Support from messages, each time of the same people."""
    which = np.tile(np.repeat(np.arange(len(TEXTS)), COUNTS), times)
    series = [np.array(one, dtype=float) for one in SERIES.values()]
    labels = None if not question.labels else [LABELS[i] for i in which]
    messages = simulate_answers(question, [series[i] for i in which], labels, Key.from_seed(5))
    reports = np.array([np.frombuffer(one[HEAD.size :], dtype=np.uint8) for one in messages])
    return np.array([support_of(question, part) for part in np.split(reports, times)])


def test_scores_that_count_half_are_noticed():
    question = asked("level", "exponential")
    seen = local_answers(question, TEXTS)
    lazy = LocalAnswers(question, seen.cells, seen.scores / 2)
    generator = np.random.default_rng(1)
    runs = sum(generator.multinomial(n, lazy.chances[i], size=3000) for i, n in enumerate(COUNTS))
    assert not is_like(runs, *moments(question, COUNTS))


def test_groups_and_devices_have_one_distribution_of_scores(monkeypatch):
    """There is one place that makes probabilities of scores: if it is wrong, both are."""
    question = asked("level", "exponential")
    seen = local_answers(question, TEXTS)
    for i in range(len(TEXTS)):
        assert list(seen.outcomes(i).values()) == seen.chances[i].tolist()

    def first_only(utilities, epsilon, sensitivity):
        return np.zeros(utilities.shape) + (np.arange(utilities.shape[-1]) == 0)

    monkeypatch.setattr("tempriv.sampling.exponential.probabilities_of", first_only)
    monkeypatch.setattr("tempriv.local.shapes.randomizer.probabilities_of", first_only)
    found = simulate_round(question, TEXTS, COUNTS, None, np.random.default_rng(1))
    assert found.tolist() == [COUNTS.sum(), 0, 0]
    assert list(local_answers(question, TEXTS).outcomes(0).values()) == [1.0, 0.0, 0.0]


def test_a_group_with_labels_that_nobody_asks_for_says_anything():
    question = asked("refine", "grr", epsilon=8.0)
    runs = [
        simulate_round(
            question, TEXTS, 60 * COUNTS, [NO_LABEL] * len(TEXTS), np.random.default_rng(seed)
        )
        for seed in range(50)
    ]
    people = 50 * 60 * int(COUNTS.sum())
    # 105,000 in six cells: a cell that is off by 8 % of itself is noticed, alpha 1e-9
    found = stats.chisquare(np.sum(runs, axis=0)).pvalue
    assert np.sum(runs) == people and found > 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_gives_no_support(kind):
    question = asked(kind, "grr")
    none = simulate_round(
        question, TEXTS, 0 * COUNTS, labels_of(question), np.random.default_rng(1)
    )
    levels = question.levels if question.kind == "bigram" else 1
    assert none.tolist() == [0] * (levels * question.cells)


# whole campaigns


def plan_of(method, **given):
    return ShapesPlan(
        **{
            "epsilon": 1.0,
            "shapes": 1,
            "people": 150,
            "sax": SAX,
            "method": method,
            "breadth": 2,
            "least": 3,
            **given,
        }
    )


PEOPLE = np.array([70, 30, 40, 10])


def found(protocol):
    return tuple(shape.text for shape in protocol.shapes)


def tried(plan, times, seed):
    labels = LABELS if plan.labels else None
    for i in range(times):
        yield found(simulate_grouped(plan, TEXTS, PEOPLE, Key.from_seed(seed + i), labels))


def by_roles(plan, times, seed):
    series = [np.array(one, dtype=float) for one in SERIES.values()]
    everyone = np.repeat(np.arange(len(TEXTS)), PEOPLE)
    for i in range(times):
        order = np.random.default_rng(seed + i).permutation(everyone)
        server, begin = ShapesServer(plan), 0
        while not server.is_over:
            now = order[begin : begin + server.wanted]
            begin += server.wanted
            if len(now):
                labels = [LABELS[one] for one in now] if server.question.labels else None
                answers = simulate_answers(server.question, [series[one] for one in now], labels)
                assert not server.receive_many(answers)
            server.close_round()
        yield found(server.protocol)


def are_alike(some, others):
    """Two samples of one law: chi-square with alpha 1e-9, rare outcomes joined.

    Of 300 and 100, a law that moves a third of the mass is noticed.
    """
    left, right = Counter(some), Counter(others)
    common = [one for one, n in (left + right).most_common() if n >= 20]
    table = np.array([[count[one] for one in common] for count in (left, right)])
    rest = np.array([[sum(left.values())], [sum(right.values())]]) - table.sum(1, keepdims=True)
    table = np.hstack([table, rest])
    table = table[:, table.sum(axis=0) > 0]
    assert table.shape[1] >= 2, "there is something to compare"
    return stats.chi2_contingency(table).pvalue > 1e-9


@pytest.mark.parametrize("method", ["published", "nearest", "one-shot"])
def test_a_campaign_by_messages_and_one_tried_out_find_the_same(method):
    plan = plan_of(method)
    together = list(tried(plan, 300, seed=0))
    assert are_alike(together, by_roles(plan, 100, seed=0))
    assert are_alike(together, tried(plan, 300, seed=1000))


def test_a_campaign_with_more_noise_is_told_apart():
    together = list(tried(plan_of("nearest", epsilon=4.0), 300, seed=0))
    assert not are_alike(together, by_roles(plan_of("nearest", epsilon=0.2), 100, seed=0))


@pytest.mark.parametrize("labels", [(), ("x", "y")], ids=["plain", "labels"])
@pytest.mark.parametrize("method", ["baseline", "published", "nearest", "one-shot", "automatic"])
def test_a_trial_repeats_itself_and_asks_nobody_twice(method, labels, monkeypatch):
    plan, groups = plan_of(method, labels=labels), []
    module = simulate_grouped.__globals__

    def watched(question, texts, group, labels, generator):
        groups.append(group.copy())
        return simulate_round(question, texts, group, labels, generator)

    monkeypatch.setitem(module, "answered", watched)
    given = LABELS if labels else None
    first, second = (
        simulate_grouped(plan, TEXTS, PEOPLE, Key.from_seed(4), given) for _ in range(2)
    )
    assert first == second
    assert first.stage == "done"
    half = groups[: len(groups) // 2]
    assert (sum(half) <= PEOPLE).all()
    with pytest.raises(UsageError, match="counts"):
        simulate_grouped(plan, TEXTS, PEOPLE[1:], Key.from_seed(4), given)


@pytest.mark.parametrize("method", ["baseline", "published", "nearest", "one-shot"])
def test_a_trial_with_too_few_people_comes_to_an_end(method):
    for few in (0, 1, 5):
        counts = np.array([few, 0, 0, 0])
        assert simulate_grouped(plan_of(method), TEXTS, counts, Key.from_seed(1)).stage == "done"
