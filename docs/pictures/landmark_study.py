"""Draws the pictures of the page on the landmark study, from the study's own tables.

Run it with ``python docs/pictures/landmark_study.py DATA``, where DATA is the folder that ``tempriv
reproduce landmark --data`` takes: the pictures are of real data, and take some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

from tempriv.studies.common import Tables
from tempriv.studies.landmark import STUDY

FOLDER = Path(__file__).parents[1] / "_static"


def draw(tables: Tables) -> None:
    # the same bits each time
    with matplotlib.rc_context({"svg.hashsalt": "landmark", "svg.fonttype": "none"}):
        for name, picture in STUDY.pictures.items():
            path = FOLDER / f"landmark-study-{name}.svg"
            picture(tables).savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(STUDY.run(STUDY.read(Path(sys.argv[1])), STUDY.full).tables)
