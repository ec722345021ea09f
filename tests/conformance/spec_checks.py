"""Specs and states of every mechanism: each field counts, and no state is forged."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import hashlib
import json
import math
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tempriv.errors import StateError
from tempriv.mechanisms import registry
from tempriv.mechanisms.domains import OpaqueRows as MovedRows
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.mechanisms.perturb import limit_of
from tempriv.mechanisms.stream import MAGIC, resume
from tempriv.privacy import serialization
from tempriv.privacy.units import Answers, Contribution, Event, WholeSeries, Window, WithinDistance
from tempriv.sampling.keys import Key
from tests.conformance.case_checks import Case, quick, recorded


def budget_of(mechanism: Any) -> str:
    """The name of the field that says how much is given away."""
    names = ("epsilon", "rho", "epsilon_forever")
    return next(name for name in names if getattr(mechanism, name, None) is not None)


def with_budget(mechanism: Any, budget: float) -> Any:
    """The mechanism, or the one for values that it is made over, with another budget."""
    if isinstance(mechanism.domain, WithLandmarks):
        return replace(mechanism, over=with_budget(mechanism.over, budget))
    found = {"rho": None} if is_calibrated(mechanism) else {}
    return replace(mechanism, **found, **{budget_of(mechanism): budget})


def is_calibrated(mechanism: Any) -> bool:
    """Whether its rho was found from epsilon and delta, and is found anew with other settings."""
    return getattr(mechanism, "rho", None) is not None and mechanism.epsilon is not None


def _another_unit(unit: Any) -> Any:
    if isinstance(unit, Contribution):
        kind = WholeSeries if isinstance(unit.each, WholeSeries) else Window
        return replace(unit, each=kind(unit.readings + 1))
    if isinstance(unit, WithinDistance):
        return WithinDistance(2 * unit.meters)
    if isinstance(unit, Answers):
        return Answers(unit.distinct + 1)
    return (
        type(unit)(unit.readings + 1)
        if isinstance(unit, WholeSeries)
        else Window(unit.readings + 1)
    )


ONE_OR_ANOTHER = ("epsilon", "rho", "delta", "branching", "bits")
"""Left out where another is given, or where they mean nothing."""


def _other_orders(mechanism: Any) -> dict[str, dict[str, Any]]:
    """What to change with a field of a mechanism that moves rows."""
    window = getattr(mechanism, "window", 0)
    found: dict[str, dict[str, Any]] = {
        "epsilon": {"epsilon": 2 * mechanism.epsilon},
        "window": {"window": window + 1},
        "block": {"block": getattr(mechanism, "block", 0) + 1},
        "offset": {"offset": 1 - min(getattr(mechanism, "offset", 0), 1)},
        "latency": {"latency": (getattr(mechanism, "latency", None) or 400) + 2},
        "noise": {"noise": "laplace"},
    }
    if hasattr(mechanism, "threshold"):
        # the window's own choice, and one more than that
        found["window"]["threshold"] = None
        more = mechanism.threshold + 1
        found["threshold"] = {"threshold": 2 if more == window else more, "epsilon": 20.0}
    if getattr(mechanism, "noise", "") == "laplace":
        found["noise"] = {"noise": "staircase"}
    if getattr(mechanism, "delta", None) is not None:
        found["delta"] = {"delta": (1 + mechanism.delta) / 2}
        found["window"]["latency"] = 40 + 4 * mechanism.latency
    return found


def _other_landmarks(scheme: Any) -> Iterator[tuple[str, Any]]:
    """The same for a scheme over a mechanism for values, with each field of that one too."""
    for name, over in changed_specs(scheme.over):
        if isinstance(over.unit, (Event, WithinDistance)):
            yield f"over, {name}", replace(scheme, over=over)
    known = {field.name for field in dataclasses.fields(scheme)}
    for name in sorted(known - {"over", "count", "length", "count_epsilon"}):
        value = getattr(scheme, name)
        if name == "miss" and scheme.count_epsilon is None:
            continue  # refused: a public bound misses nothing
        yield name, replace(scheme, **{name: not value if isinstance(value, bool) else value / 2})
    if "count" in known:
        count: dict[str, Any] = {"count": 3 if scheme.count is None else scheme.count + 1}
        if "length" in known:
            count["length"] = scheme.length or 9
        if "count_epsilon" in known:
            count |= {"count_epsilon": None, "miss": 1e-6}
        yield "count", replace(scheme, **count)
    if getattr(scheme, "length", None) is not None:
        yield "length", replace(scheme, length=scheme.length + 1)
    if "count_epsilon" in known:
        other = 1.0 if scheme.count_epsilon is None else scheme.count_epsilon / 2
        yield "count_epsilon", replace(scheme, count=None, count_epsilon=other)


def _another(value: Any) -> Any:
    """Another value of a field: as good a setting as the first, for most."""
    if isinstance(value, bool):
        return not value
    return 0.5 if value is None else value + 1 if isinstance(value, int) else value / 2


def changed_specs(mechanism: Any) -> Iterator[tuple[str, Any]]:
    """The mechanism with each of its fields changed in turn."""
    if isinstance(mechanism.domain, WithLandmarks):
        yield from _other_landmarks(mechanism)
        return
    if isinstance(mechanism.domain, MovedRows):
        orders = _other_orders(mechanism)
        for field in dataclasses.fields(mechanism):
            if field.name != "delta" or mechanism.delta is not None:
                yield field.name, replace(mechanism, **orders[field.name])
        return
    others: dict[str, Callable[[Any], Any]] = {
        "epsilon": lambda v: 2 * v,
        "rho": lambda v: 2 * v,
        "epsilon_forever": lambda v: 2 * v,
        "epsilon_instant": lambda v: 1.0 if v is None else 2 * v,
        "bounds": lambda v: tuple((low, 2 * high + 1) for low, high in v),
        "categories": lambda v: tuple((*names, "another") for names in v),
        "unit": _another_unit,
        "threshold": lambda v: v - 1 if v else 1,
        "most": lambda v: v + 1,
        "threshold_share": lambda v: 0.9 if v is None else v / 2,
        "samples": lambda v: v + 1,
        "window": lambda v: v + 1,
        "tolerance": lambda v: 2 * v,
        "reach": lambda v: (2 * v[0], v[1]),
        "spread": lambda v: 2 * v,
        "wander": lambda v: 2 * v,
        "smoothing": lambda v: "median" if v == "mean" else "mean",
        "share": lambda v: v / 2,
        "theta": lambda v: 7.0 if v is None else 2 * v,
        "longest": lambda v: v + 1,
        "gains": lambda v: (v[0] / 2, v[1], v[2]),
        "set_point": lambda v: v / 2,
        "stretch": lambda v: 2 * v,
        "horizon": lambda v: 1000 if v is None else v + 1,
        "branching": lambda v: v + 1,
        "bits": lambda v: v + 1,
        "coefficients": lambda v: v - 1 if v > 1 else 2,
        "per_column": lambda v: not v,
        "grid": lambda v: tuple(g / 2 for g in v) if isinstance(v, tuple) else v / 2,
        "origin": lambda v: (v[0] + 1, v[1]),
        "tau": lambda v: 2 * v,
        "period": lambda v: 2 * v,
        "interpolation": lambda v: "printed" if v == "cosine" else "cosine",
        "clamp": lambda v: (0.5, 1.0) if v is None else None,
        "columns": lambda v: v + 1,
        "shift": lambda v: 1.0 if v is None else None,
        "pace": lambda v: "public" if v == "column" else "column",
        "waves": lambda v: v - 1,
    }
    for field in dataclasses.fields(mechanism):
        if field.name == "per_column" and isinstance(mechanism.unit, Contribution):
            continue  # refused
        if getattr(mechanism, field.name) is None and field.name in ONE_OR_ANOTHER:
            continue
        if (field.name, getattr(mechanism, "pace", None)) == ("shift", "public") or (
            field.name == "pace" and mechanism.shift is not None
        ):
            continue  # a shift is part of a secret pace
        if field.name == "method":
            other = "increments" if mechanism.method == "tree" else "tree"
            yield "method", replace(mechanism, method=other, branching=None, bits=None)
            continue
        if is_calibrated(mechanism) and field.name == "rho":
            yield "rho", replace(mechanism, rho=mechanism.rho / 2)
            continue
        change = others.get(field.name, _another)(getattr(mechanism, field.name))
        found = {"rho": None} if is_calibrated(mechanism) else {}
        yield field.name, replace(mechanism, **found, **{field.name: change})


def spec_survives_json(case: Case) -> None:
    mechanism = case.mechanism
    again = registry.decode(json.loads(json.dumps(serialization.encode(mechanism))))
    assert again == mechanism and type(again) is type(mechanism)
    assert serialization.digest(again) == serialization.digest(mechanism)
    for field, other in changed_specs(mechanism):
        assert other != mechanism
        assert serialization.digest(other) != serialization.digest(mechanism), (
            f"{field} is not in the digest"
        )
    value = max(2, math.ceil(getattr(mechanism, budget_of(mechanism)))) if case.moves else 2
    whole, real = (with_budget(mechanism, kind(value)) for kind in (int, float))
    assert whole == real and serialization.digest(whole) == serialization.digest(real)


def _secrets(case: Case, purposes: set[str]) -> list[bytes]:
    key = case.key(12)
    chain = key.again(serialization.digest(case.mechanism), "a")
    secrets = [key._secret, chain.secret, chain.at_epoch(1).secret]
    return secrets + [chain.cipher_key(purpose) for purpose in purposes]


def state_holds_no_secret(case: Case) -> None:
    key = case.key(12)
    with recorded() as drawn:
        stream = case.mechanism.start(key, "a")
        case.push(stream, case.rows(5, "secret"))
    state = stream.state()
    for secret in _secrets(case, {"fingerprint", *(one.purpose for one in drawn)}):
        number = int.from_bytes(secret, "big")
        for form in (secret, secret.hex().encode(), str(number).encode()):
            assert form not in state and form[:16] not in state, "a secret is in the state"
            assert form not in repr(stream).encode() and form not in repr(key).encode()


def _refused_state(case: Case, state: Any, key: Any) -> None:
    try:
        resume(case.mechanism, state, key)
    except StateError:
        return
    raise AssertionError("a wrong state is accepted")


def wrong_states_are_refused(case: Case) -> None:
    stream = case.mechanism.start(case.key(13), "a")
    case.push(stream, case.rows(5, "state"))
    state = stream.state()
    _refused_state(case, state, case.key(14))
    _refused_state(case, state, Key(case.key(13)._secret, "another release"))
    for _, other in changed_specs(case.mechanism):
        _refused_state(replace(case, mechanism=other), state, case.key(13))
    for nothing in (None, "", state.decode("latin-1"), b"", MAGIC, state + b" "):
        _refused_state(case, nothing, case.key(13))

    @quick
    @given(st.integers(0, len(state) - 1), st.integers(0, 7))
    def damaged(place: int, bit: int) -> None:
        _refused_state(case, state[:place], case.key(13))
        flipped = bytearray(state)
        flipped[place] ^= 1 << bit
        _refused_state(case, bytes(flipped), case.key(13))

    @quick
    @given(st.binary(max_size=200))
    def arbitrary(data: bytes) -> None:
        _refused_state(case, data, case.key(13))
        _refused_state(case, MAGIC + data, case.key(13))
        _refused_state(case, checked(data), case.key(13))

    simple = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    anything = st.recursive(simple, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
    body = json.loads(state[len(MAGIC) + 16 :])

    @quick
    @given(st.sampled_from(sorted(body)), anything)
    def rewritten(field: str, other: Any) -> None:
        # another step within the epoch, or another sum of what was seen, cannot be told
        with contextlib.suppress(StateError):
            resume(
                case.mechanism, checked(json.dumps({**body, field: other}).encode()), case.key(13)
            )

    damaged()
    arbitrary()
    rewritten()


def checked(data: bytes) -> bytes:
    """A state whose checksum is right, whatever it says."""
    return MAGIC + hashlib.blake2b(data, digest_size=16).digest() + data


def memory_stays_flat(case: Case) -> None:
    """A stream ten times as long takes no more memory at its peak, but for some chance."""
    if not case.mechanism.bounded_memory or limit_of(case.mechanism) is not None:
        return
    rows = case.rows(1000, "memory")
    slack = 4 * rows.nbytes  # half of what nine more blocks take

    def peak(blocks: int) -> int:
        stream = case.mechanism.start(case.key(blocks), "a")
        case.push(stream, rows)
        tracemalloc.start()
        try:
            for _ in range(blocks):
                case.push(stream, rows)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)  # tables are built once
    short, long = peak(1), peak(10)
    for _ in range(3):
        if long > short + slack:  # something else may have been at work
            gc.collect()
            short, long = peak(1), peak(10)
    assert long <= short + slack, f"{short} bytes for one block, {long} for ten"
