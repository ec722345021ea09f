"""One holder at a time, in this process and others; whoever is killed holds nothing."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading

import pytest

from tempriv.data import locks
from tempriv.data.locks import FileLock
from tests.support.paths import ROOT

HOLD = """
import sys, time
from pathlib import Path
from tests.support.without import leave_out
if sys.argv[2] == "soft":
    leave_out("posix")
from tempriv.data.locks import FileLock
lock = FileLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["native", "soft"])
def kind(request, monkeypatch):
    """The kernel's locks, and what stands for them where Python has none."""
    if request.param == "soft":

        def missing(descriptor, blocking):
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(locks, "lock_descriptor", missing)
    return request.param


def test_a_second_holder_is_refused_until_the_first_has_closed(tmp_path, kind):
    path = tmp_path / "a.lock"
    with FileLock(path), pytest.raises(BlockingIOError):
        FileLock(path, 0.02)
    FileLock(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_killed_holder_holds_nothing(tmp_path, kind):
    path = tmp_path / "a.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, path, kind], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    with pytest.raises(BlockingIOError):
        FileLock(path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    FileLock(path).close()


def test_the_content_is_the_callers(tmp_path, kind):
    path = tmp_path / "a.lock"
    path.write_bytes(b"kept")  # as any version may have left it
    with FileLock(path) as lock:
        assert os.pread(lock.descriptor, 10, 0) == b"kept"
        with pytest.raises(BlockingIOError):
            FileLock(path)
    assert path.read_bytes() == b"kept"


def test_a_folder_is_locked_without_a_file_in_it(tmp_path, kind):
    folder = tmp_path / "folder"
    folder.mkdir()
    with FileLock(folder), pytest.raises(BlockingIOError):
        FileLock(folder)
    assert list(folder.iterdir()) == []


def test_who_waits_gets_it_in_the_end(tmp_path, kind):
    path, order = tmp_path / "a.lock", []

    def wait():
        with FileLock(path, math.inf):
            order.append("second")

    with FileLock(path):
        waiting = threading.Thread(target=wait)
        waiting.start()
        order.append("first")
    waiting.join(timeout=30)
    assert order == ["first", "second"]


def test_a_missing_file_is_not_made_where_nobody_asked_for_it(tmp_path, kind):
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "a.lock", create=False)
    assert list(tmp_path.iterdir()) == []
