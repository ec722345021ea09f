"""What tests of other engines share: the tables of cases, and what it is to be the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tempriv.mechanisms.perturb import limit_of
from tempriv.privacy.units import Person
from tests.conformance.case_checks import Case, named
from tests.conformance.cases import CASES

FIRST = {type(case.mechanism): case for case in reversed(CASES)}


def table_of(case: Case, series: int, rows: int) -> tuple[pa.Table, dict[str, Any]]:
    """Some series of a case, shuffled, and how they are laid out."""
    rows = min(rows, limit_of(case.mechanism) or rows)
    parts = [case.gappy(rows, f"spark {i}") for i in range(series)]
    readings = np.ma.concatenate(parts)
    names = [f"value {i}" for i in range(case.columns)]
    missing = np.ma.getmaskarray(readings)
    categories = case.mechanism.domain.categories
    if categories is not None:  # some of the case's are none of them
        readings = np.ma.array(
            np.clip(readings.data, 0, [len(one) - 1 for one in categories]), mask=missing
        )
    shown = readings.data if categories is None else named(readings, categories)
    columns = {
        name: pa.array(shown[:, i].tolist(), mask=missing[:, i]) for i, name in enumerate(names)
    }
    lengths = [len(part) for part in parts]
    columns["when"] = pa.array(np.concatenate([np.arange(n) for n in lengths]), pa.int64())
    layout: dict[str, Any] = {"values": names, "time": "when"}
    layout["clip"] = case.mechanism.domain.bounds is not None  # some readings lie outside
    if series > 1:
        ids = np.repeat([f"home {i:02}" for i in range(series)], lengths)
        columns["home"] = pa.array(ids.tolist())
        layout["series"] = "home"
    if isinstance(case.unit, Person):
        columns["who"] = pa.array([name.replace("home", "person") for name in ids.tolist()])
        layout |= {"person": "who", "max_series_per_person": case.unit.max_series}
    order = np.random.default_rng(7).permutation(len(readings))
    return pa.table(columns).take(order), layout


def in_order(table: pa.Table, layout: dict[str, Any]) -> pa.Table:
    keys = [layout["series"]] if "series" in layout else []
    keys += layout["time"].split("+")
    return table.sort_by([(key, "ascending") for key in keys]).combine_chunks()


def same(found: pa.Table, expected: pa.Table) -> None:
    assert found.column_names == expected.column_names
    assert [field.type for field in found.schema] == [field.type for field in expected.schema]
    for name in expected.column_names:
        mine, theirs = (one.column(name).combine_chunks() for one in (found, expected))
        assert mine.is_null().equals(theirs.is_null()), name
        if pa.types.is_floating(theirs.type):
            bits = (np.asarray(one.fill_null(0.0)).tobytes() for one in (mine, theirs))
            assert next(bits) == next(bits), name  # minus zero too
        else:
            assert mine.equals(theirs), name
