"""Streams from and to a real Redis server: each entry once, whatever goes down meanwhile."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tempriv.errors import StateError, TemprivError, UsageError
from tempriv.integrations.redis import open_sink, open_source
from tempriv.mechanisms.reorder.threshold import Threshold
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.state_file import StateFile
from tests.support.killing import (
    MECHANISMS,
    Files,
    Zygote,
    kill_at_points,
    kill_at_random,
    readings,
    run_to_the_end,
    zygote_process,
)

pytestmark = pytest.mark.services
POINTS = [
    *itertools.product(["commit", "aside", "add"], ["before", "half", "after"], [1, 2]),
    *itertools.product(["keys"], ["before", "half", "after"], [1]),
    *itertools.product(["handed_out", "acknowledge"], ["before", "after"], [1, 2]),
    ("acknowledge", "half", 1),
    ("stand", "after", 1),
]
LAPLACE = Laplace(epsilon=1.0, bounds=(0, 5))


class RedisServer:
    """A server of its own, which can be killed and started again with what it had."""

    def __init__(self, folder: Path):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.folder, self.process = folder, None

    def start(self, *words: str) -> None:
        program = shutil.which("redis-server")
        assert program, "no redis-server: apt-get install redis-server (make test-services does)"
        self.process = subprocess.Popen(
            [
                program,
                "--port",
                str(self.port),
                "--bind",
                "127.0.0.1",
                "--dir",
                str(self.folder),
                "--appendonly",
                "yes",
                "--appendfsync",
                "always",
                "--save",
                "",
                *words,
            ],
            stdout=subprocess.DEVNULL,
        )
        for _ in range(500):
            with contextlib.suppress(Exception):
                if self.client().ping():
                    return
            time.sleep(0.02)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def client(self):
        import redis

        return redis.Redis(port=self.port, decode_responses=True, encoding_errors="replace")

    def url(self, stream: str, more: str = "", user: str = "") -> str:
        return f"redis://{user}127.0.0.1:{self.port}/0?stream={stream}{more}"


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def server(shared_server):
    if shared_server.process is None:
        shared_server.start()
    shared_server.client().flushall()
    return shared_server


@pytest.fixture(scope="module")
def process():
    with zygote_process("redis") as process:
        yield process


@pytest.fixture
def zygote(process, tmp_path):
    return Zygote(process, tmp_path, redis=True)


class Redis(Files):
    """A stream from Redis to Redis, whose entries are added meanwhile."""

    def __init__(self, folder, mechanism, rows, server):
        self.client, self.connection, self.name = server.client(), server, folder.name
        super().__init__(folder, mechanism, rows, follow=True)
        self.small = 70

    def arguments(self):
        words = [*super().arguments()[:-5], "--input", self.connection.url(f"in-{self.name}")]
        return [*words, "--output", self.connection.url(f"out-{self.name}")]

    def send(self, count):
        rows = self.rows[self._sent : self._sent + count]
        pipe = self.client.pipeline(transaction=False)
        for row in rows:
            # some have no field in the place of nothing
            pipe.xadd(f"in-{self.name}", {k: v for k, v in row.items() if v or k == "kwh"})
        pipe.execute()
        self._sent += len(rows)

    def consumed(self):
        found = self.standing()
        if not self.all_sent or found is None or found.input is None:
            return False
        last = self.client.xrevrange(f"in-{self.name}", count=1)
        return bool(found.input["entry"] == last[0][0])

    def output(self):
        entries = self.client.xrange(f"out-{self.name}")
        assert [one for one, _ in entries] == [f"{n + 1}-0" for n in range(len(entries))]
        return [list(fields.values()) for _, fields in entries]

    def result(self):
        pending = self.client.xpending(f"in-{self.name}", "tempriv")["pending"]
        assert pending == 0, "what was consumed is acknowledged"
        return super().result()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_bits_are_those_of_a_file(server, zygote, tmp_path, mechanism):
    rows = readings(mechanism, 500)
    file, redis = (
        Files(tmp_path / "file", mechanism, rows),
        Redis(tmp_path / "redis", mechanism, rows, server),
    )
    for world in (file, redis):
        run_to_the_end(zygote, world, iter(()))
    assert redis.output() == file.output()
    assert len(redis.aside()) == len(file.aside()) > 20
    told = {
        line for line in file.aside() if "not a reading" not in line and "no reading" not in line
    }
    assert told <= set(redis.aside())


@pytest.mark.parametrize("mechanism", ["laplace", "threshold"])
def test_a_stream_killed_at_every_point_ends_the_same(server, zygote, tmp_path, mechanism):
    rows = readings(mechanism, 300)
    points = POINTS if mechanism == "laplace" else POINTS[::3]
    kill_at_points(zygote, lambda name: Redis(tmp_path / name, mechanism, rows, server), points)


def random_kills(server, zygote, folder, mechanism, kills, count):
    rows = readings(mechanism, count)
    seed = list(MECHANISMS).index(mechanism)
    done = kill_at_random(
        zygote, lambda name: Redis(folder / name, mechanism, rows, server), kills, seed
    )
    print(f"{done} kills, Redis to Redis, {mechanism}: nothing lost, nothing twice, no bit other")


def test_a_stream_killed_at_3_moments_ends_the_same(server, zygote, tmp_path):
    random_kills(server, zygote, tmp_path, "shuffle", 3, 400)


@pytest.mark.long
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_stream_killed_at_20_moments_ends_the_same(server, zygote, tmp_path, mechanism):
    random_kills(server, zygote, tmp_path, mechanism, 20, 1500)


# one run in this process


def run(server, folder, mechanism=LAPLACE, meanwhile=lambda: None, notify=print):
    """Consume all that is there, as the command does."""
    record_format = RecordFormat("csv", ["kwh"], "time", "home", has_status=mechanism.has_status)
    reading = open_source(server.url("in"), record_format, notify)
    output = open_sink(server.url("out"), record_format, notify)
    pipeline = StreamPipeline(mechanism, record_format, output, StateFile(folder / "state"), 7)
    client = server.client()

    found = client.xrevrange("in", count=1)
    last = found[0][0] if found else None

    def stopping():
        return last == (None if pipeline.position is None else pipeline.position["entry"])

    meanwhile()
    with pipeline.locked():
        reading.resume(pipeline.position)
        pipeline.deliver_pending()
        for batch, position in reading.batches(stopping):
            pipeline.push(batch, position)
            reading.acknowledge(position)
        pipeline.finish()
    return pipeline


def send(server, rows, stream="in"):
    for home, at, value in rows:
        server.client().xadd(stream, {"home": home, "time": at, "kwh": value})


def released(server, stream="out"):
    return [tuple(fields.values())[:2] for _, fields in server.client().xrange(stream)]


def test_an_output_that_holds_something_is_refused_before_anything_is_charged(server, tmp_path):
    send(server, [("a", 1, 2)])
    send(server, [("z", 1, 2)], "out")
    with pytest.raises(StateError, match="holds something already"):
        run(server, tmp_path)
    assert not (tmp_path / "state").exists()
    assert released(server) == [("z", "1")]


def test_an_output_that_something_else_wrote_to_is_refused(server, tmp_path):
    send(server, [("a", 1, 2)])
    run(server, tmp_path)
    send(server, [("z", 1, 2)], "out")
    with pytest.raises(StateError, match="other lines than those"):
        run(server, tmp_path)


def test_an_output_with_the_lines_of_another_stream_is_refused(server, tmp_path):
    send(server, [("a", 1, 2), ("a", 2, 2)])
    run(server, tmp_path)
    server.client().delete("out")
    for number in (1, 2):
        server.client().xadd("out", {"home": "a", "time": number, "kwh": 9}, id=f"{number}-0")
    with pytest.raises(StateError, match="lines that this stream has not written"):
        run(server, tmp_path)


def test_an_output_that_was_emptied_is_refused_and_one_that_was_trimmed_is_not(server, tmp_path):
    send(server, [("a", 1, 2), ("a", 2, 2)])
    run(server, tmp_path)
    server.client().xtrim("out", maxlen=0, approximate=False)
    send(server, [("a", 3, 2)])
    run(server, tmp_path)
    assert released(server) == [("a", "3")]
    server.client().delete("out")
    with pytest.raises(StateError, match="other lines than those"):
        run(server, tmp_path)


def test_an_input_that_was_replaced_is_refused(server, tmp_path):
    send(server, [("a", 1, 2), ("a", 2, 2)])
    run(server, tmp_path)
    last = server.client().xrevrange("in", count=1)[0][0]
    server.client().delete("in")
    for entry in ("1-1", last):  # with earlier ids, and with another entry in the place of the last
        server.client().xadd("in", {"home": "a", "time": 3, "kwh": 1}, id=entry)
        with pytest.raises(StateError, match="not the stream that was read before"):
            run(server, tmp_path)


def test_consumed_entries_may_be_removed_and_others_are_told_of(server, tmp_path):
    said = []
    send(server, [("a", 1, 2), ("a", 2, 2)])
    run(server, tmp_path, notify=said.append)
    server.client().xtrim("in", maxlen=0, approximate=False)
    send(server, [("a", 3, 2)])
    run(server, tmp_path, notify=said.append)
    assert said == []
    send(server, [("a", 4, 2), ("a", 5, 2)])
    server.client().xtrim("in", maxlen=1, approximate=False)
    run(server, tmp_path, notify=said.append)
    assert released(server) == [("a", "1"), ("a", "2"), ("a", "3"), ("a", "5")]
    assert len(said) == 1 and "at least 1 entries were removed before they were read" in said[0]


def test_a_group_that_another_process_reads_in_is_refused(server, tmp_path):
    send(server, [("a", 1, 2), ("a", 2, 2)])
    run(server, tmp_path)
    reading = open_source(server.url("in"), RecordFormat("csv", ["kwh"], "time", "home"), print)
    reading.resume(None)
    server.client().xreadgroup("tempriv", "thief", {"in": ">"}, count=1)
    with pytest.raises(StateError, match="a group of its own"):
        next(reading.batches(lambda: False))


def test_odd_entries_are_put_aside_and_odd_letters_are_carried(server, tmp_path):
    client = server.client()
    good = {"home": 'a, "b"\nc', "time": "1", "kwh": "2\r", "note": "x"}
    client.xadd("in", good)
    client.xadd("in", {"home": "plain", "time": "1", "kwh": ""})
    client.xadd("in", {"time": "2", "home": "plain", "kwh": "a,b"})
    client.xadd("in", {"home": "plain", "time": "3"})
    client.xadd("in", {"home": "plain", "kwh": "1"})
    client.xadd("in", {"home": "plain", "time": "never", "kwh": "1"})
    client.xadd("in", {b"home": "plain", b"time": "4", b"kwh": b"\xff"})
    rows = Threshold(epsilon=50.0, window=3)
    pipeline = run(server, tmp_path, mechanism=rows)
    assert released(server) == [('a, "b"\nc', "1"), ("plain", "1"), ("plain", "2")]
    values = {fields["kwh"] for _, fields in client.xrange("out")}
    assert values <= {"2\r", "", "a,b"} and pipeline.counts.unreadable == 4
    aside = (tmp_path / "state.aside.jsonl").read_text().splitlines()
    told = [json.loads(json.loads(line)["reading"]) for line in aside]
    assert told[0] == {"home": "plain", "time": "3"} and told[2]["time"] == "never"


def test_a_server_that_goes_down_is_waited_for(server, tmp_path):
    """Killed at some moment of every block, and started again with what it had."""
    said = []
    rows = [(f"h{i % 7}", i // 7 + 1, i % 5) for i in range(700)]
    pipe = server.client().pipeline(transaction=False)
    for home, at, value in rows:
        pipe.xadd("in", {"home": home, "time": at, "kwh": value})
    pipe.execute()

    from tempriv.integrations.redis import sink, source

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BATCH_ENTRIES", 100)
        patch.setattr(source, "COMMAND_ENTRIES", 100)
        patch.setattr(sink, "COMMAND_ENTRIES", 30)
        restarts = threading.Thread(target=restart_often, args=[server])
        run(server, tmp_path, meanwhile=restarts.start, notify=said.append)
        restarts.join()
    assert released(server) == [(home, str(at)) for home, at, _ in rows]
    assert any("cannot be reached" in one for one in said) and any("goes on" in one for one in said)


def restart_often(server):
    for _ in range(5):
        server.kill()
        server.start()
        time.sleep(0.05)


def test_a_full_server_is_waited_for(server, tmp_path):
    said, client = [], server.client()
    send(server, [("a", 1, 2)])
    run(server, tmp_path)
    send(server, [("a", 2, 2)])
    client.config_set("maxmemory", "1")
    freed = threading.Timer(0.7, lambda: client.config_set("maxmemory", "0"))

    def tell(sentence):
        said.append(sentence)
        if len(said) == 1:
            freed.start()

    try:
        run(server, tmp_path, notify=tell)
    finally:
        client.config_set("maxmemory", "0")
    assert released(server) == [("a", "1"), ("a", "2")]
    assert "has no memory left" in said[0]


def test_an_output_that_is_away_can_be_given_up(server, tmp_path):
    said = []
    output = open_sink(
        server.url("out"),
        RecordFormat("csv", ["kwh"], "time", "home"),
        said.append,
    )
    output.stop_waiting_when(lambda: bool(said))
    output.write(b"home,time,kwh\na,1,2\n")
    server.kill()
    with pytest.raises(TemprivError, match="could not be reached to the end"):
        output.write(b"a,2,2\n")
    assert len(said) == 1
    server.start()
    assert released(server) == [("a", "1")]


# the command


def command(server, folder, user=""):
    program = [sys.executable, "-m", "tempriv", "stream", *MECHANISMS["laplace"]]
    program += ["--time", "time", "--value", "kwh", "--series", "home", "--no-ledger"]
    program += ["--input", server.url("in", user=user), "--state", str(folder / "state")]
    return subprocess.Popen(
        [*program, "--output", server.url("out", user=user)],
        env=os.environ | {"XDG_DATA_HOME": str(folder)},
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(what, seconds=30):
    for _ in range(int(seconds / 0.05)):
        with contextlib.suppress(Exception):
            if what():
                return
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def test_a_stream_stops_while_it_waits_for_a_server(server, tmp_path):
    send(server, [("a", 1, 2)])
    process = command(server, tmp_path)
    wait_for(lambda: len(released(server)) == 1)
    server.kill()
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert "cannot be reached; trying again" in said and "Traceback" not in said


def test_no_password_is_ever_shown(server, tmp_path):
    client = server.client()
    allowed = "+ping +exists +eval +xinfo +xrange +xgroup +xreadgroup +xack +xpending +xadd"
    client.execute_command(
        *("ACL", "SETUSER", "meter", "on", ">hidden-word", "~in", "~out", *allowed.split())
    )
    send(server, [("a", 1, 2)])
    process = command(server, tmp_path, user="meter:wrong-word@")
    _, said = process.communicate(timeout=30)
    assert process.returncode == 2 and "-word" not in said and "does not accept" in said
    process = command(server, tmp_path, user="meter:hidden-word@")
    wait_for(lambda: len(released(server)) == 1)
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0 and "hidden" not in said
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or b"hidden-word" not in file.read_bytes(), file.name


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("redis://127.0.0.1:1/0?stream=a", "cannot be reached"),
        ("redis://u:secret@127.0.0.1:1/0?stream=a", "redis://127.0.0.1:1/0.stream=a: cannot"),
        ("redis://127.0.0.1:port/0?stream=a", "cannot be reached"),
        ("redis://127.0.0.1/0", "must end in .stream=NAME"),
        ("redis://127.0.0.1/0?stream=a&stream=b", "must end in .stream=NAME"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(url, sentence):
    with pytest.raises(UsageError, match=sentence) as refused:
        open_source(url, RecordFormat("csv", ["kwh"], "time", "home"), print)
    assert "secret" not in str(refused.value)


def test_other_kinds_are_refused(server, tmp_path):
    record_format = RecordFormat("csv", ["kwh"], "time", "home")
    with pytest.raises(UsageError, match="another kind of input"):
        open_source(server.url("in"), record_format, print).resume(
            {"offset": 3, "tail": "", "columns": None}
        )
    with pytest.raises(UsageError, match="another kind of output"):
        open_sink(server.url("out"), record_format, print).resume({"size": 3, "recent": ""}, b"")
    with pytest.raises(UsageError, match="not JSON lines"):
        open_source(server.url("in"), RecordFormat("jsonl", ["kwh"], "time", "home"), print)
    server.client().set("in", "no stream")
    with pytest.raises(TemprivError, match="Redis answers WRONGTYPE"):
        open_source(server.url("in"), record_format, print).resume(None)
