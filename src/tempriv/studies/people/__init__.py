"""Statistics of people at a guarantee for the whole person: how far off, and do intervals hold.

No paper: the tables are real contacts and made-up homes, and the recipe beside ours is what
libraries do, clipping to public bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from tempriv.studies.common import Row, Section, Study, Tables
from tempriv.studies.people.data import FILES, PEOPLE, PeopleInputs, read
from tempriv.studies.people.experiment import (
    ERRORS,
    FULL,
    INTERVALS,
    QUICK,
    SCORES,
    PeopleSize,
    tables,
)
from tempriv.studies.people.figures import PICTURES

MOST = {
    PEOPLE: {"mean": 0.09, "q50": 0.13, "q75": 0.13, "q90": 0.13, "peak": 0.095},
    10_000: {"mean": 0.01, "q50": 0.02, "q75": 0.02, "q90": 0.02, "peak": 0.011},
}
"""What the median errors on contacts must keep."""
MOST_FAR_OFF = 0.01

REMARKS = (
    "Epsilon 1 and delta 1e-6 for the whole person, one budget for the number of people, the mean "
    "of 24 hours, quantiles and shares of peak hours. Public bounds: the same whole budget spent "
    "on the mean alone, clipped to the public bounds.",
    "Contacts: slots with a contact in an hour of 670 people over four weeks, each person's counts "
    "taken as that person's own readings; larger tables are drawn from them with replacement. "
    "Homes are made up, with lognormal levels: the hard case for a clip, since a few homes use a "
    "large part of all.",
    "Settings of the method were searched on the contacts, so that other tables may be further "
    "off than these. Intervals of the mean count what clipping takes by a rule that was measured "
    "on both tables.",
)


def rows(found: Tables) -> Iterator[Row]:
    """Each median of the ``found`` tables, and where there is a bound, whether it is kept."""
    errors, intervals = found[ERRORS], found[INTERVALS]
    for table in errors.unique("table"):
        for count in errors.unique("people"):
            section = Section(f"{table}, {count:,} people")
            for score in SCORES:
                where = {"table": table, "people": count, "score": score}
                far = errors.number("above_three_times", **where)
                bound = MOST.get(count, {}).get(score) if table == "contacts" else None
                how = f"median; {far:.1%} of runs above 3 times that"
                yield section.ours(score, errors.number("median", **where), how, bound)
            if table == "contacts" and count in MOST:
                worst = max(
                    errors.number("above_three_times", table=table, people=count, score=score)
                    for score in MOST[count]
                )
                what = "runs above 3 times the median"
                yield section.ours(what, worst, "of the worst score", MOST_FAR_OFF)
    for table in intervals.unique("table"):
        for count in intervals.unique("people"):
            section = Section(f"{table}, {count:,} people: intervals of 95 %")
            for line in intervals.where(table=table, people=count):
                how = f"share that hold; median width {line['median_width']:.4g}"
                yield section.ours(line["statistic"], line["held"], how)


STUDY: Study[PeopleInputs, PeopleSize] = Study(
    name="people",
    title="Statistics of people, each person protected whole",
    files=FILES,
    read=read,
    quick=QUICK,
    full=FULL,
    tables=tables,
    rows=rows,
    pictures=PICTURES,
    remarks=REMARKS,
)
"""With ``FULL`` size more runs, 100,000 people, and a thousand runs for intervals."""
