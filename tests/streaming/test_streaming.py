"""Line streams: committed block by block, resumable, and forgetful of past keys."""

import csv
import io
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempriv import Laplace, TemprivError, WholeSeries
from tempriv.errors import DataError, StateError
from tempriv.sampling.keys import EPOCH, SeriesKey
from tempriv.streaming.csv_reader import parse_batch
from tempriv.streaming.keys import RECORD_BYTES
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat, split_records, tick_of
from tempriv.streaming.sinks import DescriptorSink
from tempriv.streaming.state_file import StateFile
from tests.support.pipelines import standing_of

LAPLACE = Laplace(epsilon=1.0, bounds=(0, 5))


class Run:
    """A stream with its files, as one run of the command would have it."""

    def __init__(self, folder, seed=None, mechanism=LAPLACE):
        folder.mkdir(exist_ok=True)
        self.out = os.open(folder / "out.csv", os.O_CREAT | os.O_RDWR | os.O_APPEND)
        record_format = RecordFormat("csv", ["v"], "t", "who", mechanism.domain.categories)
        self.pipeline = StreamPipeline(
            mechanism, record_format, DescriptorSink(self.out), StateFile(folder / "state"), seed
        )

    def send(self, rows):
        with self.pipeline.locked():
            self.pipeline.deliver_pending()
            self.pipeline.push_text(
                b"who,t,v\n" + "".join(f"{w},{t},{v}\n" for w, t, v in rows).encode()
            )
            self.pipeline.finish()
        os.close(self.out)
        return self.pipeline


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
    with first.pipeline.locked():
        first.pipeline.deliver_pending()
        first.pipeline.push_text(b"who,t,v\na,1,2\n")
        first.pipeline.sink.write = lambda data: None  # it goes down before the write
        first.pipeline.push_text(b"a,2,3\n")
    pending = standing_of(tmp_path / "state").pending
    os.write(first.out, pending[:5])  # of which some had got through
    os.close(first.out)
    Run(tmp_path).send([("a", 2, 3), ("a", 3, 4)])
    lines = output(tmp_path)
    assert [line.rsplit(",", 1)[0] for line in lines] == ["who,t", "a,1", "a,2", "a,3"]
    assert lines[2] + "\n" == pending.decode()


def secrets(folder):
    """The secret of each series, and the mark, as the key file has them."""
    data = (folder / "state.key").read_bytes()
    records = [data[at : at + RECORD_BYTES] for at in range(0, len(data), RECORD_BYTES)]
    return [r[2 + int.from_bytes(r[:2], "big") - 32 :][:32] for r in records]


def test_keys_of_past_epochs_are_erased_once_committed(tmp_path):
    Run(tmp_path).send([("a", t, 1) for t in range(3)])
    _, early = secrets(tmp_path)
    Run(tmp_path).send([("a", t, 1) for t in range(3, EPOCH + 2)])
    _, late = secrets(tmp_path)
    assert SeriesKey(early, 0).at_epoch(1).secret == late
    for file in tmp_path.iterdir():
        assert early not in file.read_bytes()
        assert early.hex().encode() not in file.read_bytes()
    assert Run(tmp_path).send([("a", EPOCH + 2, 1)]).counts.released == 1


def test_the_state_never_holds_a_key(tmp_path):
    Run(tmp_path).send([("a", 0, 1), ("b", 0, 1)])
    assert len(secrets(tmp_path)) == 3
    for secret in secrets(tmp_path):
        for file in set(tmp_path.iterdir()) - {tmp_path / "state.key"}:
            assert secret not in file.read_bytes()
            assert secret.hex().encode() not in file.read_bytes()


