"""The report: what it says, what it must never contain, and who may read the file."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tempriv.data.series import Block, SeriesTable
from tempriv.errors import TemprivError
from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.sparse_vector import SparseVector
from tempriv.mechanisms.value.gaussian import Gaussian
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.mechanisms.w_event.uniform import UniformBudget
from tempriv.privacy import serialization
from tempriv.privacy.guarantees import Approximate, Concentrated, Guarantee, NoGuarantee, Pure
from tempriv.privacy.units import Event, Person, Unit, WholeSeries, Window, WithinDistance
from tempriv.releases.run import ReleaseRun
from tempriv.releases.to_file import release_file
from tempriv.report.accuracy import average
from tempriv.report.excerpt import MAX_ROWS, MAX_SERIES, PrivateSample, PublicSample
from tempriv.report.page import PRIVATE, write_report
from tempriv.report.page import page as page_of
from tempriv.sampling.keys import Key

SECTIONS = [
    "The guarantee",
    "What is not protected",
    "How far the values can be trusted",
    "What the released values look like",
    "How it was made",
    "How to check",
]
LAPLACE = Laplace(epsilon=1.0, bounds=(0, 5))


def numbers(rows: int = 48, names: tuple[str, ...] = ("a",)) -> pa.Table:
    """Hourly readings of each series, some missing."""
    hours = np.datetime64("2024-02-28", "us") + np.arange(rows) * np.timedelta64(1, "h")
    values = [None if i % 7 == 3 else i % 5 for i in range(rows)]
    return pa.table(
        {
            "home": [name for name in names for _ in range(rows)],
            "at": np.tile(hours, len(names)),
            "kWh": pa.array(values * len(names), pa.float64()),
            "other": [0.25] * rows * len(names),
        }
    )


def homes(table: pa.Table, *values: str, **layout: Any) -> SeriesTable:
    return SeriesTable(table, values=values or ("kWh",), time="at", series="home", **layout)


def made(
    series: SeriesTable, mechanism: Mechanism, seed: int | None = None, pseudonyms: bool = False
) -> tuple[dict[str, Any], PublicSample, PrivateSample]:
    """A release in memory, with both samples of it."""
    public, private = PublicSample(), PrivateSample(mechanism)

    def watch(before: Block, after: Block) -> None:
        public.watch(before, after)
        private.watch(before, after)

    key = Key.generate() if seed is None else Key.from_seed(seed)
    passage = ReleaseRun(series, mechanism, key, pseudonyms, watch)
    for _ in passage.batches():
        pass
    return passage.about(), public, private


def taxis() -> SeriesTable:
    table = pa.table({"lat": 39.9 + np.arange(80) / 1000, "lon": 116.4 - np.arange(80) / 1000})
    return SeriesTable(table, values=("lat", "lon"))


def moods() -> SeriesTable:
    table = pa.table({"mood": ["good", "bad", None, "so so"] * 10, "in": ["yes", "no"] * 20})
    return SeriesTable(table, values=("mood", "in"))


PLANAR = PlanarLaplace(epsilon=1.0, unit=WithinDistance(200), origin=(39.9, 116.4))
CHOICE = RandomizedResponse(epsilon=2.0, categories=(("good", "so so", "bad"), ("yes", "no")))
TWO = Gaussian(rho=0.5, bounds=((0, 5), (0, 1)), unit=Window(24))
ALARM = SparseVector(epsilon=40.0, bounds=(0, 5), threshold=3, most=4, unit=WholeSeries(48))

KINDS: dict[str, tuple[SeriesTable, Mechanism, int]] = {
    "numbers": (homes(numbers()), LAPLACE, 1),
    "several columns": (homes(numbers(names=("a", "b")), "kWh", "other"), TWO, 4),
    "many series": (homes(numbers(names=tuple("abcdefg"))), LAPLACE, 4),
    "an array": (SeriesTable(np.arange(30) % 5, values=("value",)), LAPLACE, 1),
    "one row": (SeriesTable(np.array([1.0]), values=("value",)), LAPLACE, 1),
    "categories": (moods(), CHOICE, 2),
    "places": (taxis(), PLANAR, 1),
    "alerts": (homes(numbers(names=("a", "b"))), ALARM, 2),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[tuple[dict[str, Any], Any, Any, int]]:
    series, mechanism, figures = KINDS[request.param]
    yield *made(series, mechanism), figures


class Outline(HTMLParser):
    """Checks that elements nest and close, and collects what is asked about."""

    EMPTY = ("meta", "path", "circle", "br")

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self.ids: list[str] = []
        self.title = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["h2"]:
            self.headings.append(data)
        if self.open[-1:] == ["title"]:
            self.title += data


def words(page: str) -> str:
    """The text that a reader sees."""
    body = re.sub(r"<style>.*?</style>|<svg.*?</svg>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body)))


def test_a_public_page_has_its_sections_in_order_and_a_figure_for_each(kind: Any) -> None:
    about, public, _, figures = kind
    page = page_of(about, public)
    outline = Outline(page)
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert '<meta charset="utf-8">' in page
    assert outline.headings == SECTIONS
    assert page.count("<svg") == figures
    assert "nan" not in re.sub(r"[a-z]*nan[a-z]+|[a-z]+nan", "", page.lower())


def test_a_private_page_has_a_banner_a_title_and_both_lines(kind: Any) -> None:
    about, _, private, figures = kind
    page = page_of(about, private)
    outline = Outline(page)
    assert outline.title.startswith(PRIVATE)
    banner = f'<p class="secret">{PRIVATE}</p>'
    assert page.count(banner) == 2 and page.index(banner) < page.index("<h1>")
    assert re.search(r"\.secret\{background:#b00020;color:#fff", page)
    assert "Before and after" in outline.headings
    assert len(re.findall(r'class="(?:line|dots) private"', page)) == figures
    assert "Measured against the private readings" in page


def test_a_page_loads_nothing_and_runs_nothing(kind: Any) -> None:
    about, public, private, _ = kind
    for sample in (public, private):
        page = page_of(about, sample)
        for tag, attributes in Outline(page).tags:
            assert tag not in ("script", "link", "img", "iframe", "object", "image", "use", "a")
            assert not {"src", "href", "xlink:href"} & attributes.keys()
            assert not any(name.startswith("on") for name in attributes)
        assert not re.search(r"https?:|//[a-z]|url\(|@import", page)


def test_text_from_users_is_escaped() -> None:
    evil = "<script>alert(1)</script>"
    table = numbers(names=(evil, "b & c")).rename_columns(
        ["<b>id</b>", '"at"', "k<Wh", "<i>other</i>"]
    )
    series = SeriesTable(table, values=("k<Wh",), time='"at"', series="<b>id</b>")
    about, public, private = made(series, LAPLACE)
    about["output"] = {"file": "<u>.csv", "bytes": 1, "blake2b": "<s>"}
    for sample in (public, private):
        page = page_of(about, sample)
        for raw in ("<script", "<b>id", "k<Wh", "<u>", "<s>", "<i>other"):
            assert raw not in page
        assert "&lt;script&gt;alert(1)" in page and "k&lt;Wh" in page and "b &amp; c" in page
        Outline(page)


def test_escaped_categories_and_place_names() -> None:
    table = pa.table({"m": ["<x>", "y"] * 4})
    choice = RandomizedResponse(epsilon=1.0, categories=("<x>", "y"))
    about, public, _ = made(SeriesTable(table, values=("m",)), choice)
    page = page_of(about, public)
    assert "<x>" not in page and "&lt;x&gt;" in page


class Untouchable:
    """Any use of it is an error."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"the private block was asked for {name}")


