"""Draws the pictures of the page on sampling periods, from the study's own tables.

Run it with ``python docs/pictures/sppa.py DATA``, where DATA is the folder that ``tempriv reproduce
sppa --data`` takes: the pictures are of real data, and take some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

from tempriv.studies import sppa
from tempriv.studies.sppa import data
from tempriv.studies.sppa.experiment import FULL
from tempriv.studies.sppa.figures import PICTURES

FOLDER = Path(__file__).parents[1] / "_static"


def draw(made: sppa.Study) -> None:
    # the same bits each time
    with matplotlib.rc_context({"svg.hashsalt": "sppa", "svg.fonttype": "none"}):
        for name, picture in PICTURES.items():
            path = FOLDER / f"sppa-{name}.svg"
            picture(made.tables).savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(sppa.study(data.read(Path(sys.argv[1])), FULL))
