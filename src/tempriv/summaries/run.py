"""A summary from a table to a release: read, measure, estimate, describe, charge."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from tempriv._version import VERSION
from tempriv.data.aggregate import Moment
from tempriv.data.arrow import kind_name
from tempriv.data.boundary import public_batch, public_table
from tempriv.errors import require
from tempriv.ledger.scope import Scope
from tempriv.privacy import guarantees, serialization
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.releases.description import EVIDENCE, FORMAT, with_receipt
from tempriv.releases.evidence import EvidenceFacts, evidence_from
from tempriv.releases.meaning import meaning_of
from tempriv.releases.run import check_early, stated_for, warn_of_weakness
from tempriv.sampling.distributions import Distribution, draw
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange
from tempriv.summaries.cells import bins_of
from tempriv.summaries.estimate import Estimates, SummaryRow
from tempriv.summaries.from_table import Layout, Missing, Strata, read_strata, source_of
from tempriv.summaries.measure import Draws, Measured, Measurement, PersonVectors
from tempriv.summaries.spec import DEFAULT_STATISTICS, PeopleSummary
from tempriv.summaries.vectors import Integers

if TYPE_CHECKING:
    from tempriv.ledger.ledger import Ledger
    from tempriv.releases.release import Release

SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("cell", pa.string()),
        ("statistic", pa.string()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("sampling_error", pa.float64()),
    ]
)
NUMBER_NAMES = {"person": "people", "day": "days", "reading": "readings"}
"""What the number of records is called among the statistics."""
NOT_PROTECTED = (
    "the settings: statistics, cells, groups, bounds and bins, which were declared, not taken from "
    "the data",
    "anything at all towards whoever held the table and ran this: all rows were there",
)
Watch = Callable[[Strata, "list[Measured]"], None]
"""Sees private vectors beside what was measured: for reports that stay with the data owner."""


class KeyedDraws:
    """Noise of one stratum from a key: each purpose has words of its own.

    Parameters:
        key: the secret of the release.
        digest: of the summary.
        stratum: which one.
    """

    def __init__(self, key: Key, digest: str, stratum: str):
        self._series = key.series(digest, stratum)
        self._purposes: set[str] = set()

    def __call__(self, distribution: Distribution, purpose: str, count: int, /) -> Integers:
        assert purpose not in self._purposes, f"{purpose!r}: drawn again from the same words"
        self._purposes.add(purpose)
        return draw(distribution, [StepRange(self._series, 0, count)], purpose)


def measure(
    strata: Sequence[PersonVectors], spec: PeopleSummary, draws: Callable[[int], Draws]
) -> list[Measured]:
    """What is released of each stratum; a record is in one of them, so all have the whole budget.

    Parameters:
        strata: the people of each.
        spec: the summary.
        draws: the noise of a stratum, by its number.
    """
    measured = []
    for number, people in enumerate(strata):
        wanted = spec.wanted(people.vectors.shape[1])
        one = Measurement(people, wanted, draws(number)).run()
        within = sum(part.mu**2 for part in one.parts) <= spec.mu**2
        assert within, "the parts of a summary cost more than its budget"
        measured.append(one)
    return measured


def estimates_of(spec: PeopleSummary, measured: Measured, cells: Sequence[str]) -> list[SummaryRow]:
    """All rows of one stratum, in the order in which statistics were asked for."""
    of = Estimates(measured, cells, spec.bounds)
    rows = list(of.people(NUMBER_NAMES[spec.protect]))
    shares = iter(measured.shares)
    for statistic in spec.asked:
        if statistic.kind == "quantile":
            rows += of.quantile(statistic.name, statistic.low)
        elif statistic.kind == "share":
            rows += of.share(statistic.name, next(shares))
        elif statistic.kind == "histogram":
            rows += of.histogram(bins_of(spec.edges, spec.bounds))
        else:
            rows += getattr(of, statistic.kind)()
    return rows


def too_few(spec: PeopleSummary, people: float) -> str | None:
    """What to say where statistics of so many ``people`` are mostly noise."""
    if people >= spec.enough_people:
        return None
    what = {"person": "people", "day": "days of people", "reading": "readings"}[spec.protect]
    return (
        f"{people:,.0f} {what} are few at this budget: below about {spec.enough_people:,} in each "
        "group, noise and clipping are a large part of what is released, and intervals may be too "
        "short; a larger epsilon, fewer groups or protecting less would help"
    )


@dataclass
class SummaryRun:
    """One table through one summary under one key.

    Parameters:
        data: the table.
        spec: the summary.
        layout: which columns are what.
        key: where the noise comes from; a new one by default, which is then gone.
        watch: sees what is private, for the owner's report.
    """

    data: Any = field(repr=False)
    spec: PeopleSummary
    layout: Layout
    key: Key = field(default_factory=Key.generate)
    watch: Watch | None = None
    owner: Callable[[pa.RecordBatch], None] | None = None  # nothing stays with the data owner

    def __post_init__(self) -> None:
        self.strata: Strata | None = None
        self.measured: list[Measured] = []
        self.rows: list[tuple[str, SummaryRow]] = []

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """What is guaranteed under this key."""
        if self.key.seed is not None:
            return NoGuarantee(
                f"the noise comes from seed {self.key.seed}, so anyone can take it off again"
            )
        return self.spec.guarantee

    def keep_spelling(self, output: Path) -> None:
        """Nothing of the input is in the ``output`` as it was."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The released rows."""
        strata = read_strata(self.data, self.spec, self.layout)
        digest = serialization.digest(self.spec)
        self.measured = measure(
            strata.people, self.spec, lambda i: KeyedDraws(self.key, digest, f"stratum {i}")
        )
        self.strata = strata
        self.rows = [
            (label, row)
            for label, names, measured in zip(
                strata.labels, strata.names, self.measured, strict=True
            )
            for row in _named(self.spec, estimates_of(self.spec, measured, names), names)
        ]
        if self.watch is not None:
            self.watch(strata, self.measured)
        columns = [[label or "all" for label, _ in self.rows]]
        for name in ("cell", "statistic", "value", "low", "high", "sampling"):
            columns.append([getattr(row, name) for _, row in self.rows])
        arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
        yield public_batch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))

    @property
    def scope(self) -> Scope:
        """Who is charged: anyone, since whether somebody is in the table is protected."""
        assert self.strata is not None
        first, last = self.strata.span or (None, None)
        step = self.strata.step
        return Scope(
            kind=f"person {self.layout.person}",
            members=None,
            start=first,
            # the start of the last step, which reaches to the end
            end=None if last is None else last + 1 - (step or 1),
            step=step,
            clock=self.strata.clock,
        )

    mechanism = spending = sketch = None

    def sketch_for(self, ledger: Ledger) -> None:
        """Make no sketch for a ``ledger``: which people are in the table is protected."""

    def try_linkage(self) -> None:
        """Nothing released is a copy of somebody's series."""

    def about(self, statements: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The description of the release, once everything has been measured.

        Parameters:
            statements: what the curator says of it.
        """
        spec, layout, strata = self.spec, self.layout, self.strata
        assert strata is not None
        numbers = [measured.people for measured in self.measured]
        few = too_few(spec, max(min(numbers), 0.0))
        meaning = meaning_of(None, self.guarantee, None)
        about = {
            "tempriv": VERSION,
            "format": FORMAT,
            "release": self.key.release_id,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "mechanism": serialization.encode(spec),
            "guarantee": serialization.encode(self.guarantee),
            "sentence": meaning["headline"],
            "meaning": meaning,
            "published": serialization.encode(spec.published),
            "expected_error": [],
            "randomness": self._randomness(),
            "columns": {
                "series": None,
                "ids": "text",
                "time": None,
                "values": SCHEMA.names,
                "types": [kind_name(each.type) for each in SCHEMA],
                "person": layout.person,
                "of": layout.value,
                "group": layout.group,
            },
            "rows": len(self.rows),
            "series": 1,
            "times": {"clock": strata.clock, "first": layout.start, "last": layout.end},
            "treatment": list(strata.how),
            "cells": [list(names) for names in dict.fromkeys(strata.names)],
            "budget": [
                [
                    {
                        "part": p.purpose,
                        "mu": p.mu,
                        "rho": p.rho,
                        "sigma": p.sigma,
                        "numbers": p.coordinates,
                    }
                    for p in measured.parts
                ]
                for measured in self.measured
            ],
            "warnings": [] if few is None else [few],
            "ledger": None,
            "not_protected": not_protected(spec),
        }
        return {**about, EVIDENCE: summary_evidence(about, spec, statements or {})}

    def _randomness(self) -> str:
        if self.key.seed is not None:
            return f"AES-256 in counter mode, key from seed {self.key.seed}: anyone can remake it"
        return (
            "AES-256 in counter mode, key from the operating system, held in memory only and gone"
        )


def _named(
    spec: PeopleSummary, rows: list[SummaryRow], names: Sequence[str]
) -> Iterator[SummaryRow]:
    """Rows of a stratum with several of them: what is about all its cells has its name."""
    part = names[0] if len(names) == 1 else " ".join(names[0].split(" ")[:-1])
    for row in rows:
        whole = row.cell in ("all", "none") or row.statistic == "histogram"
        if whole and spec.protect != "person" and part:
            label = part if row.cell == "all" else f"{part} {row.cell}"
            yield SummaryRow(label, row.statistic, row.value, row.low, row.high, row.sampling)
        else:
            yield row


def summary_evidence(
    about: Mapping[str, Any], spec: PeopleSummary, statements: Mapping[str, str]
) -> dict[str, Any]:
    """The evidence of a summary; follows from what else the description says.

    Parameters:
        about: the description.
        spec: the summary.
        statements: what the curator says.
    """
    low, high = spec.bounds
    return evidence_from(
        about,
        EvidenceFacts(
            guarantee=cast(Any, guarantees.decode(about["guarantee"])),
            domain=f"Readings from {low:g} to {high:g}, of people who become one vector each.",
            method="summarize: statistics of many people from noisy sums of bounded vectors",
            trusts="The curator held the private table and is trusted with it; whoever gets the "
            "release is not.",
            exposed="The private table was read as it is, on the curator's machine.",
        ),
        statements,
    )


def not_protected(spec: PeopleSummary) -> list[str]:
    """What a release of this summary says that it does not protect."""
    more = {
        "person": [],
        "day": ["what all days of one person have in common: each day is protected by itself"],
        "reading": ["what all readings of one person have in common: each is protected by itself"],
    }[spec.protect]
    return [*NOT_PROTECTED, *more]


def summarize(
    data: Any,
    *,
    person: str,
    time: str,
    value: str,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float = 1e-6,
    statistics: Sequence[str] = DEFAULT_STATISTICS,
    by: str = "hour-of-day",
    protect: str = "person",
    group: str | None = None,
    groups: Sequence[str] = (),
    bins: Sequence[float] = (),
    start: Moment | None = None,
    end: Moment | None = None,
    every: str | None = None,
    min_readings: int = 1,
    missing: Missing = "refuse",
    key: Key | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    accept_weak: bool = False,
    statements: Mapping[str, str] | None = None,
) -> Release:
    """Release statistics of many people's readings, each whole person protected.

    Parameters:
        data: a CSV or Parquet file, or an Arrow, polars or pandas table, with a row for each
            reading.
        person: the column that says whose reading it is.
        time: the time column, or two as ``date+hour``.
        value: the column of readings.
        bounds: the least and the greatest reading, from what you know of them; others are moved to
            the nearest.
        epsilon: of the whole release.
        delta: of the whole release.
        statistics: ``mean``, ``total``, ``peak``, ``histogram``, quantiles such as ``q90``, and
            shares of readings such as ``share-above=140`` or ``share-between=70:180``.
        by: the cells: ``hour-of-day``, ``weekday``, ``hour-of-week``, ``month`` or ``step``.
        protect: a whole ``person``, all of a person's ``day``, or one ``reading``.
        group: a column that tells groups of people apart.
        groups: its values, declared.
        bins: edges of the histogram within the bounds; 20 bins of one width by default.
        start: the first moment that counts; needed with ``by="step"``.
        end: the first moment that no longer counts.
        every: the length of a step, such as ``1h``; with ``by="step"``.
        min_readings: people with fewer readings are left out.
        missing: rows without a person, a time, a finite reading or a declared group: ``refuse`` or
            ``drop``.
        key: where the noise comes from; a new key by default, which is then gone.
        ledger: where the release is charged.
        dataset: the name of the data in the ledger.
        accept_weak: say that an epsilon above 10, which protects practically nothing, is meant;
            otherwise there is a ``WeakGuaranteeWarning``.
        statements: what the curator says of the release, such as ``contact`` and ``license``; the
            rest is what the ledger has of the dataset.

    Returns:
        A release whose table has columns group, cell, statistic, value, low, high and
        sampling_error.

    Raises:
        UsageError: settings that do not fit together. DataError: a table that lacks something.
        BudgetError: the ledger does not agree.

    Guarantees:
        - whether any one person is in the table, with whatever rows, changes what comes out by no
          more than (epsilon, delta) says;
        - nothing of the description depends on the table but through the mechanism.

    >>> import numpy as np
    >>> hours = np.tile(np.arange(48), 1000)
    >>> homes = pa.table({
    ...     "home": np.repeat(np.arange(1000), 48),
    ...     "time": pa.array(hours * 3_600_000_000, pa.timestamp("us")),
    ...     "kWh": 1.0 + (hours % 24 == 19)})
    >>> released = summarize(
    ...     homes, person="home", time="time", value="kWh", bounds=(0, 5), epsilon=1.0,
    ...     statistics=["mean"])
    >>> released.table.column_names[:4], str(released.guarantee.loss)
    (['group', 'cell', 'statistic', 'value'], 'epsilon = 1, delta = 1e-06')
    """
    from tempriv.releases.release import Release

    require((ledger is None) == (dataset is None), "a ledger goes with the name of a dataset in it")
    spec = PeopleSummary(
        epsilon=epsilon,
        delta=delta,
        bounds=(bounds[0], bounds[1]),
        statistics=tuple(statistics),
        by=by,
        protect=protect,
        groups=tuple(str(name) for name in groups),
        bins=tuple(float(edge) for edge in bins),
        min_readings=min_readings,
    )
    layout = Layout(person, time, value, group, start, end, every, missing)
    run = SummaryRun(source_of(data), spec, layout, key or Key.generate())
    warn_of_weakness(spec.guarantee, accept_weak)
    check_early(ledger, dataset, run.guarantee)
    stated = stated_for(ledger, dataset, statements)
    table = public_table(list(run.batches()))
    receipt = None
    if ledger is not None and dataset is not None:
        what = dataset, run.guarantee, run.scope, run.key.release_id
        ledger.warn_of_repetition(*what)
        receipt = ledger.charge(*what)
    return Release(with_receipt(run.about(stated), receipt), table, _kind(data))


def _kind(data: Any) -> str:
    kind = type(data).__module__.split(".")[0]
    return kind if kind in ("polars", "pandas") else "arrow"
