"""Draws the pictures of the page on the landmark study, from the study's own tables.

Run it with ``python docs/pictures_landmark_study.py DATA``, where DATA is the folder that ``tempriv
reproduce landmark --data`` takes: the pictures are of real data, and take some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

from tempriv.studies import landmark, landmark_data
from tempriv.studies.landmark_pictures import PICTURES
from tempriv.studies.landmark_runs import FULL
from tempriv.studies.tables import Study

FOLDER = Path(__file__).with_name("_static")


def draw(made: Study) -> None:
    # the same bits each time
    with matplotlib.rc_context({"svg.hashsalt": "landmark", "svg.fonttype": "none"}):
        for name, picture in PICTURES.items():
            path = FOLDER / f"landmark-study-{name}.svg"
            picture(made.tables).savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(landmark.study(landmark_data.read(Path(sys.argv[1])), FULL))
