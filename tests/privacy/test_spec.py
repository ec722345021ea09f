"""Specs as JSON: there and back, one byte form, and nothing built that was not asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempriv.errors import StateError, TemprivError
from tempriv.mechanisms import registry
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy import serialization, units
from tempriv.privacy.units import Event, Person, WholeSeries, Window, WithinDistance
from tests.conformance.case_checks import quick

VALUES = [
    Event(),
    Window(3),
    WholeSeries(9),
    Person(2, Window(3)),
    WithinDistance(2.5),
    WithinDistance(7),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_there_and_back(value):
    data = serialization.encode(value)
    assert data["is"] == serialization.spec_name(type(value))
    assert serialization.decode(json.loads(json.dumps(data)), units.all_units()) == value


def test_plain_values_stay_what_they_are():
    for value in (None, True, 3, 2.5, "text"):
        assert serialization.decode(serialization.encode(value), ()) == value
    assert serialization.decode(serialization.encode([1, (2, [3])]), ()) == (1, (2, (3,)))


def test_only_named_kinds_are_built():
    with pytest.raises(StateError, match="'Event': not a kind of value"):
        serialization.decode(serialization.encode(Event()), (Window,))
    for unknown in ({"is": "Path"}, {"is": "object"}, {"is": None}, {"is": ["Event"]}, {}):
        with pytest.raises(StateError, match="not a kind of value"):
            serialization.decode(unknown, units.all_units())


@pytest.mark.parametrize(
    "data",
    [
        {"is": "Window"},
        {"is": "Window", "length": 2, "width": 3},
        {"is": "Window", "size": 2},
        {"is": "Window", "length": {"is": "Event"}},
        {"is": "Laplace", "epsilon": 1.0},
        {"is": "Laplace", "epsilon": 1.0, "bounds": {"is": "Event"}},
        {"is": "Laplace", "epsilon": [], "bounds": [0, 1]},
        {"is": "PlanarLaplace", "epsilon": 1.0, "unit": {"is": "Near", "metres": 1}, "origin": "x"},
    ],
)
def test_wrong_fields_are_refused(data):
    with pytest.raises(TemprivError):
        registry.decode(data)


def test_a_refusal_of_the_value_itself_is_passed_on():
    with pytest.raises(TemprivError, match="window=0: "):
        serialization.decode({"is": "Window", "length": 0}, units.all_units())


names = st.sampled_from([kind.__name__ for kind in (*registry.classes(), *units.all_units())])
fields = st.sampled_from(
    [
        "epsilon",
        "rho",
        "bounds",
        "unit",
        "grid",
        "length",
        "metres",
        "each",
        "max_series",
        "per_column",
        "categories",
        "origin",
    ]
)
simple = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
anything = st.recursive(
    simple,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.builds(lambda n, d: {**d, "is": n}, names, st.dictionaries(fields, inner, max_size=5))
    ),
    max_leaves=8,
)


@quick
@given(st.builds(lambda n, d: {**d, "is": n}, names, st.dictionaries(fields, anything, max_size=5)))
def test_whatever_is_read_is_built_or_refused(data):
    try:
        serialization.decode(data, registry.classes() + units.all_units())
    except TemprivError as refusal:
        assert str(refusal)


def test_equal_specs_have_one_byte_form():
    pairs = [
        (WithinDistance(7), WithinDistance(7.0)),
        (Laplace(epsilon=1, bounds=(0, 5)), Laplace(epsilon=1.0, bounds=[[0.0, 5.0]])),
        (Laplace(epsilon=1, bounds=(-0.0, 5)), Laplace(epsilon=1, bounds=(0, 5))),
        (
            Laplace(epsilon=2, bounds=(0, 4), grid=1),
            Laplace(epsilon=2, bounds=(0, 4), grid=(1.0,), per_column=0),
        ),
    ]
    for one, other in pairs:
        assert one == other
        assert serialization.canonical(one) == serialization.canonical(other)
        assert serialization.digest(one) == serialization.digest(other)


@quick
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_other_specs_have_other_digests(one, other):
    digests = {
        serialization.digest(WithinDistance(one)),
        serialization.digest(WithinDistance(other)),
    }
    assert len(digests) == (1 if one == other else 2)
    assert all(len(digest) == 32 for digest in digests)


def test_kinds_with_equal_fields_are_told_apart():
    assert serialization.digest(Window(3)) != serialization.digest(WholeSeries(3))


def test_the_byte_form_does_not_depend_on_the_order_of_fields():
    @dataclass(frozen=True)
    class Pair:
        b: int
        a: int

    first = serialization.canonical(Pair(b=1, a=2))

    @dataclass(frozen=True)
    class Pair:
        a: int
        b: int

    assert serialization.canonical(Pair(a=2, b=1)) == first == b'{"a":2,"b":1,"is":"Pair"}'