def test_a_public_sample_never_looks_at_the_private_block() -> None:
    sample = PublicSample()
    block: Any = Untouchable()
    sample.watch(block, Block.of([1.0, 2.0], "a", 0))
    assert sample.released.traces["a"].values.tolist() == [[1.0], [2.0]]


def test_no_private_value_is_in_a_public_page() -> None:
    sentinel = 4.718281726
    values = np.ma.array(np.full(50, sentinel), mask=np.arange(50) % 5 == 0)
    series = SeriesTable(values, values=("value",), clip=True)
    about, public, private = made(series, Laplace(epsilon=1.0, bounds=(0, 4)))
    page = page_of(about, public)
    assert "4.718" not in page and "private reading" not in page
    assert sentinel in private.private.traces["series"].values


def test_a_public_page_is_the_same_whatever_the_private_readings() -> None:
    about, _, _ = made(homes(numbers()), LAPLACE)
    released = Block.of([1.0, 2.0, 3.0], "a", 0)
    public, private = set(), set()
    for level in (0.0, 3.5):
        readings = Block.of(np.full(3, level), "a", 0)
        for sample, pages in ((PublicSample(), public), (PrivateSample(LAPLACE), private)):
            sample.watch(readings, released)
            pages.add(page_of(about, sample))
    assert (len(public), len(private)) == (1, 2)


