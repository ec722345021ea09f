"""Each classic mistake is noticed by the checks that are named beside it."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import fields, replace

import pytest

from tempriv.mechanisms.stream import Stream
from tempriv.mechanisms.value.laplace import Laplace
from tests.conformance.cases import NAMED
from tests.conformance.checks import CHECKS
from tests.conformance.distribution_checks import the_promise_holds
from tests.conformance.spec_checks import memory_stays_flat, spec_survives_json
from tests.mutants import (
    answers,
    budgets,
    counting,
    fourier,
    landmark,
    order,
    pattern,
    pegasus,
    period,
)
from tests.mutants.value import MUTANTS, streaming
from tests.support.statistics import COMPILED

HOW_MANY = 211

ENUMERATED = 2  # mutants of a mechanism whose outcomes are all listed each time


def said(pair_or_part):
    return getattr(pair_or_part, "__name__", None) or getattr(pair_or_part, "name", None)


def _pairs() -> list:
    """Every mutant beside every check; most that are long to enumerate are for the long tier."""
    seen: Counter[type] = Counter()
    found = []
    for mutant in MUTANTS:
        for check in mutant.killed_by:
            original = type(mutant.original.mechanism)
            seen[original] += check is the_promise_holds
            late = check is the_promise_holds and seen[original] > ENUMERATED
            marks = [pytest.mark.long] if late else []
            found.append(pytest.param(mutant, check, marks=marks))
    return found


@functools.cache
def passes(case, check):
    check(case)
    return True


@pytest.mark.parametrize(("mutant", "check"), _pairs(), ids=said)
def test_the_check_kills_the_mutant_and_spares_the_original(mutant, check):
    """What every mechanism must do, the original does in test_conformance."""
    if check is memory_stays_flat and not COMPILED:
        pytest.skip("see test_conformance")
    conforms = check in CHECKS and NAMED[mutant.original.name] is mutant.original
    assert conforms or passes(mutant.original, check)
    with pytest.raises(AssertionError):
        check(mutant.case)


class Renamed(Laplace):
    """Nothing is wrong with it."""

    start = streaming(Stream)


@pytest.mark.parametrize("check", CHECKS, ids=said)
def test_being_derived_kills_nothing_by_itself(check):
    original = NAMED["laplace, event"]
    given = {f.name: getattr(original.mechanism, f.name) for f in fields(Renamed)}
    if check is memory_stays_flat and not COMPILED:
        pytest.skip("see test_conformance")
    if check is spec_survives_json:
        pytest.skip("only the classes in ALL are decoded")
    check(replace(original, mechanism=Renamed(**given)))


def test_every_mutant_is_told_from_its_original():
    assert all(mutant.killed_by for mutant in MUTANTS)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_no_mutant_is_lost():
    assert len(MUTANTS) >= HOW_MANY
    homes = {type(mutant.case.mechanism).__module__ for mutant in MUTANTS}
    read = (
        *(answers, budgets, counting, fourier, landmark),
        *(order, pattern, pegasus, period),
    )
    files = {module.__name__ for module in read}
    assert homes >= files, "a file of mutants is not read"


def test_most_checks_are_known_to_see():
    """Checks that no mutant needs: their subjects are functions that a mechanism cannot replace."""
    needed = {check for mutant in MUTANTS for check in mutant.killed_by}
    blind = {check.__name__ for check in set(CHECKS) - needed}
    assert blind <= {"resume_across_an_epoch", "spec_survives_json", "wrong_states_are_refused"}