def test_a_state_goes_with_its_key_its_mechanism_and_its_output(tmp_path):
    Run(tmp_path).send([("a", 0, 1)])
    with pytest.raises(StateError, match="another mechanism"):
        Run(tmp_path, mechanism=Laplace(epsilon=2.0, bounds=(0, 5))).send([("a", 1, 1)])
    with pytest.raises(StateError, match="another seed"):
        Run(tmp_path, seed=4).send([("a", 1, 1)])
    key = tmp_path / "state.key"
    right = key.read_bytes()
    Run(tmp_path / "other").send([("b", t, 1) for t in range(EPOCH)])
    key.write_bytes((tmp_path / "other" / "state.key").read_bytes())
    with pytest.raises(StateError, match="does not belong to the state"):
        Run(tmp_path).send([("a", 1, 1)])
    key.write_bytes(b"[]")
    with pytest.raises(StateError, match="damaged"):
        Run(tmp_path).send([("a", 1, 1)])
    key.unlink()
    with pytest.raises(StateError, match="missing"):
        Run(tmp_path).send([("a", 1, 1)])
    key.write_bytes(right)
    (tmp_path / "out.csv").write_text("")
    with pytest.raises(StateError, match="append to it"):
        Run(tmp_path).send([("a", 1, 1)])


def test_readings_sent_again_must_be_the_same(tmp_path):
    Run(tmp_path).send([("a", 0, 1), ("a", 1, 2)])
    assert Run(tmp_path).send([("a", 0, 1), ("a", 1, 2), ("a", 2, 3)]).counts.again == 2
    with pytest.raises(StateError, match="not those that this stream consumed before"):
        Run(tmp_path).send([("a", 0, 1), ("a", 1, 2.5), ("a", 2, 3)])


def test_one_stream_at_a_time_uses_a_state(tmp_path):
    first, second = Run(tmp_path), Run(tmp_path)
    with first.pipeline.locked(), pytest.raises(TemprivError, match="another stream is using"):
        second.send([("a", 0, 1)])


def test_a_pipe_gets_the_last_block_again_and_is_told_so(tmp_path):
    def piped():
        reading, writing = os.pipe()
        record_format = RecordFormat("csv", ["v"], "t", "who")
        return reading, StreamPipeline(
            LAPLACE, record_format, DescriptorSink(writing), StateFile(tmp_path / "state")
        )

    reading, pipeline = piped()
    with pipeline.locked():
        pipeline.deliver_pending()
        pipeline.push_text(b"who,t,v\na,1,2\n")  # and then it is killed
    first = os.read(reading, 1000)
    reading, pipeline = piped()
    with pipeline.locked():
        pipeline.deliver_pending()
        assert pipeline.may_repeat
        assert os.read(reading, 1000) == first
        pipeline.finish()
    reading, pipeline = piped()
    with pipeline.locked():
        pipeline.deliver_pending()
        assert not pipeline.may_repeat, "a run that ended well leaves nothing to repeat"


@settings(max_examples=200, deadline=None)
@given(text=st.binary(max_size=200), form=st.sampled_from(["csv", "jsonl"]))
def test_arbitrary_lines_are_readings_or_counted(text, form):
    record_format = RecordFormat(form, ["v"], "t", "who")
    tally = []
    if form == "csv":
        list(record_format.parse(b"who,t,v\n", tally))
    for reading in record_format.parse(text, tally):
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
    with pytest.raises(StateError, match="older than what this stream has written"):
        Run(tmp_path).send([("a", 1, 5), ("a", 2, 1)])


def test_a_stream_never_cuts_a_file_that_is_not_its_own(tmp_path):
    Run(tmp_path).send([("a", 0, 1)])
    out = tmp_path / "out.csv"
    own = out.read_text()
    for other in ("x" * 5000, own + "b,9,1.5\n"):
        out.write_text(other)
        with pytest.raises(StateError, match="does not end with what this stream has written"):
            Run(tmp_path).send([("a", 1, 1)])
        assert out.read_text() == other
    out.write_text(own)
    assert Run(tmp_path).send([("a", 1, 1)]).counts.released == 1


def test_duplicates_and_late_lines_may_be_sent_again_with_the_rest(tmp_path):
    rows = [("a", 0, 1), ("a", 1, 2), ("a", 1, 4), ("a", 0, 3), ("a", 2, 5)]
    Run(tmp_path).send(rows)
    again = Run(tmp_path).send([*rows, ("a", 3, 1)])
    assert (again.counts.again, again.counts.put_aside, again.counts.released) == (3, 2, 1)


