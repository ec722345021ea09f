"""Reports of mechanisms that do more than put noise on each value: every sentence must be true."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tempriv.data.series import Block, SeriesTable
from tempriv.mechanisms import registry
from tempriv.mechanisms.adaptive.fast import Fast
from tempriv.mechanisms.adaptive.pattern import PatternLDP, PatternSampling
from tempriv.mechanisms.adaptive.pegasus import PeGaSus
from tempriv.mechanisms.counting.running_count import RunningCount
from tempriv.mechanisms.fourier import FourierPerturbation
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.mechanisms.retime.noisy_curve import NoisyCurve
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.mechanisms.sparse_vector import SparseVector
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.memoized_response import MemoizedResponse
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.mechanisms.w_event.absorption import BudgetAbsorption
from tempriv.mechanisms.w_event.distribution import BudgetDistribution
from tempriv.mechanisms.w_event.sample import SampleOnce
from tempriv.mechanisms.w_event.uniform import UniformBudget
from tempriv.privacy.units import Contribution, WholeSeries, Window, WithinDistance
from tempriv.releases.run import release
from tempriv.report.excerpt import PrivateSample, PublicSample
from tempriv.report.page import page
from tempriv.report.plots.series import kind_of, plot_release, shown
from tempriv.report.reordered import seen_moves
from tempriv.sampling.keys import Key
from tests.report.test_report import made, words

BOUNDS: Any = {"bounds": (0, 5)}
WHOLE: Any = {**BOUNDS, "unit": WholeSeries(60)}
ALARM = SparseVector(epsilon=9000.0, threshold=2.5, most=4, **WHOLE)
CHANCE = SparseVector(epsilon=1.0, threshold=3, most=4, **WHOLE)
SUMS = RunningCount(rho=0.5, horizon=60, unit=Contribution(), **BOUNDS)
WINDOWED = [
    one(epsilon=1.0, unit=Window(6), **BOUNDS)
    for one in (SampleOnce, BudgetDistribution, BudgetAbsorption)
]
FAST = Fast(epsilon=1.0, samples=20, wander=1, **WHOLE)
WAVES = FourierPerturbation(epsilon=1.0, coefficients=9, **WHOLE)
GROUPS = PeGaSus(epsilon=1.0, **BOUNDS)
PATTERNS = [
    PatternLDP(epsilon=1.0, window=6, **BOUNDS),
    PatternSampling(epsilon=1.0, unit=Window(6), **BOUNDS),
]
RETIMED = SamplingPeriod(epsilon=1.0, window=8, tau=1.0, pace="public")
CURVE = NoisyCurve(epsilon=1.0, window=8, **BOUNDS)
TIMES = NoisyTimes(epsilon=1.0, tau=2.0)
ANSWERS = MemoizedResponse(epsilon_forever=2.0, categories=("no", "yes"))

MOVING: list[Any] = [
    Backward(epsilon=4.0, window=5),
    Forward(epsilon=4.0, window=5),
    Threshold(epsilon=4.0, window=5),
    Threshold(epsilon=1.0, window=5),  # the extended one
    DualThreshold(epsilon=4.0, window=5),
    BlockShuffle(epsilon=1.0, block=6, offset=2),
    NoisyOrder(epsilon=4.0, window=5),
    NoisyOrder(epsilon=4.0, window=3, latency=40),
]

OVER: dict[str, Any] = {
    "numbers": Laplace(epsilon=1.0, **BOUNDS),
    "categories": RandomizedResponse(epsilon=2.0, categories=("no", "yes")),
    "places": PlanarLaplace(epsilon=1.0, unit=WithinDistance(200), origin=(39.9, 116.4)),
}
# of which each is: with the same errors for all readings, as told; or for which it tells them
EVEN: list[Any] = [(UniformLandmarks, {"count": 9}), (CountBoundLandmarks, {"count": 9})]
UNEVEN: list[Any] = [
    (SkipLandmarks, {}, "one fresh value"),
    (AdaptiveLandmarks, {"count": 9}, "the first value"),
    (SplitLandmarks, {"count": 9, "length": 60}, "one value, on average"),
    (UniformLandmarks, {}, "one value, without landmarks"),
    (AdaptiveLandmarks, {}, "one value, without landmarks"),
    (SplitLandmarks, {}, "one value, without landmarks"),
    (CountBoundLandmarks, {"count_epsilon": 2.0}, "one value, without landmarks"),
]

AVERAGED = "average over 24"
NOISE_ON_EACH = "random noise was added to each"


def readings() -> SeriesTable:
    values = [None if i == 5 else float(i % 6) for i in range(60)]
    return SeriesTable(pa.table({"kWh": pa.array(values, pa.float64())}), values=("kWh",))


def told(mechanism: Any) -> tuple[str, str, str]:
    """The public page, its words, and those of the private one."""
    series = readings()
    if mechanism is ANSWERS:
        series = SeriesTable(pa.table({"said": ["no", "yes"] * 30}), values=("said",))
    about, public, private = made(series, mechanism)
    text = page(about, public)
    return text, words(text), words(page(about, private))


def test_alerts_are_told_as_answers() -> None:
    text, public, private = told(ALARM)
    assert "each says only whether a reading was at or above a threshold" in public
    assert NOISE_ON_EACH not in public and "below zero" not in public and AVERAGED not in public
    assert "± expected error" not in public and 'class="band"' not in text
    assert "1 is an alert, a step whose reading was at or above 2.5" in public
    assert "After 4 alerts the output of a series ends" in public
    assert "mostly chance" not in public
    assert "at the threshold, 2.5 50" in public and "how often the answer was another" in private


def test_alerts_that_are_chance_are_a_warning() -> None:
    text, public, _ = told(CHANCE)
    assert CHANCE.errors[0] > 5 and "These alerts are mostly chance" in public
    assert 'class="alarm" role="alert"' in text
    low, high = (f"{100 * CHANCE.alert_rate(reading):.0f}" for reading in (0, 5))
    assert f"with a chance of {low} %, at the upper bound with {high} %" in public


def test_the_chance_of_an_alert_is_that_of_the_mechanism() -> None:
    """First answers of 4000 series each; 0.04 is five standard errors, fixed seed."""
    alarm = SparseVector(epsilon=50.0, bounds=(0, 5), threshold=3, most=1, unit=WholeSeries(1))
    for reading in (2.5, 3.0, 3.2):
        table = pa.table({"s": range(4000), "v": [reading] * 4000})
        found = release(table, alarm, values="v", series="s", key=Key.from_seed(4)).values
        assert np.mean(found) == pytest.approx(alarm.alert_rate(reading), abs=0.04)
    assert 0.05 < alarm.alert_rate(2.5) < 0.4 and 0.6 < alarm.alert_rate(3.2) < 0.95


def test_alerts_measured_against_readings_and_drawn() -> None:
    """With hardly any noise no answer is wrong; and there is no band about answers."""
    about, _, private = made(readings(), ALARM)
    assert kind_of(about) == "alerts"
    size, _, _ = private.measured(0)
    assert size == 0 and 0 < private.compared[0] < 60
    figure = plot_release(release(readings().source, ALARM, values="kWh"))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["no alert", "alert"]
    assert [type(one).__name__ for one in axes.collections] == ["LineCollection"]  # no band


@pytest.mark.parametrize("mechanism", [ALARM, *WINDOWED, FAST])
def test_statuses_are_explained_wherever_there_are_some(mechanism: Any) -> None:
    sentence = "The column “status” tells fresh values (“released”"
    assert all(sentence in text for text in told(mechanism)[1:])
    assert sentence not in told(SUMS)[1]


@pytest.mark.parametrize(
    ("mechanism", "sentences"),
    [
        *(
            (
                one,
                [
                    "the others repeat the last of these",
                    "A repeated value has the error of the one that it repeats",
                    "one fresh value",
                ],
            )
            for one in WINDOWED
        ),
        (FAST, ["estimated from a few readings", "the estimate stands still", "one sample"]),
        (WAVES, ["a few slow waves", "The waves are smooth", "± expected error by noise"]),
        (
            SUMS,
            [
                "the sum of all readings of its series so far",
                "Expected errors of sums",
                "the difference of their sums",
                "± expected error of a sum",
            ],
        ),
        (
            ANSWERS,
            ["drawn at random, once", "share over 24 series", "Count one report of each series"],
        ),
    ],
    ids=lambda one: getattr(type(one), "__name__", "") if hasattr(one, "unit") else "",
)
def test_each_mechanism_is_told_in_true_sentences(mechanism: Any, sentences: list[str]) -> None:
    _, public, _ = told(mechanism)
    for sentence in sentences:
        assert sentence in public, sentence
    assert NOISE_ON_EACH not in public and AVERAGED not in public
    assert "every average would be shifted" not in public


def test_noise_on_every_value_is_still_told_as_such() -> None:
    _, public, _ = told(UniformBudget(epsilon=1.0, unit=Window(6), **BOUNDS))
    assert NOISE_ON_EACH in public and AVERAGED in public


def test_running_sums_are_measured_against_sums() -> None:
    """Three series, the second cut between two blocks, with a missing reading."""
    values = np.arange(12.0)[:, None]
    missing = values == 6
    true = np.array([0, 1, 3, 3, 7, 12, 12, 19, 27, 9, 19, 30.0])[:, None]
    off = np.where(np.arange(12) % 2, 2.0, 0.0)[:, None]
    sample = PrivateSample(SUMS)
    for rows, ids, counts, starts in (
        (slice(0, 5), ("a", "b"), [3, 2], [0, 0]),
        (slice(5, 12), ("b", "c"), [4, 3], [2, 0]),
    ):
        rest: Any = (missing[rows], ids, np.array(counts), np.array(starts))
        sample.watch(Block(values[rows], *rest), Block((true + off)[rows], *rest))
    size, bias, _ = sample.measured(0)
    assert (size, bias) == (pytest.approx(math.sqrt(24 / 11)), pytest.approx(12 / 11))
    drawn = np.concatenate([trace.values for trace in sample.private.traces.values()])
    assert np.array_equal(drawn, np.where(missing, np.nan, true), equal_nan=True)


# rows that are moved


def moving(mechanism: Any) -> str:
    """Its name and the number of steps it is about."""
    return f"{type(mechanism).__name__}-{mechanism.epsilon:g}-{mechanism.unit.span + 1}"


@pytest.mark.parametrize("mechanism", MOVING, ids=moving)
def test_moved_rows_are_told_as_exact_and_their_times_as_changed(mechanism: Any) -> None:
    text, public, private = told(mechanism)
    for page_words in (public, private):
        assert "The values in it are exact. What was changed is when they were" in page_words
        assert "How far the times can be trusted" in page_words
        assert "not the originals" not in page_words and "± expected error" not in page_words
        assert "Typical errors" not in page_words and "random noise was added to" not in page_words
        assert NOISE_ON_EACH not in page_words and AVERAGED not in page_words
        assert "sorting puts numbers that only rise back in their places" in page_words
        assert "The column “status” tells rows that hold a reading" in page_words
        assert mechanism.published.sentence in page_words
    assert 'class="band" d=""' in text, "no band is drawn about values"
    assert "measured error" not in private and "bias" not in private


@pytest.mark.parametrize("mechanism", MOVING, ids=moving)
def test_what_all_rows_together_tell_stands_beside_the_promise(mechanism: Any) -> None:
    _, public, _ = told(mechanism)
    assert "What all rows together tell" in public
    loss = mechanism.loss_at(1)
    if isinstance(mechanism, BlockShuffle):
        assert "of one block 0 % × 2.72 of two blocks 100 % –" in public
        assert "Blocks begin at row 3 of each series and have 6 rows." in public
    elif loss.delta > 1e-3:
        share = f"{100 * loss.delta:.2g}"
        assert f"1 row apart {share} % × {shown(math.exp(loss.epsilon))}" in public
    else:
        assert f"× {shown(math.exp(loss.epsilon))}" in public
    single = "The guarantee is about one row, seen by itself. All rows together tell more."
    weak = isinstance(mechanism, (Backward, Threshold, DualThreshold))
    assert (single in public) == weak
    assert ("the values of a single row of the output and nothing else of it." in public) == weak
    if weak:
        assert "whatever else they know" not in public and "strong guarantee" not in public
    assert ("Seeing this release multiplies" in public) == (
        not weak and not isinstance(mechanism, Forward)
    )


@pytest.mark.parametrize(
    ("mechanism", "sentences"),
    [
        (MOVING[0], ["one of the last 5 readings, drawn at random", "Others were never drawn"]),
        (
            MOVING[1],
            [
                "where several met, the last one stayed",
                "without any guarantee",
                "No privacy guarantee",
                "Treat this copy like the original",
            ],
        ),
        (
            MOVING[2],
            [
                "put into one of 5 rows, its own and those after it",
                "past the start of a series no row is empty",
                "some of its first rows",
            ],
        ),
        (MOVING[3], ["at random, or dropped", "as many rows are empty"]),
        (MOVING[4], [f"one of {MOVING[4].threshold} readings that were waiting"]),
        (MOVING[5], ["in each block of 6 rows were put into a random order", "moved by"]),
        (MOVING[6], ["the order of their times with random noise", "5 rows or more apart"]),
    ],
    ids=lambda one: moving(one) if hasattr(one, "unit") else "",
)
def test_each_way_to_move_rows_is_told(mechanism: Any, sentences: list[str]) -> None:
    _, public, _ = told(mechanism)
    for sentence in sentences:
        assert sentence in public, sentence


def test_costs_in_a_report_are_those_of_the_mechanism() -> None:
    """Backward, epsilon 4 and window 5: Table I of the paper."""
    first = math.exp(2) / (4 + math.exp(2))
    other = 1 / (4 + math.exp(2))
    lost = (1 - first) * (1 - other) ** 4
    assert f"{100 * lost:.2g} % {100 * lost:.2g} % none" in told(MOVING[0])[1]
    assert "none none none" in told(MOVING[2])[1]
    for mechanism in MOVING:
        _, public, _ = told(mechanism)
        loses = type(mechanism) in (Backward, Forward) or getattr(mechanism, "extended", False)
        assert ("Totals and counts lack what was lost" in public) == loses
        assert ("Totals, averages and shares hold" in public) == (not loses)


@pytest.mark.parametrize("mechanism", MOVING, ids=moving)
def test_the_distribution_of_moves_is_what_happens(mechanism: Any) -> None:
    """Distinct readings show all moves. Fixed seed; a chance that is off by 0.1 would show.

    Over 1300 rows: 0.07 is five standard errors at least. What Forward sends may be lost on its
    way, and the noise on a time is not the move, so there only the law itself is looked at.
    """
    far, chances = mechanism.move_distribution()
    sent = float(getattr(mechanism, "probabilities", np.ones(1)).sum())  # less what is dropped
    assert sent - 0.006 < chances.sum() < sent + 1e-9
    values = np.random.default_rng(5).permutation(2400).astype(float)
    table = pa.table({"s": np.repeat(list("abcd"), 600), "v": values})
    _, _, sample = made(SeriesTable(table, values=("v",), series="s"), mechanism, seed=3)
    moves, rows = seen_moves(mechanism, sample)
    assert len(moves) == rows > 1300
    if not isinstance(mechanism, (Forward, NoisyOrder)):
        shares = np.array([moves.count(one) for one in far.tolist()]) / rows
        assert shares.sum() == pytest.approx(1)
        assert np.abs(shares - chances / chances.sum()).max() < 0.07


def test_moves_are_told_only_where_the_values_tell() -> None:
    mechanism = BlockShuffle(epsilon=1.0, block=4)
    sample = PrivateSample(mechanism)
    before = Block.of([1.0, 2.0, 2.0, 3.0], "a", 0)
    after = Block.of([2.0, 3.0, 2.0, 1.0], "a", 0)
    after.status = np.zeros(4, np.int8)
    sample.watch(before, after)
    assert seen_moves(mechanism, sample) == ([-2, 3], 4)


def test_a_column_that_only_rises_is_an_alarm_for_its_owner_alone() -> None:
    """What rises and falls, or hardly ever changes, is none."""
    steps = np.arange(60.0)
    table = pa.table({"meter": steps // 2, "wave": steps % 7, "once": 1.0 * (steps > 30)})
    series = SeriesTable(table, values=("meter", "wave", "once"))
    about, public, private = made(series, BlockShuffle(epsilon=1.0, block=6))
    assert [private.rising(i) for i in range(3)] == [1, pytest.approx(51 / 59), 0]
    alarm = "These values give their order away"
    assert alarm in words(page(about, private)) and alarm not in words(page(about, public))
    assert "“meter” in 100 %" in words(page(about, private))
    assert "“wave” in" not in words(page(about, private))
    assert "“once” in" not in words(page(about, private))


def test_text_is_shown_in_rows_and_never_drawn() -> None:
    table = pa.table({"on": ["a", None, "<b>", "c"] * 5, "n": np.arange(20.0) % 3})
    mechanism = BlockShuffle(epsilon=1.0, block=4)
    found = release(table, mechanism, values=("on", "n"))
    text = page(found.about, PublicSample.of(found))
    assert text.count("<svg") == 2, "the number, and the law of moves"
    assert "&lt;b&gt;" in text and "<b>" not in text.partition("<h2>What the released")[2]
    assert "Row on n status 1" in words(text)
    about, public, private = made(SeriesTable(table, values=("on", "n")), mechanism)
    for sample, head in ((public, "Row on n"), (private, "Row on, before n, before on n")):
        shown = page(about, sample)
        assert shown.count("<svg") == 2 and f"{head} status 1" in words(shown)


def test_figures_of_moved_rows_have_no_band_and_name_what_is_no_number() -> None:
    table = pa.table({"on": ["b", None, "a", "a"] * 5, "n": np.arange(20.0) % 3})
    found = release(table, BlockShuffle(epsilon=1.0, block=4), values=("on", "n"))
    text, number = plot_release(found).axes
    assert [label.get_text() for label in text.get_yticklabels()] == ["a", "b"]
    assert not number.collections, "no band"
    assert [one.get_text() for one in number.get_legend().get_texts()] == [
        "exact values, moved in time"
    ]


def test_smoothed_groups_are_told_with_the_error_of_a_value_by_itself() -> None:
    _, public, private = told(GROUPS)
    assert "and they were smoothed over stretches in which little changed" in public
    assert "± expected error of a value by itself" in public and AVERAGED not in public
    assert "where a group goes on over a change, it is late" in public
    assert "± one standard error" not in private, "errors go together"


def test_a_noisy_pace_is_told_in_time_and_not_as_an_error_of_values() -> None:
    _, public, private = told(RETIMED)
    assert "read again, a window at a time, at a noisy pace" in public
    assert "expected error" not in public.partition("How it was made")[0]
    assert "the first and the last row of a series" in public
    assert NOISE_ON_EACH not in public and AVERAGED not in public
    # every value that came out is compared with the reading of its own step, late as it came
    assert "57" in private.partition("Measured against the private readings")[2]


def test_curves_and_times_are_told_by_what_was_done_to_them() -> None:
    _, public, _ = told(CURVE)
    assert "smooth curves were drawn through" in public and AVERAGED not in public
    _, public, _ = told(TIMES)
    assert "they are times, and random noise was added to each" in public
    assert "the times of readings" not in public.lower()


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda one: type(one).__name__)
def test_picked_readings_are_told_with_the_error_of_one_of_them(pattern: Any) -> None:
    _, public, _ = told(pattern)
    assert "Between" in public and NOISE_ON_EACH not in public and AVERAGED not in public


# landmarks


def told_of(kind: str, scheme: Any, **given: Any) -> tuple[str, str]:
    """The words of the public page and of the private one, on 60 readings with 8 landmarks."""
    steps = np.arange(60)
    columns: dict[str, Any] = {
        "numbers": {"kWh": steps % 6.0},
        "categories": {"said": ["no", "yes"] * 30},
        "places": {"lat": 39.9 + steps / 1e4, "lon": 116.4 - steps / 1e4},
    }[kind]
    marks = (steps % 8 == 3).astype(int)
    columns["at_home"] = [str(mark) for mark in marks] if kind == "categories" else marks
    series = SeriesTable(pa.table(columns), values=tuple(columns))
    about, public, private = made(series, scheme(over=OVER[kind], **given))
    return words(page(about, public)), words(page(about, private))


def scheme_id(given: Any) -> str:
    """The name of a scheme, or what it was given."""
    return given.__name__ if isinstance(given, type) else "-".join(given) or "counted"


@pytest.mark.parametrize("kind", OVER)
@pytest.mark.parametrize(("scheme", "given"), EVEN, ids=scheme_id)
def test_equal_parts_are_told_as_noise_on_each_with_its_averages(
    kind: str, scheme: Any, given: Any
) -> None:
    public, private = told_of(kind, scheme, **given)
    assert "of them" in public and ", all in the same way. That was done" in public
    over = "share over 24" if kind == "categories" else AVERAGED
    assert over in public and "without landmarks" not in public and "nan" not in public + private
    if kind == "numbers":
        assert "± expected error" in public and "typically 50.0 off" in public
    promised = (
        "any 10 readings of a series together"
        if scheme is CountBoundLandmarks
        else ("all landmarks of a series (moments that its owner named, not by looking at these")
    )
    assert f"Protects {promised}" in public


@pytest.mark.parametrize("kind", OVER)
@pytest.mark.parametrize(("scheme", "given", "stated"), UNEVEN)
def test_unequal_parts_are_told_with_what_an_error_is_about(
    kind: str, scheme: Any, given: Any, stated: str
) -> None:
    public, private = told_of(kind, scheme, **given)
    assert f"Column {stated} " in public and "nan" not in public + private
    assert AVERAGED not in public and "share over 24" not in public
    assert "where s is its share" not in public and "± one standard error" not in private
    without = stated == "one value, without landmarks"
    assert ("Each landmark of a series adds to that" in public) == without
    assert ("in a series without landmarks" in public) == without
    assert ("from " in private.partition("measured error")[2].partition("Before")[0]) == without
    assert "landmark" in public.partition("What is not protected")[2].partition("How far")[0]
    if kind == "numbers":
        assert ("± expected error without landmarks" in public) == without
    if kind == "places":
        assert ("typical move without landmarks: " in public) == without


def test_what_was_done_at_landmarks_is_told() -> None:
    again = "except at landmarks (the moments that the owner named), where the last released value"
    assert all(again in told_of(kind, SkipLandmarks)[0] for kind in OVER)
    assert "with more of it at landmarks" in told_of("numbers", SplitLandmarks)[0]
    assert "and more often exchanged at landmarks" in told_of("categories", SplitLandmarks)[0]
    assert "and farther at landmarks" in told_of("places", SplitLandmarks)[0]
    assert (
        "some of them were moved at random, and the others"
        in told_of("places", AdaptiveLandmarks)[0]
    )
    assert "The column “status” tells fresh values" in told_of("numbers", SkipLandmarks)[0]


def test_what_a_landmark_promise_leaves_open_is_told() -> None:
    public, _ = told_of("numbers", UniformLandmarks)
    assert "the guarantee covers landmarks and one other reading, not what many" in public
    assert "For any 24 readings in a row it is only epsilon = 24" in public
    public, _ = told_of("numbers", CountBoundLandmarks, count=9)
    assert "For any 100 readings in a row it is only epsilon = 10" in public
    public, _ = told_of("places", SplitLandmarks)
    assert "places 2,000 meters apart have only epsilon = 10" in public
    public, _ = told_of("numbers", CountBoundLandmarks, count_epsilon=2.0)
    assert "One landmark more or less is hidden in it with epsilon = 2 and delta = " in public
    public, _ = told_of("numbers", UniformLandmarks, chosen_from_values=True)
    assert "No privacy guarantee" in public and "Treat this copy like the original" in public


@pytest.mark.parametrize("kind", OVER)
def test_the_column_of_marks_is_in_no_page(kind: str) -> None:
    for scheme in (UniformLandmarks, SkipLandmarks, AdaptiveLandmarks, SplitLandmarks):
        assert all("at_home" not in page for page in told_of(kind, scheme))


def test_no_mechanism_is_left_out_here() -> None:
    """A new one is told of as noise on each value, which must not be by oversight."""
    others = (ALARM, SUMS, *WINDOWED, FAST, WAVES, GROUPS, ANSWERS, *MOVING)
    reported = {type(one) for one in (*others, *PATTERNS, RETIMED, CURVE, TIMES)}
    reported |= {scheme for scheme, *_ in (*EVEN, *UNEVEN)}
    simple = {"Laplace", "Gaussian", "RandomizedResponse", "PlanarLaplace", "UniformBudget"}
    assert {one.__name__ for one in set(registry.classes()) - reported} == simple, (
        "tell of the new one too"
    )
