"""The picture of the study on people: errors beside those of public bounds."""

from __future__ import annotations

from typing import Any

from tempriv.studies import plots
from tempriv.studies.common import Tables
from tempriv.studies.people.experiment import ERRORS, SCORES
from tempriv.studies.plots import label_axes, subplots

LOOKS = dict(
    zip(
        SCORES,
        (
            *((plots.BLUE, "o"), (plots.SKY, "s"), (plots.GREEN, "^"), (plots.PURPLE, "v")),
            *((plots.ORANGE, "D"), (plots.VERMILION, "x")),
        ),
        strict=True,
    )
)


def draw_errors(tables: Tables) -> Any:
    """Errors by the number of people, a plot for each kind of table, from the ``tables``."""
    errors = tables[ERRORS]
    names = errors.unique("table")
    figure, axes = subplots(1, len(names), (9.0, 3.8))
    for axis, name in zip(axes, names, strict=True):
        for score in SCORES:
            people = errors.column("people", table=name, score=score)
            medians = errors.column("median", table=name, score=score)
            plots.draw_line(axis, people, medians, LOOKS[score], label=score)
        axis.set_xscale("log")
        axis.set_yscale("log")
        label_axes(axis, name, "people (log)", "median error (log)")
    axes[0].legend(fontsize=8)
    return figure


PICTURES = {"people-errors": draw_errors}
