"""Plans: every answer is the largest that its method accepts, and the command prints it."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path

import pytest

from tempriv.accounting import composition
from tempriv.accounting.loss_distribution import AnyRelease, GaussianRelease, LaplaceRelease
from tempriv.accounting.planning import (
    MAX_EXACT_RELEASES,
    MethodResult,
    budget_per_release,
    count_within,
    totals_by_method,
)
from tempriv.errors import BudgetError, UsageError
from tempriv.ledger.ledger import Ledger
from tempriv.privacy.guarantees import Concentrated, Guarantee, Pure
from tempriv.privacy.units import Event
from tempriv.report.plots.budget import drawn, plot_plan
from tests.support.ledgers import EVERYONE

WEEK, EPSILON, DELTA = 10_080, 1.0, 1e-6


def by_name(ways: tuple[MethodResult, ...]) -> dict[tuple[str, str], MethodResult]:
    return {(way.method, way.noise): way for way in ways}


@pytest.fixture(scope="module")
def week() -> dict[tuple[str, str], MethodResult]:
    return by_name(budget_per_release(WEEK, EPSILON, DELTA))


def total_of(name: tuple[str, str], each: float, count: int) -> float:
    """What so many releases come to, by the method itself."""
    method, noise = name
    kind = LaplaceRelease(1 / each) if noise == "Laplace" else AnyRelease(each)
    return {
        "sum": lambda: composition.basic(each, 0.0, count),
        "advanced composition": lambda: composition.advanced(each, 0.0, count, DELTA),
        "optimal composition": lambda: composition.optimal(each, 0.0, count, DELTA),
        "Renyi": lambda: composition.renyi({kind: count}, DELTA),
        "exact": lambda: composition.exact({kind: count}, DELTA),
    }[method]().epsilon


@pytest.mark.parametrize(
    "name",
    [
        ("sum", "any pure"),
        ("advanced composition", "any pure"),
        ("optimal composition", "any pure"),
        ("Renyi", "any pure"),
        ("Renyi", "Laplace"),
        ("exact", "Laplace"),
    ],
)
def test_what_each_may_cost_just_keeps_the_promise(week, name):
    each = week[name].epsilon
    assert each is not None
    assert total_of(name, each, WEEK) <= EPSILON * (1 + 1e-6)
    assert total_of(name, each * 1.0001, WEEK) > EPSILON


def test_gaussian_noise_just_keeps_the_promise(week):
    ratio = week["exact", "Gaussian"].deviation
    assert composition.gaussian(ratio, WEEK, DELTA).epsilon == pytest.approx(EPSILON, rel=1e-9)
    for method, delta in (("zCDP", DELTA), ("ledger", DELTA / 2)):
        plan = {GaussianRelease(week[method, "Gaussian"].deviation): WEEK}
        assert composition.renyi(plan, delta).epsilon == pytest.approx(EPSILON, rel=1e-9)


def test_noise_is_compared_with_that_of_the_sum(week):
    summed = week["sum", "any pure"]
    assert summed.deviation == pytest.approx(math.sqrt(2) * WEEK)
    assert summed.against_sum == 1
    assert week["exact", "Gaussian"].against_sum == pytest.approx(0.0298, abs=1e-4)
    assert all(way.deviation <= summed.deviation for way in week.values())


def test_costs_may_be_chosen_as_one_goes_by_filters_only(week):
    adaptive = {name[0] for name, way in week.items() if way.adaptive}
    fixed = {name[0] for name, way in week.items() if not way.adaptive}
    assert adaptive == {"sum", "zCDP", "Renyi", "ledger"}
    assert fixed == {"advanced composition", "optimal composition", "exact"}


@pytest.mark.parametrize("count", [1, 30, 400])
def test_the_ledger_accepts_as_many_as_planned_and_not_one_more(ledger, count):
    ways = by_name(budget_per_release(count, EPSILON, DELTA, quick=True))
    pure, gaussian = ways["ledger", "any pure"].epsilon, ways["ledger", "Gaussian"].rho
    assert pure is not None and gaussian is not None
    for name, loss in (("pure", Pure(pure)), ("gaussian", Concentrated(gaussian))):
        assert fitting(ledger, name, Guarantee(loss=loss, unit=Event())) == count


def fitting(ledger: Ledger, name: str, promise: Guarantee) -> int:
    """How many the ledger takes until it refuses one."""
    ledger._file.execute("PRAGMA synchronous = OFF")
    ledger.create_dataset(name, epsilon=EPSILON, delta=DELTA)
    taken = 0
    while True:
        try:
            ledger.charge(name, promise, EVERYONE, f"{name} {taken}")
        except BudgetError:
            return taken
        taken += 1


def test_what_they_add_up_to_is_the_other_way_round(week):
    for name, way in week.items():
        if way.epsilon is None:
            continue
        again = by_name(totals_by_method(WEEK, way.epsilon, DELTA))[name]
        assert again.total == pytest.approx(EPSILON, rel=1e-5), name


def test_a_thousand_laplace_releases_add_up_as_known():
    found = by_name(totals_by_method(1000, 0.05, 1e-6))
    wanted = {("sum", "any pure"): 50, ("Renyi", "Laplace"): 8.73, ("exact", "Laplace"): 8.20}
    for name, total in wanted.items():
        assert found[name].total == pytest.approx(total, abs=5e-3)
    # Gaussian noise of the same deviation
    assert found["exact", "Gaussian"].deviation == pytest.approx(math.sqrt(2) * 20)


def test_without_delta_only_the_sum_is_known():
    assert [way.method for way in budget_per_release(7, 1.0, 0.0)] == ["sum"]
    assert [way.total for way in totals_by_method(7, 0.5, 0.0)] == [3.5]


def test_too_many_for_loss_distributions_are_planned_without():
    ways = by_name(budget_per_release(MAX_EXACT_RELEASES + 1, 1.0, 1e-6))
    assert ("exact", "Laplace") not in ways and ("exact", "Gaussian") in ways


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-6), (90.0, 1e-6), (1e-3, 0.9)])
def test_extreme_promises_have_a_plan(epsilon, delta):
    for way in budget_per_release(10, epsilon, delta):
        assert 0 < way.deviation < math.inf
    for way in totals_by_method(10, epsilon, delta):
        assert 0 <= way.total < math.inf or way.method == "advanced composition"


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ((1440, "day", "week"), 10_080),
        ((5,), 5),
        ((1, "hour", "90 days"), 2160),
        ((2, "month", "year"), 24),
        ((1, "2 hours", "day"), 12),
        ((3, "week", "day"), 3),
        ((1, "WEEK", " month "), 5),
    ],
)
def test_releases_are_counted_over_a_time(words, count):
    assert count_within(*words) == count


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: count_within(0), "releases=0: must be"),
        (lambda: count_within(5, per="day"), "say both"),
        (lambda: count_within(5, per="day", within="moon"), "within='moon': must be one of second"),
        (lambda: count_within(5, per="0 days", within="week"), "per='0 days': must be"),
        (lambda: count_within(10**6, "second", "day"), "at most 1,000,000"),
        (lambda: budget_per_release(5, 0.0, 0.0), "epsilon=0.0: must be"),
        (lambda: budget_per_release(5, math.nan, 0.0), "epsilon=nan: must be"),
        (lambda: budget_per_release(5, 1.0, 1e-15), "delta=1e-15: must be 0, or from"),
        (
            lambda: totals_by_method(5, 101.0, 0.0),
            "each=101.0: must be an epsilon > 0 and at most 100",
        ),
        (lambda: totals_by_method(0, 1.0, 0.0), "count=0: must be"),
    ],
)
def test_what_cannot_be_planned_is_refused(call, sentence):
    with pytest.raises(UsageError, match=sentence):
        call()


# the picture


@pytest.mark.parametrize("inverse", [False, True])
def test_the_picture_shows_every_method_with_units(inverse):
    def quick(number: int) -> tuple[MethodResult, ...]:
        return (
            totals_by_method(number, 0.1, 1e-6, True)
            if inverse
            else budget_per_release(number, 1.0, 1e-6, True)
        )

    figure = plot_plan(quick(100), 100, quick, "A plan", inverse)
    left, right = figure.axes
    assert left.get_xlabel() == "number of releases"
    unit = "epsilon of all releases together" if inverse else "standard deviation / sensitivity"
    assert unit in left.get_ylabel() and unit in right.get_xlabel()
    names = [label.get_text() for label in right.get_yticklabels()]
    assert len(names) == len(quick(100)) == 10
    assert {"sum, any pure", "exact, Gaussian", "Renyi, Laplace"} <= set(names)
    assert drawn(figure, "png").startswith(b"\x89PNG")
    assert b"number of releases" in drawn(figure, "svg")


def test_a_plan_of_one_release_without_delta_is_drawn_the_same_each_time():
    def picture(form: str) -> bytes:
        ways = budget_per_release(1, 1.0, 0.0)
        return drawn(plot_plan(ways, 1, lambda n: budget_per_release(n, 1.0, 0.0), "One"), form)

    assert picture("svg") == picture("svg")
    assert picture("pdf").startswith(b"%PDF")


# the command


@pytest.fixture
def run(run):
    return functools.partial(run, "budget", "plan")


ASKED = ["--releases", 1440, "--per", "day", "--within", "week", "--epsilon", 1, "--delta", 1e-6]


def test_the_command_prints_each_method_rounded_to_the_safe_side(run):
    status, out, err = run(*ASKED)
    assert (status, err) == (0, "")
    assert "10,080 releases that together keep epsilon = 1 at delta = 1e-06:" in out
    exact = next(line for line in out.splitlines() if line.split()[:2] == ["exact", "Laplace"])
    # 0.00235889 and 599.54
    assert "epsilon 0.002358 " in exact and " 599.6 " in exact and exact.rstrip().endswith("no")
    summed = next(line for line in out.splitlines() if line.split()[:1] == ["sum"])
    assert "epsilon 9.92e-05" in summed and summed.rstrip().endswith("yes")


def test_the_command_answers_the_other_question_too(run):
    status, out, _ = run("--releases", 1000, "--each", 0.05, "--delta", 1e-6)
    assert status == 0
    assert "1,000 releases of epsilon = 0.05 each at delta = 1e-06:" in out
    rows = [line.split() for line in out.splitlines() if " epsilon " in line]
    exact = next(row for row in rows if row[:2] == ["exact", "Laplace"])
    assert "8.205" in exact


def test_the_command_speaks_json(run):
    status, out, _ = run(*ASKED, "--json")
    assert status == 0
    found = json.loads(out)
    assert (found["releases"], found["epsilon"], found["each"]) == (10_080, 1.0, None)
    ways = {(way["method"], way["noise"]): way for way in found["ways"]}
    assert ways["optimal composition", "any pure"]["epsilon"] == pytest.approx(0.0023580, abs=1e-6)
    assert ways["exact", "Gaussian"]["adaptive"] is False


def test_the_command_draws_and_keeps_what_is_there(run):
    words = ["--releases", 50, "--epsilon", 1, "--delta", 1e-6, "--plot", "plan.svg"]
    status, out, _ = run(*words)
    assert status == 0 and "Picture: plan.svg" in out
    assert "<svg" in Path("plan.svg").read_text()
    status, _, err = run(*words)
    assert status == 1 and "plan.svg: exists already" in err
    assert run(*words, "--force")[0] == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--releases", 5], "give one of --epsilon"),
        (["--releases", 5, "--epsilon", 1, "--each", 1], "give one of --epsilon"),
        (["--releases", 5, "--per", "day", "--epsilon", 1], "say both how often"),
        (["--releases", 5, "--epsilon", 1, "--plot", "plan.gif"], "plan.gif: a picture ends in"),
        (["--releases", 5, "--epsilon", 1, "--plot", "no/plan.png"], "no: no such directory"),
        (["--releases", 5, "--epsilon", -1], "--epsilon -1: must be"),
    ],
)
def test_the_command_refuses_in_one_sentence(run, words, sentence):
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.startswith("tempriv: ") and sentence in err and err.count("\n") == 1
    assert not list(Path().iterdir())


def test_what_can_be_shown_without_delta_is_said(run):
    assert "--delta 1e-6 shows the others" in run("--releases", 5, "--epsilon", 1)[1]
