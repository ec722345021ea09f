"""A server in a process of its own, that can be killed and started again."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tempriv.collect.server.tokens import Token, digest_of, parse
from tests.support.paths import ROOT

STARTS = 60.0  # seconds that a start may take on a busy machine


@dataclass
class Served:
    """``tempriv serve`` at work; the port stays the same when it is started again."""

    home: Path
    store: str
    generous: bool = True
    port: int = 0
    kills: int = 0
    process: subprocess.Popen[str] | None = None
    secrets: dict[int, bytes] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def admin(self) -> str:
        return (self.home / "admin.token").read_text().strip()

    def start(self) -> None:
        words = [
            sys.executable,
            "-m",
            "tests.support.collect_server" if self.generous else "tempriv",
        ]
        words += ["serve", "--store", self.store, "--home", str(self.home), "--quiet"]
        with (self.home / "server.log").open("a") as log:
            self.process = subprocess.Popen(
                [*words, "--port", str(self.port)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
            )
        assert self.process.stdout is not None
        began = time.monotonic()
        line = self.process.stdout.readline()
        found = re.search(r":(\d+)$", line.strip())
        assert found, f"{line!r} after {time.monotonic() - began:.0f} s: " + self.log()
        self.port = int(found.group(1))
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def log(self) -> str:
        return (self.home / "server.log").read_text()

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(STARTS)

    def enroll(self, http: httpx.Client, count: int) -> list[int]:
        tokens = http.post("/v1/enrolments", json={"count": count}).json()["tokens"]
        given = []
        for text in tokens:
            token = parse(text)
            assert token is not None
            self.secrets[token.number] = os.urandom(32)
            hashed = digest_of(self.secrets[token.number]).hex()
            given.append({"token": text, "secret_hash": hashed})
        told = http.post("/v1/devices", json={"devices": given}).json()["devices"]
        return [one["number"] for one in told]

    def device(self, number: int) -> str:
        return Token("device", number, self.secrets[number]).text


@contextlib.contextmanager
def served(home: Path, store: str, generous: bool = True) -> Iterator[Served]:
    server = Served(home, store, generous)
    server.start()
    try:
        yield server
    finally:
        server.stop()
