"""Draws the pictures of the page on PrivShape, from the study's own tables.

Run it with ``python docs/pictures/privshape.py DATA``, where DATA is the folder that ``tempriv
reproduce privshape --data`` takes: the pictures are of real data, and take a quarter of an hour.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

from tempriv.studies.common import Tables
from tempriv.studies.privshape import STUDY

FOLDER = Path(__file__).parents[1] / "_static"
SHOWN = ("figure-11", "figure-12", "ties")


def draw(tables: Tables) -> None:
    # the same bits each time
    with matplotlib.rc_context({"svg.hashsalt": "privshape", "svg.fonttype": "none"}):
        for name in SHOWN:
            path = FOLDER / f"privshape-{name}.svg"
            STUDY.pictures[name](tables).savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(STUDY.run(STUDY.read(Path(sys.argv[1])), STUDY.full).tables)
