"""The zygote for streams: small blocks, and children that kill themselves at a point if asked to.

A command may also have "small" (bytes or entries of a block) and "die": [POINT, WHEN, CALL], to be
killed at the CALL-th call of a method, "before" it, "after" it, or "half" way through.
"""

import os
import signal
import sys

from tempriv.mechanisms.value.laplace import Laplace
from tempriv.streaming import sources
from tempriv.streaming.keys import Keyring
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sinks import DeadLetterFile, DescriptorSink
from tempriv.streaming.state_file import StateFile
from tests.support import zygote

PLACES = {
    "create": (StateFile, "create"),
    "commit": (StateFile, "commit"),
    "handed_out": (StateFile, "mark_written"),
    "write": (DescriptorSink, "write"),
    "aside": (DeadLetterFile, "write"),
    "keys": (Keyring, "add"),
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def half(point, method, self, *given) -> None:
    """Do some of it."""
    if point == "commit":
        checkpoint, names, shards = (*given, (), ())[:3]

        def some():
            for shard in shards:
                yield shard
                break
            die()

        method(self, checkpoint, names, some())
    elif point == "keys":
        method(self, *given)
        size = os.fstat(self._file).st_size
        os.ftruncate(self._file, size - 64 if given[0] else size)
    elif point == "acknowledge":
        self._unacknowledged = self._unacknowledged[: len(self._unacknowledged) // 2]
        method(self, *given)
    else:  # bytes, or rows
        method(self, given[0][: len(given[0]) // 2], *given[1:])


def arrange(point: str, when: str, call: int) -> None:
    """Kill this process at a point."""
    if point not in PLACES:
        from tempriv.integrations.redis.sink import RedisSink
        from tempriv.integrations.redis.source import RedisSource

        PLACES["add"] = (RedisSink, "_add")
        PLACES["acknowledge"] = (RedisSource, "acknowledge")
        PLACES["stand"] = (RedisSource, "_set_group_position")
    owner, name = PLACES[point]
    method = getattr(owner, name)
    calls = []

    def dying(self, *given):
        calls.append(name)
        if len(calls) < call:
            return method(self, *given)
        if when == "half":
            half(point, method, self, *given)
        elif when == "after":
            method(self, *given)
        die()

    setattr(owner, name, dying)


def make_small(size: int, redis: bool) -> None:
    sources.CHUNK_BYTES = size
    if redis:
        from tempriv.integrations.redis import sink, source

        source.BATCH_ENTRIES = source.COMMAND_ENTRIES = size
        sink.COMMAND_ENTRIES = max(1, size // 3)


def warm() -> None:
    """Load the kernels of streams, so that children have them."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    pipeline = StreamPipeline(
        Laplace(epsilon=1.0, bounds=(0, 5)),
        RecordFormat("csv", ["v"], "t", "who"),
        DescriptorSink(descriptor),
    )
    with pipeline.locked():
        pipeline.push_text(b"who,t,v\na,1,2\na,1,2\n")


def run(command: dict, really=zygote.run) -> None:
    make_small(command["small"], command["redis"])
    if command["die"]:
        arrange(*command["die"])
    really(command)


if __name__ == "__main__":
    warm()
    if "redis" in sys.argv:
        import redis  # noqa: F401
    zygote.run = run
    zygote.serve()
