"""What an answer about shapes gives away: every report that devices may send, for all inputs."""

from __future__ import annotations

import contextlib
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from tempriv.errors import BudgetError
from tempriv.local.device_ledger import DeviceLedger
from tempriv.local.frequency.oracles import GRR, ORACLES
from tempriv.local.shapes.messages import EXPONENTIAL, HEAD, INDEX, ShapesQuestion
from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.randomizer import (
    NO_CELL,
    NO_LABEL,
    LocalAnswers,
    ReportKeystreams,
    local_answers,
)
from tempriv.local.shapes.roles import ShapesDevice, simulate_answers
from tempriv.local.shapes.sax import Sax
from tempriv.privacy.guarantees import Pure
from tempriv.privacy.units import WholeSeries
from tempriv.sampling.exponential import ExponentialChoice
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange
from tests.support.statistics import LEAST_EXPECTED, assert_cells

CAMPAIGN = "00112233445566778899aabbccddeeff"
TOLERANCE = 1e-9
EPSILON = {"grr": 4.0, "oue": 2.0, "olh": 0.5, "hadamard": 3.0, EXPONENTIAL: 4.0}
# OLH has P^2 hashes to list: few at a small epsilon


def sequences(symbols, longest, compressed):
    found = []
    for length in range(1, longest + 1):
        for letters in itertools.product("abc"[:symbols], repeat=length):
            if not compressed or all(a != b for a, b in itertools.pairwise(letters)):
                found.append("".join(letters))
    return found


def asked(kind, oracle, *, symbols=3, longest=4, compressed=True, **given):
    given = {"epsilon": EPSILON[oracle], "high": longest, **given}
    return ShapesQuestion(
        campaign=CAMPAIGN,
        round=0,
        kind=kind,
        oracle=oracle,
        sax=Sax(symbols=symbols, segment=1, longest=longest, compressed=compressed),
        **given,
    )


def seen_by(question):
    """All inputs of a device, and what each has to say; its label may be none of those asked."""
    texts = sequences(question.sax.symbols, question.sax.longest, question.sax.compressed)
    if not question.labels:
        return texts, local_answers(question, texts)
    pairs = list(itertools.product(texts, (NO_LABEL, *range(len(question.labels)))))
    return pairs, local_answers(
        question, [text for text, _ in pairs], [label for _, label in pairs]
    )


def worst_loss(laws):
    """The largest log ratio of the probabilities of a report, over all pairs of inputs."""
    reports = sorted(set().union(*laws))
    table = np.array([[law.get(report, 0.0) for report in reports] for law in laws])
    assert table.sum(axis=1) == pytest.approx(1.0, abs=1e-9)
    high, low = table.max(axis=0), table.min(axis=0)
    if (low[high > 0] == 0).any():
        return math.inf
    return float(np.log(high / low).max())


def laws_of(seen):
    """The law of each input; inputs that have the same to say are listed once."""
    if seen.scores is not None:
        return [seen.outcomes(i) for i in range(len(seen.scores))]
    _, first = np.unique(seen.cells, axis=0, return_index=True)
    return [seen.outcomes(int(i)) for i in first]


