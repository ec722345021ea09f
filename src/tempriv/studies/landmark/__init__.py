"""Landmarks, the moments that matter, and what correlation gives away: the paper's figures again.

The source is Katsomallos, Tzompanaki and Kotzinos, "Landmark Privacy: Configurable Differential
Privacy Protection for Time Series" (CODASPY 2022). Its schemes stand beside two of ours, and its
temporal loss beside a bound that holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from tempriv.studies.common import ResultTable, Study, all_rows
from tempriv.studies.landmark import data, errors, placements
from tempriv.studies.landmark.data import LandmarkInputs
from tempriv.studies.landmark.experiment import FULL, QUICK, LandmarkSize
from tempriv.studies.landmark.figures import PICTURES

REMARKS = (
    "On all three data sets landmarks are chosen by the values that are to be protected, so two "
    "neighbors have unlike landmarks and none of the paper's schemes guarantees anything; only a "
    "bound on the number of landmarks (CountBoundLandmarks) does.",
    "The paper takes every sensitivity as 1: noise of scale 1 kWh / epsilon on readings from 0 to "
    "5 kWh, and 1 m / epsilon on places. That is Laplace with bounds 0 and 5 at five times the "
    "epsilon, and planar Laplace for places within 1 m of each other. figure-7-neighbors has "
    "readings that may change by 5 kWh and places by 200 m.",
    "Skip, before its first release, and at 100 % landmarks, shows a public constant: no, 0 kWh, "
    "the center of Beijing. What it is decides its error there.",
    "The contacts at hand are numbered anew and have strong signals only. The telephone with most "
    "entries is taken, and its most frequent contacts are the landmarks, as many as reach each "
    "share. Reading and mark are then the same bit.",
    "The distances printed for stay points give other shares of landmarks than the paper's by the "
    "method that it cites, so those that reach the shares are taken.",
    "The paper does not tell the parameters of Adaptive, the scale of its placements, the score "
    "with which dummies are selected, nor what distances are divided by. Adaptive here has kappa "
    "1, increase 0.5, decrease 0.2, least 0.1; placements have a scale of a tenth of the length.",
    "Dummies hide nothing: a moment outside the selected set is certainly no landmark.",
    "Definition 5 is no upper bound of the loss of landmarks together. For the symmetric chains "
    "here the bound that holds is smaller; for others it may be greater.",
    "The paper's figures carry no numbers in the copy at hand: only what its text says is "
    "compared.",
)


def _tables(inputs: LandmarkInputs, size: LandmarkSize) -> Iterator[ResultTable]:
    yield inputs.readings
    yield inputs.landmarks
    yield from errors.tables(inputs, size)
    yield from placements.tables(size)


STUDY = Study(
    name="landmark",
    title="Landmark privacy, checked",
    files=data.FILES,
    read=data.read,
    quick=QUICK,
    full=FULL,
    tables=_tables,
    rows=all_rows(data, errors, placements),
    pictures=PICTURES,
    remarks=REMARKS,
)
"""With ``FULL`` size as many runs as in the paper, and more placements."""