def test_what_stands_in_place_of_missing_values_is_not_kept() -> None:
    sample = PublicSample()
    block = Block.of(np.ma.array([1.0, 2.0], mask=[False, True]), "a", 0)
    block.values[1] = 77.0
    sample.watch(block, block)
    kept = sample.released.traces["a"].values
    assert kept[0] == 1.0 and math.isnan(kept[1, 0])


def test_samples_stay_small_however_the_table_is_cut() -> None:
    def many(names: list[str], counts: list[int], starts: list[int]) -> Block:
        rows = sum(counts)
        values = np.arange(rows, dtype=float)[:, None]
        return Block(
            values, np.zeros((rows, 1), bool), tuple(names), np.array(counts), np.array(starts)
        )

    public, private = PublicSample(), PrivateSample(LAPLACE)
    for block in (
        many(["a", "b"], [700, 50], [0, 0]),
        many(["b"], [900], [50]),
        many(["b", *"cdefgh"], [10] + [3] * 6, [950] + [0] * 6),
        many(["h"], [100_000], [3]),
    ):
        public.watch(block, block)
        private.watch(block, block)
    assert [*public.released.traces] == ["a", "b", "c", "d"] and MAX_SERIES == 4
    assert [len(t.ticks) for t in public.released.traces.values()] == [MAX_ROWS, MAX_ROWS, 3, 3]
    assert public.released.traces["b"].ticks.tolist() == list(range(MAX_ROWS))
    assert public.released.traces["b"].values[49:52, 0].tolist() == [749.0, 0.0, 1.0]
    assert private.rows == 750 + 900 + 28 + 100_000
    assert private.measured(0) == (0.0, 0.0, 0.0)


def test_errors_are_measured_and_clipped_values_counted() -> None:
    sample = PrivateSample(LAPLACE)
    before = np.ma.array([1.0, 7.0, -1.0, 2.0], mask=[False, False, False, True])
    after = np.ma.array([2.0, 5.0, -1.0, 9.0], mask=[False, False, False, True])
    sample.watch(Block.of(before, "a", 0), Block.of(after, "a", 0))
    size, bias, _ = sample.measured(0)
    assert (size, bias) == (pytest.approx(1.0), pytest.approx(-1 / 3))
    assert (sample.rows, sample.compared[0], sample.moved[0]) == (4, 3, 2)


@pytest.mark.parametrize(
    ("series", "mechanism"),
    [
        (SeriesTable(np.full(20_000, 2.0), values=("v",)), LAPLACE),
        (SeriesTable(np.full((20_000, 2), 0.5), values=("v", "w")), TWO),
        (
            SeriesTable(
                pa.table({"m": ["good"] * 20_000, "in": ["no"] * 20_000}), values=("m", "in")
            ),
            CHOICE,
        ),
        (
            SeriesTable(
                pa.table({"a": [39.95] * 20_000, "o": [116.3] * 20_000}), values=("a", "o")
            ),
            PLANAR,
        ),
    ],
    ids=["Laplace", "Gaussian", "RandomizedResponse", "PlanarLaplace"],
)
def test_measured_errors_are_the_expected_ones(series: SeriesTable, mechanism: Any) -> None:
    """Fixed seed; 4 % is over three standard errors for each, so a factor of 1.1 would show."""
    about, _, private = made(series, mechanism, seed=5)
    for i, expected in enumerate(about["expected_error"]):
        size, bias, doubt = private.measured(i)
        assert size == pytest.approx(expected["error"], rel=0.04)
        if mechanism is not CHOICE:
            assert abs(bias) < 5 * doubt < expected["error"]


