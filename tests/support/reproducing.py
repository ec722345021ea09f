"""``tempriv reproduce`` as typed; in this process, as one of its own would load everything anew."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from unittest import mock

from tempriv.cli.app import main


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    said, complained = io.StringIO(), io.StringIO()
    words = ["tempriv", "reproduce", *arguments]
    status = None
    with (
        mock.patch.object(sys, "argv", words.copy()),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(complained),
    ):
        try:
            main()
        except SystemExit as ended:
            status = ended.code or 0
    assert isinstance(status, int)
    return subprocess.CompletedProcess(words, status, said.getvalue(), complained.getvalue())
