"""The page that compares average days: its numbers, its words, and who may read it."""

from __future__ import annotations

import stat

import numpy as np
import pytest

from tempriv.errors import UsageError
from tempriv.report.average_day import AverageDay, write_comparison
from tempriv.report.page import PRIVATE

BEFORE = np.where(np.arange(24) == 19, 2.0, 1.0)


def test_a_day_says_how_far_it_is_off():
    moved = np.where(np.arange(24) == 18, 2.5, 1.0)
    day = AverageDay("homes", "Protects.", BEFORE, moved)
    assert day.peaks == (19, 18)
    assert day.distance == pytest.approx((1.5 + 1.0) / 25)
    assert day.total_error == pytest.approx(0.5 / 25)
    said = day.verdict.replace("\N{NO-BREAK SPACE}", " ")
    assert said == "An hour is off by 10 %, peak hour 19 became 18, weekly total off by 2.0 %."
    assert "peak hour 19 kept" in AverageDay("homes", "Protects.", BEFORE, 9 * BEFORE).verdict


def test_the_page_is_private_and_has_what_was_computed(tmp_path):
    days = [
        AverageDay("<homes>", "Protects.", BEFORE, BEFORE * 1.05),
        AverageDay("one", "Protects.", BEFORE, BEFORE * -31),
    ]
    path = write_comparison(tmp_path / "page.html", "A title", "A lead.", "kWh", days)
    page = path.read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert page.count(PRIVATE) == 3, "the title, above and below"
    assert "&lt;homes&gt;" in page and "<homes>" not in page
    assert "<td>5.0 %</td><td>19 kept</td><td>5.0 %</td>" in page
    assert "<td>3,200 %</td>" in page and page.count("Nothing is left") == 1
    assert page.count("<svg") == 2 and "<script" not in page


@pytest.mark.parametrize("values", [np.ones(23), np.full(24, np.nan), np.zeros(24)])
def test_what_cannot_be_compared_is_refused(values):
    with pytest.raises(UsageError, match="before: must"):
        AverageDay("homes", "Protects.", values, BEFORE)