@pytest.mark.parametrize(
    "mechanism",
    [
        *(LAPLACE, Gaussian(rho=0.5, bounds=(0, 5)), PLANAR),
        UniformBudget(epsilon=1.0, bounds=(0, 5), unit=Window(3)),
    ],
)
def test_the_stated_error_of_averages_is_that_of_averages(mechanism: Any) -> None:
    """2000 averages over 24 equal readings; fixed seed, 6 % is over three standard errors."""
    form, places = mechanism.domain, mechanism is PLANAR
    level = (39.9, 116.4) if places else (2.0,)
    noise = []

    def watch(before: Block, after: Block) -> None:
        steps = form.to_grid(after.values) - form.to_grid(before.values)
        noise.append(steps * mechanism.grid if places else after.values - before.values)

    readings = pa.table({name: [value] * 48_000 for name, value in zip("ab", level, strict=False)})
    series = SeriesTable(readings, values=tuple("ab"[: len(level)]))
    passage = ReleaseRun(series, mechanism, Key.from_seed(6), watch=watch)
    assert sum(batch.num_rows for batch in passage.batches()) == 48_000
    means = np.concatenate(noise).reshape(2000, 24, len(level)).mean(axis=1)
    typical = np.sqrt((means**2).sum(axis=1)).mean()
    assert average(passage.about(), 0, 24) == pytest.approx(typical, rel=0.06)


def test_the_correction_of_shares_is_right() -> None:
    about, public, _ = made(
        moods(),
        RandomizedResponse(
            epsilon=2 * math.log(3), categories=(("good", "so so", "bad"), ("yes", "no"))
        ),
    )
    text = words(page_of(about, public))
    # of three: kept 3/5, others 1/5 each; of two: kept 3/4
    assert "(s − 0.2000) / 0.4000" in text and "(s − 0.2500) / 0.5000" in text
    assert "the true one in 60 % of readings" in text


@pytest.mark.parametrize(
    ("guarantee", "detail"),
    [
        (Guarantee(Pure(1.0), Event()), "after seeing it, at most 73 %"),
        (Guarantee(Pure(20.0), Event()), "after seeing it, at most nearly 100 %"),
        (Guarantee(Approximate(0.5, 1e-9), Event()), "but for a probability of 1e-09"),
        (Guarantee(Concentrated(0.01), Event()), "but for a probability of 1e-06"),
        (Guarantee(Pure(1.0), Event()), "24 readings in a row (1 day) it is only epsilon = 24."),
        (Guarantee(Pure(1.0), Window(24)), "readings in a row (10 days) it is only epsilon = 10."),
        (Guarantee(Pure(1.0), Person(2, Event())), "it is only epsilon = 24."),
        (Guarantee(Pure(1.0), WholeSeries(500)), "a whole series of up to 500 readings"),
        (
            Guarantee(Pure(1.0), WithinDistance(100.0)),
            "places 1,000 meters apart have only epsilon = 10.",
        ),
    ],
)
def test_the_promise_is_spelled_out(guarantee: Guarantee, detail: str) -> None:
    about, public, _ = made(homes(numbers()), LAPLACE)
    text = words(page_of({**about, "guarantee": serialization.encode(guarantee)}, public))
    for sentence in (guarantee.sentence, guarantee.plain, detail):
        assert sentence in text


def test_what_is_not_protected_is_said() -> None:
    table = numbers(names=("a", "b"))
    about, public, _ = made(homes(table), LAPLACE)
    text = words(page_of(about, public))
    assert "The times of readings, and how many there are in each series." in text
    assert "Ids: those in “home” are shown as they are." in text
    assert "Other columns of the original table were left out" in text
    assert "Several series of one person" in text
    about, public, _ = made(homes(table), LAPLACE, pseudonyms=True)
    text = words(page_of(about, public))
    assert "those in “home” are pseudonyms" in text and "shown as they are" not in text
    assert len(re.findall(r"home: [0-9a-f]{8,}", text)) == 2 and not re.search(r"home: a\b", text)


