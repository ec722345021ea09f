"""Draws the pictures of the page on release orders, from the study's own tables.

Run it with ``python docs/pictures/tldp.py DATA``, where DATA is the folder that ``tempriv reproduce
tldp --data`` takes: the pictures are of real data, and take some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

from tempriv.studies import tldp
from tempriv.studies.tldp import data
from tempriv.studies.tldp.experiment import FULL
from tempriv.studies.tldp.figures import PICTURES

FOLDER = Path(__file__).parents[1] / "_static"


def draw(made: tldp.Study) -> None:
    # the same bits each time
    with matplotlib.rc_context({"svg.hashsalt": "tldp", "svg.fonttype": "none"}):
        for name, picture in PICTURES.items():
            path = FOLDER / f"tldp-{name}.svg"
            picture(made.tables).savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(tldp.study(data.read(Path(sys.argv[1])), FULL))
