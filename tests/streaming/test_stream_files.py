"""The files of a stream: none is another one too, none is cut, and none is left for nothing."""

import csv
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tempriv import Laplace
from tempriv.errors import StateError
from tempriv.streaming import sources
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sinks import DeadLetterFile, DescriptorSink
from tempriv.streaming.state_file import StateFile
from tests.support.kept_streams import HEADER, LAPLACE, places, readings

SENT = HEADER + readings(0, 3)
OWN = "holds something that this stream has not put aside"
LATE = b'{"why": "late", "reading": {"who": "a"}}\n'


@pytest.fixture
def stream(run, monkeypatch):
    """Run ``tempriv stream`` on some text, without a ledger unless one is named."""

    def call(*words, text=SENT, ledger=("--no-ledger",)):
        Path("sent.txt").write_text(text)
        with Path("sent.txt").open() as sent:
            monkeypatch.setattr(sys, "stdin", sent)
            return run("stream", *LAPLACE, *ledger, *words)

    return call


def files():
    return {str(path) for path in Path().rglob("*") if path.is_file()} - {"sent.txt"}


# one file for two


def test_no_file_of_a_stream_is_another_one_too(stream, tmp_path):
    Path("in.csv").write_text(HEADER + readings(0, 3))
    Path("link.csv").symlink_to("in.csv")
    Path("hard.csv").hardlink_to("in.csv")
    Path("x").write_text("")
    before = files()
    both = [
        ["--input", "in.csv", "--output", "./in.csv"],
        ["--input", "in.csv", "--output", "link.csv"],
        ["--input", "hard.csv", "--output", "in.csv"],
        ["--input", "in.csv", "--aside", tmp_path / "in.csv"],
        ["--input", "in.csv", "--state", "in.csv"],
        ["--output", "x", "--aside", "x"],
        ["--output", "new", "--aside", "./new"],
        ["--output", "s", "--state", "./s"],
        ["--output", "s.key", "--state", "s"],
        ["--output", "s.aside.jsonl", "--state", "s"],
        ["--aside", "s.lock", "--state", "s"],
        ["--aside", "s-wal", "--state", "s"],
        ["--output", "sent.txt"],
    ]
    for words in both:
        status, out, err = stream(*words)
        assert (status, out) == (2, ""), words
        assert "are the same file" in err, words
        assert Path("in.csv").read_text() == HEADER + readings(0, 3)
        assert files() == before, words
    assert stream("--state", "s", "--aside", "./s.aside.jsonl", "--output", "o")[0] == 0


