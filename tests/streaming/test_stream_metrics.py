"""What a stream tells while it runs: counts for Prometheus on this machine only, and a line on a
terminal."""

import contextlib
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tempriv import Laplace
from tempriv.errors import UsageError
from tempriv.streaming.metrics import serve_metrics
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sinks import DescriptorSink
from tempriv.streaming.state_file import StateFile

WHO = "somebody-by-name"
LINES = (
    f"who,t,v\n{WHO},1,1\n{WHO},2,2\nother,5,3\n"  # released
    f"{WHO},1,4\n{WHO},2,5\nother,1,6\nother,2,7\nnothing\n"  # late, repeated, late twice
)
COUNTS = {
    "released": 3,
    "again": 0,
    "late": 3,
    "repeated": 1,
    "beyond": 0,
    "unpromised": 0,
    "unreadable": 1,
    "waiting": 0,
}


@contextlib.contextmanager
def flowing(folder):
    out = os.open(folder / "out.csv", os.O_CREAT | os.O_RDWR | os.O_APPEND)
    record_format = RecordFormat("csv", ["v"], "t", "who")
    store = StateFile(folder / "state")
    pipeline = StreamPipeline(
        Laplace(epsilon=1.0, bounds=(0, 5)), record_format, DescriptorSink(out), store
    )
    try:
        with pipeline.locked():
            pipeline.deliver_pending()
            yield pipeline
    finally:
        os.close(out)


def scraped(port, path="/metrics"):
    """What stands there, and as what."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read().decode(), answer.headers["Content-Type"]


def numbers(text):
    """The samples of Prometheus' text format, each of which must have a type and a help."""
    lines = text.splitlines()
    samples = dict(line.split(" ") for line in lines if not line.startswith("#"))
    for name in samples:
        assert re.fullmatch(r"[a-z_]+", name)
        kind = "counter" if name.endswith("_total") else "gauge"
        assert f"# TYPE {name} {kind}" in lines
        assert any(line.startswith(f"# HELP {name} ") for line in lines)
    return {name: float(value) for name, value in samples.items()}


def test_counts_are_those_of_the_stream_and_tell_nothing_else(tmp_path):
    with flowing(tmp_path) as pipeline, serve_metrics(pipeline, 0) as port:
        assert numbers(scraped(port)[0])["tempriv_readings_released_total"] == 0
        pipeline.push_text(LINES.encode())
        text, kind = scraped(port)
        assert kind.startswith("text/plain; version=0.0.4")
        found = numbers(text)
        for name, count in COUNTS.items():
            ending = "" if name == "waiting" else "_total"
            assert found[f"tempriv_readings_{name}{ending}"] == count, name
        assert found["tempriv_series"] == 2
        assert abs(found["tempriv_last_commit_seconds"] - time.time()) < 60
        assert WHO not in text
        assert set(scraped(port, "/metrics?x=1")[0].splitlines()) == set(text.splitlines())


def test_there_is_nothing_else_and_it_ends_with_the_stream(tmp_path):
    with flowing(tmp_path) as pipeline, serve_metrics(pipeline, 0) as port:
        for path in ("/", "/metrics/", "/state", "/../state", "/metricsx"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                scraped(port, path)
            assert refused.value.code == 404
            refused.value.close()
        with socket.create_connection(("127.0.0.1", port)) as other:  # no other way of asking
            other.sendall(b"POST /metrics HTTP/1.0\r\n\r\n")
            assert b"501" in other.recv(100)
    with pytest.raises(OSError):
        scraped(port)


def test_it_listens_on_this_machine_only(tmp_path):
    with flowing(tmp_path) as pipeline, serve_metrics(pipeline, 0) as port:
        listening = [
            line.split()[1]
            for table in ("/proc/net/tcp", "/proc/net/tcp6")
            if Path(table).exists()
            for line in Path(table).read_text().splitlines()[1:]
            if line.split()[3] == "0A"
        ]
        assert [one for one in listening if one.endswith(f":{port:04X}")] == [
            f"0100007F:{port:04X}"
        ]


def test_a_port_that_cannot_be_had_is_a_sentence(tmp_path):
    with flowing(tmp_path) as pipeline, serve_metrics(pipeline, 0) as port:
        with pytest.raises(UsageError, match=f"port={port}: .*name another port"):
            serve_metrics(pipeline, port).__enter__()
        with pytest.raises(UsageError, match="must be a port"):
            serve_metrics(pipeline, 70000).__enter__()


def test_a_stream_on_a_terminal_shows_how_far_it_is_and_where_its_counts_are(tmp_path):
    """As typed: followed, looked at over the network, stopped."""
    (tmp_path / "in.csv").write_text(LINES)
    master, terminal = pty.openpty()
    words = [
        "stream",
        "--mechanism",
        "laplace",
        "--epsilon",
        "1",
        "--bounds",
        "0",
        "5",
        "--time",
        "t",
        "--value",
        "v",
        "--series",
        "who",
        "--input",
        "in.csv",
        "--follow",
        "--output",
        "out.csv",
        "--state",
        "s.state",
        "--metrics",
        "0",
    ]
    home = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "TERM": "xterm", "COLUMNS": "100"}
    program = [sys.executable, "-m", "tempriv", *words]
    seen = b""
    with subprocess.Popen(program, stderr=terminal, cwd=tmp_path, env=home) as process:
        os.close(terminal)
        try:
            while b"3 released, 5 put aside, 2 series" not in seen:
                seen += os.read(master, 4096)
            where = re.search(rb"http://127.0.0.1:(\d+)/metrics", seen)
            assert where is not None
            found = numbers(scraped(int(where.group(1)))[0])
            assert found["tempriv_readings_released_total"] == 3
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(OSError):  # the terminal closes with its last process
                while piece := os.read(master, 4096):
                    seen += piece
            os.close(master)
        assert process.wait(30) == 0
    assert b"3 not released" in seen
    assert WHO.encode() not in seen
