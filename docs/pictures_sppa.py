"""Draws the pictures of the page on sampling periods, from the study's own tables.

Run it with ``python docs/pictures_sppa.py DATA``, where DATA is the folder that ``tempriv reproduce
sppa --data`` takes: the pictures are of real data, and take some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

from tempriv.studies import sppa, sppa_data
from tempriv.studies.sppa_pictures import PICTURES
from tempriv.studies.sppa_runs import FULL

FOLDER = Path(__file__).with_name("_static")


def draw(made: sppa.Study) -> None:
    # the same bits each time
    with matplotlib.rc_context({"svg.hashsalt": "sppa", "svg.fonttype": "none"}):
        for name, picture in PICTURES.items():
            path = FOLDER / f"sppa-{name}.svg"
            picture(made.tables).savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(sppa.study(sppa_data.read(Path(sys.argv[1])), FULL))
