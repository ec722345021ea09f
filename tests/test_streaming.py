"""Line streams: committed block by block, resumable, and forgetful of past keys."""

import base64
import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tempriv import Laplace, Refusal, WholeSeries
from tempriv.errors import StateRefusal
from tempriv.lines import Lines, tick_of
from tempriv.randomness import EPOCH
from tempriv.streaming import Counts, LineStream, Sink, read_stream_state

LAPLACE = Laplace(epsilon=1.0, bounds=(0, 5))


class Run:
    """A stream with its files, as one run of the command would have it."""

    def __init__(self, folder, seed=None, mechanism=LAPLACE):
        self.out = os.open(folder / "out.csv", os.O_CREAT | os.O_RDWR | os.O_APPEND)
        lines = Lines("csv", ["v"], "t", "who", mechanism.form.categories)
        self.flow = LineStream(mechanism, lines, Sink(self.out), folder / "state", seed)

    def send(self, rows):
        with self.flow.locked():
            self.flow.deliver_pending()
            self.flow.push(b"who,t,v\n" + "".join(f"{w},{t},{v}\n" for w, t, v in rows).encode())
            self.flow.finish()
        os.close(self.out)
        return self.flow


def output(folder):
    return (folder / "out.csv").read_text().splitlines()


def test_two_runs_write_what_one_run_writes(tmp_path):
    rows = [(w, t, t % 5) for t in range(40) for w in ("a", "b")]
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    Run(tmp_path / "one", seed=1).send(rows)
    Run(tmp_path / "two", seed=1).send(rows[:33])
    Run(tmp_path / "two", seed=1).send(rows[20:])
    assert output(tmp_path / "one") == output(tmp_path / "two")


def test_what_the_last_commit_was_about_to_write_is_written_by_the_next_run(tmp_path):
    first = Run(tmp_path)
    with first.flow.locked():
        first.flow.deliver_pending()
        first.flow.push(b"who,t,v\na,1,2\n")
        first.flow.output.write = lambda data: None  # the machine goes down before the write
        first.flow.push(b"a,2,3\n")
    committed = read_stream_state((tmp_path / "state").read_bytes(), "state")
    pending = base64.b64decode(committed["pending"])
    os.write(first.out, pending[:5])  # of which some had got through
    os.close(first.out)
    Run(tmp_path).send([("a", 2, 3), ("a", 3, 4)])
    lines = output(tmp_path)
    assert [line.rsplit(",", 1)[0] for line in lines] == ["who,t", "a,1", "a,2", "a,3"]
    assert lines[2] + "\n" == pending.decode()


def test_keys_of_past_epochs_are_erased_once_committed(tmp_path):
    Run(tmp_path).send([("a", t, 1) for t in range(3)])
    early = json.loads((tmp_path / "state.key").read_text())
    Run(tmp_path).send([("a", t, 1) for t in range(3, EPOCH + 2)])
    late = json.loads((tmp_path / "state.key").read_text())
    assert (early["a"][0], late["a"][0]) == (0, 1)
    kept = (tmp_path / "state.key").read_text() + (tmp_path / "state").read_text(errors="replace")
    assert early["a"][1] not in kept
    assert Run(tmp_path).send([("a", EPOCH + 2, 1)]).counts.released == 1


def test_the_state_never_holds_a_key(tmp_path):
    Run(tmp_path).send([("a", 0, 1), ("b", 0, 1)])
    state = (tmp_path / "state").read_text(errors="replace")
    for _, *secrets in json.loads((tmp_path / "state.key").read_text()).values():
        assert not any(secret in state for secret in secrets)


def test_a_state_goes_with_its_key_its_mechanism_and_its_output(tmp_path):
    Run(tmp_path).send([("a", 0, 1)])
    with pytest.raises(StateRefusal, match="another mechanism"):
        Run(tmp_path, mechanism=Laplace(epsilon=2.0, bounds=(0, 5))).send([("a", 1, 1)])
    with pytest.raises(StateRefusal, match="another seed"):
        Run(tmp_path, seed=4).send([("a", 1, 1)])
    key = tmp_path / "state.key"
    right = key.read_text()
    key.write_text(right.replace(right[12:16], "0000"))
    with pytest.raises(StateRefusal, match="does not belong to it"):
        Run(tmp_path).send([("a", 1, 1)])
    key.write_text("[]")
    with pytest.raises(StateRefusal, match="damaged"):
        Run(tmp_path).send([("a", 1, 1)])
    key.unlink()
    with pytest.raises(StateRefusal, match="missing"):
        Run(tmp_path).send([("a", 1, 1)])
    key.write_text(right)
    (tmp_path / "out.csv").write_text("")
    with pytest.raises(StateRefusal, match="append to it"):
        Run(tmp_path).send([("a", 1, 1)])


def test_readings_sent_again_must_be_the_same(tmp_path):
    Run(tmp_path).send([("a", 0, 1), ("a", 1, 2)])
    assert Run(tmp_path).send([("a", 0, 1), ("a", 1, 2), ("a", 2, 3)]).counts.passed_over == 2
    with pytest.raises(StateRefusal, match="not those that this stream consumed before"):
        Run(tmp_path).send([("a", 0, 1), ("a", 1, 2.5), ("a", 2, 3)])