def test_a_release_without_a_guarantee_is_a_loud_warning() -> None:
    about, public, _ = made(homes(numbers()), LAPLACE, seed=3)
    page = page_of(about, public)
    assert page.index('<div class="alarm" role="alert">') < page.index("<h1>")
    assert "protected copy" not in page and "The guarantee" not in Outline(page).headings
    reason = NoGuarantee("the noise comes from seed 3, so anyone can take it off again")
    assert reason.sentence in words(page) and reason.plain in words(page)
    assert "Nothing in this copy is protected" in page


def test_how_it_was_made_and_how_to_check_it(tmp_path: Path) -> None:
    sample = PublicSample()
    passage = ReleaseRun(homes(numbers()), LAPLACE, Key.generate(), watch=sample.watch)
    about = release_file(passage, tmp_path / "out.csv")
    text = words(page_of(about, sample))
    for fact in (
        about["release"],
        about["randomness"],
        "Not charged to a ledger",
        LAPLACE.published.sentence,
        '"bounds": [[0.0, 5.0]]',
        "tempriv verify out.csv",
        about["output"]["blake2b"],
        f"tempriv {about['tempriv']}",
    ):
        assert fact in text
    receipt = {"is": "Receipt", "charge": 7, "dataset": "homes"}
    text = words(page_of({**about, "ledger": receipt}, sample))
    assert "Charge 7 on dataset 'homes'." in text


def test_a_claim_that_does_not_hold_stands_beside_the_promise() -> None:
    about, public, _ = made(homes(numbers()), LAPLACE)
    about["published"]["holds"] = False
    assert "does not hold" in words(page_of(about, public))


def test_errors_come_with_their_part_of_the_range() -> None:
    about, public, _ = made(homes(numbers()), LAPLACE)
    text = words(page_of(about, public))
    assert "one released value alone says little" in text and "0 to 5" in text
    assert "An average over 510 readings is off by about 5 % of that range" in text
    about, public, _ = made(homes(numbers()), Laplace(epsilon=50.0, bounds=(0, 5)))
    assert "one released value is useful" in words(page_of(about, public))


def test_a_sample_that_saw_nothing_still_makes_a_page() -> None:
    """A run that only finishes an interrupted one has no rows to show."""
    about, _, _ = made(homes(numbers()), LAPLACE)
    for sample in (PublicSample(), PrivateSample(LAPLACE)):
        page = page_of(about, sample)
        Outline(page)
        assert "No readings were kept." in page
    assert PRIVATE in page


@pytest.fixture
def mask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("mask")
def test_the_umask_says_who_reads_a_public_page_and_only_the_owner_a_private_one(
    tmp_path: Path,
) -> None:
    about, public, private = made(homes(numbers()), LAPLACE)
    path = tmp_path / "report.html"
    assert write_report(path, about, public) == path and mode(path) == 0o640
    with pytest.raises(TemprivError, match=r"report.html: exists already; .* force=True"):
        write_report(path, about, private)
    assert write_report(path, about, private, force=True) == path and mode(path) == 0o600
    assert PRIVATE in path.read_text(encoding="utf-8")
    write_report(path, about, public, force=True)
    assert mode(path) == 0o640 and PRIVATE not in path.read_text(encoding="utf-8")
    assert [left.name for left in tmp_path.iterdir()] == ["report.html"]


def test_a_path_that_cannot_be_a_page_is_refused(tmp_path: Path) -> None:
    about, public, _ = made(homes(numbers()), LAPLACE)
    with pytest.raises(TemprivError, match=r"must end in \.html"):
        write_report(tmp_path / "report.csv", about, public)
    with pytest.raises(TemprivError, match="no such directory"):
        write_report(tmp_path / "none" / "report.html", about, public)


def test_every_unit_has_a_page() -> None:
    units: list[Unit] = [Event(), Window(3), WholeSeries(48)]
    for unit in units:
        mechanism = Laplace(epsilon=1.0, bounds=(0, 5), unit=unit)
        about, public, _ = made(homes(numbers()), mechanism)
        assert unit.sentence in words(page_of(about, public))