TREE = ("ab", "ac", "ba", "bc", "ca", "cb")
ENDED = ("a.", "ab.", "ab", "cb", "b.")
QUESTIONS = {
    **{f"length {name}": asked("length", name) for name in ORACLES},
    **{f"length from 2 {name}": asked("length", name, low=2) for name in ORACLES},
    **{f"bigram {name}": asked("bigram", name) for name in ("grr", "oue", "hadamard")},
    "bigram olh": asked("bigram", "olh", symbols=2, longest=3),
    **{f"bigram ends {name}": asked("bigram", name, ends=True) for name in ("grr", "hadamard")},
    "bigram ends oue": asked("bigram", "oue", symbols=2, longest=3, ends=True),
    "bigram ends olh": asked("bigram", "olh", symbols=2, longest=3, ends=True),
    "bigram all pairs": asked("bigram", "grr", symbols=2, compressed=False),
    **{f"level {name}": asked("level", name, candidates=TREE) for name in ORACLES},
    **{
        f"level ends {name}": asked("level", name, candidates=ENDED, ends=True, distance="dtw")
        for name in ORACLES
    },
    "level all pairs": asked(
        "level", "grr", symbols=2, compressed=False, candidates=("aa", "ab", "b")
    ),
    **{
        f"refine {name}": asked("refine", name, candidates=("ab", "acb", "c"), distance="euclidean")
        for name in ORACLES
    },
    **{
        f"refine labels {name}": asked(
            "refine", name, candidates=("ab", "acb", "c"), labels=("x", "y"), ends=True
        )
        for name in ORACLES
    },
    **{f"whole {name}": asked("whole", name, longest=3, high=2) for name in ("grr", "hadamard")},
    "whole oue": asked("whole", "oue", symbols=2, high=3),
    "whole olh": asked("whole", "olh", symbols=2, high=3),
    "whole labels": asked("whole", "grr", longest=3, labels=("x", "y", "z")),
    "whole all pairs": asked("whole", "grr", symbols=2, longest=3, compressed=False),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_report_loses_at_most_epsilon_and_just_that(name):
    question = QUESTIONS[name]
    _, seen = seen_by(question)
    found = worst_loss(laws_of(seen))
    assert found <= question.epsilon + TOLERANCE
    # two inputs with different cells make an oracle lose all of it
    assert found == pytest.approx(question.epsilon, abs=1e-9), "the true worst case"


# the exponential mechanism loses less than it says


CHOICES = {
    # candidates: how much of epsilon 4 sequences of up to four of three symbols can lose
    "two": (asked("level", EXPONENTIAL, symbols=2, candidates=("a", "b")), 2.0),
    "first symbols": (asked("level", EXPONENTIAL, candidates=("a", "b", "c")), 2.0),
    "six, levenshtein": (asked("level", EXPONENTIAL, candidates=TREE), None),
    "six, dtw": (asked("level", EXPONENTIAL, candidates=TREE, distance="dtw"), None),
    "ends": (asked("level", EXPONENTIAL, candidates=ENDED, ends=True), None),
    "eighteen": (
        asked(
            "level", EXPONENTIAL, candidates=tuple(sequences(3, 3, True)[3:]), distance="euclidean"
        ),
        None,
    ),
}


def most_of_a_choice(epsilon, options):
    """The largest loss over all scores from 0 to 1: it is taken where each is 0 or 1."""
    half = epsilon / 2
    best = math.exp(half) / (math.exp(half) + options - 1)
    least = 1 / (1 + (options - 1) * math.exp(half))
    return math.log(best / least)


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_among_candidates_loses_less_than_epsilon(name):
    question, exact = CHOICES[name]
    _, seen = seen_by(question)
    found = worst_loss(laws_of(seen))
    bound = most_of_a_choice(question.epsilon, len(question.candidates))
    assert 0 < found <= bound + TOLERANCE < question.epsilon
    if exact is not None:
        assert found == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("options, most", [(2, 2.00), (6, 3.12), (18, 3.65)])
def test_the_most_that_a_choice_can_lose(options, most):
    epsilon, chances = 4.0, []
    for own, others in itertools.product((0.0, 1.0), range(options)):
        scores = np.array([own] + [1.0] * others + [0.0] * (options - 1 - others))
        if scores.max() == 1 and (scores.min() == 0 or scores.all()):  # as they are scaled
            chances.append(ExponentialChoice(scores, epsilon, 1.0).probabilities[0])
    found = math.log(max(chances) / min(chances))
    assert found == pytest.approx(most_of_a_choice(epsilon, options), abs=1e-9)
    assert found == pytest.approx(most, abs=0.005)


def test_the_promise_of_a_plan_is_that_of_an_answer():
    plan = ShapesPlan(epsilon=4.0, shapes=2, people=10, sax=Sax(), readings=300)
    assert plan.guarantee.loss == Pure(4.0)
    assert plan.guarantee.unit == WholeSeries(300)


# devices draw from the law that was listed


DRAWS = 60_000
STATED = 0.06  # relative deviation of the law, root mean square, that a test of 60,000 detects


def assert_law(reports, law):
    """Reports are drawn from the law: chi-square, alpha 1e-9; rare reports are joined."""
    told = dict.fromkeys(law, 0)
    for report in reports:
        told[report] += 1  # a report that is not in the law has no place here
    least, counts, masses = 1.2 * LEAST_EXPECTED / len(reports), [0], [0.0]
    for report, mass in sorted(law.items(), key=lambda one: one[1]):
        if masses[-1] >= max(least, 1 / 60):
            counts.append(0)
            masses.append(0.0)
        counts[-1] += told[report]
        masses[-1] += mass
    if len(masses) > 1 and masses[-1] < least:
        masses[-2] += masses.pop()
        counts[-2] += counts.pop()
    assert_cells(counts, masses, detects=STATED)


def drawn(seen, one, seed, kind=LocalAnswers):
    words = ReportKeystreams([StepRange(Key.from_seed(seed).series("answers", "people"), 0, DRAWS)])
    mine = kind(seen.question, seen.cells, seen.scores)
    return [row.tobytes() for row in mine.reports(np.full(DRAWS, one), words)]


SAMPLED = {
    **QUESTIONS,
    **{f"choice {name}": question for name, (question, _) in CHOICES.items()},
}
FEW = [
    *("length grr", "length oue", "length hadamard", "bigram grr", "bigram ends oue"),
    *("bigram hadamard", "level hadamard", "refine labels grr", "refine labels oue"),
    *("whole grr", "whole olh", "choice six, levenshtein", "choice ends"),
]


@pytest.mark.parametrize("name", FEW)
def test_devices_draw_from_the_listed_distribution(name):
    question = SAMPLED[name]
    if question.epsilon > 1:  # so that there is something of every report
        question = replace(question, epsilon=1.0)
    inputs, seen = seen_by(question)
    some = {0, len(inputs) // 2, len(inputs) - 1}
    for one in sorted(some):
        assert_law(drawn(seen, one, seed=one), seen.outcomes(one))
    # and a law that is a little different is told apart
    _, other = seen_by(replace(question, epsilon=1.4 * question.epsilon))
    with pytest.raises(AssertionError, match="chi-square"):
        assert_law(drawn(seen, len(inputs) - 1, seed=0), other.outcomes(len(inputs) - 1))


@pytest.mark.parametrize("name", ["length grr", "bigram grr", "choice ends", "whole olh"])
def test_one_device_says_what_it_says_among_many(name):
    question = SAMPLED[name]
    for seed in range(20):
        key = Key.from_seed(seed)
        series = np.random.default_rng(seed).normal(size=3)
        together = simulate_answers(question, [series, [0.0, 1.0]], key=key)
        alone = ShapesDevice(series).answer(question, key.again("answers", str(question.round)))
        assert together[0][HEAD.size :] == alone.report
    fresh = {ShapesDevice(series).answer(question).token for _ in range(50)}
    assert len(fresh) == 50


def test_a_seed_gives_the_same_messages_and_no_seed_gives_others():
    question = QUESTIONS["whole olh"]
    people = [[0.0, 1.0]] * 40
    first, second = (simulate_answers(question, people, key=Key.from_seed(3)) for _ in range(2))
    assert first == second
    assert len(set(first)) == 40
    assert set(simulate_answers(question, people)).isdisjoint(simulate_answers(question, people))


# mistakes


class LevelByOwnLength(LocalAnswers):
    """The level is drawn from where the sequence has pairs, and said in clear."""

    def _own(self, one):
        return [level for level in range(self.question.levels) if self.cells[one, level] >= 0]

    def outcomes(self, one):
        own, found = self._own(one) or [0], {}
        for level in own:
            cell = max(0, int(self.cells[one, level]))
            for report, p in self.question.frequency.outcomes(cell).items():
                found[bytes([level]) + report] = p / len(own)
        return found

    def reports(self, which, words):
        own = np.array(self._own(which[0]) or [0])
        levels = own[np.arange(len(which)) % len(own)]
        cells = np.maximum(self.cells[which, levels], 0)
        sent = self.question.frequency.reports(cells, words("report"))
        return np.concatenate([levels.astype(np.uint8)[:, None], sent], axis=1)


class PaddedPairInClear(LocalAnswers):
    def outcomes(self, one):
        found = {}
        for level in range(self.question.levels):
            cell = int(self.cells[one, level])
            law = self.question.frequency.outcomes(max(cell, 0))
            if cell == NO_CELL:
                law = dict.fromkeys(law, 0.0) | {bytes([0]): 1.0}
            for report, p in law.items():
                found[bytes([level]) + report] = p / self.question.levels
        return found


class LabelInClear(LocalAnswers):
    def outcomes(self, one):
        labels = len(self.question.labels)
        candidate, label = divmod(int(self.cells[one, 0]), labels)
        oracle = GRR(epsilon=self.question.epsilon, size=len(self.question.candidates))
        return {
            report + bytes([other]): p if other == label else 0.0
            for report, p in oracle.outcomes(candidate).items()
            for other in range(labels)
        }


class RefusesOtherLabels(LocalAnswers):
    """That a device does not answer is seen, and costs it nothing."""

    def outcomes(self, one):
        law = super().outcomes(one) | {b"": 0.0}
        return dict.fromkeys(law, 0.0) | {b"": 1.0} if self.cells[one, 0] == NO_CELL else law


class AnswersTwice(LocalAnswers):
    def outcomes(self, one):
        law = super().outcomes(one).items()
        return {a + b: p * q for (a, p), (b, q) in itertools.product(law, repeat=2)}


class ScoresOfTwoSteps(LocalAnswers):
    """As if one person could move a score by half of what it can."""

    def outcomes(self, one):
        law = ExponentialChoice(self.scores[one], self.question.epsilon, 0.5)
        return {INDEX.pack(i): p for i, p in enumerate(law.probabilities.tolist())}


class RemovesTheValue(GRR):
    """Values are counted from ``low``; the other one to say is drawn after removing number value
    from the list, and not the number of the value in it."""

    def outcomes(self, value):
        removed = (value + 1) % self.size
        left = [other for other in range(self.size) if other != removed]
        law = {bytes([other]): (1 - self.keep) / len(left) for other in left}
        law[bytes([removed])] = 0.0
        law[bytes([value])] += self.keep
        return law


@pytest.mark.parametrize(
    "mutant, name, loss",
    [
        (LevelByOwnLength, "bigram grr", math.inf),
        (PaddedPairInClear, "bigram grr", math.inf),
        (LabelInClear, "refine labels grr", math.inf),
        (RefusesOtherLabels, "refine labels grr", math.inf),
        (RefusesOtherLabels, "whole labels", math.inf),
        (AnswersTwice, "level grr", 2 * 4.0),
    ],
    ids=lambda one: getattr(one, "__name__", str(one)),
)
def test_mistakes_of_a_device_are_noticed(mutant, name, loss):
    _, seen = seen_by(QUESTIONS[name])
    broken = mutant(seen.question, seen.cells, seen.scores)
    assert worst_loss([broken.outcomes(i) for i in range(len(seen.cells))]) == pytest.approx(loss)


def test_a_score_that_is_not_scaled_is_noticed():
    question, _ = CHOICES["six, dtw"]
    _, seen = seen_by(question)
    broken = ScoresOfTwoSteps(seen.question, seen.cells, seen.scores)
    assert worst_loss(laws_of(broken)) > question.epsilon + 1


def test_a_value_removed_in_place_of_its_number_is_noticed():
    question = asked("length", "grr", low=2)
    _, seen = seen_by(question)
    broken = replace(question)
    object.__setattr__(broken, "frequency", RemovesTheValue(epsilon=4.0, size=question.cells))
    assert worst_loss(laws_of(replace(seen, question=broken))) == math.inf


def test_a_level_by_own_length_is_noticed_by_its_draws_too():
    _, seen = seen_by(replace(QUESTIONS["bigram grr"], epsilon=1.0))
    law = seen.outcomes(5)
    assert_law(drawn(seen, 5, seed=5), law)
    with pytest.raises(AssertionError, match="chi-square"):
        assert_law(drawn(seen, 5, seed=5, kind=LevelByOwnLength), law)


class PaddedPairFixed(LocalAnswers):
    """Private, but all padded pairs count for the first cell."""

    def __init__(self, question, cells, scores=None):
        super().__init__(question, np.where(cells == NO_CELL, 0, cells), scores)


def test_a_padded_pair_counts_for_every_cell_alike():
    question = replace(QUESTIONS["bigram grr"], epsilon=1.0)
    inputs, seen = seen_by(question)
    one = inputs.index("a")
    law = seen.outcomes(one)
    assert list(law.values()) == pytest.approx([1 / len(law)] * len(law))
    assert_law(drawn(seen, one, seed=2), law)
    fixed = PaddedPairFixed(question, seen.cells)
    assert worst_loss(laws_of(fixed)) <= question.epsilon + TOLERANCE  # it is private
    with pytest.raises(AssertionError, match="chi-square"):
        assert_law(drawn(seen, one, seed=2, kind=PaddedPairFixed), law)


@pytest.mark.parametrize("name", ["refine labels grr", "refine labels hadamard", "whole labels"])
def test_a_label_that_nobody_asks_for_counts_for_every_cell_alike(name):
    question = QUESTIONS[name]
    cells = range(question.cells)
    seen = local_answers(question, ["ab"], [NO_LABEL])
    each = [question.frequency.outcomes(cell) for cell in cells]
    for report, p in seen.outcomes(0).items():
        assert p == pytest.approx(sum(law.get(report, 0.0) for law in each) / len(cells))
    # and that is what a device with such a label does
    rare = replace(question, labels=tuple(f"not {one}" for one in question.labels))
    chain = Key.from_seed(5).series("answers", "one")
    alone = ShapesDevice([0.0, 1.0], label="y").answer(rare, chain)
    by_itself = local_answers(rare, ["ac"], [NO_LABEL]).reports(
        np.zeros(1, int), ReportKeystreams([StepRange(chain, 0, 1)])
    )
    assert alone.report == by_itself.tobytes()


class ForgetfulLedger(DeviceLedger):
    def _spend(self, campaign, epsilon):
        pass


def answered(ledger, times):
    device = ShapesDevice([0.0, 1.0], ledger=ledger)
    told = []
    for _ in range(times):
        with contextlib.suppress(BudgetError):
            told.append(device.answer(QUESTIONS["length grr"]))
    return len(told)


def test_a_device_that_answers_twice_is_noticed():
    assert answered(DeviceLedger(), 3) == 1
    assert answered(ForgetfulLedger(), 3) == 3
