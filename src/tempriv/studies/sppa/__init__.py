"""Sampling periods and the streams they are compared with: the paper's figures again.

The source is the submission "Local Differentially Private Release of Infinite Streams With Temporal
Relevance" to WWW 2025, by unnamed authors. Its three mechanisms stand beside ours and the mean of
each window, and every line says what its mechanism protects.
"""

from __future__ import annotations

from collections.abc import Iterator

from tempriv.studies.common import ResultTable, Study, all_rows
from tempriv.studies.sppa import cleaning, data, errors, events, segments
from tempriv.studies.sppa.data import SppaInputs
from tempriv.studies.sppa.experiment import FULL, QUICK, SppaSize, sized
from tempriv.studies.sppa.figures import PICTURES

REMARKS = (
    "SPPA, ETM and PeGaSus protect different things, so a table that ranks them ranks nothing. As "
    "the experiments run it, SPPA protects nothing: rows keep their times. ETM protects when one "
    "slot was read, seen alone. PeGaSus protects any 8 readings in a row.",
    "The frequencies of Algorithm 1 give complex numbers. SPPA here is their real part, which is "
    "the mean of the window half-way between two readings; 'cosine' is a smooth curve through the "
    "readings, and 'clamped' keeps the noisy period within public bounds, which costs nothing.",
    "'An increase in errors with the rise of epsilon' (Section 5.3.1) and 'a higher variance leads "
    "to a reduction in MSE' (Section 4.4) are slips: errors fall with epsilon, in the paper's own "
    "Theorem 5 too.",
    "Bounds for PeGaSus and our value mechanisms are public ones: squares of 40 and 80 km about "
    "the cities, the screen and a quarter around it, 2 g and 5 rad/s. Noise beyond them is put on "
    "them. The paper does not say how PeGaSus was made local, nor with which bounds.",
    "In Section 5.3.2 the threshold moves the labels along with the predictions, so the area under "
    "the points is no chance of anything. Where velocities are noise alone it may come out "
    "anywhere; with fixed labels it is one half.",
    "Table 1 cannot measure what SPPA and ETM hide: 8 readings of a phone last 0.16 seconds, an "
    "activity ten and more. Nor does an F1 score of labels say much: somebody who sees nothing "
    "and cuts the time into equal parts is not far behind.",
    "Empty slots hold what was released last. Errors are over all slots but the first and the last "
    "of a series, which SPPA does not release, once everything is out.",
    "The gazes are not the paper's, and its phone data were joined in a way that it does not tell. "
    "Trips of 40 points or more are taken, none with a step faster than 200 km/h.",
)


def _tables(inputs: SppaInputs, size: SppaSize) -> Iterator[ResultTable]:
    datasets = tuple(sized(dataset, size) for dataset in inputs.all)
    yield from cleaning.tables(inputs, size)
    yield from errors.tables(datasets, size)
    yield from events.tables(datasets)
    yield from segments.tables(inputs, size)


STUDY = Study(
    name="sppa",
    title="Sampling periods, checked",
    files=data.FILES,
    read=data.read,
    quick=QUICK,
    full=FULL,
    tables=_tables,
    rows=all_rows(cleaning, errors, events, segments),
    pictures=PICTURES,
    remarks=REMARKS,
)
"""With ``FULL`` size more of the data, and more runs."""
