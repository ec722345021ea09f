"""What tests of streams with a state share: their words, their readings and their files."""

import os
import stat
from pathlib import Path

from tempriv import Laplace
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sinks import DescriptorSink
from tempriv.streaming.state_file import StateFile

COLUMNS = ["--time", "t", "--value", "v", "--series", "who"]
LAPLACE = ["--mechanism", "laplace", "--epsilon", "1", "--bounds", "0", "5", *COLUMNS]
HEADER = "who,t,v\n"
PLAIN = Laplace(epsilon=1.0, bounds=(0, 5))
FILES = ("state", "state-wal", "state.key", "state.lock", "state.aside.jsonl")


def readings(first, last, series=("a", "b")):
    return "".join(f"{who},{t},{t % 5}\n" for t in range(first, last) for who in series)


def places(text):
    """Whose and when: what a released line keeps of its reading."""
    return [line.rsplit(",", 1)[0] for line in text.splitlines()]


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


class Run:
    """A stream with its files, as one run of the command would have it."""

    def __init__(self, folder, mechanism=PLAIN, state="state", out="out.csv", seed=None):
        self.out = os.open(folder / out, os.O_CREAT | os.O_RDWR | os.O_APPEND)
        record_format = RecordFormat(
            "csv", ["v"], "t", "who", mechanism.domain.categories, mechanism.has_status
        )
        self.pipeline = StreamPipeline(
            mechanism, record_format, DescriptorSink(self.out), StateFile(folder / state), seed
        )

    def send(self, *blocks):
        try:
            with self.pipeline.locked():
                self.pipeline.deliver_pending()
                self.pipeline.push_text(HEADER.encode())
                for block in blocks:
                    self.pipeline.push_text(block.encode())
        finally:
            os.close(self.out)
        return self.pipeline


def keep(folder, names=FILES):
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


def put_back(folder, files, names=FILES):
    """Into the files that are there: the same files as before, by what the system says."""
    for name in names:
        if name in files:
            (folder / name).write_bytes(files[name])
        else:
            (folder / name).unlink(missing_ok=True)