def test_standard_output_is_compared_with_the_files(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text(HEADER + readings(0, 3))
    words = [sys.executable, "-m", "tempriv", "stream", *LAPLACE, "--no-ledger", "--input", source]
    with source.open("ab") as out:
        ended = subprocess.run(words, stdout=out, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, b"are the same file" in ended.stderr) == (2, True)
    assert source.read_text() == HEADER + readings(0, 3)


# what is put aside


@pytest.mark.parametrize("state", [[], ["--state", "s"]], ids=["alone", "state"])
def test_a_new_stream_puts_nothing_into_a_file_that_holds_something(stream, state):
    Path("diary.txt").write_text("dear diary\n")
    Path("diary.txt").chmod(0o644)
    status, out, err = stream(*state, "--aside", "diary.txt")
    assert (status, out, OWN in err) == (1, "", True)
    assert Path("diary.txt").read_text() == "dear diary\n"
    assert Path("diary.txt").stat().st_mode & 0o777 == 0o644
    assert files() == {"diary.txt"}


def test_what_an_earlier_stream_has_put_aside_is_kept(stream):
    Path("s.aside.jsonl").write_bytes(LATE)
    assert stream("--state", "s")[0] == 1
    assert Path("s.aside.jsonl").read_bytes() == LATE


@pytest.mark.parametrize("text", ["dear diary\n", "d\n" * 999], ids=["shorter", "longer"])
def test_a_stream_goes_on_with_its_own_aside_only(stream, text):
    words = ["--state", "s", "--output", "o"]
    assert stream(*words, text=HEADER + "a,1,1\na,1,1\nno\n")[0] == 0
    Path("diary.txt").write_text(text)
    status, _, err = stream(*words, "--aside", "diary.txt")
    assert (status, OWN in err) == (1, True)
    assert Path("diary.txt").read_text() == text
    assert stream(*words, text=HEADER + "a,0,1\na,2,2\n")[0] == 0
    assert len(Path("s.aside.jsonl").read_text().splitlines()) == 3


def test_only_what_a_commit_was_about_to_put_aside_is_cut(tmp_path):
    path = tmp_path / "aside"
    path.write_bytes(LATE + LATE[:9])
    one = DeadLetterFile(path)
    one.open(len(LATE), LATE)
    one.close()
    assert path.read_bytes() == LATE * 2
    path.write_bytes(LATE * 3)
    with pytest.raises(StateError, match=OWN):
        DeadLetterFile(path).open(len(LATE), LATE)
    assert path.read_bytes() == LATE * 3


def test_an_aside_that_was_cleared_goes_on_at_its_end(stream):
    words = ["--state", "s", "--output", "o"]
    for sent, lines in ((1, 2), (2, 1)):
        assert (
            stream(*words, text=HEADER + f"a,{sent},1\na,{sent},1\n" + "no\n" * (lines - 1))[0] == 0
        )
        found = Path("s.aside.jsonl").read_text()
        assert [set(json.loads(line)) for line in found.splitlines()] == [
            {"why", "reading"}
        ] * lines
        Path("s.aside.jsonl").unlink()


# the output


def test_a_new_stream_has_an_output_of_its_own(stream):
    Path("o").write_text("who,t,v\nz,1,1\n")
    status, _, err = stream("--state", "s", "--output", "o")
    assert (status, "holds something already" in err) == (1, True)
    assert Path("o").read_text() == "who,t,v\nz,1,1\n"
    assert files() == {"o"}
    assert stream("--output", "o")[0] == 0  # without a state it is added at the end
    assert Path("o").read_text().startswith("who,t,v\nz,1,1\nwho,t,v\n")


def test_a_restored_stream_has_an_output_of_its_own(stream, run):
    assert stream("--state", "s", "--output", "o")[0] == 0
    before = Path("o").read_bytes()
    assert run("stream", "restore", "s", "r")[0] == 0
    status, _, err = stream("--state", "r", "--output", "o", text=HEADER + readings(3, 5))
    assert (status, "holds something already" in err) == (1, True)
    assert Path("o").read_bytes() == before
    assert stream("--state", "r", "--output", "p", text=HEADER + readings(3, 5))[0] == 0
    assert places(Path("p").read_text())[1:] == ["a,3", "b,3", "a,4", "b,4"]


# the first lines


def spent(run):
    status, out, _ = run("budget", "show", "meters", "--json")
    assert status == 0
    return [total["spent"] for one in json.loads(out) for total in one["totals"]]


@pytest.mark.parametrize("source", [[], ["--input", "in.csv"]], ids=["pipe", "file"])
def test_a_header_that_is_refused_costs_nothing_and_leaves_nothing(stream, run, source):
    run("budget", "create", "meters", "--epsilon", "1")
    words = [*source, "--state", "s", "--output", "o", "--dataset", "meters", "--aside", "a"]
    text = HEADER + readings(0, 3)
    before = files()
    unspent = spent(run)
    Path("in.csv").write_text(text.replace("who", "home"))
    status, _, err = stream(*words, text=text.replace("who", "home"), ledger=())
    assert (status, "no column 'who'" in err) == (1, True)
    assert files() - {"in.csv"} == before
    assert spent(run) == unspent
    Path("in.csv").write_text(text)
    assert stream(*words, text=text, ledger=())[0] == 0
    assert spent(run) != unspent
    assert stream(*words, text=HEADER, ledger=())[0] == 0  # and once only


def test_a_stream_that_is_not_paid_for_leaves_nothing(stream, run):
    run("budget", "create", "meters", "--epsilon", "0.5")
    before = files()
    words = ["--state", "s", "--output", "o", "--dataset", "meters", "--aside", "a"]
    assert stream(*words, ledger=())[0] == 3
    assert files() == before
    assert stream(*words[2:], ledger=())[0] == 3
    assert files() == before


def test_a_copy_that_is_refused_gets_no_company(stream):
    assert stream("--state", "s", "--output", "o")[0] == 0
    Path("copy").write_bytes(Path("s").read_bytes())
    before = files()
    assert stream("--state", "copy", "--output", "p")[0] == 1
    assert files() == before


def test_what_was_charged_keeps_its_state(tmp_path):
    class Full:
        position = None

        def start(self):
            pass

        def write(self, data):
            raise OSError("no room")

    asked = []
    record_format = RecordFormat("csv", ["v"], "t", "who")
    mechanism = Laplace(epsilon=1.0, bounds=(0, 5))
    pipeline = StreamPipeline(
        mechanism, record_format, Full(), StateFile(tmp_path / "s"), charge=lambda: asked.append(1)
    )
    with pytest.raises(OSError, match="no room"), pipeline.locked():
        assert not asked
        pipeline.push_text(HEADER.encode())
    assert asked == [1]
    assert (tmp_path / "s").exists()


# long lines

SHORT = 1 << 12


@pytest.fixture
def short(monkeypatch):
    """Lines are too long sooner."""
    monkeypatch.setattr(sources, "CHUNK_BYTES", SHORT)


def long_between(size):
    return HEADER + "a,1,1\n" + "x" * size + "\na,2,1\n"


@pytest.mark.parametrize("size", [SHORT, SHORT * 2 - 1, SHORT * 2, SHORT * 3 + 5])
@pytest.mark.parametrize("source", [[], ["--input", "in.csv"]], ids=["pipe", "file"])
@pytest.mark.parametrize("last", [False, True], ids=["between", "last"])
def test_a_line_that_is_too_long_is_told_of_and_passed_over(stream, short, size, source, last):
    text = long_between(size)
    text = text[: text.rindex("\n", 0, -1)] if last else text
    Path("in.csv").write_text(text)
    words = [*source, "--state", "s", "--output", "o"]
    status, _, err = stream(*words, text=text)
    assert (status, "1 not released: not a reading" in err) == (0, True)
    assert places(Path("o").read_text()) == ["who,t", "a,1", "a,2"][: 3 - last]
    (told,) = Path("s.aside.jsonl").read_text().splitlines()
    assert json.loads(told)["reading"] == f"a line of {size} bytes"
    with Path("in.csv").open("a") as file:
        file.write("\na,3,1\n")
    assert stream(*words, text=HEADER + "a,3,1\n")[0] == 0
    assert places(Path("o").read_text())[-1] == "a,3"


@pytest.mark.parametrize("source", [[], ["--input", "in.csv"]], ids=["pipe", "file"])
@pytest.mark.parametrize("head", ['"', "x" * SHORT + ',"'], ids=["open", "late"])
def test_a_long_line_with_a_quote_stops_the_stream(stream, short, source, head):
    """Its end cannot be told from a line break within quotes, behind which a reading may stand."""
    text = HEADER + "a,1,1\n" + head + "x" * SHORT + "\nvictim,5,3\n"
    Path("in.csv").write_text(text)
    status, _, err = stream(*source, "--state", "s", "--output", "o", text=text)
    assert (status, "a quoted cell is not closed" in err) == (1, True)
    assert places(Path("o").read_text()) == ["who,t", "a,1"]


@pytest.mark.parametrize("source", [[], ["--input", "in.csv"]], ids=["pipe", "file"])
def test_a_line_break_within_quotes_is_no_end_of_a_reading(stream, source):
    """Text that somebody else wrote in a cell must not become a reading."""
    text = 'who,t,v,note\na,1,1,"hi\nvictim,5,3.0,x"\nvictim,1,2,ok\n"b\nc",6,2,ok\n'
    Path("in.csv").write_text(text)
    status, _, err = stream(*source, "--state", "s", "--output", "o", text=text)
    assert (status, "not released" in err) == (0, False)
    with Path("o").open(newline="") as file:
        rows = [row[:2] for row in csv.reader(file)]
    assert rows == [["who", "t"], ["a", "1"], ["victim", "1"], ["b\nc", "6"]]


def test_a_first_line_that_is_too_long_names_no_columns(stream, short):
    status, _, err = stream("--state", "s", text="x" * SHORT * 2 + "\na,1,1\n")
    assert (status, "must name its columns" in err) == (1, True)
    assert files() == set()


def test_a_long_line_that_still_grows_is_waited_for(tmp_path, short):
    path = tmp_path / "in.csv"
    path.write_text(HEADER + "x" * SHORT)
    record_format = RecordFormat("csv", ["v"], "t", "who")
    source = sources.FileSource(path, record_format, follow=True)
    looked = []

    def stopping():
        looked.append(1)
        if len(looked) == 4:
            with path.open("a") as file:
                file.write("x" * SHORT + "\na,1,1\n")
        return len(looked) > 20

    found = [(len(batch), list(batch.unreadable)) for batch, _ in source.batches(stopping)]
    assert found == [(0, []), (0, [f"a line of {2 * SHORT} bytes"]), (1, [])]
    assert source.offset == path.stat().st_size


# a followed file that is replaced


@pytest.mark.parametrize("replaced", [False, True], ids=["gone", "replaced"])
def test_a_followed_file_that_is_moved_away_is_read_to_its_end(stream, replaced):
    path = Path("in.csv").resolve()
    path.write_text(HEADER + readings(0, 2))
    out = Path("o").resolve()

    def rotate():
        until = time.monotonic() + 10
        while time.monotonic() < until and not (out.exists() and out.read_text().count("\n") > 4):
            time.sleep(0.01)
        with path.open("a") as old:
            path.rename(path.with_name("in.csv.1"))
            old.write("a,2,1\nb,2,1")
        if replaced:
            path.write_text(HEADER + readings(3, 4))

    thread = threading.Thread(target=rotate, daemon=True)
    thread.start()
    status, _, err = stream("--input", "in.csv", "--follow", "--state", "s", "--output", "o")
    thread.join()
    assert (status, "was moved away or replaced" in err) == (1, True)
    assert places(out.read_text())[1:] == ["a,0", "b,0", "a,1", "b,1", "a,2", "b,2"]


# sentences


def test_what_is_no_file_is_called_what_it_is(stream, run):
    Path("folder").mkdir()
    os.mkfifo("pipe")
    for option in ("--state", "--aside", "--output"):
        status, _, err = stream(option, "folder")
        assert (status, "is a directory" in err) == (2, True), option
    status, _, err = stream("--input", "pipe")
    assert (status, "not a regular file" in err, "leave out --input" in err) == (1, True, True)
    status, _, err = stream("--aside", "/dev/null")
    assert (status, "not a regular file" in err) == (2, True)
    status, _, err = run("stream", "stauts", "s")
    assert (status, "No such command 'stauts'" in err) == (2, True)
    assert files() == set()


def test_an_output_is_written_without_anything_else(tmp_path):
    descriptor = os.open(tmp_path / "o", os.O_CREAT | os.O_RDWR | os.O_APPEND)
    output = DescriptorSink(descriptor)
    output.write(b"a\n")
    os.close(descriptor)
    assert (tmp_path / "o").read_bytes() == b"a\n"
