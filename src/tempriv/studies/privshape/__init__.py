"""Shapes that many people's series have in common: the paper's figures again, with ours beside.

The source is Mao, Ye, Hu, Wang and Huang, "PrivShape: Extracting Shapes in Time Series under
User-Level Local Differential Privacy" (ICDE 2024).
"""

from __future__ import annotations

from tempriv.studies.common import Study
from tempriv.studies.privshape import data, tables, verdicts
from tempriv.studies.privshape.experiment import FULL, QUICK, PrivShapeInputs
from tempriv.studies.privshape.figures import PICTURES

REMARKS = (
    "The paper's 40,000 series of each data set were made by a neural network (Symbols) and by "
    "Roverso's generator (Trace), neither of which is at hand. Ours are UCR's series varied in "
    "time and height, and test series come of other originals than training series. So the "
    "paper's numbers are shown beside ours, and need not be the same.",
    "Trace accuracy hardly tests shapes: the first symbol alone does about as well as any method. "
    "Shape recovery is the share of classes whose most frequent sequence is found exactly.",
    "Edits and warps are whole numbers, so two shapes are often equally near. The paper does not "
    "say which is then taken. Here it is the one whose symbols are nearer in their places, for "
    "every method; other rules, for the same shapes, are in the table of ties.",
    "PatternLDP protects nobody as it is used here: its bounded noise and the points that it "
    "chooses show what the readings were. It runs once, with fewer people unless the study is run "
    "in full, with forests of 20 trees and, for KShape's centers, at most 1,000 people.",
    "On Symbols two of six classes have no frequent sequence (the mode is 0.2 % of a class), and "
    "two others share theirs, so recovery of all of them is out of reach for any method.",
    "The paper does not tell how shapes are matched for its Tables III and IV, nor whether "
    "distances are sums. Here each class mode has the nearest shape (Trace: the shape with its "
    "label), and distances are means over classes.",
    "Theorem 4 divides two largest sizes; that is no bound of the ratio, which is 1 at the first "
    "level. A candidate has at most t - 1 symbols to go on with, so c k (t - 1) candidates are the "
    "most, not c^2 k^2.",
    "The paper's figures carry no numbers in the copy at hand: only what its text and tables say "
    "is compared.",
)


STUDY = Study(
    name="privshape",
    title="PrivShape, checked",
    files=data.FILES,
    read=lambda folder: PrivShapeInputs(*data.read_tasks(folder)),
    quick=QUICK,
    full=FULL,
    tables=tables.tables,
    rows=verdicts.rows,
    pictures=PICTURES,
    remarks=REMARKS,
)
"""With ``FULL`` size 40 runs, every epsilon and all people for PatternLDP."""
