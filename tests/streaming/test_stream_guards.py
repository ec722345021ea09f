"""Noise is used once, and no line costs others: what a fresh look at streams had found."""

import os
import shutil

import pytest

from tempriv import Laplace, TemprivError
from tempriv.data.files import file_identity
from tempriv.errors import DataError, StateError
from tempriv.streaming import csv_reader
from tempriv.streaming.admin import back_up, restore
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sinks import DescriptorSink
from tempriv.streaming.sources import FileSource
from tempriv.streaming.state_file import StateFile
from tests.support.pipelines import standing_of

LAPLACE = Laplace(epsilon=1.0, bounds=(0, 5))


def flow_in(folder, name="state"):
    out = os.open(folder / f"{name}.csv", os.O_CREAT | os.O_RDWR | os.O_APPEND)
    record_format = RecordFormat("csv", ["v"], "t", "who")
    return StreamPipeline(LAPLACE, record_format, DescriptorSink(out), StateFile(folder / name))


def send(folder, text, name="state"):
    pipeline = flow_in(folder, name)
    with pipeline.locked():
        pipeline.deliver_pending()
        pipeline.push_text(text.encode())
        pipeline.finish()
    return pipeline


def test_a_series_that_has_had_no_reading_yet_does_no_harm(tmp_path):
    pipeline = send(tmp_path, "who,t,v\na,1,1\nb,not a time,1\n")
    assert pipeline.series.names == ["a"]
    assert send(tmp_path, "who,t,v\na,1,1\na,2,1\nb,2,1\n").counts.released == 2
    back_up(tmp_path / "state", tmp_path / "copy")


@pytest.mark.parametrize(
    ("time", "text"),
    [
        ("t", "z,,9\na,1,1\nb,1,1\nc,1,1\na,2,1\n"),
        ("d+h", "z,2026-01-01,,9\na,2026-01-01,1,1\nb,2026-01-01,1,1\n"),
    ],
)
def test_a_line_without_a_time_costs_no_other(time, text):
    record_format = RecordFormat("csv", ["v"], time, "who")
    record_format.take_header(["who", *time.split("+"), "v"])
    found = csv_reader.parse_batch(record_format, text.encode())
    assert len(found) == text.count("\n") - 1
    assert len(found.unreadable) == 1


@pytest.mark.parametrize("before", ["\n", "\n  \n", "\ufeff", "\ufeff\n"])
def test_a_header_may_come_after_empty_lines(before):
    record_format = RecordFormat("csv", ["v"], "t", "who")
    found = csv_reader.parse_batch(record_format, f'{before}"who",t,v\na,1,1\na,2,2\n'.encode())
    assert found.ticks.tolist() == [1, 2]


def test_a_header_that_cannot_be_read_is_refused():
    with pytest.raises(DataError, match="must name its columns"):
        csv_reader.parse_batch(RecordFormat("csv", ["v"], "t", "who"), b'"who,t,v\na,1,1\n')
    with pytest.raises(DataError, match="several columns v"):
        csv_reader.parse_batch(RecordFormat("csv", ["v"], "t", "who"), b"who,t,v,v\na,1,1,2\n")


def test_two_streams_on_one_state_never_both_release(tmp_path):
    """Whoever deletes the lock of a running stream can start a second one."""
    first = flow_in(tmp_path)
    with first.locked():
        first.deliver_pending()
        first.push_text(b"who,t,v\na,1,1\n")
        (tmp_path / "state.lock").unlink()
        send(tmp_path, "who,t,v\na,2,4\n")
        before = (tmp_path / "state.csv").read_bytes()
        with pytest.raises(StateError, match="another stream has written"):
            first.push_text(b"a,2,0\n")
    assert (tmp_path / "state.csv").read_bytes() == before


def test_keys_of_another_stream_are_refused(tmp_path):
    send(tmp_path, "who,t,v\na,1,1\n", "one")
    send(tmp_path, "who,t,v\na,1,1\n", "other")
    shutil.copy(tmp_path / "other.key", tmp_path / "one.key")
    with pytest.raises(StateError, match="does not belong to the state"):
        send(tmp_path, "who,t,v\na,2,1\n", "one")


def test_a_state_put_back_after_it_was_removed_is_another_file(tmp_path):
    send(tmp_path, "who,t,v\na,1,1\n")
    state = tmp_path / "state"
    own = file_identity(state)
    if own[1] == 0:
        pytest.skip("this file system does not count how often a number was used")
    shutil.copy(state, tmp_path / "kept")
    state.unlink()
    shutil.copy(tmp_path / "kept", state)
    assert file_identity(state) != own
    with pytest.raises(TemprivError, match="restore"):
        send(tmp_path, "who,t,v\na,2,1\n")


def test_a_copy_does_not_tell_what_was_read_last(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("who,t,v\na,1,3.141\n")
    pipeline = flow_in(tmp_path)
    with pipeline.locked():
        pipeline.deliver_pending()
        for batch, position in FileSource(source, pipeline.record_format).batches(lambda: False):
            pipeline.push(batch, position)
    assert standing_of(tmp_path / "state").input["tail"]
    back_up(tmp_path / "state", tmp_path / "copy")
    assert standing_of(tmp_path / "copy").input == {
        "offset": source.stat().st_size,
        "tail": None,
        "columns": ["who", "t", "v"],
    }
    restore(tmp_path / "copy", tmp_path / "new")
    FileSource(source, RecordFormat("csv", ["v"], "t", "who")).resume(
        standing_of(tmp_path / "new").input
    )
