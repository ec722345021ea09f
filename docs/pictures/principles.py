"""Draws the picture of the page on the principles, from the study's own table.

Run it with ``python docs/pictures/principles.py``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

from tempriv.studies.principles import picture, study

if __name__ == "__main__":
    # the same bits each time
    with matplotlib.rc_context({"svg.hashsalt": "principles", "svg.fonttype": "none"}):
        path = Path(__file__).parents[1] / "_static" / "principles.svg"
        picture(study()).savefig(path, metadata={"Date": None})