def test_one_stream_at_a_time_uses_a_state(tmp_path):
    first, second = Run(tmp_path), Run(tmp_path)
    with first.flow.locked(), pytest.raises(Refusal, match="another stream is using"):
        second.send([("a", 0, 1)])


def test_a_pipe_gets_the_last_block_again_and_is_told_so(tmp_path):
    def piped():
        reading, writing = os.pipe()
        lines = Lines("csv", ["v"], "t", "who")
        return reading, LineStream(LAPLACE, lines, Sink(writing), tmp_path / "state")

    reading, flow = piped()
    with flow.locked():
        flow.deliver_pending()
        flow.push(b"who,t,v\na,1,2\n")  # and then it is killed
    first = os.read(reading, 1000)
    reading, flow = piped()
    with flow.locked():
        flow.deliver_pending()
        assert flow.repeated
        assert os.read(reading, 1000) == first
        flow.finish()
    reading, flow = piped()
    with flow.locked():
        flow.deliver_pending()
        assert not flow.repeated, "a run that ended well leaves nothing to repeat"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_no_state(data):
    with pytest.raises(Refusal):
        read_stream_state(data, "state")


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(at=st.integers(0, 2000), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed(at, bit, tmp_path):
    if not (tmp_path / "state").exists():
        Run(tmp_path).send([("a", 0, 1)])
    data = bytearray((tmp_path / "state").read_bytes())
    data[at % len(data)] ^= 1 << bit
    with pytest.raises(Refusal):
        read_stream_state(bytes(data), "state")


@settings(max_examples=200, deadline=None)
@given(text=st.binary(max_size=200), form=st.sampled_from(["csv", "jsonl"]))
def test_arbitrary_lines_are_readings_or_counted(text, form):
    lines = Lines(form, ["v"], "t", "who")
    tally = Counts()
    if form == "csv":
        list(lines.parse(b"who,t,v\n", tally))
    for reading in lines.parse(text, tally):
        assert isinstance(reading.tick, int)
        assert len(reading.values) == len(reading.missing) == 1


@pytest.mark.parametrize(
    ("parts", "tick"),
    [
        ([5], 5),
        (["-3"], -3),
        (["1970-01-03"], 2),
        (["1970-01-01T00:00:02"], 2_000_000),
        (["1970-01-01 00:00:02.5"], 2_500_000),
        (["1970-01-01T01:00:00+01:00"], 0),
        (["1970-01-01", "2"], 7_200_000_000),
        (["1970-01-01", "00:30"], 1_800_000_000),
    ],
)
def test_times_as_text(parts, tick):
    assert tick_of(parts) == tick


def test_a_state_restored_from_a_copy_is_not_gone_on_with(tmp_path):
    Run(tmp_path).send([("a", 0, 1)])
    old = (tmp_path / "state").read_bytes()
    Run(tmp_path).send([("a", 1, 0), ("a", 2, 0)])
    (tmp_path / "state").write_bytes(old)
    with pytest.raises(StateRefusal, match="older than what this stream has written"):
        Run(tmp_path).send([("a", 1, 5), ("a", 2, 1)])


def test_a_stream_never_cuts_a_file_that_is_not_its_own(tmp_path):
    Run(tmp_path).send([("a", 0, 1)])
    out = tmp_path / "out.csv"
    own = out.read_text()
    for other in ("x" * 5000, own + "b,9,1.5\n"):
        out.write_text(other)
        with pytest.raises(StateRefusal, match="does not end with what this stream has written"):
            Run(tmp_path).send([("a", 1, 1)])
        assert out.read_text() == other
    out.write_text(own)
    assert Run(tmp_path).send([("a", 1, 1)]).counts.released == 1


def test_duplicates_and_late_lines_may_be_sent_again_with_the_rest(tmp_path):
    rows = [("a", 0, 1), ("a", 1, 2), ("a", 1, 4), ("a", 0, 3), ("a", 2, 5)]
    Run(tmp_path).send(rows)
    again = Run(tmp_path).send([*rows, ("a", 3, 1)])
    assert (again.counts.passed_over, again.counts.released) == (5, 1)


def test_a_stream_goes_on_whatever_a_repeated_reading_says(tmp_path):
    counts = Run(tmp_path).send([("a", 0, 1), ("a", 0, 2), ("a", 1, 3)]).counts
    assert (counts.released, counts.passed_over) == (2, 1)


def test_an_open_quote_costs_its_own_line_only():
    lines, tally = Lines("csv", ["v"], "t", None), Counts()
    text = b't,v\n1,"2\n2,3\n3,4\n'
    assert [reading.tick for reading in lines.parse(text, tally)] == [2, 3]
    assert tally.unreadable == 1


def test_a_number_too_large_for_a_float_is_clipped_like_any_other():
    lines, tally = Lines("jsonl", ["v"], "t", None), Counts()
    text = ('{"t": 1, "v": ' + "9" * 400 + '}\n{"t": 2, "v": -' + "9" * 400 + "}\n").encode()
    assert [reading.values for reading in lines.parse(text, tally)] == [(1e300,), (-1e300,)]


def test_readings_past_the_promised_length_are_passed_over(tmp_path):
    three = Laplace(epsilon=1.0, bounds=(0, 5), unit=WholeSeries(3))
    counts = Run(tmp_path, mechanism=three).send([("a", t, 1) for t in range(5)]).counts
    assert (counts.released, counts.beyond) == (3, 2)