def test_a_stream_goes_on_whatever_a_repeated_reading_says(tmp_path):
    counts = Run(tmp_path).send([("a", 0, 1), ("a", 0, 2), ("a", 1, 3)]).counts
    assert (counts.released, counts.repeated) == (2, 1)


def test_an_open_quote_costs_what_follows_up_to_the_next():
    lines, tally = RecordFormat("csv", ["v"], "t", None), []
    text = b't,v\n1,"2\n2,3\n"x,4\n5,6\n'
    assert [reading.tick for reading in lines.parse(text, tally)] == [5]
    assert tally == ['1,"2\n2,3\n"x,4']


LETTERS = st.text(st.sampled_from('a1,"\n\r é'), max_size=8)


@given(rows=st.lists(st.tuples(LETTERS, LETTERS), max_size=6), cut=st.integers(0, 200))
def test_records_are_those_of_the_csv_reader(rows, cut):
    """Whatever stands in a quoted cell, and wherever a block is cut, no line is made up."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    data = text.getvalue().encode()
    records = [next(csv.reader([piece.decode()], strict=True)) for piece in split_records(data)]
    assert [tuple(record) for record in records] == rows
    whole = RecordFormat("csv", ["v"], "t", None).whole_records(data[:cut])
    assert split_records(data[:whole]) + split_records(data[whole:]) == split_records(data)


ORDERS = ("who,t,v", "who,v,t", "new,v,t", "who,t,v,battery", "v,who")


@pytest.mark.parametrize("second", ORDERS)
@pytest.mark.parametrize("before", [b"", b'"x",2,"3"\n'], ids=["columns", "lines"])
def test_readings_under_another_header_are_refused(second, before):
    """By columns and line by line alike; the same header again is no reading."""
    text = b"who,t,v\n" + before + f"a,1,70\n{second}\nb,66,1003\n".encode()
    record_format = RecordFormat("csv", ["v"], "t", "who")
    if second == ORDERS[-1]:  # not all names, and not in the place of the time: a damaged line
        assert len(parse_batch(record_format, text).unreadable) == 1
    elif second != ORDERS[0]:
        with pytest.raises(DataError, match="another order"):
            parse_batch(record_format, text)
    else:
        batch = parse_batch(record_format, text)
        assert (batch.ticks[-2:].tolist(), list(batch.unreadable)) == ([1, 66], [])


def test_values_without_times_are_refused_under_another_header():
    record_format = RecordFormat("csv", ["v"], None, "who")
    with pytest.raises(DataError, match="another order"):
        parse_batch(record_format, b"who,v\na,1\nv,who\n66,b\n")
    words = RecordFormat("csv", ["v"], None, None, categories=(("u", "v"),))
    assert len(parse_batch(words, b"v\nu\nv\n")) == 2  # a category may be named like its column


def test_a_name_that_is_no_text_costs_its_own_line_only():
    lines, tally = RecordFormat("jsonl", ["v"], "t", "who"), []
    text = b'{"t": 1, "who": "\\ud800", "v": 1}\n{"t": 1, "who": "a", "v": 1}\n'
    assert [reading.series for reading in lines.parse(text, tally)] == ["a"]
    assert len(tally) == 1


def test_a_number_too_large_for_a_float_is_clipped_like_any_other():
    lines, tally = RecordFormat("jsonl", ["v"], "t", None), []
    text = ('{"t": 1, "v": ' + "9" * 400 + '}\n{"t": 2, "v": -' + "9" * 400 + "}\n").encode()
    assert [reading.values for reading in lines.parse(text, tally)] == [(1e300,), (-1e300,)]


def test_readings_past_the_promised_length_are_passed_over(tmp_path):
    three = Laplace(epsilon=1.0, bounds=(0, 5), unit=WholeSeries(3))
    counts = Run(tmp_path, mechanism=three).send([("a", t, 1) for t in range(5)]).counts
    assert (counts.released, counts.beyond) == (3, 2)
